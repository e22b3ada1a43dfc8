"""Networks and weights of Keras, as a job has them."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from ._errors import OWN_CODE, Invalid

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Array = numpy.typing.NDArray[Any]

Arrays = Dict[str, "Array"]


def from_keras(source: Union[Any, str, "os.PathLike[str]"], *, weights: bool = False) -> Dict[str, Any]:
    """A network of Keras, to be a job's ``model``.

    :param source: a model, Sequential or Functional, or what ``model.save`` wrote: a ``.keras`` file, or an ``.h5`` file of
        the older format. Files need ``h5py`` (``pip install disdel[keras]``), and no Keras.
    :param weights: whether the job begins with the model's weights, which need NumPy, instead of drawn ones.

    Layers keep their names. The server reads the network, and says which layers it has none for.

    :raises Invalid: for what is no model, and for weights of layers that disdel has not.
    """
    text, arrays = _read(source)
    out: Dict[str, Any] = {"keras": text}
    if weights:
        out["init"] = {"weights": _converted(text, arrays())}
    return out


def keras_weights(source: Union[Any, str, "os.PathLike[str]"]) -> Arrays:
    """The weights of a network of Keras by disdel's names, in PyTorch's layouts, as :meth:`Client.put_weights` takes them:
    filters first, dense layers as [outputs inputs], the inputs of a flattened image by channel, row and column.

    :param source: as of :func:`from_keras`.
    """
    text, arrays = _read(source)
    return _converted(text, arrays())


_Arrays = Callable[[], Dict[str, List[Any]]]  # of layers, by their names


def _read(source: Any) -> Tuple[str, _Arrays]:
    """The text of a network, and what reads its weights."""
    if hasattr(source, "to_json"):
        return source.to_json(), lambda: {layer.name: list(layer.get_weights()) for layer in source.layers}
    path = Path(source)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Invalid("read %s: %s" % (path, error), kind="invalid", hint="check the file's name") from error
    if data.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            text, stored = archive.read("config.json").decode(), archive.read("model.weights.h5")
        return text, lambda: _of_archive(json.loads(text), stored)
    if data.startswith(b"\x89HDF\r\n\x1a\n"):
        return _of_hdf5(data, path)
    raise _refused(path.name, "it is no file that model.save() wrote")


def _hdf5(data: bytes) -> Any:
    import h5py  # type: ignore[import-untyped, import-not-found, unused-ignore]

    return h5py.File(io.BytesIO(data), "r")


#: Where a layer of a .keras file has its weights: its own, those of a recurrent cell, and those of two directions.
_PARTS = ("", "cell/", "forward_layer/cell/", "backward_layer/cell/")


def _of_archive(document: Dict[str, Any], data: bytes) -> Dict[str, List[Any]]:
    """The weights of a .keras file, which knows layers by their classes and counts those of one class."""
    used: Dict[str, int] = {}
    out: Dict[str, List[Any]] = {}
    with _hdf5(data) as file:
        for layer in document["config"]["layers"]:
            kind = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", layer["class_name"]))
            kind = re.sub("([a-z])([A-Z])", r"\1_\2", kind).lower()
            used[kind] = used.get(kind, -1) + 1
            place = "layers/%s%s/" % (kind, "_%d" % used[kind] if used[kind] else "")
            groups = [file.get(place + part + "vars", {}) for part in _PARTS]
            out[layer["config"]["name"]] = [group[str(i)][()] for group in groups for i in range(len(group))]
    return out


def _of_hdf5(data: bytes, path: Path) -> Tuple[str, _Arrays]:
    """The network and the weights of a file of the older format."""
    with _hdf5(data) as file:
        text = file.attrs.get("model_config")
        if text is None:
            raise _refused(path.name, "it has weights alone: model.save() writes the network, too")
        text = text.decode() if isinstance(text, bytes) else str(text)
        layers = file["model_weights"]
        arrays = {
            name: [layers[name][weight][()] for weight in layers[name].attrs["weight_names"]]
            for name in layers
            if "weight_names" in layers[name].attrs
        }
    return text, lambda: arrays


class _Output(NamedTuple):
    """What a layer puts out."""

    image: bool
    channels: int  #: of an image; of a vector those of the image that it was, 0: it was none, or is one no more


class _Layer(NamedTuple):
    name: str
    kind: str
    config: Dict[str, Any]
    inputs: List[str]


def _converted(text: str, arrays: Mapping[str, List[Any]]) -> Arrays:
    layers = _layers(json.loads(text))
    at: Dict[str, _Output] = {}
    out: Arrays = {}
    for layer in layers:
        inputs = [at[name] for name in layer.inputs]
        own = arrays.get(layer.name) or []
        move = _MOVES.get(layer.kind)
        if move is not None:
            out.update(move(layer, inputs[0], own))
        elif own:
            raise _refused(layer.name, "there is no layer like %s" % layer.kind)
        at[layer.name] = _after(layer, inputs)
    _two_outputs(layers, out)
    return out


def _layers(document: Any) -> List[_Layer]:
    """The layers of a network's text, each with those that it takes."""
    config = document["config"]
    listed = config if isinstance(config, list) else config["layers"]
    out: List[_Layer] = []
    for entry in listed:
        own = entry["config"]
        name = entry.get("name") or own["name"]
        if document["class_name"] == "Sequential":
            inputs = [out[-1].name] if out else []
            if not out and entry["class_name"] != "InputLayer":
                shape = own.get("batch_shape") or own.get("batch_input_shape") or config.get("build_input_shape")
                out.append(_Layer("input", "InputLayer", {"batch_shape": shape}, []))
                inputs = ["input"]
        else:
            inputs = _sources(entry.get("inbound_nodes") or [])
        out.append(_Layer(name, entry["class_name"], own, inputs))
    return out


