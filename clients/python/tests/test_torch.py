"""Modules of PyTorch as layers, where PyTorch is there."""

from typing import Any

import pytest
from conftest import JOB

import disdel

torch: Any = pytest.importorskip("torch")


class Residual(torch.nn.Module):  # type: ignore[misc]
    """Layers in every way that people write them."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.left = nn.Conv2d(8, 8, (3, 1), padding=(1, 0), groups=2)
        self.pool = nn.AvgPool2d(2)
        self.relu = nn.ReLU()
        self.same = nn.Identity()
        self.drop = nn.Dropout(0.25)
        self.fc = nn.Linear(16 * 2 * 2, 10)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = self.relu(self.left(x) + self.same(x))
        x = self.relu(self.pool(x))
        x = torch.cat([x, torch.sigmoid(x)], dim=1)
        x = torch.nn.functional.max_pool2d(x, 2)
        return self.fc(self.drop(x.view(x.size(0), -1)))


def test_layers_have_the_modules_names() -> None:
    layers = disdel.from_torch(Residual())["layers"]
    kinds = [kind for layer in layers for kind in layer]
    assert kinds == [
        "conv", "batchNorm", "relu", "conv", "add", "relu", "avgPool", "relu", "sigmoid", "concat", "maxPool", "flatten",
        "dropout", "dense",
    ]  # fmt: skip
    names = [options["name"] for layer in layers for options in layer.values()]
    assert names[0] == "stem.0" and names[3] == "left" and names[-1] == "fc" and len(set(names)) == len(names)
    assert layers[4]["add"]["from"] == ["left", "stem.2"]
    assert layers[3]["conv"]["kernel"] == [3, 1] and layers[3]["conv"]["padding"] == [1, 1, 0, 0]


def test_what_was_trained_goes_back(client: disdel.Client) -> None:
    net = Residual()
    job = {**JOB, "metadata": {"name": "residual"}, "model": disdel.from_torch(net)}
    done = client.wait(client.submit(job, sets={"training.epochs": 1}).id, timeout=300).check()
    sample = client.sample("digits", [0, 1, 2])
    missing = net.load_state_dict(client.weights(done.model).torch(), strict=False)
    assert missing.unexpected_keys == [] and all(k.endswith("num_batches_tracked") for k in missing.missing_keys)
    net.eval()
    rows = torch.tensor(sample["inputs"], dtype=torch.float32).reshape(3, 1, 8, 8)
    want = torch.softmax(net(rows), dim=1)
    assert done.model is not None
    got = torch.tensor(client.infer(done.model, sample["inputs"])["probabilities"])
    assert torch.allclose(got, want, atol=1e-5)


class Views(torch.nn.Module):  # type: ignore[misc]
    """A mean over pixels, and a view that counts values instead of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.mixed, self.fc = torch.nn.Conv2d(1, 4, 3), torch.nn.Linear(144, 6), torch.nn.Linear(4, 10)

    def forward(self, x: Any) -> Any:
        y = self.conv(x)
        if not hasattr(self, "wide"):
            return self.fc(y.mean(dim=[2, 3]))
        return self.mixed(y.view(-1, 144))


def test_a_mean_over_pixels_is_a_pool_and_a_view_of_rows_a_vector() -> None:
    net = Views()
    kinds = [kind for layer in disdel.from_torch(net)["layers"] for kind in layer]
    assert kinds == ["conv", "globalAvgPool", "dense"]
    net.wide = True
    kinds = [kind for layer in disdel.from_torch(net)["layers"] for kind in layer]
    assert kinds == ["conv", "flatten", "dense"]


