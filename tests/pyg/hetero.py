"""Writes hetero.json: outputs and gradients of PyG's layers between node types, as layers.py does.

    python tests/pyg/hetero.py

The suite (tests/suite/gnn/hetero.rs) loads parameters and inputs into our layers and compares.
Rows of x are the features of all node types; items use the first three columns only. Outputs are
joined in the same order.
"""

import pathlib

import layers
import torch
from layers import OUT, WIDTH, case, linear
from torch.nn import Linear, ReLU, Sequential
from torch_geometric import nn

TYPES = [("user", 5, WIDTH), ("item", 4, WIDTH - 1), ("tag", 2, WIDTH)]
NODES = sum(nodes for _, nodes, _ in TYPES)
SIZES = {name: nodes for name, nodes, _ in TYPES}

RATES = ("user", "rates", "item")
RATED = ("item", "rated", "user")
KNOWS = ("user", "knows", "user")
MARKS = ("tag", "marks", "item")


def edges(relation, count, seed):
    """Random pairs, one of them repeated, in CSR order; the last target has no edges."""
    generator = torch.Generator().manual_seed(seed)
    source, _, target = relation
    sources = torch.randint(0, SIZES[source], (count,), generator=generator).tolist()
    targets = torch.randint(0, SIZES[target] - 1, (count,), generator=generator).tolist()
    pairs = [list(pair) for pair in zip(sources, targets)]
    return sorted(pairs + pairs[:1], key=lambda pair: (pair[1], pair[0]))


EDGES = {
    RATES: edges(RATES, 9, 1),
    RATED: edges(RATED, 7, 2),
    KNOWS: edges(KNOWS, 8, 3),
    MARKS: edges(MARKS, 3, 4),
}
INDEX = {relation: torch.tensor(pairs).t() for relation, pairs in EDGES.items()}


def features(x):
    parts, first = {}, 0
    for name, nodes, width in TYPES:
        parts[name] = x[first : first + nodes, :width]
        first += nodes
    return parts


def bipartite(name, make, parameters, width=WIDTH):
    """From users, of this width, to items."""
    module = make.double()

    def forward(x, _):
        parts = features(x)
        return module((parts["user"][:, :width], parts["item"]), INDEX[RATES])

    case(name, forward, parameters(module))


def hetero(name, convolutions, parameters, **arguments):
    module = nn.HeteroConv(convolutions, **arguments).double()
    lists = [parameters[type(conv)](conv) for conv in convolutions.values()]

    def forward(x, _):
        results = module(features(x), INDEX)
        return torch.cat([results[name] for name, _, _ in TYPES if name in results])

    case(name, forward, [each for parts in lists for each in parts])


def sage(m):
    project = linear(m.lin) if m.project else []
    root = linear(m.lin_r) if m.root_weight else []
    return project + linear(m.lin_l) + root


def graph_conv(m):
    return linear(m.lin_rel) + linear(m.lin_root)


def gcn(m):
    return [(m.lin.weight, True), m.bias]


PARAMETERS = {nn.SAGEConv: sage, nn.GraphConv: graph_conv, nn.GCNConv: gcn}


def widths(relation):
    width = {name: width for name, _, width in TYPES}
    return width[relation[0]], width[relation[2]]


def attention():
    """Heads side by side, features of edges, and both kinds of relations."""

    def gat(m):
        transforms = linear(m.lin_src) + linear(m.lin_dst) if m.lin is None else linear(m.lin)
        edge = [] if m.lin_edge is None else linear(m.lin_edge) + [m.att_edge]
        return transforms + [m.att_src, m.att_dst] + edge + [m.bias]

    def gat_v2(m):
        edge = [] if m.lin_edge is None else linear(m.lin_edge)
        return linear(m.lin_l) + linear(m.lin_r) + edge + [m.att, m.bias]

    def transformer(m):
        parts = [m.lin_key, m.lin_query, m.lin_value]
        parts += ([] if m.lin_edge is None else [m.lin_edge]) + [m.lin_skip]
        return [each for part in parts for each in linear(part)]

    PARAMETERS.update({nn.GATConv: gat, nn.GATv2Conv: gat_v2, nn.TransformerConv: transformer})
    kinds = [("gat", nn.GATConv), ("gat-v2", nn.GATv2Conv), ("transformer", nn.TransformerConv)]
    for name, kind in kinds:
        loops = {} if kind is nn.TransformerConv else {"add_self_loops": False}
        module = kind(widths(RATES), OUT, heads=2, **loops)
        bipartite(name, module, PARAMETERS[kind])
        module = kind(widths(RATES), OUT, heads=2, edge_dim=2, **loops).double()

        def forward(x, weights, module=module):
            parts = features(x)
            pair = parts["user"], parts["item"]
            return module(pair, INDEX[RATES], layers.featured(weights))

        case(f"{name}/edges", forward, PARAMETERS[kind](module))
        within = kind(WIDTH, OUT)
        hetero(
            f"hetero/{name}",
            {RATES: kind(widths(RATES), OUT, **loops), KNOWS: within},
            PARAMETERS,
        )


