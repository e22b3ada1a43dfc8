"""Compares the gradients of drawn networks with those of PyTorch in float64: drawn.py STEPS.json

An array may stray by 1e-5 of its scale, and by twice as much as PyTorch itself does in float32.
"""

import json
import sys

import torch
from torch.nn import functional as F

SAME = {
    "relu": F.relu, "relu6": F.relu6, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "hardSwish": F.hardswish,
    "elu": F.elu, "softplus": F.softplus, "hardSigmoid": F.hardsigmoid, "gelu": F.gelu, "silu": F.silu,
    "flatten": lambda x: x.flatten(1), "globalAvgPool": lambda x: F.adaptive_avg_pool2d(x, 1),
}


def sides(value):
    return value["H"], value["W"]


def computed(node, op, inputs, weights):
    x = inputs[0]

    def of(name):
        return weights.get(node["Name"] + name)

    pad = node["Pad"]["Top"], node["Pad"]["Left"]
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
    if op == "conv" and x.shape[3] == 1 and node["Name"] == "conv1d":
        stride, dilation = (sides(node[k])[0] for k in ("Stride", "Dilation"))
        return F.conv1d(x[..., 0], of(".weight")[..., 0], of(".bias"), stride, pad[0], dilation)[..., None]
    if op == "conv":
        return F.conv2d(x, of(".weight"), of(".bias"), sides(node["Stride"]), pad, sides(node["Dilation"]), node["Groups"])
    if op == "dense":
        return F.linear(x, of(".weight"), of(".bias"))
    if op == "batchNorm":
        return F.batch_norm(x, None, None, of(".weight"), of(".bias"), True, 0, node["Eps"])
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
    if op == "upsample":
        return F.interpolate(x, scale_factor=sides(node["Kernel"]), mode="nearest")
    if op == "add":
        return sum(inputs)
    if op == "channels":
        groups = x.unflatten(1, (node["Groups"], -1)).transpose(1, 2).flatten(1, 2)
        return groups[:, node["First"] : node["First"] + node["Filters"]]
    if op == "layerNorm":
        return F.layer_norm(x.movedim(1, -1), x.shape[1:2], of(".weight"), of(".bias"), node["Eps"]).movedim(-1, 1)
    if op == "multiply":
        return inputs[0] * inputs[1]
    if op == "concat":
        return torch.cat(inputs, 1)
    raise ValueError(op)


def gradients(step, dtype):
    weights = {
        w["Name"]: torch.tensor(w["Data"], dtype=dtype).reshape(w["Shape"]).requires_grad_() for w in step["Weights"]
    }
    outputs = []
    for node, op in zip(step["Nodes"], step["Ops"]):
        if op == "input":
            outputs.append(torch.tensor(step["X"], dtype=dtype).reshape(-1, *node["Out"]))
        else:
            outputs.append(computed(node, op, [outputs[i] for i in node["Inputs"]], weights))
    F.cross_entropy(outputs[-1], torch.tensor(step["Y"])).backward()
    return {name: w.grad for name, w in weights.items() if w.grad is not None}


def main():
    wrong = compared = 0
    worst = 0.0
    with open(sys.argv[1]) as file:
        steps = json.load(file)
    for number, step in enumerate(steps):
        want, single = gradients(step, torch.float64), gradients(step, torch.float32)
        for path, found in step["Gradients"].items():
            for w in found:
                if w["Name"] not in want:
                    continue
                exact = want[w["Name"]].flatten()
                scale = 1 + exact.abs().max()  # of a step by the gradient, which ends at a weight of about 1
                away = (torch.tensor(w["Data"], dtype=torch.float64) - exact).abs().max() / scale
                own = (single[w["Name"]].flatten() - exact).abs().max() / scale
                compared, worst = compared + 1, max(worst, float(away))
                if not away < 1e-5 + 2 * own:
                    wrong += 1
                    print("network %d, %s: %s is off by %.1e, PyTorch by %.1e" % (number, path, w["Name"], away, own))
    print("%d networks, %d arrays of gradients, %d wrong, worst %.1e" % (len(steps), compared, wrong, worst))
    return wrong > 0


sys.exit(main())
