"""Writes one of torchvision's classification builders as FOLDER/NAME.onnx, and FOLDER/NAME.values with a drawn row and
PyTorch's answer as float32, and prints PyTorch's own rounding. With a third argument, pictures have that side, and the
weights come instead of the ONNX file: NAME.weights in float32, with a line for each array in NAME.names, as disdel's
zoo calls it. "--list" prints the names. Weights are drawn; batch norms get the statistics of drawn rows,
because with their first ones the numbers of a deep network grow without bound."""
import inspect
import re
import sys
import warnings

import torch

warnings.filterwarnings("ignore")
from torch.onnx import register_custom_op_symbolic, symbolic_opset9  # noqa: E402
from torchvision import models  # noqa: E402 (its import warns)

# Swin v2 zeroes the bias of its keys, which this exporter does not know.
register_custom_op_symbolic("aten::zero", lambda g, x: symbolic_opset9.zeros_like(g, x, None), 9)

if sys.argv[1] == "--list":
    print("\n".join(models.list_models(models)))
    sys.exit()
name, folder = sys.argv[1:3]
ZOO = [
    (r"layer_scale$", "layer_scale.weight"),
    (r"^class_token$", "class_token.weight"),
    (r"^encoder.pos_embedding$", "positions.weight"),
    (r"^encoder.layers.encoder_layer_", "layers."),
    (r"\.ln_([12])\.", r".norm\1."),
    (r"\.self_attention\.in_proj_", ".attention.qkv."),
    (r"\.self_attention\.out_proj\.", ".attention.out."),
    (r"\.mlp\.(0|linear_1)\.", ".up."),
    (r"\.mlp\.(3|linear_2)\.", ".down."),
    (r"^encoder.ln\.", "norm."),
    (r"^heads.head\.", "head."),
]


def zoo_names(net, name):
    """The arrays of a network by disdel's names. Those of vgg go by the pools: convS_I, then fcI."""
    stage = i = dense = 0
    vgg = {}
    if name.startswith("vgg"):
        for key, m in net.named_modules():
            if isinstance(m, torch.nn.Conv2d):
                i += 1
                vgg[key] = f"conv{stage + 1}_{i}"
            elif isinstance(m, torch.nn.BatchNorm2d):
                vgg[key] = f"conv{stage + 1}_{i}.bn"
            elif isinstance(m, torch.nn.MaxPool2d):
                stage, i = stage + 1, 0
            elif isinstance(m, torch.nn.Linear):
                dense += 1
                vgg[key] = f"fc{dense}"
    for key, v in net.state_dict().items():
        if key.endswith("num_batches_tracked"):
            continue
        module, part = key.rpartition(".")[::2]
        if module in vgg:
            key = f"{vgg[module]}.{part}"
        for pattern, ours in ZOO if name.startswith(("vit", "convnext")) else []:
            key = re.sub(pattern, ours, key)
        yield key, v


torch.manual_seed(1)
builder = models.get_model_builder(name)
side = int(sys.argv[3]) if len(sys.argv) > 3 else 299 if name == "inception_v3" else 224
usual = {"init_weights": False} if "init_weights" in inspect.getsource(builder) else {}  # SciPy draws those, slowly
as_zoo = len(sys.argv) > 3
if as_zoo and name == "googlenet":
    usual["aux_logits"] = False
if as_zoo and name.startswith("vit"):
    usual["image_size"] = side
net = builder(weights=None, **usual)
if name.startswith("vit"):  # its first weights are zeros, and so are all answers
    torch.nn.init.normal_(net.heads.head.weight, std=0.05)
if as_zoo:
    for key, v in net.named_parameters():
        if key.endswith("layer_scale"):  # with its first 1e-6, no block would have a say
            torch.nn.init.uniform_(v, 0.2, 0.8)
norms = [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]
for m in norms:
    m.momentum = 1.0
with torch.no_grad():
    if norms:
        net.train()
        net(torch.randn(2, 3, side, side))
    for m in norms:
        m.momentum = 0.1
net.eval()
x = torch.randn(1, 3, side, side)
if as_zoo:
    arrays = list(zoo_names(net, name))
    with open(f"{folder}/{name}.names", "w") as f:
        f.writelines(f"{key} {v.numel()}\n" for key, v in arrays)
    with open(f"{folder}/{name}.weights", "wb") as f:
        f.writelines(v.detach().numpy().tobytes() for _, v in arrays)
else:
    # With gradients: without them PyTorch takes a kernel for attention that its exporter does not know.
    torch.onnx.export(net, x, f"{folder}/{name}.onnx", input_names=["in"], opset_version=17)
with torch.no_grad(), open(f"{folder}/{name}.values", "wb") as f:
    # In float64: PyTorch's own rounding would count as a difference. By how much float32 is off is printed.
    single = net(x).double()
    exact = net.double()(x.double())
    f.write(x.numpy().tobytes() + exact.float().numpy().tobytes())
    print(float((single - exact).abs().max() / exact.abs().max().clamp(min=1)))
