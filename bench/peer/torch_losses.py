#!/usr/bin/python3
"""Trains a network of networks.py with PyTorch from weights and on batches that a file has, in float32, by SGD, on a GPU
where there is one, and prints the losses as one JSON line. Dropout drops nothing.

    torch_losses.py --network lenet5 --input 1x28x28 --classes 10 --arrays FILE --rate 0.01 --momentum 0.9

FILE is safetensors of float32: x.0, y.0, x.1 and so on, batches and their labels; and the network's arrays, by the names
that PyTorch gives them, or else in their order there, as their shapes show.
"""

import argparse
import json
import sys

import measure


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--network", required=True, choices=measure.NETWORKS)
    p.add_argument("--input", required=True, type=measure.shape, metavar="CxHxW")
    p.add_argument("--classes", required=True, type=measure.positive)
    p.add_argument("--arrays", required=True, metavar="FILE")
    p.add_argument("--rate", required=True, type=float)
    p.add_argument("--momentum", required=True, type=float)
    return p.parse_args()


def read(torch, path):
    """The file's arrays by name, in its order."""
    with open(path, "rb") as f:
        data = f.read()
    start = 8 + int.from_bytes(data[:8], "little")
    out = {}
    for name, array in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = (start + n for n in array["data_offsets"])
        out[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).reshape(array["shape"])
    return out


def paired(own, given):
    """The network's tensors with the arrays that are theirs."""
    if own.keys() == given.keys():
        return [(own[name], given[name]) for name in own]
    if [v.shape for v in own.values()] == [v.shape for v in given.values()]:
        return list(zip(own.values(), given.values()))
    sys.exit("the network's arrays are others than the file's")


def main():
    a = arguments()
    import torch

    import networks

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    arrays = read(torch, a.arrays)
    batches = []
    while f"x.{len(batches)}" in arrays:
        i = len(batches)
        batches.append((arrays.pop(f"x.{i}").to(device), arrays.pop(f"y.{i}").long().to(device)))
    model = networks.build(a.network, a.input, a.classes)
    own = {name: v for name, v in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    with torch.no_grad():
        for to, value in paired(own, arrays):
            to.copy_(value)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model = model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=a.rate, momentum=a.momentum)
    criterion = torch.nn.CrossEntropyLoss()
    losses = []
    for x, y in batches:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps({"losses": losses, "torch": torch.__version__, "device": device}))


if __name__ == "__main__":
    main()