def _sources(nodes: Any) -> List[str]:
    """The names of the layers that are taken, as Keras 2 or Keras 3 writes them."""
    if isinstance(nodes, dict):
        if nodes.get("class_name") == "__keras_tensor__":
            return [nodes["config"]["keras_history"][0]]
        return [name for value in nodes.values() for name in _sources(value)]
    if isinstance(nodes, list):
        if len(nodes) > 2 and isinstance(nodes[0], str):
            return [nodes[0]]
        return [name for value in nodes for name in _sources(value)]
    return []


def _after(layer: _Layer, inputs: List[_Output]) -> _Output:
    if layer.kind == "InputLayer":
        shape = layer.config.get("batch_shape") or layer.config.get("batch_input_shape") or []
        return _Output(len(shape) > 2, shape[3] if len(shape) > 3 else 1)
    if not inputs:
        raise _refused(layer.name, "it takes nothing")
    first = inputs[0]
    if layer.kind in ("Conv2D", "Conv2DTranspose", "SeparableConv2D"):
        return _Output(True, layer.config["filters"])
    if layer.kind in ("Flatten", "Reshape"):
        return _Output(False, first.channels)
    if layer.kind == "GlobalAveragePooling2D":
        return _Output(bool(layer.config.get("keepdims")), first.channels if layer.config.get("keepdims") else 0)
    if layer.kind == "Embedding":
        return _Output(False, layer.config["output_dim"])
    if layer.kind == "Conv1D":
        return _Output(False, layer.config["filters"])
    if layer.kind == "Bidirectional":
        return _Output(False, 2 * layer.config["layer"]["config"]["units"])
    if layer.kind in ("Dense", "LSTM", "GRU"):
        return _Output(False, layer.config["units"])
    if layer.kind == "Concatenate":
        return _Output(first.image, sum(i.channels for i in inputs))
    return first


def _named(layer: _Layer, names: List[str], own: List[Any]) -> Dict[str, Any]:
    if len(names) != len(own):
        raise _refused(layer.name, "it has %d arrays, and a %s has %d" % (len(own), layer.kind, len(names)))
    return dict(zip(names, own))


def _with_bias(layer: _Layer, *names: str) -> List[str]:
    return [*names, *(["bias"] if layer.config.get("use_bias", True) else [])]


def _contiguous(array: Any) -> Any:
    import numpy

    return numpy.ascontiguousarray(array, dtype=numpy.float32)


def _conv(layer: _Layer, source: _Output, own: List[Any]) -> Arrays:
    """A kernel is [height width channels filters]."""
    found = _named(layer, _with_bias(layer, "weight"), own)
    found["weight"] = found["weight"].transpose(3, 2, 0, 1)
    return {"%s.%s" % (layer.name, name): _contiguous(array) for name, array in found.items()}


def _depthwise(layer: _Layer, source: _Output, own: List[Any]) -> Arrays:
    """A kernel is [height width channels 1]."""
    found = _named(layer, _with_bias(layer, "weight"), own)
    found["weight"] = found["weight"].transpose(2, 3, 0, 1)
    return {"%s.%s" % (layer.name, name): _contiguous(array) for name, array in found.items()}


def _separable(layer: _Layer, source: _Output, own: List[Any]) -> Arrays:
    """A depthwise convolution, which has a name of its own, and one by pixels."""
    found = _named(layer, _with_bias(layer, "depthwise", "weight"), own)
    out = {"%s.depthwise.weight" % layer.name: _contiguous(found.pop("depthwise").transpose(2, 3, 0, 1))}
    found["weight"] = found["weight"].transpose(3, 2, 0, 1)
    out.update({"%s.%s" % (layer.name, name): _contiguous(array) for name, array in found.items()})
    return out


def _by_channels(array: Any, source: _Output) -> Any:
    """The first axis of an array, which a flattened image has by row, column and channel, by channel, row and column."""
    if source.image or source.channels < 2:
        return array
    split = array.reshape(-1, source.channels, *array.shape[1:])
    return split.swapaxes(0, 1).reshape(array.shape)


