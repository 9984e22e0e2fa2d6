"""Neighbors in matrices that nothing else reads: no tuning, bench or other test."""

import networkx
import numpy as np
import pytest
import statsmodels.datasets
from oracle import METRICS, SHARES, as_format, distances
from sklearn.datasets import load_diabetes, load_linnerud, load_sample_image

from sparsek.neighbors import NearestNeighbors

K = 12
# Distances of float64 that differ by less are equal.
ROUNDING = 1e-11
# Roots of differences: rounding shows in their squares.
ROOTS = ["hellinger", "jensen-shannon"]


def patches(name):
    """Returns squares of 8 x 8 pixels of a photograph, gray, whole numbers."""
    gray = load_sample_image(name).astype(np.int64).sum(axis=2)[:416, :640]
    squares = gray.reshape(52, 8, 80, 8).swapaxes(1, 2).reshape(-1, 64)
    return squares[::7].astype(np.float64)


def numbers(data):
    """Returns the numeric columns of a data frame, without rows that lack one."""
    return data.select_dtypes("number").dropna().to_numpy(dtype=np.float64)


def held_out():
    """Returns matrices by name."""
    graphs = {
        "les_miserables": networkx.les_miserables_graph(),
        "davis": networkx.davis_southern_women_graph(),
        "florentine": networkx.florentine_families_graph(),
        "grid": networkx.grid_2d_graph(15, 20),
        "windmill": networkx.windmill_graph(12, 7),
    }
    matrices = {name: networkx.to_numpy_array(graph) for name, graph in graphs.items()}
    matrices |= {f"{name[:-4]}-patches": patches(name) for name in ("china.jpg", "flower.jpg")}
    matrices |= {"diabetes": load_diabetes().data, "linnerud": load_linnerud().data}
    for name in ("fair", "grunfeld", "spector", "scotland", "star98", "stackloss", "randhie"):
        matrices[name] = numbers(getattr(statsmodels.datasets, name).load_pandas().data)[:1500]
    return matrices


MATRICES = held_out()
WHOLE = [name for name, x in MATRICES.items() if np.array_equal(x, np.round(x))]


def wrong(found, expected, k, largest):
    """Counts neighbors that are not among the k nearest, or not at their distance."""
    values, places = found
    keys = -expected if largest else expected
    # NaN is last.
    keys = np.where(np.isnan(keys), np.inf, keys)
    nearest = np.sort(keys, axis=1)[:, :k]
    real = np.take_along_axis(keys, places, axis=1)
    scale = ROUNDING * np.maximum(1, np.abs(expected[np.isfinite(expected)]).max(initial=1))
    with np.errstate(invalid="ignore"):
        far = np.abs(real - nearest) > scale
        off = np.abs(np.where(np.isnan(values), np.inf, -values if largest else values) - real)
    # Infinities of one sign are equal.
    far &= real != nearest
    return int(far.sum() + (off > scale).sum()) + sum(k - len(set(row)) for row in places)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("metric", METRICS)
def test_no_neighbor_is_wrong(metric, name):
    x = MATRICES[name]
    if metric in SHARES:
        x = np.abs(x)[np.abs(x).sum(axis=1) > 0]
    k = min(K, len(x))
    power = 2 if metric in ROOTS else 1
    expected = distances(metric, x, x, p=3.0) ** power
    params = {"p": 3} if metric == "minkowski" else {}
    count = 0
    for form in ("dense", "csr"):
        fitted = NearestNeighbors(n_neighbors=k, metric=metric, device="cpu", **params)
        rows = as_format(x, form)
        values, places = fitted.fit(rows).kneighbors(rows)
        count += wrong((values**power, places), expected, k, metric == "dot")
    assert count == 0


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("metric", ["manhattan", "sqeuclidean", "chebyshev", "hamming"])
def test_ties_go_to_the_lowest_row(metric, name):
    x = MATRICES[name]
    expected = distances(metric, x, x)
    k = min(K, len(x))
    order = np.argsort(expected, axis=1, kind="stable")[:, :k]
    for form in ("dense", "csr"):
        rows = as_format(x, form)
        fitted = NearestNeighbors(n_neighbors=k, metric=metric, device="cpu").fit(rows)
        np.testing.assert_array_equal(fitted.kneighbors(rows)[1], order)