def mixed_features():
    """Features of the edges of one relation between types; another without, and one within."""
    module = nn.HeteroConv({
        RATES: nn.GATConv(widths(RATES), OUT, add_self_loops=False, edge_dim=2),
        MARKS: nn.TransformerConv(widths(MARKS), OUT),
        KNOWS: nn.GATv2Conv(WIDTH, OUT, edge_dim=2),
    }).double()

    def forward(x, weights):
        attributes = {
            RATES: layers.featured(weights),
            KNOWS: layers.featured(weights[: len(EDGES[KNOWS])]),
        }
        results = module(features(x), INDEX, edge_attr_dict=attributes)
        return torch.cat([results[name] for name, _, _ in TYPES if name in results])

    parts = [PARAMETERS[type(conv)](conv) for conv in module.convs.values()]
    case("hetero/edges", forward, [each for part in parts for each in part])


def weighted():
    """Weights of the edges of one relation between types, and of one within."""
    module = nn.HeteroConv({
        RATES: nn.GraphConv(widths(RATES), OUT),
        MARKS: nn.SAGEConv(widths(MARKS), OUT),
        KNOWS: nn.GCNConv(WIDTH, OUT),
    }).double()

    def forward(x, weights):
        # Node 1 has two loops: the last counts, but PyTorch's gradient flows into both.
        given = {RATES: weights, KNOWS: weights[: len(EDGES[KNOWS])].detach()}
        results = module(features(x), INDEX, edge_weight_dict=given)
        return torch.cat([results[name] for name, _, _ in TYPES if name in results])

    parts = [PARAMETERS[type(conv)](conv) for conv in module.convs.values()]
    case("hetero/weights", forward, [each for part in parts for each in part])


def typed():
    """Edges of three relations between all nodes."""
    generator = torch.Generator().manual_seed(6)
    return [torch.randint(0, NODES - 1, (2, count), generator=generator) for count in [12, 7, 9]]


def relational():
    pairs = typed()
    index = torch.cat(pairs, 1)
    types = torch.repeat_interleave(torch.arange(3), torch.tensor([each.size(1) for each in pairs]))

    def parameters(m):
        shares = [] if m.num_bases is None else [m.comp]
        root = [] if m.root is None else [m.root]
        return [m.weight] + shares + root + ([] if m.bias is None else [m.bias])

    for name, options in [
        ("default", {}),
        ("bases", {"num_bases": 2, "aggr": "sum"}),
        ("plain", {"root_weight": False, "bias": False, "aggr": "max"}),
        ("bias", {"root_weight": False}),
    ]:
        module = nn.RGCNConv(WIDTH, OUT, 3, **options).double()
        case(
            f"rgcn/{name}",
            lambda x, _, module=module: module(x, index, types),
            parameters(module),
        )


def main():
    torch.manual_seed(5)
    torch.set_default_dtype(torch.float64)
    layers.NODES, layers.EDGES = NODES, EDGES[RATES]
    for how in ["mean", "sum", "max", "min"]:
        bipartite(f"sage/{how}", nn.SAGEConv(widths(RATES), OUT, aggr=how), sage)
    options = {"project": True, "normalize": True, "root_weight": False}
    bipartite("sage/project-normalize", nn.SAGEConv(widths(RATES), OUT, **options), sage)
    for how, aggr in [("sum", "add"), ("mean", "mean"), ("max", "max"), ("min", "min")]:
        bipartite(f"graph-conv/{how}", nn.GraphConv(widths(RATES), OUT, aggr=aggr), graph_conv)

    network = Sequential(Linear(WIDTH - 1, 5), ReLU(), Linear(5, OUT))
    module = nn.GINConv(network, eps=0.5)
    bipartite("gin/mlp", module, lambda m: linear(m.nn[0]) + linear(m.nn[2]), WIDTH - 1)

    def sages():
        order = [RATES, RATED, MARKS, KNOWS]
        return {relation: nn.SAGEConv(widths(relation), OUT) for relation in order}

    hetero("hetero/default", sages(), PARAMETERS)
    for how in ["mean", "max", "min"]:
        hetero(f"hetero/{how}", sages(), PARAMETERS, aggr=how)
    mixed = {
        RATES: nn.GraphConv(widths(RATES), OUT),
        KNOWS: nn.GCNConv(WIDTH, OUT),
        MARKS: nn.SAGEConv(widths(MARKS), OUT),
    }
    hetero("hetero/mixed", mixed, PARAMETERS)
    attention()
    relational()
    mixed_features()
    weighted()
    head = {
        "types": [[name, nodes, width] for name, nodes, width in TYPES],
        "typed": [pairs.t().tolist() for pairs in typed()],
        "relations": [[*relation, EDGES[relation]] for relation in EDGES],
        "nodes": NODES,
        "width": WIDTH,
        "edges": EDGES[RATES],
    }
    layers.write(pathlib.Path(__file__).with_suffix(".json"), head)


if __name__ == "__main__":
    main()
