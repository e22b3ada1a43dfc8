#!/usr/bin/python3
"""Makes a step of a network of networks.py with PyTorch, from weights and on a batch that a file has, in float32, on a GPU
where there is one, and prints its loss as one JSON line. Dropout drops nothing.

    torch_step.py --network lenet5 --input 1x28x28 --classes 10 --arrays FILE --gradient FILE

The arrays are safetensors of float32: x and y, the batch and its labels; and the network's arrays, by the names that
PyTorch gives them, or else in their order there, as their shapes show. The gradient is written as float32 alone, array
by array in the order of the file.
"""

import argparse
import ctypes
import json
import sys

import measure


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--network", required=True, choices=measure.NETWORKS)
    p.add_argument("--input", required=True, type=measure.shape, metavar="CxHxW")
    p.add_argument("--classes", required=True, type=measure.positive)
    p.add_argument("--arrays", required=True, metavar="FILE")
    p.add_argument("--gradient", required=True, metavar="FILE")
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
    """The network's tensors with the arrays that are theirs, in the order of the file."""
    if own.keys() == given.keys():
        return [(own[name], given[name]) for name in given]
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
    x, y = arrays.pop("x").to(device), arrays.pop("y").long().to(device)
    model = networks.build(a.network, a.input, a.classes).to(device).train()
    own = {name: v for name, v in model.state_dict(keep_vars=True).items() if not name.endswith("num_batches_tracked")}
    pairs = paired(own, arrays)
    with torch.no_grad():
        for to, value in pairs:
            to.copy_(value)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    loss = torch.nn.CrossEntropyLoss()(model(x), y)
    loss.backward()
    with open(a.gradient, "wb") as f:
        for to, _ in pairs:
            if to.requires_grad:
                grad = to.grad.contiguous().cpu()
                f.write(ctypes.string_at(grad.data_ptr(), 4 * grad.numel()))  # numpy need not be there
    print(json.dumps({"loss": loss.item(), "torch": torch.__version__, "device": device}))


if __name__ == "__main__":
    main()
