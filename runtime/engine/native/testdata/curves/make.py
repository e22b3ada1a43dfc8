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
sys.path.insert(0, os.path.join(HERE, *[".."] * 5, "bench", "peer"))
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


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):
    """Queries, keys and values of one product; padding is a mask of the keys."""

    def __init__(self, width, heads, kv_heads, causal, rotary):
        super().__init__()
        self.heads, self.kv_heads, self.size, self.causal, self.rotary = heads, kv_heads, width // heads, causal, rotary
        self.qkv = nn.Linear(width, width + 2 * kv_heads * self.size)
        self.out = nn.Linear(width, width)

    def turn(self, x):
        half = self.size // 2
        angle = torch.arange(x.shape[2], dtype=x.dtype)[:, None] * 10000 ** (-torch.arange(half, dtype=x.dtype) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def forward(self, x, padding):
        rows, positions, width = x.shape
        parts = self.qkv(x).split([width, self.kv_heads * self.size, self.kv_heads * self.size], -1)
        q, k, v = (p.view(rows, positions, -1, self.size).transpose(1, 2) for p in parts)
        if self.rotary:
            q, k = self.turn(q), self.turn(k)
        k, v = (p.repeat_interleave(self.heads // self.kv_heads, 1) for p in (k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.size)
        mask = padding[:, None, None, :].expand_as(scores)
        if self.causal:
            mask = mask | torch.ones(positions, positions, dtype=torch.bool).triu(1)
        y = torch.softmax(scores.masked_fill(mask, -math.inf), -1) @ v
        return self.out(y.transpose(1, 2).reshape(rows, positions, width))


class Encoder(nn.Module):
    """Two blocks with norms before, as GPT-2's, and after, as BERT's; the mean of the positions that are no padding."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(19, 16, padding_idx=0)
        self.positions = nn.Embedding(30, 16)
        self.norm1, self.attention1 = nn.LayerNorm(16), Attention(16, 4, 4, False, False)
        self.norm2, self.up1, self.down1 = RMSNorm(16), nn.Linear(16, 24), nn.Linear(24, 16)
        self.attention2, self.norm3 = Attention(16, 4, 2, True, True), nn.LayerNorm(16)
        self.up2, self.down2, self.norm4 = nn.Linear(16, 24), nn.Linear(24, 16), nn.LayerNorm(16)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x):
        padding = x == 0
        x = self.tokens(x.long()) + self.positions.weight
        x = x + self.attention1(self.norm1(x), padding)
        x = x + self.down1(F.gelu(self.up1(self.norm2(x))))
        x = self.norm3(x + self.attention2(x, padding))
        x = self.norm4(x + self.down2(F.silu(F.gelu(self.up2(x), approximate="tanh"))))
        kept = (~padding)[..., None].to(x.dtype)
        return self.fc((x * kept).sum(1) / kept.sum(1))


class Recurrent(nn.Module):
    """An LSTM, and a GRU behind it; the last position that is no padding."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(19, 16, padding_idx=0)
        self.lstm, self.gru = nn.LSTM(16, 12, batch_first=True), nn.GRU(12, 20, batch_first=True)
        self.fc = nn.Linear(20, CLASSES)

    def forward(self, x):
        y, _ = self.gru(self.lstm(self.tokens(x.long()))[0])
        last = (x != 0).sum(1) - 1
        return self.fc(y[torch.arange(len(x)), last])


class BothWays(nn.Module):
    """An LSTM and a GRU of two directions that read no padding; the mean of the other positions."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(19, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 12, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(24, 10, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(20, CLASSES)

    def forward(self, x):
        kept = x != 0
        rows = nn.utils.rnn.pack_padded_sequence(self.tokens(x.long()), kept.sum(1), True, enforce_sorted=False)
        y, _ = nn.utils.rnn.pad_packed_sequence(self.gru(self.lstm(rows)[0])[0], True, total_length=x.shape[1])
        return self.fc((y * kept[..., None]).sum(1) / kept.sum(1, keepdim=True))


class Common(nn.Module):
    """Activations and pools that programs have besides."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 10, 3, 2, 1)
        self.conv3, self.conv4 = nn.Conv2d(10, 12, 1), nn.Conv2d(12, 9, 1)
        self.fc = nn.Linear(18, CLASSES)

    def forward(self, x):
        x = F.elu(self.conv2(F.leaky_relu(self.conv1(x), 0.2)))
        x = F.adaptive_avg_pool2d(F.softplus(self.conv3(x)), 4)
        x = F.hardsigmoid(self.conv4(x))
        return self.fc(torch.cat([F.adaptive_max_pool2d(x, 1), F.adaptive_avg_pool2d(x, 1)], 1).flatten(1))


class Language(nn.Module):
    """A block of GPT-2 that says the next token; the last layer has the weight of the embedding."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(19, 16, padding_idx=0)
        self.positions = nn.Embedding(30, 16)
        self.norm1, self.attention = nn.LayerNorm(16), Attention(16, 4, 2, True, False)
        self.norm2, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 24), nn.Linear(24, 16)
        self.norm3 = nn.LayerNorm(16)

    def forward(self, x):
        padding = x == 0
        x = self.tokens(x.long()) + self.positions.weight
        x = x + self.attention(self.norm1(x), padding)
        x = x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return self.norm3(x) @ self.tokens.weight.T


def loss_of(model, x, y):
    """Cross-entropy: of the label, or of each next token, where padding is no target."""
    if isinstance(model, Language):
        return F.cross_entropy(model(x)[:, :-1].transpose(1, 2), x[:, 1:].long(), ignore_index=0)
    return F.cross_entropy(model(x), y)


class Lamb(torch.optim.Optimizer):
    """Algorithm 2 of You and others, "Large batch optimization for deep learning" (2019), with Adam's corrections."""

    def __init__(self, parameters, lr, weight_decay):
        super().__init__(parameters, {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                n = s["n"] = s.get("n", 0) + 1
                s["m"] = b1 * s.get("m", 0) + (1 - b1) * p.grad
                s["v"] = b2 * s.get("v", 0) + (1 - b2) * p.grad**2
                u = s["m"] / (1 - b1**n) / ((s["v"] / (1 - b2**n)).sqrt() + group["eps"]) + group["weight_decay"] * p
                p -= group["lr"] * p.norm() / u.norm() * u


NETWORKS = {
    "lenet5": ((1, 28, 28), lambda: LeNet5((1, 28, 28), CLASSES)),
    "resnet8-test": ((3, 12, 12), ResNet8),
    "mobilenet-test": ((3, 16, 16), MobileNet),
    "encoder-test": ((30,), Encoder),
    "recurrent-test": ((30,), Recurrent),
    "both-ways-test": ((30,), BothWays),
    "common-test": ((3, 12, 12), Common),
    "language-test": ((30,), Language),
}
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.002),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.001, momentum=0.5, weight_decay=0.01),
    "lamb": lambda parameters: Lamb(parameters, lr=0.01, weight_decay=0.01),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.02, weight_decay=0.01),
}
#: All networks have curves of the first two, and this one of all.
CURVES = [(n, o) for n in NETWORKS for o in OPTIMIZERS if n == "common-test" or o in ("sgd", "adam")]


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


#: What the arrays of PyTorch's recurrent layers are called here.
RENAMED = {
    "weight_ih_l0": "{}.input.weight", "bias_ih_l0": "{}.input.bias",
    "weight_hh_l0": "{}.weight", "bias_hh_l0": "{}.bias",
    "weight_ih_l0_reverse": "{}.reverse.input.weight", "bias_ih_l0_reverse": "{}.reverse.input.bias",
    "weight_hh_l0_reverse": "{}.reverse.weight", "bias_hh_l0_reverse": "{}.reverse.bias",
}


def load(model):
    for prefix, module in model.named_modules():
        norm = isinstance(module, (nn.BatchNorm2d, nn.LayerNorm, RMSNorm))
        for name, p in module.named_parameters(recurse=False):
            full = RENAMED.get(name, "{}." + name).format(prefix)
            p.data = torch.from_numpy(parameter(full, tuple(p.shape), norm)).to(p.dtype)


def batch(step, shape):
    labels = (uniform(f"y/{step}", BATCH) * 10).astype(np.int64)
    size = math.prod(shape)
    if len(shape) == 1:  # tokens: the second is the label's, and the last are padding
        x = 1 + np.floor(18 * uniform(f"x/{step}", BATCH * size).reshape(BATCH, size))
        x[:, 1] = 1 + labels
        for row, label in enumerate(labels):
            x[row, size - label :] = 0
        return x.astype(np.float32), labels
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
        loss = loss_of(model, torch.from_numpy(x).to(dtype), torch.from_numpy(y))
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def write():
    for network, optimizer in CURVES:
        curve = {"network": network, "optimizer": optimizer, "losses": train(network, optimizer, torch.float64)}
        with open(os.path.join(HERE, f"{network}-{optimizer}.json"), "w") as f:
            json.dump(curve, f, indent=1)
            f.write("\n")


def check():
    for network, optimizer in CURVES:
        exact, single = (train(network, optimizer, t) for t in (torch.float64, torch.float32))
        away = [abs(a - b) / max(a, 1e-9) for a, b in zip(exact, single)]
        print(f"{network:15} {optimizer:7} loss {exact[0]:.4f} -> {exact[-1]:.4f}, "
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