class Common(torch.nn.Module):  # type: ignore[misc]
    """What programs of every day use besides."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.conv, self.second, self.fc = nn.Conv2d(1, 6, 3), nn.Conv2d(6, 4, 3), nn.Linear(4 * 3 * 2, 10)
        self.leaky, self.drop = nn.LeakyReLU(0.2), nn.Dropout2d(0.1)
        self.pool = nn.AdaptiveAvgPool2d((3, 2))

    def forward(self, x: Any) -> Any:
        functional = torch.nn.functional
        x = self.drop(self.leaky(self.conv(x)))
        x = functional.elu(functional.gelu(functional.leaky_relu(self.second(x))))
        x = functional.softplus(functional.hardsigmoid(functional.dropout2d(x, 0.2)))
        return functional.log_softmax(self.fc(self.pool(x).flatten(1)), dim=1)


def test_images_become_larger_and_slopes_are_learned() -> None:
    nn, functional = torch.nn, torch.nn.functional

    class Larger(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.each, self.zeros = nn.PReLU(), nn.PReLU(3), nn.ZeroPad2d((1, 2, 3, 4))
            self.up, self.fc = nn.Upsample(scale_factor=(2, 3)), nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            x = functional.pad(self.each(self.up(self.one(self.zeros(x)))), (1, 0, 0, 2))
            x = functional.interpolate(x, scale_factor=2)
            x = x * x.mean((2, 3), keepdim=True)
            return self.fc(x.mean((2, 3)))

    layers = disdel.from_torch(Larger())["layers"]
    options = [(kind, {k: v for k, v in layer[kind].items() if k != "name"}) for layer in layers for kind in layer]
    assert options[:6] == [
        ("pad", {"padding": [3, 4, 1, 2]}), ("prelu", {"groups": 1}), ("upsample", {"size": [2, 3]}),
        ("prelu", {"groups": 3}), ("pad", {"padding": [0, 2, 1, 0]}), ("upsample", {"size": [2, 2]}),
    ]  # fmt: skip
    assert [kind for kind, _ in options[6:8]] == ["globalAvgPool", "multiply"]


def test_groups_are_normalised() -> None:
    nn = torch.nn
    layers = disdel.from_torch(nn.Sequential(nn.Conv2d(3, 6, 3), nn.GroupNorm(2, 6, eps=1e-3), nn.Flatten()))["layers"]
    assert layers[1]["groupNorm"] == {"name": "1", "groups": 2, "eps": 1e-3}
    with pytest.raises(disdel.Invalid, match="affine=True"):
        disdel.from_torch(nn.Sequential(nn.Conv2d(3, 6, 3), nn.GroupNorm(2, 6, affine=False)))


def test_stochastic_depth_is_a_layer() -> None:
    nn = torch.nn

    def forward(self: Any, x: Any) -> Any:
        return x if self.p < torch.rand(1).item() else x * 0  # what a trace that goes into it cannot follow

    kind = type("StochasticDepth", (nn.Module,), {"forward": forward, "__module__": "torchvision.ops.stochastic_depth"})

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, mode: str) -> None:
            super().__init__()
            self.conv, self.drop, self.fc = nn.Conv2d(3, 3, 3, padding=1), kind(), nn.Linear(192, 4)
            self.drop.p, self.drop.mode = 0.2, mode

        def forward(self, x: Any) -> Any:
            return self.fc((x + self.drop(self.conv(x))).flatten(1))

    layers = disdel.from_torch(Net("row"))["layers"]
    assert layers[1]["dropPath"] == {"name": "drop", "rate": 0.2}
    with pytest.raises(disdel.Invalid, match="mode=row"):
        disdel.from_torch(Net("batch"))


def test_common_layers_become_ours() -> None:
    layers = disdel.from_torch(Common())["layers"]
    kinds = [kind for layer in layers for kind in layer]
    assert kinds == [
        "conv", "leakyRelu", "dropout2d", "conv", "leakyRelu", "gelu", "elu", "dropout2d", "hardSigmoid", "softplus",
        "adaptiveAvgPool", "flatten", "dense", "softmax",
    ]  # fmt: skip
    assert layers[1]["leakyRelu"]["slope"] == 0.2 and layers[4]["leakyRelu"]["slope"] == 0.01
    assert layers[10]["adaptiveAvgPool"]["size"] == [3, 2]


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (lambda: torch.nn.CELU(), "CELU"),
        (lambda: torch.nn.ELU(0.5), "alpha is 1"),
        (lambda: torch.nn.Conv2d(1, 2, 3, padding_mode="circular"), "zeros"),
        (lambda: torch.nn.AdaptiveMaxPool2d(3), "one pixel"),
        (lambda: torch.nn.AdaptiveAvgPool2d((None, 3)), "a size"),
        (lambda: torch.nn.MaxPool2d(2, ceil_mode=True), "ceil_mode"),
        (lambda: torch.nn.LSTM(2, 2), "disdel model import"),
    ],
)
def test_what_is_no_layer_is_named(module: Any, why: str) -> None:
    with pytest.raises(disdel.Invalid, match=why):
        disdel.from_torch(torch.nn.Sequential(module()))
