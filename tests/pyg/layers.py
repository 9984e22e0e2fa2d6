"""Writes layers.json: outputs and gradients of PyG's layers on a small graph, computed in f64.

    pip install torch torch_geometric
    python tests/pyg/layers.py

The suite (tests/suite/gnn/pyg.rs) loads parameters and inputs into our layers and compares.
Parameters are listed in the order of the fields of our layers, linear weights as [in, out].
"""

import json
import pathlib
import platform

import torch
import torch_geometric
from torch.nn import Linear, ReLU, Sequential
from torch_geometric import nn
from torch_geometric.utils import scatter, softmax

NODES, WIDTH, OUT = 9, 4, 3


def edges():
    """Hubs, self-loops, a repeated edge, a node without edges; in CSR order.

    No node has two self-loops: PyG keeps the last, but gives the gradient of its weight to both.
    """
    generator = torch.Generator().manual_seed(1)
    pairs = torch.randint(0, NODES - 1, (20, 2), generator=generator).tolist()
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    pairs += [[source, 2] for source in range(NODES - 1)] + [[4, 4], [1, 2]]
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]))


EDGES = edges()
INDEX = torch.tensor(EDGES).t()
CASES = []


def numbers(tensor):
    """Shortest decimals that read back as the tensor's elements in f32."""
    values = tensor.detach().to(torch.float32).flatten()
    return [float(f"{value:.9g}") for value in values.tolist()]


def normals(*shape):
    """Exact in f32."""
    return torch.randn(*shape).to(torch.float32).to(torch.float64)


def case(name, forward, parameters=()):
    """`parameters`: tensors, or (tensor, True) for a linear weight of shape [out, in]."""
    pairs = [each if isinstance(each, tuple) else (each, False) for each in parameters]
    with torch.no_grad():
        for tensor, _ in pairs:
            tensor.copy_(normals(*tensor.shape))
    x = normals(NODES, WIDTH).requires_grad_()
    weights = (normals(len(EDGES)).abs() + 0.25).to(torch.float32).to(torch.float64)
    weights.requires_grad_()
    y = forward(x, weights)
    upstream = normals(*y.shape)
    (y * upstream).sum().backward()

    def turned(tensor, linear):
        return numbers(tensor.t() if linear else tensor)

    zeros = torch.zeros_like(weights)
    CASES.append({
        "name": name,
        "x": numbers(x),
        "weights": numbers(weights),
        "parameters": [turned(tensor, linear) for tensor, linear in pairs],
        "upstream": numbers(upstream),
        "y": numbers(y),
        "dx": numbers(x.grad),
        "dweights": numbers(zeros if weights.grad is None else weights.grad),
        "dparameters": [turned(tensor.grad, linear) for tensor, linear in pairs],
    })


def linear(layer):
    """Weight and bias of a linear layer."""
    bias = [] if layer.bias is None else [layer.bias]
    return [(layer.weight, True), *bias]


def layer(name, make, parameters, weighted=False):
    module = make.double()

    def forward(x, weights):
        return module(x, INDEX, weights) if weighted else module(x, INDEX)

    case(name, forward, parameters(module))


def messages():
    source, target = INDEX

    def weighted(x, weights):
        return x[source] * weights[:, None]

    for reduce in ["sum", "mean", "max", "min"]:
        case(
            f"scatter/{reduce}",
            lambda x, w, reduce=reduce: scatter(weighted(x, w), target, 0, NODES, reduce),
        )
    case("softmax", lambda x, w: softmax(weighted(x, w), target, num_nodes=NODES))


