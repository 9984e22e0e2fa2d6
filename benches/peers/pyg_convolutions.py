#!/usr/bin/env python3
"""Times PyG's convolutions, forward and backward, for `sparsek-bench convolutions --torch FILE`.

    pyg_convolutions.py PREFIX CASE... > FILE

PREFIX.indptr and PREFIX.indices: a graph that `sparsek-bench convolutions --dump PREFIX` wrote.
A case is LAYER:GRAPH:WIDTH as there. Prints a JSON line per case: the median of five, and PyTorch's
greatest reserved memory. Of the two forms of edges that PyG takes, a sparse tensor and an index,
prints the faster; one that exceeds memory drops out.
"""
import json
import statistics
import sys
import time

import numpy as np
import torch
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HEADS = 4
# As sparsek's tensor cores.
torch.backends.cuda.matmul.allow_tf32 = True


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def median_ms(run, runs=5):
    for _ in range(2):
        run()
    times = []
    for _ in range(runs):
        synchronize()
        start = time.perf_counter()
        run()
        synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def convolution(layer, width):
    if layer == "sage":
        return SAGEConv(width, width)
    if layer == "gcn":
        return GCNConv(width, width, cached=True)
    if layer == "gin":
        first, second = (torch.nn.Linear(width, width) for _ in range(2))
        return GINConv(torch.nn.Sequential(first, torch.nn.ReLU(), second))
    return GATConv(width, width // HEADS, heads=HEADS)


def edges(prefix, form):
    pointers = torch.from_numpy(np.fromfile(prefix + ".indptr", dtype=np.int32)).long().to(DEVICE)
    sources = torch.from_numpy(np.fromfile(prefix + ".indices", dtype=np.int32)).long().to(DEVICE)
    nodes = len(pointers) - 1
    if form == "sparse":
        ones = torch.ones(len(sources), device=DEVICE)
        return torch.sparse_csr_tensor(pointers, sources, ones, (nodes, nodes)), nodes
    targets = torch.repeat_interleave(torch.arange(nodes, device=DEVICE), pointers.diff())
    return torch.stack([sources, targets]), nodes


def measure(prefix, layer, width, form):
    torch.manual_seed(1)
    adjacency, nodes = edges(prefix, form)
    model = convolution(layer, width).to(DEVICE)
    x = torch.rand(nodes, width, device=DEVICE) * 2 - 1
    upstream = x * 0.5
    x.requires_grad_()

    def run():
        x.grad = None
        model.zero_grad(set_to_none=True)
        model(x, adjacency).backward(upstream)

    return median_ms(run)


def main():
    prefix, *cases = sys.argv[1:]
    for case in cases:
        layer, _, width = case.split(":")
        best = None
        for form in ("sparse", "index"):
            if DEVICE == "cuda":
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            try:
                ms = measure(prefix, layer, int(width), form)
            except (RuntimeError, NotImplementedError, ValueError) as error:
                print(f"{case}, {form}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            peak = torch.cuda.max_memory_reserved() if DEVICE == "cuda" else 0
            print(f"{case}, {form}: {ms:.3f} ms, {peak / 2**30:.2f} GiB", file=sys.stderr)
            if best is None or ms < best["ms"]:
                best = {"case": case, "ms": ms, "peak_bytes": peak, "form": form}
        if best:
            print(json.dumps(best), flush=True)


if __name__ == "__main__":
    main()
