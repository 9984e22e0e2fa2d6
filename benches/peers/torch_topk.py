#!/usr/bin/env python3
"""Times `torch.topk` of normal rows, unsorted.

    torch_topk.py NxMxK...
    torch_topk.py --paper [--quick]

Cases as in `sparsek-bench topk`; `--paper` gives those of `sparsek-bench paper rtop-k`. Prints a
JSON line per case: the median of seven.
"""
import json
import statistics
import sys
import time

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Long sums of runs, so that the clock does not count.
SAMPLE_MS = 4.0
GRAPHS = {"flickr": 89250, "yelp": 716847, "reddit": 232965, "products": 2449029}


def paper(quick):
    for exponent in [16] if quick else [14, 16, 18, 20]:
        for cols in [256, 512, 768]:
            for k in [16, 32, 64, 96, 128]:
                yield 1 << exponent, cols, k
    for cols in [1024, 4096] if quick else [256, 512, 1024, 2048, 4096, 8192]:
        for k in [64, 128, 256, 512]:
            if k < cols:
                yield 1 << 16, cols, k
    for name, nodes in GRAPHS.items():
        if not quick or name == "flickr":
            yield nodes, 256, 32


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def timed_ms(run, runs):
    synchronize()
    start = time.perf_counter()
    for _ in range(runs):
        run()
    synchronize()
    return 1e3 * (time.perf_counter() - start) / runs


def median_ms(run):
    timed_ms(run, 3)
    runs = max(1, min(64, int(SAMPLE_MS / timed_ms(run, 1))))
    return statistics.median(timed_ms(run, runs) for _ in range(7))


def main(arguments):
    if "--paper" in arguments:
        cases = list(dict.fromkeys(paper("--quick" in arguments)))
    else:
        cases = [tuple(int(size) for size in case.split("x")) for case in arguments]
    if not cases:
        sys.exit(__doc__)
    for rows, cols, k in cases:
        torch.manual_seed(0)
        x = torch.randn(rows, cols, device=DEVICE)
        values, columns = x.topk(k, sorted=False)
        assert torch.equal(x.gather(1, columns), values)
        expected = x[:64].sort(1, descending=True).values[:, :k]
        assert torch.equal(values[:64].sort(1, descending=True).values, expected)
        ms = median_ms(lambda: x.topk(k, sorted=False))
        line = {"bench": "topk", "peer": "torch unsorted", "case": f"{rows}x{cols}x{k}", "ms": ms}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