def _dense(layer: _Layer, source: _Output, own: List[Any]) -> Arrays:
    """A kernel is [inputs units]."""
    found = _named(layer, _with_bias(layer, "weight"), own)
    found["weight"] = _by_channels(found["weight"], source).T
    return {"%s.%s" % (layer.name, name): _contiguous(array) for name, array in found.items()}


def _norm(layer: _Layer, source: _Output, own: List[Any]) -> Arrays:
    names = ["weight"] if layer.config.get("scale", True) else []
    names += ["bias"] if layer.config.get("center", True) else []
    found = _named(layer, [*names, "running_mean", "running_var"], own)
    return {"%s.%s" % (layer.name, name): _contiguous(_by_channels(array, source)) for name, array in found.items()}


def _turned(layer: _Layer, source: _Output, own: List[Any]) -> Arrays:
    """A kernel is [height width filters channels], and disdel's is turned, since it convolves a spread image."""
    found = _named(layer, _with_bias(layer, "weight"), own)
    found["weight"] = found["weight"].transpose(2, 3, 0, 1)[:, :, ::-1, ::-1]
    return {"%s.%s" % (layer.name, name): _contiguous(array) for name, array in found.items()}


def _conv1d(layer: _Layer, source: _Output, own: List[Any]) -> Arrays:
    """A kernel is [positions channels filters], and disdel's has one more side of 1."""
    found = _named(layer, _with_bias(layer, "weight"), own)
    found["weight"] = found["weight"].transpose(2, 1, 0)[..., None]
    return {"%s.%s" % (layer.name, name): _contiguous(array) for name, array in found.items()}


def _embedding(layer: _Layer, source: _Output, own: List[Any]) -> Arrays:
    return {"%s.weight" % layer.name: _contiguous(_named(layer, ["weight"], own)["weight"])}


def _layer_norm(layer: _Layer, source: _Output, own: List[Any]) -> Arrays:
    found = _named(layer, ["weight", "bias"], own)
    return {"%s.%s" % (layer.name, name): _contiguous(array) for name, array in found.items()}


def _recurrent(layer: _Layer, source: _Output, own: List[Any]) -> Arrays:
    """Kernels are [inputs gates], with the gates i, f, c, o of an LSTM and z, r, h of a GRU. disdel has PyTorch's: z
    and r change places. A GRU has a bias of its states, and an LSTM one bias."""
    kind, out = layer.kind, {}
    if kind == "Bidirectional":
        kind = layer.config["layer"]["class_name"]
    names = [layer.name] if layer.kind == kind else [layer.name, layer.name + ".reverse"]
    if len(own) != 3 * len(names):
        raise _refused(layer.name, "it has %d arrays, and %d are needed" % (len(own), 3 * len(names)))
    for name, (kernel, recurrent, bias) in zip(names, (own[:3], own[3:])):
        both = [bias, bias * 0] if bias.ndim == 1 else list(bias)
        arrays = {".input.weight": kernel.T, ".weight": recurrent.T, ".input.bias": both[0], ".bias": both[1]}
        for part, array in arrays.items():
            if kind == "GRU":
                units = len(array) // 3
                order = [*range(units, 2 * units), *range(units), *range(2 * units, 3 * units)]
                array = array[order]
            out[name + part] = _contiguous(array)
    return out


_MOVES: Dict[str, Callable[[_Layer, _Output, List[Any]], Arrays]] = {
    "Conv2D": _conv,
    "DepthwiseConv2D": _depthwise,
    "SeparableConv2D": _separable,
    "Dense": _dense,
    "BatchNormalization": _norm,
    "Conv2DTranspose": _turned,
    "Conv1D": _conv1d,
    "Embedding": _embedding,
    "LayerNormalization": _layer_norm,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "Bidirectional": _recurrent,
}


def _two_outputs(layers: List[_Layer], out: Arrays) -> None:
    """A single output with sigmoid, a choice between two classes, is trained as two with softmax: the sigmoid of z is the
    softmax of 0 and z."""
    last: Optional[_Layer] = layers[-1] if layers else None
    if last is not None and last.kind == "Activation" and len(layers) > 1 and layers[-2].name in last.inputs:
        activation, last = last.config.get("activation"), layers[-2]
        if last.config.get("activation") not in (None, "linear"):
            return
    elif last is not None:
        activation = last.config.get("activation")
    if last is None or last.kind != "Dense" or last.config.get("units") != 1 or activation != "sigmoid":
        return
    import numpy

    for part in ("weight", "bias"):
        array = out.get("%s.%s" % (last.name, part))
        if array is not None:
            out["%s.%s" % (last.name, part)] = numpy.concatenate([numpy.zeros_like(array), array])


def _refused(name: str, why: str) -> Invalid:
    return Invalid("%s: %s" % (name, why), kind="invalid", hint=OWN_CODE)
