"""Graphs of single cells, by scanpy."""

import numpy as np
import pytest
import scanpy
import sklearn.neighbors

from sparsek.neighbors import KNeighborsTransformer

CELLS = scanpy.datasets.pbmc68k_reduced()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("columns", ["genes", "components"])
def test_neighbors_of_cells(columns, metric):
    k = 15
    # By brute force, scikit-learn's euclidean distance of a row to itself is not 0.
    algorithm = "brute" if metric == "cosine" else "kd_tree"
    graphs = []
    for transformer in (
        KNeighborsTransformer(n_neighbors=k, metric=metric, device="cpu"),
        sklearn.neighbors.KNeighborsTransformer(
            n_neighbors=k, metric=metric, algorithm=algorithm
        ),
    ):
        cells = CELLS.copy()
        # In float64, so that both sum to the same distances.
        cells.X = cells.X.astype(np.float64)
        cells.obsm["X_pca"] = cells.obsm["X_pca"].astype(np.float64)
        cells.uns.pop("neighbors", None)
        scanpy.pp.neighbors(
            cells,
            n_neighbors=k,
            transformer=transformer,
            use_rep="X" if columns == "genes" else "X_pca",
        )
        graphs.append(cells.obsp)
    ours, theirs = graphs
    for key in ("distances", "connectivities"):
        found, expected = ours[key], theirs[key]
        assert found.nnz == expected.nnz > 700 * (k - 1)
        np.testing.assert_array_equal(found.indptr, expected.indptr)
        assert abs(found - expected).max() < 1e-5