def convolutions():
    layer("gcn/default", nn.GCNConv(WIDTH, OUT), lambda m: [(m.lin.weight, True), m.bias])
    layer(
        "gcn/improved-weighted",
        nn.GCNConv(WIDTH, OUT, improved=True),
        lambda m: [(m.lin.weight, True), m.bias],
        weighted=True,
    )
    for how in ["mean", "sum", "max"]:
        layer(
            f"sage/{how}",
            nn.SAGEConv(WIDTH, OUT, aggr=how),
            lambda m: linear(m.lin_l) + linear(m.lin_r),
        )
    layer(
        "sage/project-normalize",
        nn.SAGEConv(WIDTH, OUT, normalize=True, project=True),
        lambda m: linear(m.lin) + linear(m.lin_l) + linear(m.lin_r),
    )
    layer(
        "gin/mlp",
        nn.GINConv(Sequential(Linear(WIDTH, 5), ReLU(), Linear(5, OUT)), train_eps=True),
        lambda m: [m.eps] + linear(m.nn[0]) + linear(m.nn[2]),
    )


def attention():
    def gat(m):
        vectors = [m.att_src, m.att_dst]
        return linear(m.lin) + vectors + ([] if m.bias is None else [m.bias])

    def gat_v2(m):
        right = [] if m.lin_r is m.lin_l else linear(m.lin_r)
        return linear(m.lin_l) + right + [m.att] + ([] if m.bias is None else [m.bias])

    layer("gat/default", nn.GATConv(WIDTH, OUT), gat)
    layer("gat/heads", nn.GATConv(WIDTH, OUT, heads=3), gat)
    plain = {"concat": False, "add_self_loops": False, "bias": False}
    layer("gat/mean", nn.GATConv(WIDTH, OUT, heads=2, negative_slope=0.5, **plain), gat)
    layer("gat-v2/default", nn.GATv2Conv(WIDTH, OUT), gat_v2)
    layer("gat-v2/heads", nn.GATv2Conv(WIDTH, OUT, heads=3), gat_v2)
    shared = nn.GATv2Conv(WIDTH, OUT, heads=2, share_weights=True, **plain)
    layer("gat-v2/mean-shared", shared, gat_v2)


def propagation():
    layer("sg/default", nn.SGConv(WIDTH, OUT), lambda m: linear(m.lin))
    sg = nn.SGConv(WIDTH, OUT, K=3, bias=False)
    layer("sg/hops-weighted", sg, lambda m: linear(m.lin), weighted=True)
    layer("appnp/default", nn.APPNP(4, 0.1), lambda m: [])
    appnp = nn.APPNP(2, 0.3, add_self_loops=False)
    layer("appnp/weighted", appnp, lambda m: [], weighted=True)

    def graph_conv(m):
        return linear(m.lin_rel) + linear(m.lin_root)

    layer("graph-conv/default", nn.GraphConv(WIDTH, OUT), graph_conv)
    for how, aggr in [("sum", "add"), ("mean", "mean"), ("max", "max")]:
        module = nn.GraphConv(WIDTH, OUT, aggr=aggr)
        layer(f"graph-conv/{how}-weighted", module, graph_conv, weighted=True)

    def cheb(m):
        return [(term.weight, True) for term in m.lins] + [m.bias]

    layer("cheb/one-term", nn.ChebConv(WIDTH, OUT, K=1), cheb)
    layer("cheb/four-terms", nn.ChebConv(WIDTH, OUT, K=4), cheb)


def transformer():
    def parameters(m):
        skip = linear(m.lin_skip) if m.root_weight else []
        return linear(m.lin_key) + linear(m.lin_query) + linear(m.lin_value) + skip

    layer("transformer/default", nn.TransformerConv(WIDTH, OUT), parameters)
    layer("transformer/heads", nn.TransformerConv(WIDTH, OUT, heads=3), parameters)
    plain = {"concat": False, "root_weight": False, "bias": False}
    layer("transformer/mean", nn.TransformerConv(WIDTH, OUT, heads=2, **plain), parameters)


def featured(weights):
    """Features of edges, two each."""
    return torch.stack([weights, weights * weights - 1], 1)


