#!/usr/bin/python3
"""Writes the loss curves of this folder with PyTorch. README.md has the formula of weights and data.

    make.py           writes NETWORK-OPTIMIZER.json
    make.py --check   writes nothing: how far float32 strays from these curves, and values to test a replay against
"""

import json
import math
import os
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, *[".."] * 4, "bench", "peer"))
from networks import BasicBlock, LeNet5, conv  # noqa: E402

STEPS, BATCH, CLASSES = 50, 16, 10


class ResNet8(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = conv(3, 8, 3)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(BasicBlock(8, 8, 1))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2))
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x)))))
        return self.fc(x.mean((2, 3)))


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv0, self.bn0 = conv(3, 8, 3, 2), nn.BatchNorm2d(8)
        self.dw1, self.dwbn1 = nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8)
        self.pw1, self.pwbn1 = conv(8, 16, 1), nn.BatchNorm2d(16)
        self.dw2, self.dwbn2 = nn.Conv2d(16, 16, 3, 2, 1, groups=16, bias=False), nn.BatchNorm2d(16)
        self.pw2, self.pwbn2 = conv(16, 24, 1), nn.BatchNorm2d(24)
        self.fc = nn.Linear(24, CLASSES)

    def forward(self, x):
        x = F.relu6(self.bn0(self.conv0(x)))
        x = F.relu6(self.dwbn1(self.dw1(x)))
        x = F.relu6(self.pwbn1(self.pw1(x)))
        x = F.relu6(self.dwbn2(self.dw2(x)))
        x = F.relu6(self.pwbn2(self.pw2(x)))
        return self.fc(x.mean((2, 3)))


NETWORKS = {
    "lenet5": ((1, 28, 28), lambda: LeNet5((1, 28, 28), CLASSES)),
    "resnet8-test": ((3, 12, 12), ResNet8),
    "mobilenet-test": ((3, 16, 16), MobileNet),
}
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.002),
}


def fnv1a(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def uniform(name, count):
    """u of README.md: float64 in [0, 1) with 24 bits. splitmix64's state only counts, so all values come at once."""
    z = np.uint64(fnv1a(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) / 2**24


def parameter(name, shape, norm):
    u = uniform(name, math.prod(shape))
    if name.endswith(".bias"):
        v = (2 * u - 1) * 0.1
    elif norm:
        v = 0.5 + u
    else:
        v = (2 * u - 1) * math.sqrt(6 / math.prod(shape[1:]))
    return v.astype(np.float32).reshape(shape)


def load(model):
    for prefix, module in model.named_modules():
        norm = isinstance(module, nn.BatchNorm2d)
        for name, p in module.named_parameters(recurse=False):
            p.data = torch.from_numpy(parameter(f"{prefix}.{name}", tuple(p.shape), norm)).to(p.dtype)


def batch(step, shape):
    labels = (uniform(f"y/{step}", BATCH) * 10).astype(np.int64)
    size = math.prod(shape)
    x = 2 * uniform(f"x/{step}", BATCH * size).reshape(BATCH, size) - 1
    x += 0.5 * np.stack([2 * uniform(f"t/{label}", size) - 1 for label in labels])
    return x.astype(np.float32).reshape(BATCH, *shape), labels


def train(network, optimizer, dtype):
    """The loss of every step, before its update."""
    shape, make = NETWORKS[network]
    model = make().to(dtype).train()
    load(model)
    opt = OPTIMIZERS[optimizer](model.parameters())
    losses = []
    for step in range(STEPS):
        x, y = batch(step, shape)
        opt.zero_grad()
        loss = F.cross_entropy(model(torch.from_numpy(x).to(dtype)), torch.from_numpy(y))
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def write():
    for network in NETWORKS:
        for optimizer in OPTIMIZERS:
            curve = {"network": network, "optimizer": optimizer, "losses": train(network, optimizer, torch.float64)}
            with open(os.path.join(HERE, f"{network}-{optimizer}.json"), "w") as f:
                json.dump(curve, f, indent=1)
                f.write("\n")


def check():
    for network in NETWORKS:
        for optimizer in OPTIMIZERS:
            exact, single = (train(network, optimizer, t) for t in (torch.float64, torch.float32))
            away = [abs(a - b) / max(a, 1e-9) for a, b in zip(exact, single)]
            print(f"{network:15} {optimizer:5} loss {exact[0]:.4f} -> {exact[-1]:.4f}, "
                  f"float32 strays by {max(away[:10]):.1e} in 10 steps, {max(away):.1e} in {STEPS}")
    for name in ("conv1.weight", "x/0", "y/0", "t/3"):
        print(f"{name:15} seed {fnv1a(name):#018x} u*2^24", *(int(u * 2**24) for u in uniform(name, 4)))
    for name, shape, norm in (("conv1.weight", (6, 1, 5, 5), False), ("conv1.bias", (6,), False), ("bn1.weight", (8,), True)):
        print(f"{name:15} {list(shape)} bits", *(f"{b:#010x}" for b in parameter(name, shape, norm).ravel()[:4].view(np.uint32)))
    x, y = batch(0, NETWORKS["lenet5"][0])
    print("lenet5 batch 0  labels", *y, "x bits", *(f"{b:#010x}" for b in x.ravel()[:4].view(np.uint32)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    check() if "--check" in sys.argv[1:] else write()
