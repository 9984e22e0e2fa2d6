"""Makes a graph of single cells, embeds it by UMAP, and draws it.

Needs scanpy and matplotlib: python umap_graph.py [FILE.h5ad] [--metric cosine] [--device auto]
"""

import argparse

import matplotlib
import scanpy

from sparsek.neighbors import KNeighborsTransformer

matplotlib.use("Agg")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="cells in h5ad; else 700 that scanpy ships")
    parser.add_argument("--metric", default="cosine")
    parser.add_argument("--neighbors", type=int, default=15)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", default="umap.png")
    options = parser.parse_args()

    # %% Cells: one row each, one column per gene.
    if options.file:
        cells = scanpy.read_h5ad(options.file)
        scanpy.pp.normalize_total(cells)
        scanpy.pp.log1p(cells)
    else:
        cells = scanpy.datasets.pbmc68k_reduced()
    print(f"{cells.n_obs} cells, {cells.n_vars} genes")

    # %% The graph of nearest neighbors, in scanpy's place.
    transformer = KNeighborsTransformer(
        n_neighbors=options.neighbors, metric=options.metric, device=options.device
    )
    scanpy.pp.neighbors(
        cells, n_neighbors=options.neighbors, transformer=transformer, use_rep="X"
    )
    graph = cells.obsp["connectivities"]
    print(f"{graph.nnz} edges")

    # %% Clusters and a picture.
    scanpy.tl.umap(cells, random_state=0)
    labels = "bulk_labels" if "bulk_labels" in cells.obs else None
    figure = scanpy.pl.umap(cells, color=labels, show=False, return_fig=True)
    figure.savefig(options.output, dpi=150, bbox_inches="tight")
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
