"""The layers of a PyTorch module, as a job file has them."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from ._errors import OWN_CODE, Invalid

Layer = Dict[str, Dict[str, Any]]


def from_torch(module: Any, *, weights: bool = False) -> Dict[str, Any]:
    """The layers of a PyTorch module, to be a job's ``model``.

    :param weights: whether the job begins with the module's weights instead of drawn ones.

    The module is traced (:mod:`torch.fx`), not run. Layers have the names that their weights have in
    ``module.state_dict()``, so that what was trained goes back::

        job["model"] = disdel.from_torch(net)
        ...
        net.load_state_dict(client.weights(done.model).torch(), strict=False)

    ``strict=False`` is for ``num_batches_tracked`` alone.

    :raises Invalid: for what disdel has no layer for, by its name.
    """
    import torch.fx  # type: ignore[import-not-found, unused-ignore]

    class Tracer(torch.fx.Tracer):  # type: ignore[misc, unused-ignore]
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return _made_by(m) is not None or bool(super().is_leaf_module(m, module_qualified_name))

    graph = Tracer().trace(module)
    model = _Walk(dict(module.named_modules())).layers(graph)
    if weights:
        model["init"] = {"weights": {name: value.detach().cpu().numpy() for name, value in module.state_dict().items()}}
    return model


def _made_by(module: Any) -> Optional[Callable[[Any, str], "_Made"]]:
    """What makes a layer of a module of PyTorch or torchvision; None: there is no such layer."""
    kind = type(module)
    return _MODULES.get(kind.__name__) if kind.__module__.startswith(("torch.nn.", "torchvision.ops.")) else None


class _Walk:
    """A walk through a traced graph."""

    def __init__(self, modules: Dict[str, Any]) -> None:
        self._modules = modules
        self._at: Dict[Any, str] = {}  # the layer whose output a node is
        self._out: List[Layer] = []
        self._used: Dict[str, Any] = {}
        self._last = "input"

    def layers(self, graph: Any) -> Dict[str, Any]:
        for node in graph.nodes:
            if node.op == "placeholder":
                if self._at:
                    raise _refused(node.name, "a network takes one input")
                self._at[node] = "input"
            elif node.op == "call_module":
                self._module(node)
            elif node.op in ("call_function", "call_method"):
                self._call(node)
            elif node.op == "output":
                if self._at.get(node.args[0]) != self._last:
                    raise _refused(node.name, "a network gives the output of its last layer")
            else:
                raise _refused(node.name, "%s is no layer" % node.op)
        return {"layers": self._out}

    def _add(self, node: Any, name: str, kind: str, options: Dict[str, Any], inputs: List[Any]) -> None:
        """A layer; ``from`` says what it takes, unless that is the layer before it."""
        if name in self._used:
            raise _refused(name, "its weights are used twice")
        self._used[name] = node
        sources = [self._at[i] for i in inputs]
        said = {"name": name, **options}
        if sources != [self._last]:
            said["from"] = sources if len(sources) > 1 else sources[0]
        self._out.append({kind: said})
        self._at[node] = self._last = name

    def _module(self, node: Any) -> None:
        module = self._modules[node.target]
        found = _made_by(module)
        if found is None:
            kind = type(module).__name__
            if kind in _BY_ONNX:
                raise _refused(node.target, "%s comes in by torch.onnx.export and disdel model import" % kind)
            raise _refused(node.target, "there is no layer like %s" % kind)
        made = found(module, node.target)
        source = _tensor(node.args[0], node)
        if made is None:  # it passes on what it gets
            self._at[node] = self._at[source]
            return
        kind, options = made
        # One without weights may come several times, and is then called as the trace calls it.
        name = node.target if any(True for _ in module.state_dict()) or node.target not in self._used else node.name
        self._add(node, name, kind, options, [source])

    def _call(self, node: Any) -> None:
        name = node.target if isinstance(node.target, str) else node.target.__name__
        kind = _CALLS.get(name)
        if name in ("size", "getattr", "getitem"):  # of a view, which looks at the number of rows
            return
        if kind is None:
            raise _refused(node.name, "there is no layer like %s" % name)
        if kind in ("add", "multiply", "concat"):
            inputs = list(node.args[0] if kind == "concat" else node.args[:2])
            if kind == "concat" and _option(node, 1, "dim", 0) != 1:
                raise _refused(node.name, "only channels are joined, dim=1")
            if node.kwargs.get("alpha", 1) != 1:
                raise _refused(node.name, "outputs are added as they are, without alpha")
            self._add(node, node.name, kind, {}, [_tensor(i, node) for i in inputs])
            return
        source = _tensor(node.args[0], node)
        options: Dict[str, Any] = {}
        if kind in ("dropout", "dropout2d"):
            options = {"rate": _option(node, 1, "p", 0.5)}
        elif kind == "leakyRelu":
            options = {"slope": _option(node, 1, "negative_slope", 0.01)}
        elif name == "elu" and _option(node, 1, "alpha", 1.0) != 1:
            raise _refused(node.name, "alpha is 1")
        elif name == "gelu" and _option(node, 1, "approximate", "none") == "tanh":
            kind = "geluTanh"
        elif name == "softplus" and (_option(node, 1, "beta", 1), _option(node, 2, "threshold", 20)) != (1, 20):
            raise _refused(node.name, "beta is 1, and threshold 20")
        elif kind == "softmax" and _option(node, 1, "dim", None) not in (1, -1):
            raise _refused(node.name, "softmax is over the classes, dim=1")
        elif name == "flatten" and _option(node, 1, "start_dim", 0) != 1:
            raise _refused(node.name, "rows stay rows, start_dim=1")
        elif name in ("view", "reshape") and not _makes_vectors(node.args):
            raise _refused(node.name, "a view makes vectors of images: x.view(x.size(0), -1)")
        elif name == "mean" and sorted(_pair(_option(node, 1, "dim", 0))) not in ([2, 3], [-2, -1]):
            raise _refused(node.name, "a mean is over the pixels of each channel, dim=(2, 3)")
        elif kind == "pad":
            if _option(node, 2, "mode", "constant") != "constant" or _option(node, 3, "value", None):
                raise _refused(node.name, "zeros are padded")
            kind, options = _zeros(_option(node, 1, "pad", ()), node.name)
        elif kind == "upsample":
            mode, times = _option(node, 3, "mode", "nearest"), _option(node, 2, "scale_factor", None)
            kind, options = _upsample(mode, times, _option(node, 1, "size", None), node.name)
        elif name == "adaptive_avg_pool2d":
            kind, options = _adaptive_to(_option(node, 1, "output_size", None), node.name)
        elif name == "adaptive_max_pool2d" and _pair(_option(node, 1, "output_size", 0)) != [1, 1]:
            raise _refused(node.name, "an adaptive maximum goes down to one pixel")
        elif kind == "maxPool":
            kernel = _option(node, 1, "kernel_size", 1)
            stride = _option(node, 2, "stride", None) or kernel
            options = _pool(kernel, stride, _option(node, 3, "padding", 0))
            if _option(node, 4, "dilation", 1) != 1 or _option(node, 5, "ceil_mode", False):
                raise _refused(node.name, "neither dilation nor ceil_mode")
        self._add(node, node.name, kind, options, [source])


def _tensor(value: Any, node: Any) -> Any:
    if not hasattr(value, "op"):
        raise _refused(node.name, "%r is no output of a layer" % (value,))
    return value


def _makes_vectors(args: Any) -> bool:
    """Whether the arguments of a view give one vector a row: (x, rows, -1), or (x, -1, values)."""
    if len(args) != 3:
        return False
    return args[2] == -1 and args[1] != -1 or args[1] == -1 and isinstance(args[2], int)


def _option(node: Any, place: int, name: str, default: Any) -> Any:
    if name in node.kwargs:
        return node.kwargs[name]
    return node.args[place] if len(node.args) > place else default


def _refused(name: str, why: str) -> Invalid:
    return Invalid("%s: %s" % (name, why), kind="invalid", hint=OWN_CODE)


def _pair(value: Any) -> List[int]:
    return [int(v) for v in value] if isinstance(value, (tuple, list)) else [int(value), int(value)]


def _padding(value: Any) -> List[int]:
    height, width = _pair(value)
    return [height, height, width, width]


def _conv(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if m.padding_mode != "zeros" or m.padding == "same":
        raise _refused(name, "padding is zeros, a number of pixels on each side")
    padding = [0, 0, 0, 0] if m.padding == "valid" else _padding(m.padding)
    options = {
        "filters": m.out_channels,
        "kernel": _pair(m.kernel_size),
        "stride": _pair(m.stride),
        "padding": padding,
        "dilation": _pair(m.dilation),
        "groups": m.groups,
        "bias": m.bias is not None,
    }
    return "conv", options


def _norm(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if m.momentum is None or not m.track_running_stats:
        raise _refused(name, "a batch norm has running statistics, and a momentum")
    return "batchNorm", {"eps": m.eps, "momentum": m.momentum, "scale": m.affine, "center": m.affine}


def _group_norm(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if not m.affine:
        raise _refused(name, "a group norm has a weight and a bias, affine=True")
    return "groupNorm", {"groups": m.num_groups, "eps": m.eps}


def _drop_path(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if m.mode != "row":
        raise _refused(name, "stochastic depth drops rows, mode=row")
    return "dropPath", {"rate": m.p}


def _pool(kernel: Any, stride: Any, padding: Any) -> Dict[str, Any]:
    return {"kernel": _pair(kernel), "stride": _pair(stride), "padding": _padding(padding)}


def _max_pool(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if _pair(m.dilation) != [1, 1] or m.ceil_mode:
        raise _refused(name, "neither dilation nor ceil_mode")
    return "maxPool", _pool(m.kernel_size, m.stride, m.padding)


def _avg_pool(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if m.ceil_mode or m.divisor_override or not (m.count_include_pad or _pair(m.padding) == [0, 0]):
        raise _refused(name, "neither ceil_mode nor a divisor, and padding counts")
    return "avgPool", _pool(m.kernel_size, m.stride, m.padding)


def _adaptive(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    return _adaptive_to(m.output_size, name)


def _adaptive_to(size: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if size is None or None in (size if isinstance(size, (tuple, list)) else (size,)):
        raise _refused(name, "an adaptive pool has a size, a number of pixels")
    sides = _pair(size)
    return ("globalAvgPool", {}) if sides == [1, 1] else ("adaptiveAvgPool", {"size": sides})


def _adaptive_max(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if _pair(m.output_size) != [1, 1]:
        raise _refused(name, "an adaptive maximum goes down to one pixel")
    return "globalMaxPool", {}


def _upsample(mode: Any, times: Any, size: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    whole = times is not None and all(float(v).is_integer() for v in (times if isinstance(times, tuple) else (times,)))
    if mode != "nearest" or not whole or size is not None:
        raise _refused(name, "an upsample repeats pixels: mode nearest, and a scale_factor of whole numbers")
    return "upsample", {"size": _pair(times)}


def _zeros(sides: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if len(sides) != 4 or min(sides) < 0:
        raise _refused(name, "zeros are padded on the left, right, top and bottom")
    left, right, top, bottom = (int(v) for v in sides)
    return "pad", {"padding": [top, bottom, left, right]}


def _elu(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if m.alpha != 1:
        raise _refused(name, "alpha is 1")
    return "elu", {}


def _softplus(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if m.beta != 1 or m.threshold != 20:
        raise _refused(name, "beta is 1, and threshold 20")
    return "softplus", {}


def _softmax(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if m.dim not in (1, -1):
        raise _refused(name, "softmax is over the classes, dim=1")
    return "softmax", {}


def _flatten(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    if m.start_dim != 1 or m.end_dim != -1:
        raise _refused(name, "an image becomes a vector, nn.Flatten()")
    return "flatten", {}


def _plain(kind: str) -> Callable[[Any, str], Tuple[str, Dict[str, Any]]]:
    return lambda m, name: (kind, {})


def _gelu(m: Any, name: str) -> Tuple[str, Dict[str, Any]]:
    return ("geluTanh" if getattr(m, "approximate", "none") == "tanh" else "gelu"), {}


_Made = Optional[Tuple[str, Dict[str, Any]]]

#: What modules are, by their classes.
_MODULES: Dict[str, Callable[[Any, str], _Made]] = {
    "Conv2d": _conv,
    "Linear": lambda m, name: ("dense", {"units": m.out_features, "bias": m.bias is not None}),
    "BatchNorm1d": _norm,
    "BatchNorm2d": _norm,
    "GroupNorm": _group_norm,
    "StochasticDepth": _drop_path,
    "ReLU": _plain("relu"),
    "ReLU6": _plain("relu6"),
    "Sigmoid": _plain("sigmoid"),
    "Tanh": _plain("tanh"),
    "Hardswish": _plain("hardSwish"),
    "LeakyReLU": lambda m, name: ("leakyRelu", {"slope": m.negative_slope}),
    "PReLU": lambda m, name: ("prelu", {"groups": m.num_parameters}),
    "ZeroPad2d": lambda m, name: _zeros(m.padding, name),
    "Upsample": lambda m, name: _upsample(m.mode, m.scale_factor, m.size, name),
    "UpsamplingNearest2d": lambda m, name: _upsample(m.mode, m.scale_factor, m.size, name),
    "ELU": _elu,
    "Softplus": _softplus,
    "Hardsigmoid": _plain("hardSigmoid"),
    "GELU": _gelu,
    "SiLU": _plain("silu"),
    "Softmax": _softmax,
    "LogSoftmax": _softmax,  # the loss takes what comes before it
    "MaxPool2d": _max_pool,
    "AvgPool2d": _avg_pool,
    "AdaptiveAvgPool2d": _adaptive,
    "AdaptiveMaxPool2d": _adaptive_max,
    "Flatten": _flatten,
    "Dropout": lambda m, name: ("dropout", {"rate": m.p}),
    "Dropout2d": lambda m, name: ("dropout2d", {"rate": m.p}),
    "Identity": lambda m, name: None,
}

#: What the ONNX reader knows: its weights have other names or another order in PyTorch.
_BY_ONNX = ("LSTM", "GRU", "Conv1d", "ConvTranspose1d", "ConvTranspose2d", "Embedding")

#: What functions and methods are, by their names.
_CALLS = {
    "relu": "relu",
    "relu6": "relu6",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "hardswish": "hardSwish",
    "silu": "silu",
    "gelu": "gelu",
    "leaky_relu": "leakyRelu",
    "elu": "elu",
    "pad": "pad",
    "interpolate": "upsample",
    "softplus": "softplus",
    "hardsigmoid": "hardSigmoid",
    "softmax": "softmax",
    "log_softmax": "softmax",
    "flatten": "flatten",
    "view": "flatten",
    "reshape": "flatten",
    "add": "add",
    "iadd": "add",
    "mul": "multiply",
    "imul": "multiply",
    "cat": "concat",
    "concat": "concat",
    "dropout": "dropout",
    "dropout2d": "dropout2d",
    "feature_dropout": "dropout2d",
    "adaptive_avg_pool2d": "globalAvgPool",
    "adaptive_max_pool2d": "globalMaxPool",
    "mean": "globalAvgPool",
    "max_pool2d": "maxPool",
}
