#!/usr/bin/env python3
"""Times calls of the Python package on a CUDA device beside PyTorch, on tensors of PyTorch.

    torch_calls.py [--topk ROWSxCOLUMNSxK...] [--neighbors NxDxQxK...] [--metric euclidean...]

Results are compared before anything is timed. Prints JSON lines, sparsek's and PyTorch's: medians
of eleven calls that are waited for. Searches of PyTorch are those of torch_dense.py.
"""
import argparse
import json

import torch
from torch_dense import exponent, median_ms, neighbors

import sparsek
from sparsek.neighbors import NearestNeighbors


RUNS = 11


def compare(case, ours, theirs, check):
    check(ours(), theirs())
    yield {**case, "backend": "cuda", "ms": median_ms(ours, RUNS)}
    yield {**case, "peer": f"PyTorch {torch.__version__}", "ms": median_ms(theirs, RUNS)}


def selection(text):
    rows, columns, k = (int(size) for size in text.split("x"))
    x = torch.randn(rows, columns, device="cuda")

    def check(found, expected):
        assert torch.equal(found.values, expected.values)
        assert torch.equal(x.gather(1, found.indices), found.values)

    case = {"bench": "python", "case": text, "method": "topk", "dtype": "f32", "k": k}
    yield from compare(case, lambda: sparsek.topk(x, k), lambda: x.topk(k), check)


def search(text, metric):
    rows, columns, queries, k = (int(size) for size in text.split("x"))
    index = torch.randn(rows, columns, device="cuda")
    query = torch.randn(queries, columns, device="cuda")
    fitted = NearestNeighbors(n_neighbors=k, metric=metric).fit(index)

    def theirs():
        return neighbors(index, query, k, exponent(metric))

    def check(found, expected):
        torch.testing.assert_close(found[0], expected[0], rtol=1e-4, atol=1e-3)

    method = f"kneighbors, {metric}"
    case = {"bench": "python", "case": text, "method": method, "dtype": "f32", "k": k}
    yield from compare(case, lambda: fitted.kneighbors(query), theirs, check)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topk", nargs="*", default=[])
    parser.add_argument("--neighbors", nargs="*", default=[])
    parser.add_argument("--metric", nargs="*", default=["euclidean"])
    options = parser.parse_args()
    torch.manual_seed(1)
    lines = [line for text in options.topk for line in selection(text)]
    for text in options.neighbors:
        for metric in options.metric:
            lines += search(text, metric)
    for line in lines:
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
