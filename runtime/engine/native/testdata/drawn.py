"""Compares the gradients of drawn networks with those of PyTorch in float64: drawn.py STEPS.json

An array may stray by 1e-5 of its scale, and by four times as much as any array of the network does with PyTorch in
float32: the order of sums differs, and some networks multiply rounding. PyTorch may be lucky in one of those, so the
same goes for what outputs of layers do that are off by a unit of their last place. Where an input of a ReLU is 0 but
for rounding, both of its slopes are right.
"""

import json
import sys

import torch
from torch.nn import functional as F

NEAR = 1e-6  # of the largest input of a ReLU: as 0
LAST_PLACE = 2.0**-23  # of float32

SAME = {
    "relu6": F.relu6, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "hardSwish": F.hardswish,
    "elu": F.elu, "softplus": F.softplus, "hardSigmoid": F.hardsigmoid, "gelu": F.gelu, "silu": F.silu,
    "geluTanh": lambda x: F.gelu(x, approximate="tanh"),
    "flatten": lambda x: x.flatten(1), "globalAvgPool": lambda x: F.adaptive_avg_pool2d(x, 1),
}


def relu(x, kink):
    """A ReLU, and whether inputs are near 0; there it has the slope of the kink, if that is given."""
    near = x.abs() < NEAR * x.abs().max()
    kink["near"] = kink["near"] or bool(near.any())
    return F.relu(x) if kink["slope"] is None else torch.where(near, kink["slope"] * x, F.relu(x))


def sides(value):
    return value["H"], value["W"]


def normed(x, weight, bias, eps):
    """A layer norm over the channels, which are axis 1, or without a bias an RMS norm."""
    x = x.movedim(1, -1)
    if bias is None:
        y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * weight
    else:
        y = F.layer_norm(x, weight.shape, weight, bias, eps)
    return y.movedim(-1, 1)


def sines(channels, positions, dtype):
    even = torch.arange(channels) // 2 * 2
    angle = torch.arange(positions)[None, :] / 10000 ** (even[:, None].to(torch.float64) / channels)
    return torch.where((torch.arange(channels) % 2 == 0)[:, None], angle.sin(), angle.cos()).to(dtype)


