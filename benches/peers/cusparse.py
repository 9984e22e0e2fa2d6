#!/usr/bin/env python3
"""Times k-NN by inner products with cuSPARSE: SpGEMM of tiles of rows, made dense, `torch.topk`.

    cusparse.py FILE.npz...

Files as scipy's save_npz writes them. Prints a JSON line per file: the median of five, and of the
product of one tile with the transposed matrix the density and the bytes of product and workspace
(Nolet et al., Section 4.3). Tiles have as many rows as SpGEMM's resources allow.
"""
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch

K = 16
MOST_ROWS = 4096


def load(path):
    file = np.load(path)
    rows, cols = (int(size) for size in file["shape"])
    indptr, indices = file["indptr"].astype(np.int64), file["indices"].astype(np.int64)
    return indptr, indices, file["data"].astype(np.float32), rows, cols


def transposed(indptr, indices, data, rows, cols):
    order = np.argsort(indices, kind="stable")
    row = np.repeat(np.arange(rows), np.diff(indptr))
    counts = np.bincount(indices, minlength=cols)
    return np.concatenate([[0], np.cumsum(counts)]), row[order], data[order], cols, rows


def upload(indptr, indices, data, rows, cols):
    parts = [torch.from_numpy(part.astype(np.int32)) for part in (indptr, indices)]
    parts.append(torch.from_numpy(data))
    return torch.sparse_csr_tensor(*parts, size=(rows, cols), device="cuda")


def tiles(matrix, most):
    indptr, indices, data, rows, cols = matrix
    for first in range(0, rows, most):
        last = min(first + most, rows)
        begin, end = indptr[first], indptr[last]
        part = indptr[first : last + 1] - begin, indices[begin:end], data[begin:end]
        yield first, upload(*part, last - first, cols)


def neighbors(parts, right):
    found = []
    for first, tile in parts:
        scores = torch.sparse.mm(tile, right).to_dense()
        rows = torch.arange(len(scores), device="cuda")
        scores[rows, first + rows] = -torch.inf
        found.append(scores.topk(K))
    return [torch.cat(part) for part in zip(*found)]


def largest_tiles(matrix, right):
    """Tiles that SpGEMM can multiply, with their neighbors."""
    most = MOST_ROWS
    while True:
        parts = list(tiles(matrix, most))
        try:
            return parts, neighbors(parts, right)[0]
        except RuntimeError as error:
            if most == 1 or "insufficient resources" not in str(error):
                raise
            most //= 2


def check(matrix, values):
    """Compares the neighbors of one row with numpy's."""
    indptr, indices, data, rows, cols = matrix
    dense = np.zeros(cols)
    dense[indices[indptr[0] : indptr[1]]] = data[indptr[0] : indptr[1]]
    scores = np.add.reduceat(np.append(dense[indices] * data, 0), indptr[:-1])
    scores[np.diff(indptr) == 0] = 0
    best = np.sort(scores[1:])[::-1][:K]
    assert np.allclose(values[0].cpu().numpy(), best, rtol=1e-4, atol=1e-4), "wrong neighbors"


def median_ms(run, runs=5):
    times = []
    for _ in range(runs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main():
    for path in sys.argv[1:]:
        matrix = load(path)
        right = upload(*transposed(*matrix))
        parts, values = largest_tiles(matrix, right)
        check(matrix, values)
        del values
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        first = parts[0][1]
        product = torch.sparse.mm(first, right)
        torch.cuda.synchronize()
        entries = product.values().numel()
        product_bytes = torch.cuda.memory_allocated() - before
        workspace_bytes = torch.cuda.max_memory_allocated() - before - product_bytes
        del product
        line = {
            "bench": "distance",
            "peer": "cuSPARSE SpGEMM",
            "case": Path(path).stem,
            "method": "dot",
            "ms": median_ms(lambda: neighbors(parts, right)),
            "tile_rows": first.shape[0],
            "density": entries / (first.shape[0] * right.shape[1]),
            "dense_bytes": 4 * first.shape[0] * right.shape[1],
            "product_bytes": product_bytes,
            "workspace_bytes": workspace_bytes,
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
