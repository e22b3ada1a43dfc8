#!/usr/bin/python3
"""Loads a safetensors file into the PyTorch network of the same name and prints the logits of raw float32 input.

    load.py --network lenet5 --weights w.safetensors --input x.f32 --shape 4,1,28,28

One line per sample. The format is read by hand, as Debian has no safetensors package. With it, these lines do the same:

    from safetensors.torch import load_file
    model = networks.build("lenet5", (1, 28, 28), 10)
    model.load_state_dict(load_file("w.safetensors"), strict=False)
"""

import argparse
import json
import math
import os
import struct
import sys

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, *[".."] * 4, "bench", "peer"))
import networks  # noqa: E402

CLASSIFIER = {"lenet5": "fc3", "resnet18": "fc"}
DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "u1"}


def read_safetensors(path):
    """8 bytes of header length, the header in JSON, then the values, little-endian."""
    with open(path, "rb") as f:
        length, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        body = f.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, t in header.items():
        start, end = t["data_offsets"]
        values = np.frombuffer(body[start:end], DTYPES[t["dtype"]]).reshape(t["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors


def load(network, weights, shape):
    tensors = read_safetensors(weights)
    last = CLASSIFIER[network] + ".bias"
    if last not in tensors:
        sys.exit(f"{weights} is not {network}: no {last}")
    classes = len(tensors[last])
    model = networks.build(network, shape, classes)
    # Not strict, as num_batches_tracked is PyTorch's own counter; any other difference would give wrong logits.
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    missing = [name for name in missing if not name.endswith(".num_batches_tracked")]
    if missing or unexpected:
        sys.exit(f"{weights} is not {network}: missing {missing}, unexpected {unexpected}")
    return model.eval()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--network", required=True, choices=sorted(CLASSIFIER))
    p.add_argument("--weights", required=True)
    p.add_argument("--input", required=True, help="raw little-endian float32")
    p.add_argument("--shape", required=True, help="N,C,H,W")
    a = p.parse_args()
    shape = tuple(int(n) for n in a.shape.split(","))
    if len(shape) != 4:
        p.error("--shape is N,C,H,W")
    values = np.fromfile(a.input, "<f4")
    if values.size != math.prod(shape):
        sys.exit(f"{a.input} holds {values.size} values, {a.shape} needs {math.prod(shape)}")
    torch.set_num_threads(1)
    model = load(a.network, a.weights, shape[1:])
    with torch.no_grad():
        logits = model(torch.from_numpy(values.reshape(shape)))
    for row in logits.tolist():
        print(*(f"{v:.9g}" for v in row))  # 9 digits give the float32 back exactly


if __name__ == "__main__":
    main()
