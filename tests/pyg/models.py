"""Writes models.json and the files of models/: PyG models, their weights and outputs.

    pip install torch torch_geometric safetensors
    python tests/pyg/models.py

The tests of `sparsek_gnn::state_dict` load the weights, compare outputs, and save them again.
Weights are random in f32, biases and factors included; outputs are computed in f64. `--check FOLDER`
loads the files that our tests saved there, strictly, and compares outputs.
"""

import argparse
import json
import pathlib

import torch
from layers import EDGES, INDEX, NODES, numbers
from safetensors.torch import load_file, save_file
from torch.nn import Linear, Module, ModuleList, ReLU, Sequential
from torch_geometric import nn
from torch_geometric.nn import models

WIDTH, HIDDEN, OUT, HEADS = 4, 6, 3, 2
FOLDER = pathlib.Path(__file__).with_suffix("")


class Mixed(Module):
    """Layers that no model of PyG uses, and those of torch between them."""

    def __init__(self):
        super().__init__()
        self.lin_in = Linear(WIDTH, HIDDEN)
        self.norm = nn.GraphNorm(HIDDEN)
        self.attention = nn.GATv2Conv(HIDDEN, HIDDEN // HEADS, heads=HEADS)
        self.shared = nn.GATv2Conv(HIDDEN, HIDDEN, heads=HEADS, concat=False, share_weights=True)
        self.transformer = nn.TransformerConv(HIDDEN, HIDDEN // HEADS, heads=HEADS)
        self.graph = nn.GraphConv(HIDDEN, HIDDEN)
        self.sage = nn.SAGEConv(HIDDEN, HIDDEN, project=True)
        self.layer_norm = torch.nn.LayerNorm(HIDDEN)
        self.gins = ModuleList([
            nn.GINConv(Sequential(Linear(HIDDEN, 5), ReLU(), Linear(5, HIDDEN)), train_eps=True),
            nn.GINConv(models.MLP([HIDDEN, 5, HIDDEN], norm=None), eps=0.5),
        ])
        self.cheb = nn.ChebConv(HIDDEN, HIDDEN, K=3)
        self.batch_norm = torch.nn.BatchNorm1d(HIDDEN)
        self.sg = nn.SGConv(HIDDEN, OUT, K=2)
        self.appnp = nn.APPNP(3, 0.1)

    def forward(self, x, index):
        x = self.norm(self.lin_in(x))
        x = self.attention(x, index).relu()
        x = self.shared(x, index)
        x = self.transformer(x, index)
        x = self.graph(x, index)
        x = self.layer_norm(self.sage(x, index))
        for gin in self.gins:
            x = gin(x, index).tanh()
        x = self.cheb(x, index)
        return self.appnp(self.sg(self.batch_norm(x), index), index)


class Pools(Module):
    """Not run: its layers are in pooling.py."""

    def __init__(self):
        super().__init__()
        self.topk = nn.TopKPooling(WIDTH)
        self.readout = nn.Set2Set(WIDTH, 2)

    def forward(self, x, index):
        return x


def make():
    depth = {"num_layers": 2, "out_channels": OUT}
    return {
        "gcn": models.GCN(WIDTH, HIDDEN, **depth),
        "sage": models.GraphSAGE(WIDTH, HIDDEN, **depth),
        "gat": models.GAT(WIDTH, HIDDEN, heads=HEADS, act="elu", **depth),
        "gin": models.GIN(WIDTH, HIDDEN, **depth),
        "gin-wide": models.GIN(WIDTH, HIDDEN, num_layers=3),
        "edges": nn.GATConv((WIDTH, WIDTH), OUT, heads=HEADS, edge_dim=2, add_self_loops=False),
        "rgcn": nn.RGCNConv(WIDTH, OUT, num_relations=2, num_bases=3),
        "mixed": Mixed(),
        "pools": Pools(),
    }


def features():
    """Of edges, two each."""
    return torch.linspace(-1, 1, 2 * len(EDGES)).reshape(-1, 2)


def output(name, model, x):
    if name == "edges":
        return model((x, x), INDEX, features().to(x.dtype))
    if name == "rgcn":
        return model(x, INDEX, torch.arange(len(EDGES)) % 2)
    return model(x, INDEX)


def randomize(model):
    """Constants, such as the eps of GIN without training, stay."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) / 3)
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(torch.randn_like(buffer))
            if name.endswith("running_var"):
                buffer.copy_(torch.rand_like(buffer) + 0.5)


def write():
    torch.manual_seed(4)
    FOLDER.mkdir(exist_ok=True)
    x = torch.randn(NODES, WIDTH)
    outputs = {}
    for name, model in make().items():
        randomize(model)
        model.eval()
        weights = {key: value.clone() for key, value in model.state_dict().items()}
        torch.save(model.state_dict(), FOLDER / f"{name}.pt")
        save_file(weights, FOLDER / f"{name}.safetensors")
        with torch.no_grad():
            outputs[name] = numbers(output(name, model.double(), x.double()))
    weights = load_file(FOLDER / "gat.safetensors")
    for key in [key for key in weights if key.endswith("lin.weight")]:
        weight = weights.pop(key)
        for side in ["lin_src", "lin_dst"]:
            weights[key.replace("lin", side)] = weight.clone()
    save_file(weights, FOLDER / "gat-before-2.5.safetensors")
    for dtype in [torch.float64, torch.float16, torch.bfloat16]:
        model = make()["gcn"]
        model.load_state_dict(load_file(FOLDER / "gcn.safetensors"))
        short = str(dtype).removeprefix("torch.")
        weights = {key: value.to(dtype) for key, value in model.state_dict().items()}
        save_file(weights, FOLDER / f"gcn-{short}.safetensors")
        torch.save(weights, FOLDER / f"gcn-{short}.pt")
    for file in FOLDER.iterdir():
        file.chmod(0o644)
    lines = ",\n".join(f'"{name}": {json.dumps(y)}' for name, y in outputs.items())
    head = {"nodes": NODES, "edges": EDGES, "x": numbers(x), "features": numbers(features())}
    text = json.dumps(head)[:-1] + f', "outputs": {{\n{lines}\n}}}}\n'
    pathlib.Path(__file__).with_suffix(".json").write_text(text)


def check(folder):
    file = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())
    x = torch.tensor(file["x"]).reshape(NODES, WIDTH)
    for name, model in make().items():
        model.load_state_dict(load_file(folder / f"{name}.safetensors"))
        model.eval()
        with torch.no_grad():
            y = output(name, model.double(), x.double()).flatten()
        error = (y - torch.tensor(file["outputs"][name], dtype=torch.float64)).abs().max().item()
        print(f"{name}: differs by {error:.1e}")
        assert error < 1e-5, name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", type=pathlib.Path, metavar="FOLDER")
    folder = parser.parse_args().check
    if folder is None:
        write()
    else:
        check(folder)


if __name__ == "__main__":
    main()
