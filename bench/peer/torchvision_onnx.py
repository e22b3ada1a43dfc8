"""Writes one of torchvision's classification builders as FOLDER/NAME.onnx, and FOLDER/NAME.values with a drawn row and
PyTorch's answer as float32, and prints PyTorch's own rounding. "--list" prints the names. Weights are drawn; batch norms get the statistics of drawn rows,
because with their first ones the numbers of a deep network grow without bound."""
import inspect
import sys
import warnings

import torch

warnings.filterwarnings("ignore")
from torchvision import models  # noqa: E402 (its import warns)

if sys.argv[1] == "--list":
    print("\n".join(models.list_models(models)))
    sys.exit()
name, folder = sys.argv[1:]
torch.manual_seed(1)
builder = models.get_model_builder(name)
usual = {"init_weights": False} if "init_weights" in inspect.getsource(builder) else {}  # SciPy draws those, slowly
net = builder(weights=None, **usual)
if name.startswith("vit"):  # its first weights are zeros, and so are all answers
    torch.nn.init.normal_(net.heads.head.weight, std=0.05)
side = 299 if name == "inception_v3" else 224
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
# With gradients: without them PyTorch takes a kernel for attention that its exporter does not know.
torch.onnx.export(net, x, f"{folder}/{name}.onnx", input_names=["in"], opset_version=17)
with torch.no_grad(), open(f"{folder}/{name}.values", "wb") as f:
    # In float64: PyTorch's own rounding would count as a difference. By how much float32 is off is printed.
    single = net(x).double()
    exact = net.double()(x.double())
    f.write(x.numpy().tobytes() + exact.float().numpy().tobytes())
    print(float((single - exact).abs().max() / exact.abs().max().clamp(min=1)))
