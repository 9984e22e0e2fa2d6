"""Writes the matrices of `tests/suite/sparse/hdf5.rs` with AnnData's and h5py's own writers.

    python tests/hdf5/generate.py

Written with anndata 0.12.19 and h5py 3.16.0. The suite compares every matrix with that of an npz
file.
"""

import pathlib

import anndata
import h5py
import numpy as np
import scipy.sparse as sp

HERE = pathlib.Path(__file__).parent
ROWS, COLS = 7, 5


def matrix(seed, dtype=np.float32):
    """An empty row, an empty column, and an explicit zero."""
    random = np.random.default_rng(seed)
    dense = random.integers(1, 9, (ROWS, COLS)) * (random.random((ROWS, COLS)) < 0.4)
    dense[2] = 0
    dense[:, 3] = 0
    dense[0, 0] = 1
    csr = sp.csr_matrix(dense.astype(dtype))
    csr.data[0] = 0
    return csr


def save(name, csr):
    sp.save_npz(HERE / f"{name}.npz", csr.tocsr().astype(np.float32))


def new_anndata():
    data = anndata.AnnData(matrix(1))
    data.layers["counts"] = matrix(2, np.int64).tocsc()
    data.layers["flags"] = matrix(3, bool)
    data.layers["dense"] = matrix(4).toarray()
    data.obsp["graph"] = sp.csr_matrix(matrix(5, np.float64) @ matrix(6, np.float64).T)
    for name, csr in [("X", data.X), ("graph", data.obsp["graph"])]:
        save(name, csr)
    for name in ["counts", "flags"]:
        save(name, data.layers[name])
    for compression in [None, "gzip", "lzf"]:
        data.write_h5ad(HERE / f"{compression or 'plain'}.h5ad", compression=compression)


def old_anndata():
    """Attributes of AnnData before version 0.7, and halves, which h5py writes."""
    csr = matrix(1)
    with h5py.File(HERE / "old.h5ad", "w") as file:
        group = file.create_group("X")
        group.attrs["h5sparse_format"] = "csr"
        group.attrs["h5sparse_shape"] = np.array(csr.shape)
        for name in ["data", "indices", "indptr"]:
            values = getattr(csr, name)
            values = values.astype(np.float16) if name == "data" else values
            group.create_dataset(name, data=values, chunks=(4,), maxshape=(None,))


def tenx():
    """Features × barcodes in columns; chunks as Cell Ranger writes them, but smaller."""
    counts = matrix(2, np.int32)
    for name, group in [("cellranger-3", "matrix"), ("cellranger-2", "GRCh38")]:
        with h5py.File(HERE / f"{name}.h5", "w", libver=("v114", "v114")) as file:
            group = file.create_group(group)
            arrays = {
                "data": counts.data,
                "indices": counts.indices.astype(np.int64),
                "indptr": counts.indptr.astype(np.int64),
            }
            for array, values in arrays.items():
                group.create_dataset(
                    array, data=values, chunks=(4,), maxshape=(None,), compression=4, shuffle=True
                )
            group.create_dataset("shape", data=np.array(counts.shape[::-1], np.int32))
            group.create_dataset("barcodes", data=np.array([b"AAAC-1"] * ROWS))


new_anndata()
old_anndata()
tenx()
