"""Draws small networks from a seed: torch_drawn.py FOLDER COUNT SEED. PyTorch's exporter writes NAME.onnx, and NAME.values has two
rows and PyTorch's answers as float32. It prints the names. A network may have parts that disdel does not read."""
import copy
import random
import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


class Added(nn.Module):
    """A convolution, and a constant that a file may have as its bias."""

    def __init__(self, r, conv, ins, width):
        super().__init__()
        self.conv, behind = conv(ins, width, 1, bias=False), 1 + (conv in (nn.Conv2d, nn.ConvTranspose2d))
        self.more = nn.Parameter(torch.randn(r.choice([(width,) + (1,) * behind, (1, width) + (1,) * behind, (width,)])))

    def forward(self, x):
        return self.conv(x) + self.more


class Both(nn.Module):
    def __init__(self, a, b, join):
        super().__init__()
        self.a, self.b, self.join = a, b, join

    def forward(self, x):
        return self.join(self.a(x), self.b(x))


class Scaled(nn.Module):
    """What files do with constants between layers: one number, or one for each channel."""

    def __init__(self, r, width, dims):
        super().__init__()
        self.how, self.n = r.randrange(7), r.uniform(0.2, 2)
        self.low, self.high = r.uniform(-2, 0), r.uniform(0.1, 3)
        self.register_buffer("c", torch.randn((1, width) + (1,) * dims).abs() + 0.3)
        self.register_buffer("d", torch.randn((width,) + (1,) * dims))

    def forward(self, x):
        return [lambda: (x - self.d) / self.c, lambda: x * self.n + 0.5, lambda: 1 - x, lambda: x / self.n - self.c,
                lambda: x.clamp(self.low, self.high), lambda: x.clamp(min=self.low), lambda: x.clamp(max=self.high)][self.how]()


class Gated(nn.Module):
    """Squeeze and excitation whose mean is a list in between, as Keras has it."""

    def __init__(self, r, width, dims):
        super().__init__()
        self.conv, self.view = (nn.Conv2d if dims == 2 else nn.Conv1d)(width, width, 1), r.random() < 0.5
        self.sides = (1,) * dims

    def forward(self, x):
        y = x.mean(tuple(range(2, x.dim())))
        y = y.view(-1, x.shape[1], *self.sides) if self.view else y[(...,) + (None,) * len(self.sides)]
        return x * torch.sigmoid(self.conv(y))


class Turn(nn.Module):
    def __init__(self, *axes):
        super().__init__()
        self.axes = axes

    def forward(self, x):
        return x.permute(self.axes)


class Flat(nn.Module):
    def __init__(self, view):
        super().__init__()
        self.view = view

    def forward(self, x):
        return x.reshape(x.shape[0], -1) if self.view else x.flatten(1)


def activation(r, width):
    return r.choice([nn.ReLU, nn.ReLU6, nn.SiLU, nn.GELU, nn.Hardswish, nn.Hardsigmoid, nn.Sigmoid, nn.Tanh, nn.ELU, nn.Softplus,
                     lambda: nn.LeakyReLU(0.2), lambda: nn.PReLU(width), lambda: nn.Hardtanh(0, 6), nn.SELU])()


def some(r, dims, low, high):
    return tuple(r.randint(low, high) for _ in range(dims))


