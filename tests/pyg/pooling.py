"""Writes pooling.json: outputs and gradients of PyG's pooling on a small batch, as layers.py does.

    python tests/pyg/pooling.py

The suite (tests/suite/gnn/pooling.rs) loads parameters and inputs into our layers and compares.
Cases of layers that keep nodes: their features, a sum over the edges of the pooled graph, and a
sum over its graphs, side by side.
"""

import pathlib

import layers
import torch
from layers import WIDTH, case, linear
from torch_geometric import nn
from torch_geometric.utils import scatter

SIZES = [5, 1, 0, 6, 4]
GRAPHS = len(SIZES)
NODES = sum(SIZES)
BATCH = torch.repeat_interleave(torch.arange(GRAPHS), torch.tensor(SIZES))


def edges():
    """Within each graph: a cycle, random pairs, a loop; in CSR order, without repeated edges."""
    generator = torch.Generator().manual_seed(2)
    pairs = set()
    first = 0
    for size in SIZES:
        if size > 0:
            random = torch.randint(0, size, (2 * size, 2), generator=generator).tolist()
            cycle = [[node, (node + 1) % size] for node in range(size)]
            pairs |= {(first + source, first + target) for source, target in random + cycle}
        first += size
    return [list(pair) for pair in sorted(pairs, key=lambda pair: (pair[1], pair[0]))]


EDGES = edges()
INDEX = torch.tensor(EDGES).t()


def globals_():
    pools = [("sum", nn.global_add_pool), ("mean", nn.global_mean_pool)]
    for name, pool in [*pools, ("max", nn.global_max_pool)]:
        case(f"global/{name}", lambda x, _, pool=pool: pool(x, BATCH, GRAPHS))


def kept(name, make, parameters, scale=1.0, prepare=None):
    """`scale`: of the features, so that devices rank the scores as f64 does."""
    module = make.double()
    nodes = []

    def forward(x, _):
        if prepare is not None:
            prepare(module)
        x, index, _, batch, perm, _ = module(scale * x, INDEX, batch=BATCH)
        nodes.append(perm.tolist())
        source, target = index
        sums = scatter(x[source], target, 0, x.size(0), "sum")
        graphs = nn.global_add_pool(x, batch, GRAPHS)
        return torch.cat([x, sums, graphs[batch]], 1)

    scores = []
    hook = module.select.register_forward_pre_hook(lambda _, inputs: scores.append(inputs[0]))
    case(name, forward, parameters(module))
    hook.remove()
    layers.CASES[-1]["nodes"] = nodes[-1]
    with torch.no_grad():
        weight = module.select.weight
        check_gaps(name, torch.tanh((scores[-1] * weight).sum(1) / weight.norm()))


def check_gaps(name, scores):
    """No two scores of a graph are nearly equal."""
    for graph in range(GRAPHS):
        ordered = scores[BATCH == graph].sort().values
        gap = (ordered[1:] - ordered[:-1]).min().item() if len(ordered) > 1 else 1.0
        assert gap > 1e-3, f"{name}: scores of graph {graph} differ by {gap}"


def positive(module):
    """The sign of this weight multiplies the scores."""
    with torch.no_grad():
        module.select.weight.fill_(1.0)


def main():
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    layers.NODES, layers.EDGES = NODES, EDGES
    globals_()

    def topk(m):
        return [m.select.weight]

    def sag(m):
        return linear(m.gnn.lin_rel) + linear(m.gnn.lin_root)

    kept("topk/default", nn.TopKPooling(WIDTH), topk)
    kept("topk/ratio-multiplier", nn.TopKPooling(WIDTH, ratio=0.7, multiplier=2.0), topk)
    kept("sag/default", nn.SAGPooling(WIDTH), sag, 0.1, positive)
    module = nn.SAGPooling(WIDTH, ratio=0.3, multiplier=0.5)
    kept("sag/ratio-multiplier", module, sag, 0.1, positive)
    module = nn.Set2Set(WIDTH, 3).double()
    lstm = module.lstm
    case(
        "set2set",
        lambda x, _: module(x, BATCH, dim_size=GRAPHS),
        [
            (lstm.weight_ih_l0, True),
            lstm.bias_ih_l0,
            (lstm.weight_hh_l0, True),
            lstm.bias_hh_l0,
        ],
    )
    head = {"sizes": SIZES, "nodes": NODES, "width": WIDTH, "edges": EDGES}
    layers.write(pathlib.Path(__file__).with_suffix(".json"), head)


if __name__ == "__main__":
    main()