def turned(x, theta):
    """Rotary positions of [rows, heads, positions, channels]."""
    half = x.shape[3] // 2
    angle = torch.arange(x.shape[2])[:, None] * theta ** (-torch.arange(half, dtype=torch.float64) / half)
    a, b, cos, sin = x[..., :half], x[..., half:], angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def attended(node, x, padding):
    heads, kv_heads, (width, positions) = node["Heads"], node["KVHeads"], node["Out"]
    size = width // heads
    parts = x.split([width, kv_heads * size, kv_heads * size], 1)
    q, k, v = (p.unflatten(1, (-1, size)).transpose(2, 3) for p in parts)
    if node["Theta"]:
        q, k = (turned(x, node["Theta"]) for x in (q, k))
    k, v = (p.repeat_interleave(heads // kv_heads, 1) for p in (k, v))
    mask = padding[:, None, None, :].expand(-1, heads, positions, -1)
    if node["Causal"]:
        mask = mask | torch.ones(positions, positions, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(2, 3) / size**0.5).masked_fill(mask, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(2, 3).flatten(1, 2)


def split(x, blocks, grid):
    """Pixels [rows, channels, height, width] as [rows, windows, channels, places]."""
    (h, w), (height, width) = blocks, x.shape[2:]
    if grid:
        x = x.reshape(*x.shape[:2], h, height // h, w, width // w).permute(0, 3, 5, 1, 2, 4)
    else:
        x = x.reshape(*x.shape[:2], height // h, h, width // w, w).permute(0, 2, 4, 1, 3, 5)
    return x.flatten(1, 2).flatten(3)


def windowed(node, x, weight, scale):
    """Attention within windows: torchvision's way, which rolls the map."""
    (h, w), shift, (c, height, width) = sides(node["Kernel"]), sides(node["Shift"]), node["Out"]
    down, across = x.shape[2] // h, x.shape[3] // w
    part = torch.zeros(1, 1, *x.shape[2:])
    part[:, :, x.shape[2] - shift[0] :] += 1
    part[:, :, :, x.shape[3] - shift[1] :] += 2
    part = split(part, (h, w), node["Grid"])[0, :, 0]
    x = split(torch.roll(x, (-shift[0], -shift[1]), (2, 3)), (h, w), node["Grid"])
    q, k, v = x.unflatten(2, (3, node["Heads"], -1)).unbind(2)
    if node["Cosine"]:
        q, k = F.normalize(q, dim=3), F.normalize(k, dim=3)
        q = q * scale.clamp(max=4.605170185988092).exp()[:, None, None]
    else:
        q = q / q.shape[3] ** 0.5
    i, j = torch.arange(h * w)[:, None], torch.arange(h * w)[None]
    distance = (torch.div(i, w, rounding_mode="floor") - torch.div(j, w, rounding_mode="floor") + h - 1) * (2 * w - 1)
    bias = weight[distance + i % w - j % w + w - 1].permute(2, 0, 1)
    scores = q.transpose(3, 4) @ k + bias - 100 * (part[:, :, None] != part[:, None])[:, None].to(x.dtype)
    y = (v @ scores.softmax(-1).transpose(3, 4)).flatten(2, 3)
    y = y.reshape(len(y), down, across, c, h, w).permute(*((0, 3, 4, 1, 5, 2) if node["Grid"] else (0, 3, 1, 4, 2, 5)))
    return torch.roll(y.reshape(len(y), c, down * h, across * w), shift, (2, 3))[:, :, :height, :width]


def recurrent(op, x, weight, bias):
    """PyTorch's cells, one position after the other; x has the products of the inputs."""
    units = weight.shape[1]
    h = c = x.new_zeros(len(x), units)
    out = []
    for p in x.unbind(2):
        q = F.linear(h, weight, bias)
        if op == "lstm":
            i, f, g, o = (p + q).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        else:
            (pr, pz, pn), (qr, qz, qn) = p.chunk(3, 1), q.chunk(3, 1)
            r, z = torch.sigmoid(pr + qr), torch.sigmoid(pz + qz)
            h = (1 - z) * torch.tanh(pn + r * qn) + z * h
        out.append(h)
    return torch.stack(out, 2)


def reversed_rows(x, padding):
    """Positions that are no padding in reverse order."""
    rows = []
    for row, padded in zip(x, padding):
        kept = int((~padded).sum())
        rows.append(torch.cat([row[:, :kept].flip(1), row[:, kept:]], 1))
    return torch.stack(rows)


def of_sequences(node, op, inputs, of):
    """What a node of sequences computes; None: it is another."""
    x = inputs[0]
    if op == "embedding":
        return F.embedding(x.long(), of(".weight"), 0 if node["Padded"] else None).transpose(1, 2)
    if op == "positions":
        return x + (sines(*x.shape[1:], x.dtype) if node["Fixed"] else of(".weight").T)
    if op in ("layerNorm", "rmsNorm"):
        return normed(x, of(".weight"), of(".bias"), node["Eps"])
    if op == "classToken":
        return torch.cat([of(".weight").T.expand(len(x), -1, -1), x], 2)
    if op in ("lstm", "gru"):
        return recurrent(op, x, of(".weight"), of(".bias"))
    if op == "dense" and x.dim() == 3:
        return F.linear(x.transpose(1, 2), of(".weight"), of(".bias")).transpose(1, 2)
    if op not in ("attention", "reverse", "takePosition"):
        return None
    padding = inputs[1] == 0 if node["Masked"] else torch.zeros(len(x), x.shape[2], dtype=torch.bool)
    if op == "attention":
        return attended(node, x, padding)
    if op == "reverse":
        return reversed_rows(x, padding)
    kept = (~padding)[:, None, :]
    if node["Take"] == "mean":
        return (x * kept).sum(2) / kept.sum(2)
    last = kept.sum(2)[:, 0] - 1 if node["Take"] == "last" else torch.zeros(len(x), dtype=torch.long)
    return x[torch.arange(len(x)), :, last]


def computed(node, op, inputs, weights, kink):
    x = inputs[0]

    def of(name):
        return weights.get(node["Name"] + name)

    y = None if isinstance(x, tuple) else of_sequences(node, op, inputs, of)
    if y is not None:
        return y
    pad = node["Pad"]["Top"], node["Pad"]["Left"]
    if op == "relu":
        return relu(x, kink)
    if op in SAME:
        return SAME[op](x)
    if op == "sequence":
        return x.flatten(2) if len(node["Out"]) == 2 else x[..., None]
    if op == "pad" and node["Stride"]["H"]:
        return x, sides(node["Stride"])  # the convolution that follows is transposed
    if isinstance(x, tuple):
        x, stride = x
        kernel = of(".weight").flip(2, 3).transpose(0, 1)
        around = [k - 1 - p for k, p in zip(sides(node["Kernel"]), pad)]
        return F.conv_transpose2d(x, kernel, of(".bias"), stride, around)
    if op == "conv" and x.shape[3] == 1 and node["Name"].startswith("conv1d"):
        stride, dilation = (sides(node[k])[0] for k in ("Stride", "Dilation"))
        x = F.pad(x[..., 0], (pad[0], node["Pad"]["Bottom"]))
        return F.conv1d(x, of(".weight")[..., 0], of(".bias"), stride, 0, dilation)[..., None]
    if op == "conv":
        stride, dilation = sides(node["Stride"]), sides(node["Dilation"])
        return F.conv2d(x, of(".weight"), of(".bias"), stride, pad, dilation, node["Groups"])
    if op == "dense":
        return F.linear(x, of(".weight"), of(".bias"))
    if op == "batchNorm":
        return F.batch_norm(x, None, None, of(".weight"), of(".bias"), True, 0, node["Eps"])
    if op == "groupNorm":
        return F.group_norm(x, node["Groups"], of(".weight"), of(".bias"), node["Eps"])
    if op == "maxPool":
        return F.max_pool2d(x, sides(node["Kernel"]), sides(node["Stride"]), pad)
    if op == "avgPool":
        return F.avg_pool2d(x, sides(node["Kernel"]), sides(node["Stride"]), pad, count_include_pad=node["CountPad"])
    if op == "adaptiveAvgPool":
        return F.adaptive_avg_pool2d(x, sides(node["Kernel"]))
    if op == "leakyRelu":
        return F.leaky_relu(x, node["Slope"])
    if op == "prelu":
        return F.prelu(x, of(".weight"))
    if op == "pad":
        p = node["Pad"]
        return F.pad(x, (p["Left"], p["Right"], p["Top"], p["Bottom"]))
    if op == "dropPath":
        return x * torch.tensor(node["Kept"], dtype=x.dtype).reshape(-1, *[1] * (x.dim() - 1))
    if op == "upsample":
        return F.interpolate(x, scale_factor=sides(node["Kernel"]), mode="nearest")
    if op == "add":
        return sum(inputs)
    if op == "channels":
        groups = x.unflatten(1, (node["Groups"], -1)).transpose(1, 2).flatten(1, 2)
        return groups[:, node["First"] : node["First"] + node["Filters"]]
    if op == "windowAttention":
        return windowed(node, x, of(".weight"), of(".scale"))
    if op == "spaceToDepth":
        h, w = sides(node["Kernel"])
        x = x.reshape(*x.shape[:2], x.shape[2] // h, h, x.shape[3] // w, w)
        return x.permute(0, 3, 5, 1, 2, 4).flatten(1, 3)
    if op == "multiply":
        return inputs[0] * inputs[1]
    if op == "concat":
        return torch.cat(inputs, 1)
    raise ValueError(op)


def gradients(step, dtype, kink, noise=0.0):
    """The gradients of all weights. Outputs of layers are off by a share of at most noise."""
    weights = {
        w["Name"]: torch.tensor(w["Data"], dtype=dtype).reshape(w["Shape"]).requires_grad_() for w in step["Weights"]
    }
    outputs = []
    for node, op in zip(step["Nodes"], step["Ops"]):
        node["Kept"] = step["Kept"].get(node["Name"])
        if op == "input":
            outputs.append(torch.tensor(step["X"], dtype=dtype).reshape(-1, *node["Out"]))
        else:
            if node["Tied"]:
                weights[node["Name"] + ".weight"] = weights[step["Nodes"][node["Tied"]]["Name"] + ".weight"]
            y = computed(node, op, [outputs[i] for i in node["Inputs"]], weights, kink)
            if noise and not isinstance(y, tuple):
                y = y + y.detach() * noise * (2 * torch.rand_like(y) - 1)
            outputs.append(y)
    y = outputs[-1]
    if y.dim() == 2:
        F.cross_entropy(y, torch.tensor(step["Y"])).backward()
    else:  # a language model: each position says the next token
        ignored = 0 if any(node["Padded"] for node in step["Nodes"]) else -100
        F.cross_entropy(y[..., :-1], outputs[0][:, 1:].long(), ignore_index=ignored).backward()
    return {name: w.grad for name, w in weights.items() if w.grad is not None}


def strays(found, want):
    """How far arrays are from those that are wanted, in their scale: a step ends at a weight of about 1."""
    return {name: float((found[name] - g).abs().max() / (1 + g.abs().max())) for name, g in want.items()}


def sensitive(step, want, kink):
    """The most that an array changes with the last place of layers' outputs, in some draws."""
    torch.manual_seed(0)
    draws = [gradients(step, torch.float64, dict(kink), LAST_PLACE) for _ in range(8)]
    return max(v for draw in draws for v in strays(draw, want).values())


def main():
    wrong = compared = 0
    worst = 0.0
    with open(sys.argv[1]) as file:
        steps = json.load(file)
    for number, step in enumerate(steps):
        kink = {"slope": None, "near": False}
        want, single = gradients(step, torch.float64, kink), gradients(step, torch.float32, dict(kink))
        right = [want]
        if kink["near"]:
            right += [gradients(step, torch.float64, {**kink, "slope": slope}) for slope in (0, 1)]
        strayed = strays(single, want)
        # PyTorch 1.13's geluTanh may give NaN in float32.
        most = max((v for v in strayed.values() if v == v), default=0)
        asked = False
        for path, found in step["Gradients"].items():
            for w in found:
                if w["Name"] not in want:
                    continue
                exact = want[w["Name"]].flatten()
                scale = 1 + exact.abs().max()
                data = torch.tensor(w["Data"], dtype=torch.float64)
                away = min((data - g[w["Name"]].flatten()).abs().max() for g in right) / scale
                compared, worst = compared + 1, max(worst, float(away))
                if not away < 1e-5 + 4 * most and not asked:
                    most, asked = max(most, sensitive(step, want, kink)), True
                if not away < 1e-5 + 4 * most:
                    wrong += 1
                    own = strayed[w["Name"]]
                    print("network %d, %s: %s is off by %.1e, PyTorch by %.1e" % (number, path, w["Name"], away, own))
    print("figure gradients_wrong %d arrays of %d, %d networks, worst %.1e" % (wrong, compared, len(steps), worst))
    return wrong > 0


sys.exit(main())
