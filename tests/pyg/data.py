"""Writes karate.pt and karate.safetensors: a graph of PyG, as `datasets::tensors` reads it.

    python tests/pyg/data.py

The library's tests compare it with its own karate club.
"""

import pathlib

import torch
from safetensors.torch import save_file
from torch_geometric.datasets import KarateClub
from torch_geometric.transforms import RandomNodeSplit

HERE = pathlib.Path(__file__).parent


def main():
    torch.manual_seed(0)
    data = RandomNodeSplit(num_val=10, num_test=10)(KarateClub()[0])
    # Splits as columns, as of WebKB.
    for name in ["train_mask", "val_mask", "test_mask"]:
        data[name] = torch.stack([data[name], data[name].roll(1)], dim=1)
    torch.save(data.to_dict(), HERE / "karate.pt")
    tensors = {name: value.contiguous() for name, value in data.to_dict().items()}
    save_file(tensors, HERE / "karate.safetensors")
    print(data)
    for name in ["train_mask", "val_mask", "test_mask"]:
        print(name, [data[name][:, split].nonzero().flatten().tolist() for split in [0, 1]])
    print("y", data.y.tolist())


if __name__ == "__main__":
    main()
