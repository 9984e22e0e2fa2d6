#!/usr/bin/env python3
"""Times k-NN of dense rows in PyTorch: distances in tiles and `torch.topk`.

    torch_dense.py [--metric manhattan] NxDxQxK...

Cases as in `sparsek-bench dense`. Euclidean distances are by products, f32 and TF32; manhattan,
chebyshev and minkowski:P are by `torch.cdist`. Prints a JSON line per case: the median of five.
"""
import argparse
import json
import statistics
import time

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Elements of a tile of distances.
TILE = 1 << 30


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def neighbors(index, query, k, p=None):
    """Returns distances and rows by the norm of an exponent, or by products if there is none."""
    if p is not None:
        return neighbors_by_norm(index, query, k, p)
    norms = index.square().sum(1)
    step = max(1, TILE // len(index))
    found = []
    for tile in query.split(step):
        squares = torch.addmm(norms, tile, index.T, alpha=-2)
        best, rows = squares.topk(k, largest=False)
        best += tile.square().sum(1, keepdim=True)
        found.append((best.clamp_(min=0).sqrt_(), rows))
    return [torch.cat(part) for part in zip(*found)]


def exponent(metric):
    """Returns p of a norm, or None for euclidean."""
    known = {"euclidean": None, "manhattan": 1.0, "chebyshev": float("inf")}
    return known[metric] if metric in known else float(metric.removeprefix("minkowski:"))


def neighbors_by_norm(index, query, k, p):
    step = max(1, TILE // len(index))
    found = [torch.cdist(tile, index, p=p).topk(k, largest=False) for tile in query.split(step)]
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--metric", action="append")
    options = parser.parse_args()
    for case in options.cases:
        rows, columns, queries, k = (int(size) for size in case.split("x"))
        torch.manual_seed(1)
        index = torch.randn(rows, columns, device=DEVICE)
        query = torch.randn(queries, columns, device=DEVICE)
        for metric in options.metric or ["euclidean"]:
            p = exponent(metric)
            for tf32 in (False, True) if p is None else (False,):
                torch.backends.cuda.matmul.allow_tf32 = tf32
                ms = median_ms(lambda: neighbors(index, query, k, p))
                peer = "PyTorch, TF32" if tf32 else "PyTorch, f32"
                line = {"bench": "dense", "peer": peer, "case": case, "method": metric, "ms": ms}
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
