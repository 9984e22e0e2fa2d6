#!/usr/bin/env python3
"""Times k-NN of dense rows in PyTorch: products in tiles, `torch.topk`, and a merge.

    torch_dense.py NxDxQxK...

Cases as in `sparsek-bench dense`. Prints a JSON line per case and kind of products, f32 or TF32:
the median of five.
"""
import json
import statistics
import sys
import time

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Elements of a tile of distances.
TILE = 1 << 30


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def neighbors(index, query, k):
    norms = index.square().sum(1)
    step = max(1, TILE // len(index))
    found = []
    for tile in query.split(step):
        squares = torch.addmm(norms, tile, index.T, alpha=-2)
        best, rows = squares.topk(k, largest=False)
        best += tile.square().sum(1, keepdim=True)
        found.append((best.clamp_(min=0).sqrt_(), rows))
    return [torch.cat(part) for part in zip(*found)]


def median_ms(run, runs=5):
    run()
    times = []
    for _ in range(runs):
        synchronize()
        start = time.perf_counter()
        run()
        synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main():
    for case in sys.argv[1:]:
        rows, columns, queries, k = (int(size) for size in case.split("x"))
        torch.manual_seed(1)
        index = torch.randn(rows, columns, device=DEVICE)
        query = torch.randn(queries, columns, device=DEVICE)
        for tf32 in (False, True):
            torch.backends.cuda.matmul.allow_tf32 = tf32
            ms = median_ms(lambda: neighbors(index, query, k))
            peer = "PyTorch, TF32" if tf32 else "PyTorch, f32"
            line = {"bench": "dense", "peer": peer, "case": case, "method": "euclidean", "ms": ms}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
