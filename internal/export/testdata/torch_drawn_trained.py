"""Draws small networks from a seed and trains them: torch_drawn_trained.py FOLDER COUNT SEED. PyTorch's exporter writes NAME.onnx
before and NAME.after.onnx behind five steps of SGD on the same rows, which are in NAME.values as float32. Their classes are 0, 1,
2, 0, ... It prints NAME, the number of rows and the five losses. The steps compute in float64."""
import copy
import random
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ACTIVATIONS = [nn.ReLU, nn.SiLU, nn.GELU, nn.Hardswish, nn.Sigmoid, nn.Tanh, nn.ELU, nn.Softplus, lambda: nn.LeakyReLU(0.1)]


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, r, width):
        super().__init__()
        self.down, self.up = nn.Conv2d(width, 3, 1), nn.Conv2d(3, width, 1)
        self.act, self.open = r.choice(ACTIVATIONS)(), r.choice([nn.Sigmoid, nn.Hardsigmoid])()

    def forward(self, x):
        return x * self.open(self.up(self.act(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Residual(nn.Module):
    def __init__(self, *steps):
        super().__init__()
        self.steps = nn.Sequential(*steps)

    def forward(self, x):
        return x + self.steps(x)


class Fixed(nn.Module):
    """What does not train: scales, shifts and bounds."""

    def __init__(self, r):
        super().__init__()
        self.how, self.n = r.randrange(4), r.uniform(0.3, 1.5)

    def forward(self, x):
        return [lambda: x * self.n, lambda: 1 - x / self.n, lambda: x.clamp(-self.n, 1), lambda: x.clamp(max=self.n)][self.how]()


class LastNorm(nn.Module):
    """A LayerNorm of the channels of each pixel."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def image_step(r, width):
    """A step over images and how many channels it leaves."""
    groups = r.choice([g for g in (1, 2, 3, 4, width) if width % g == 0])
    more = groups * r.randint(1, 3)
    kernel = (r.randint(1, 3), r.randint(1, 3))
    pad = tuple(k // 2 for k in kernel)
    return r.choice([
        (lambda: nn.Conv2d(width, more, kernel, r.randint(1, 2), pad, r.randint(1, 2), groups, r.random() < 0.5), more),
        (lambda: nn.ConvTranspose2d(width, more, kernel, r.randint(1, 2), pad, 0, groups, r.random() < 0.5), more),
        (lambda: nn.BatchNorm2d(width, eps=1e-3, momentum=r.choice([0.1, 0.3])), width),
        (lambda: nn.GroupNorm(groups, width, affine=r.random() < 0.7), width),
        (lambda: LastNorm(width), width),
        (lambda: nn.InstanceNorm2d(width, affine=r.random() < 0.7), width),
        (lambda: nn.MaxPool2d(2, r.randint(1, 2), ceil_mode=r.random() < 0.5), width),
        (lambda: nn.AvgPool2d(3, r.randint(1, 2), 1), width),
        (lambda: nn.PReLU(r.choice([1, width])), width),
        (lambda: nn.Upsample(scale_factor=2), width),
        (lambda: nn.ZeroPad2d((1, 0, 2, 1)), width),
        (lambda: Gate(r, width), width),
        (lambda: Fixed(r), width),
        (lambda: Residual(nn.Conv2d(width, width, 1), Fixed(r)), width),
        (lambda: Residual(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)), width),
    ])


def image(r):
    width = r.randint(1, 4)
    x, steps = torch.randn(6, width, r.randint(5, 12), r.randint(5, 12)), []
    for _ in range(r.randint(2, 5)):
        make, more = image_step(r, width)
        step = make()
        if steps and 60 < nn.Sequential(*steps, step)(x).numel() < 30000 or not steps:
            steps, width = steps + [step, r.choice(ACTIVATIONS)()], more
    return nn.Sequential(*steps, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 3)), x


class Patches(nn.Module):
    """Blocks of a vision transformer."""

    def __init__(self, r, side):
        super().__init__()
        heads = r.randint(1, 3)
        width, hidden = heads * r.randint(1, 5), r.randint(1, 20)
        self.patch, self.token = nn.Conv2d(2, width, side, side), nn.Parameter(torch.randn(1, 1, width))
        self.places, self.first, self.blocks = nn.Parameter(torch.randn(1, 7, width)), r.random() < 0.5, nn.ModuleList()
        for _ in range(r.randint(1, 2)):
            self.blocks.append(nn.ModuleDict({
                "norm": nn.LayerNorm(width), "heads": nn.MultiheadAttention(width, heads, batch_first=True, bias=r.random() < 0.7),
                "steps": nn.Sequential(nn.LayerNorm(width), nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))}))
        self.fc = nn.Linear(width, 3)

    def forward(self, x):
        n = x.shape[0]
        x = self.patch(x).reshape(n, -1, 6).permute(0, 2, 1)
        x = torch.cat([self.token.expand(n, -1, -1), x], 1) + self.places
        for b in self.blocks:
            y = b["norm"](x)
            x = x + b["heads"](y, y, y, need_weights=False)[0]
            x = x + b["steps"](x)
        return self.fc(x[:, 0] if self.first else x.mean(1))


def patches(r):
    side = r.randint(1, 3)
    return Patches(r, side), torch.randn(6, 2, 2 * side, 3 * side)


class Windows(nn.Module):
    """A block of Swin, of the first version or the second, over [rows height width channels]."""

    def __init__(self, r, size, shift, heads, width, cosine, bias):
        super().__init__()
        self.size, self.shift, self.heads, self.cosine = size, shift, heads, cosine
        self.qkv, self.out = nn.Linear(width, 3 * width, bias), nn.Linear(width, width, bias)
        self.norm, self.other = nn.LayerNorm(width), nn.LayerNorm(width)
        self.steps = nn.Sequential(nn.Linear(width, 7), nn.GELU(), nn.Linear(7, width))
        h, w = size
        self.table = nn.Parameter(torch.randn((2 * h - 1) * (2 * w - 1), heads) / 2)
        self.scale = nn.Parameter(torch.randn(heads, 1, 1) / 2 + 1)
        row, column = torch.arange(h * w) // w, torch.arange(h * w) % w
        apart = (row[:, None] - row + h - 1) * (2 * w - 1) + column[:, None] - column + w - 1
        self.register_buffer("apart", apart.view(-1))

    def parted(self, x):
        (h, w), (b, height, width, c) = self.size, x.shape
        return x.view(b, height // h, h, width // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, h * w, c)

    def attend(self, x):
        (h, w), (_, height, width, c) = self.size, x.shape
        x = F.pad(x, (0, 0, 0, -width % w, 0, -height % h))
        tall, wide = int(x.shape[1]), int(x.shape[2])
        down, right = self.shift[0] * (h < tall), self.shift[1] * (w < wide)
        if down + right:
            x = torch.roll(x, (-down, -right), (1, 2))
        y = self.qkv(self.parted(x)).view(-1, h * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = y[0], y[1], y[2]
        if self.cosine:
            s = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * torch.clamp(self.scale, max=4.6).exp()
        else:
            s = q * (c // self.heads) ** -0.5 @ k.transpose(-2, -1)
        s = s + self.table[self.apart].view(h * w, h * w, -1).permute(2, 0, 1).contiguous()
        if down + right:
            part = 2 * (torch.arange(tall) >= tall - down).view(-1, 1) * (down > 0) + (torch.arange(wide) >= wide - right) * (right > 0)
            part = self.parted(part.view(1, tall, wide, 1))[..., 0]
            mask = (part.unsqueeze(1) != part.unsqueeze(2)).to(x.dtype) * -100
            s = (s.view(-1, len(mask), self.heads, h * w, h * w) + mask.unsqueeze(1)).view(-1, self.heads, h * w, h * w)
        y = self.out((s.softmax(-1) @ v).transpose(1, 2).reshape(-1, h * w, c))
        y = y.view(-1, tall // h, wide // w, h, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, tall, wide, c)
        if down + right:
            y = torch.roll(y, (down, right), (1, 2))
        return y[:, :height, :width].contiguous()

    def forward(self, x):
        if self.cosine:
            x = x + self.norm(self.attend(x))
            return x + self.other(self.steps(x))
        x = x + self.attend(self.norm(x))
        return x + self.steps(self.other(x))


class Swin(nn.Module):
    def __init__(self, r):
        super().__init__()
        heads, cosine, bias = r.randint(1, 3), r.random() < 0.5, r.random() < 0.8
        width, size = heads * r.randint(3, 5), (r.randint(1, 4), r.randint(1, 4))
        shift = tuple(side // 2 for side in size)
        self.patch, self.first, self.cosine = nn.Conv2d(3, width, 2, 2), nn.LayerNorm(width), cosine
        self.blocks = nn.Sequential(*(Windows(r, size, s, heads, width, cosine, bias) for s in [(0, 0), shift]))
        self.merge, self.join = nn.Linear(4 * width, 2 * width, bias=False), nn.LayerNorm(2 * width if cosine else 4 * width)
        self.last = Windows(r, size, (0, 0), heads, 2 * width, cosine, bias)
        self.norm, self.fc = nn.LayerNorm(2 * width), nn.Linear(2 * width, 3)

    def forward(self, x):
        x = self.blocks(self.first(self.patch(x).permute(0, 2, 3, 1)))
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        x = self.join(self.merge(x)) if self.cosine else self.merge(self.join(x))
        x = self.norm(self.last(x)).permute(0, 3, 1, 2)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def swin(r):
    return Swin(r), torch.randn(6, 3, 4 * r.randint(2, 4), 4 * r.randint(2, 4))


class Reader(nn.Module):
    """A recurrence over words, or over positions that convolutions give."""

    def __init__(self, r, words):
        super().__init__()
        width, units, kind, self.both = r.randint(1, 6), r.randint(1, 6), r.choice([nn.LSTM, nn.GRU]), r.random() < 0.5
        act = r.choice(ACTIVATIONS)
        self.words = nn.Embedding(9, width) if words else nn.Sequential(
            nn.Conv1d(3, 4, 3, 2), nn.BatchNorm1d(4), act(), nn.ConvTranspose1d(4, 2 * width, 3, 2, 1, groups=2), act(),
            nn.Conv1d(2 * width, width, 2, groups=width))
        self.turned, self.take = not words, r.randint(0, 2)
        self.reader = kind(width, units, r.randint(1, 2), bidirectional=self.both, batch_first=True)
        self.fc = nn.Linear(units * (1 + self.both), 3)

    def forward(self, x):
        x = self.words(x)
        y, state = self.reader(x.transpose(1, 2) if self.turned else x)
        state = state[0] if isinstance(state, tuple) else state
        if self.take == 0:
            return self.fc(y.mean(1))
        if self.take == 1 and not self.both:
            return self.fc(y[:, -1])
        return self.fc(torch.cat([state[-2], state[-1]], 1) if self.both else state[-1])


def reader(r):
    words = r.random() < 0.5
    return Reader(r, words), torch.randint(0, 9, (6, r.randint(2, 8))) if words else torch.randn(6, 3, r.randint(9, 16))


def rows(r):
    x, steps = torch.randn(6, r.randint(2, 9)), []
    for _ in range(r.randint(1, 3)):
        width, more = steps[-2].out_features if steps else x.shape[1], r.randint(2, 7)
        steps += r.choice([[], [nn.LayerNorm(width, elementwise_affine=r.random() < 0.7)]])
        steps += [nn.Linear(width, more, bias=r.random() < 0.6), r.choice(ACTIVATIONS)()]
    return nn.Sequential(*steps, nn.Linear(steps[-2].out_features, 3)), x


KINDS = [image, swin, patches, reader, image, swin, rows]


def write(net, x, file, **more):
    net = copy.deepcopy(net).float().eval()
    torch.onnx.export(net, x, file, input_names=["in"], do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE, **more)


for i in range(count):
    r = random.Random(seed * 1000 + i)
    torch.manual_seed(seed * 1000 + i)
    kind = KINDS[i % len(KINDS)]
    net, x = kind(r)
    for m in net.modules():
        if "Norm" in type(m).__name__ and getattr(m, "bias", None) is not None:
            m.weight.data.normal_(1, 0.3), m.bias.data.normal_(0, 0.3)
        if isinstance(m, nn.modules.batchnorm._BatchNorm):
            m.reset_running_stats()
    more = {"opset_version": r.randint(11, 17)}
    one = x[:1] if kind in (swin, patches) else x
    if kind not in (swin, patches) and r.random() < 0.5:
        more["dynamic_axes"] = {"in": {0: "rows"}}
    name = f"{i}-{kind.__name__}"
    try:
        write(net, one, f"{folder}/{name}.onnx", **more)
    except Exception:
        continue  # the exporter has no such operator at this opset
    with open(f"{folder}/{name}.values", "wb") as f:
        f.write(x.float().numpy().tobytes())
    net.double().train()
    x = x if x.dtype == torch.int64 else x.double()
    sgd, losses = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9), []
    for _ in range(5):
        loss = F.cross_entropy(net(x), torch.arange(len(x)) % 3)
        sgd.zero_grad(), loss.backward(), sgd.step()
        losses.append(loss.item())
    write(net, one, f"{folder}/{name}.after.onnx", **more)
    print(name, len(x), *(f"{v:.9g}" for v in losses))