def edge_features():
    def add(name, make, parameters):
        module = make.double()

        def forward(x, weights):
            return module(x, INDEX, featured(weights))

        case(name, forward, parameters(module))

    def gat(m):
        bias = [] if m.bias is None else [m.bias]
        return linear(m.lin) + [m.att_src, m.att_dst] + linear(m.lin_edge) + [m.att_edge] + bias

    def gat_v2(m):
        bias = [] if m.bias is None else [m.bias]
        return linear(m.lin_l) + linear(m.lin_r) + linear(m.lin_edge) + [m.att] + bias

    def transformer(m):
        skip = linear(m.lin_skip) if m.root_weight else []
        parts = [m.lin_key, m.lin_query, m.lin_value, m.lin_edge]
        return [each for part in parts for each in linear(part)] + skip

    plain = {"concat": False, "bias": False, "edge_dim": 2}
    for name, kind, parameters in [("gat", nn.GATConv, gat), ("gat-v2", nn.GATv2Conv, gat_v2)]:
        add(f"{name}/edges", kind(WIDTH, OUT, heads=3, edge_dim=2), parameters)
        module = kind(WIDTH, OUT, heads=2, add_self_loops=False, **plain)
        add(f"{name}/edges-mean", module, parameters)
    module = nn.TransformerConv(WIDTH, OUT, heads=3, edge_dim=2)
    add("transformer/edges", module, transformer)
    module = nn.TransformerConv(WIDTH, OUT, heads=2, root_weight=False, **plain)
    add("transformer/edges-mean", module, transformer)


def pna():
    degrees = torch.bincount(torch.bincount(INDEX[1], minlength=NODES))
    paper = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]
    every = (
        ["sum", "mean", "min", "max", "var", "std"],
        ["identity", "amplification", "attenuation", "linear", "inverse_linear"],
    )

    def parameters(m):
        encoder = [m.edge_encoder] if m.edge_dim is not None else []
        stacks = [part for pair in zip(m.pre_nns, m.post_nns) for part in pair]
        linears = [part for stack in stacks for part in stack if hasattr(part, "weight")]
        return [each for part in encoder + linears + [m.lin] for each in linear(part)]

    layer("pna/default", nn.PNAConv(WIDTH, OUT, *paper, degrees), parameters)
    layer("pna/every", nn.PNAConv(WIDTH, OUT, *every, degrees), parameters)
    depth = {"towers": 2, "pre_layers": 2, "post_layers": 2, "divide_input": True}
    layer("pna/towers-divided", nn.PNAConv(WIDTH, 4, *paper, degrees, **depth), parameters)
    module = nn.PNAConv(WIDTH, OUT, *paper, degrees, edge_dim=2, towers=3).double()
    case("pna/edges", lambda x, w: module(x, INDEX, featured(w)), parameters(module))


def norms():
    norm = nn.GraphNorm(WIDTH).double()
    case("graph-norm", lambda x, _: norm(x), [norm.weight, norm.bias, norm.mean_scale])
    for name, module in [
        ("default", nn.PairNorm()),
        ("individually", nn.PairNorm(scale=2.0, scale_individually=True)),
    ]:
        case(f"pair-norm/{name}", lambda x, _, module=module: module(x))
    for mode in ["cat", "max"]:
        jump = nn.JumpingKnowledge(mode)
        case(
            f"jumping-knowledge/{mode}",
            lambda x, _, jump=jump: jump([x, x * x, -x]),
        )


def write(path, head):
    """`head`: what all cases share."""
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
    }
    print(versions)
    lines = ",\n".join(json.dumps(each) for each in CASES)
    text = json.dumps({"versions": versions, **head})[:-1] + f', "cases": [\n{lines}\n]}}\n'
    path.write_text(text)
    print(f"{len(CASES)} cases, {len(text)} bytes")


def main():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    messages()
    convolutions()
    attention()
    propagation()
    norms()
    transformer()
    pna()
    edge_features()
    head = {"nodes": NODES, "width": WIDTH, "edges": EDGES}
    write(pathlib.Path(__file__).with_suffix(".json"), head)


if __name__ == "__main__":
    main()