def windowed(r, width, last, dims):
    """A step over images (dims is 2) or positions (1)."""
    conv, turned = (nn.Conv1d, nn.ConvTranspose1d) if dims == 1 else (nn.Conv2d, nn.ConvTranspose2d)
    highest, mean = (nn.MaxPool1d, nn.AvgPool1d) if dims == 1 else (nn.MaxPool2d, nn.AvgPool2d)
    pad, norm = (nn.ConstantPad1d, nn.BatchNorm1d) if dims == 1 else (nn.ConstantPad2d, nn.BatchNorm2d)
    groups = r.choice([1] + [g for g in (2, 3) if width % g == 0])
    kernel, stride = some(r, dims, 1, 4), some(r, dims, 1, 3)
    half = tuple(r.randint(0, k // 2) for k in kernel)
    more = {"groups": groups, "bias": r.random() < 0.5, "dilation": some(r, dims, 1, 2)}
    gate = nn.Sequential(nn.AdaptiveAvgPool1d(1) if dims == 1 else nn.AdaptiveAvgPool2d(1), conv(width, width, 1), nn.Sigmoid())
    return r.choice([
        lambda: conv(width, groups * r.randint(1, 3), kernel, stride, some(r, dims, 0, 3), **more),
        lambda: turned(width, groups * r.randint(1, 3), kernel, stride, half, tuple(r.randrange(s) for s in stride), **more),
        lambda: Added(r, r.choice([conv, turned]), width, last),
        lambda: norm(width, eps=r.choice([1e-5, 0.01])),
        lambda: nn.GroupNorm(r.choice([g for g in (1, 2, 3, width) if width % g == 0]), width, affine=r.random() < 0.7),
        lambda: activation(r, width),
        lambda: highest(kernel, stride, half, r.choice([1, 1, 2]), ceil_mode=r.random() < 0.5),
        lambda: mean(kernel, stride, half, r.random() < 0.4, r.random() < 0.5),
        lambda: pad(some(r, 2 * dims, 0, 2), r.choice([0.0, 0.0, 1.5])),
        lambda: nn.Upsample(scale_factor=some(r, dims, 1, 3)),
        lambda: Both(conv(width, width, 3, padding=1), activation(r, width), r.choice([torch.add, lambda a, b: torch.cat([b, a], 1)])),
        lambda: Both(gate, nn.Identity(), torch.mul),
        lambda: Scaled(r, width, dims),
        lambda: Both(nn.Identity(), nn.Sequential(conv(width, width, 1), Scaled(r, width, dims)), torch.add),
        lambda: Gated(r, width, dims),
    ])()


class Read(nn.Module):
    def __init__(self, r, kind, width):
        super().__init__()
        self.first, self.end = r.random() < 0.5, r.random() < 0.5
        self.read = kind(width, r.randint(1, 5), r.randint(1, 2), bidirectional=not self.end and r.random() < 0.5, batch_first=self.first)

    def forward(self, x):
        y, state = self.read(x if self.first else x.transpose(0, 1))
        if self.end:
            return (state[0] if isinstance(state, tuple) else state)[-1]
        return (y if self.first else y.transpose(0, 1)).mean(1)


def drawn(r):
    """A network and two rows."""
    kind = r.choice(["image", "image", "image", "signal", "signal", "list", "tokens"])
    if kind == "tokens":
        x, width = torch.randint(0, 9, (2, r.randint(2, 8))), r.randint(1, 6)
        return nn.Sequential(nn.Embedding(9, width), nn.LayerNorm(width), Read(r, r.choice([nn.LSTM, nn.GRU]), width)), x
    if kind == "list":
        x, steps = torch.randn(2, r.randint(2, 9)), []
        for _ in range(r.randint(1, 4)):
            width, more = steps[-1].out_features if steps else x.shape[1], r.randint(1, 7)
            steps += r.sample([nn.LayerNorm(width), activation(r, width), Scaled(r, width, 0)], r.randint(0, 2)) + [nn.Linear(width, more, bias=r.random() < 0.6)]
        return nn.Sequential(*steps), x
    dims = 2 if kind == "image" else 1
    x = torch.randn(2, r.randint(1, 6), *some(r, dims, 3, 12))
    y, steps = x, []
    for _ in range(r.randint(1, 5)):
        try:
            step = windowed(r, y.shape[1], y.shape[-1], dims).eval()
            after = step(y)
        except (RuntimeError, ValueError):
            continue  # the window is larger than the image
        if 0 < after.numel() < 5000:
            y = after
            steps.append(step)
    if dims == 2 and r.random() < 0.3:  # as TensorFlow has it: channels come last in front and behind
        first = [] if r.random() < 0.5 else [Turn(0, 3, 1, 2)]
        steps = first + steps + [Turn(0, 2, 3, 1), Flat(r.random() < 0.5), nn.Linear(y[0].numel(), 5)]
        return nn.Sequential(*steps), x.permute(0, 2, 3, 1).contiguous() if first else x
    steps.append(nn.Flatten())
    return nn.Sequential(*steps), x


for i in range(count):
    r = random.Random(seed * 1000 + i)
    torch.manual_seed(seed * 1000 + i)
    net, x = drawn(r)
    for m in net.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            m.running_mean.normal_(0, 0.3), m.running_var.uniform_(0.5, 2)
        if getattr(m, "weight", None) is not None and m.weight.dim() == 1 and not isinstance(m, nn.PReLU):
            m.weight.data.normal_(1, 0.3), m.bias.data.normal_(0, 0.3)
    net.eval()
    more = {"dynamic_axes": {"in": {0: "rows"}}} if r.random() < 0.5 else {}
    with torch.no_grad():
        answers = copy.deepcopy(net).double()(x.double() if x.is_floating_point() else x).float()
    try:
        torch.onnx.export(net, x, f"{folder}/{i}.onnx", opset_version=r.randint(9, 17), input_names=["in"], **more)
    except Exception:
        continue  # the exporter has no such operator at this opset
    with open(f"{folder}/{i}.values", "wb") as f:
        if isinstance(net[0], Turn):
            x = net[0](x).contiguous()  # rows have channels first in disdel
        f.write(x.float().numpy().tobytes() + answers.numpy().tobytes())
    print(i)
