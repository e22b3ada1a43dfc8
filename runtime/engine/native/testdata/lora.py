"""Prints what TestAdaptersAgreeWithPyTorch expects: losses and weights of four Adam steps with PyTorch 1.13.

Run: python3 lora.py
"""
import math
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def wave(k, n):
    """The values that the test gives the array with the number k."""
    return torch.tensor([0.3 * math.sin(1.7 * i + k) for i in range(n)]).float().double()


class Weights:
    """Arrays in the order of the graph."""

    def __init__(self):
        self.arrays, self.trained = {}, []

    def add(self, name, *shape, train=False, variance=False):
        v = wave(len(self.arrays), math.prod(shape)).reshape(shape)
        if variance:
            v = v.abs() + 0.5
        self.arrays[name] = v.requires_grad_(train)
        if train:
            self.trained.append(v)

    def dense(self, name, inputs, outputs, rank=0, train=False):
        self.add(name + ".weight", outputs, inputs, train=train)
        self.add(name + ".bias", outputs, train=train)
        if rank:
            self.add(name + ".lora_A.weight", rank, inputs, train=True)
            self.add(name + ".lora_B.weight", outputs, rank, train=True)

    def linear(self, name, x, factor=1.0):
        a = self.arrays
        y = F.linear(x, a[name + ".weight"], a[name + ".bias"])
        if name + ".lora_A.weight" in a:
            y = y + factor * F.linear(F.linear(x, a[name + ".lora_A.weight"]), a[name + ".lora_B.weight"])
        return y


def convolution():
    w = Weights()
    w.add("a.weight", 4, 2, 3, 3, train=True)
    for name in ("weight", "bias", "running_mean"):
        w.add("n." + name, 4)
    w.add("n.running_var", 4, variance=True)
    w.dense("b", 144, 8, rank=4)
    w.dense("fc", 8, 3, train=True)
    x = 3 * wave(9, 5 * 72).reshape(5, 2, 6, 6)

    def forward():
        a = w.arrays
        y = F.conv2d(x, a["a.weight"], padding=1)
        y = F.batch_norm(y, a["n.running_mean"], a["n.running_var"], a["n.weight"], a["n.bias"])
        y = F.relu(w.linear("b", F.relu(y).flatten(1)))
        return w.linear("fc", y)

    return w, forward


def transformer():
    w = Weights()
    w.add("e.weight", 9, 8)
    for name, inputs, outputs in (("attention.qkv", 8, 24), ("attention.out", 8, 8), ("up", 8, 12), ("down", 12, 8)):
        if name in ("attention.qkv", "up"):
            norm = "t.norm1" if name == "attention.qkv" else "t.norm2"
            w.add(norm + ".weight", 8)
            w.add(norm + ".bias", 8)
        w.dense("t." + name, inputs, outputs, rank=2)
    w.dense("fc", 8, 3, train=True)
    tokens = torch.tensor([1 + 3 * i % 8 for i in range(35)]).reshape(5, 7)
    at = torch.tensor([[t / 10000 ** ((c - c % 2) / 8) for c in range(8)] for t in range(7)])
    sines = torch.where(torch.arange(8) % 2 == 0, at.sin(), at.cos())

    def norm(name, x):
        return F.layer_norm(x, (8,), w.arrays[name + ".weight"], w.arrays[name + ".bias"])

    def forward():
        x = w.arrays["e.weight"][tokens] + sines
        q, k, v = w.linear("t.attention.qkv", norm("t.norm1", x), 1.5).chunk(3, -1)
        q, k, v = (y.reshape(5, 7, 2, 4).transpose(1, 2) for y in (q, k, v))
        y = (q @ k.transpose(2, 3) / 2).softmax(-1) @ v
        x = x + w.linear("t.attention.out", y.transpose(1, 2).reshape(5, 7, 8), 1.5)
        y = F.gelu(w.linear("t.up", norm("t.norm2", x), 1.5))
        x = x + w.linear("t.down", y, 1.5)
        return w.linear("fc", x.mean(1))

    return w, forward


for build, names in ((convolution, ("a", "b.lora_A", "b.lora_B", "fc")),
                     (transformer, ("t.attention.qkv.lora_A", "t.down.lora_B", "fc"))):
    w, forward = build()
    adam = torch.optim.Adam(w.trained, lr=0.01)
    losses = []
    for _ in range(4):
        adam.zero_grad()
        loss = F.cross_entropy(forward(), torch.tensor([0, 1, 2, 1, 0]))
        loss.backward()
        adam.step()
        losses.append(loss.item())
    print(build.__name__, ", ".join("%.10f" % v for v in losses))
    for name in names:
        print("  ", name, ", ".join("%.10f" % v for v in w.arrays[name + ".weight"].detach().flatten()[:4]))
