"""The arrays of a model, whichever library it is of, and their places in the shared file.

Of PyTorch and NumPy, the model computes in the shared file itself. Other libraries get copies.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from .programs import Refused


class Listed(NamedTuple):
    """One array of a model.

    ``read()`` returns its values as the library has them. ``write(view)`` makes the model use the values of a view,
    and tells whether the model now computes in the view itself. ``shares(view)`` tells whether it still does.
    """

    name: str
    shape: Tuple[int, ...]
    trainable: bool
    integer: bool  #: whole numbers or booleans: no mean is taken of them
    read: Callable[[], Any]
    write: Callable[[Any], bool]
    shares: Callable[[Any], bool]


def is_torch(model: Any) -> bool:
    """Whether a model is a module of PyTorch. Keras' models are their own, also where Keras computes with PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module) and not _is_keras(model)


def _is_keras(model: Any) -> bool:
    return hasattr(model, "trainable_variables") and hasattr(model, "weights")


def arrays_of(model: Any) -> List[Listed]:
    """All arrays: those that training changes first, then statistics, then whole numbers.

    A model is a module of PyTorch, a dict of NumPy arrays, a model of Keras or an estimator of scikit-learn.

    :raises Refused: of kind ``unsupported`` for anything else.
    """
    if is_torch(model):
        return _of_module(model)
    if isinstance(model, dict):
        return _of_dict(model)
    if _is_keras(model):
        return _of_keras(model)
    if hasattr(model, "partial_fit"):
        return _of_estimator(model)
    raise Refused(
        "unsupported",
        "a model is a torch.nn.Module, a dict of NumPy arrays, a Keras model or a scikit-learn estimator with "
        "partial_fit, and this is %s" % type(model).__name__,
    )


def floats(listed: Sequence[Listed]) -> List[Listed]:
    """Those in the list of weights of a description."""
    return [a for a in listed if not a.integer]


def integers(listed: Sequence[Listed]) -> List[Listed]:
    """Those in the list of whole numbers of a description."""
    return [a for a in listed if a.integer]


class Placed:
    """Arrays of a model at their places in the shared file.

    :param listed: the arrays.
    :param views: the view of each, in the same order.
    """

    def __init__(self, listed: Sequence[Listed], views: Sequence[Any]) -> None:
        self._pairs = list(zip(listed, views))
        self._copied: List[Tuple[Listed, Any]] = []

    def pairs(self) -> List[Tuple[Listed, Any]]:
        """The arrays with their views."""
        return self._pairs

    def adopt(self) -> None:
        """Makes the model use the values of the file."""
        self._copied = [(a, view) for a, view in self._pairs if not a.write(view)]

    def pull(self) -> None:
        """Copies the values of arrays that the model cannot share."""
        for a, view in self._copied:
            a.write(view)

    def settle(self) -> bool:
        """Brings the model's values into the file; returns whether it has lost weights that it shared before."""
        lost = False
        copied = {id(view) for _, view in self._copied}
        for a, view in self._pairs:
            if a.shares(view):
                continue
            _assign(view, a.read(), a.name)
            if id(view) not in copied:
                lost = lost or a.trainable
                if not a.write(view):
                    self._copied.append((a, view))
        return lost


def _assign(view: Any, value: Any, name: str) -> None:
    if tuple(view.shape) != tuple(value.shape):
        raise Refused(
            "changed",
            "the shape of %s was %s and is now %s. Arrays keep their shapes while a job trains"
            % (name, list(view.shape), list(value.shape)),
        )
    if hasattr(view, "copy_"):
        view.copy_(value)
    else:
        view[...] = value


def _of_module(module: Any) -> List[Listed]:
    out: List[Listed] = []
    seen: Dict[int, str] = {}  # tied weights are listed once
    for prefix, owner in module.named_modules():
        for key, value in owner._parameters.items():
            if value is not None and id(value) not in seen:
                name = prefix + "." + key if prefix else key
                seen[id(value)] = name
                out.append(_parameter(owner, key, name, value))
    for prefix, owner in module.named_modules():
        for key, value in owner._buffers.items():
            if value is not None and id(value) not in seen and key not in owner._non_persistent_buffers_set:
                name = prefix + "." + key if prefix else key
                seen[id(value)] = name
                out.append(_buffer(owner, key, name, value))
    return [a for a in out if not a.integer] + [a for a in out if a.integer]


def _parameter(owner: Any, key: str, name: str, value: Any) -> Listed:
    if not value.is_floating_point():
        raise Refused("unsupported", "the parameter %s is of %s, and parameters are real numbers" % (name, value.dtype))

    def write(view: Any) -> bool:
        import torch

        parameter = owner._parameters[key]
        if parameter.dtype == view.dtype:
            parameter.data = view
            return True
        with torch.no_grad():
            parameter.copy_(view)
        return False

    return Listed(
        name,
        tuple(value.shape),
        bool(value.requires_grad),
        False,
        lambda: owner._parameters[key].detach(),
        write,
        lambda view: _same(owner._parameters.get(key), view),
    )


def _buffer(owner: Any, key: str, name: str, value: Any) -> Listed:
    if value.is_complex() or value.is_quantized:
        raise Refused("unsupported", "the buffer %s is of %s, which cannot be averaged" % (name, value.dtype))

    def write(view: Any) -> bool:
        buffer = owner._buffers[key]
        if buffer.dtype == view.dtype:
            owner._buffers[key] = view
            return True
        buffer.copy_(view)
        return False

    return Listed(
        name,
        tuple(value.shape),
        False,
        not value.is_floating_point(),
        lambda: owner._buffers[key].detach(),
        write,
        lambda view: _same(owner._buffers.get(key), view),
    )


def _same(tensor: Any, view: Any) -> bool:
    """Whether a tensor is the memory of a view: the same values in the same order."""
    if tensor is None or tensor.dtype != view.dtype or tensor.shape != view.shape:
        return False
    return bool(tensor.numel() == 0 or tensor.data_ptr() == view.data_ptr() and tensor.is_contiguous())


def _of_dict(model: Dict[str, Any]) -> List[Listed]:
    import numpy

    def listed(key: str) -> Listed:
        def write(view: Any) -> bool:
            if model[key].dtype == view.dtype:
                model[key] = view
                return True
            model[key][...] = view
            return False

        value = numpy.asarray(model[key])
        integer = not numpy.issubdtype(value.dtype, numpy.floating)
        model[key] = value
        return Listed(
            key, tuple(value.shape), not integer, integer, lambda: model[key], write, lambda view: model[key] is view
        )

    out = [listed(key) for key in model]
    return [a for a in out if not a.integer] + [a for a in out if a.integer]


def _of_keras(model: Any) -> List[Listed]:
    """Variables of Keras are copied: its libraries own their memory. Seeds of random layers are not weights."""
    trained = {id(v) for v in model.trainable_variables}
    skipped = ("seed_generator_state",)

    def listed(variable: Any) -> Listed:
        import numpy

        def write(view: Any) -> bool:
            variable.assign(numpy.array(view))
            return False

        integer = "float" not in str(variable.dtype)
        return Listed(
            getattr(variable, "path", variable.name),
            tuple(int(n) for n in variable.shape),
            id(variable) in trained,
            integer,
            lambda: numpy.asarray(variable.numpy() if hasattr(variable, "numpy") else variable),
            write,
            lambda view: False,
        )

    out = [listed(v) for v in model.weights if v.name not in skipped]
    order = [a for a in out if a.trainable] + [a for a in out if not a.trainable]
    return [a for a in order if not a.integer] + [a for a in order if a.integer]


def _of_estimator(model: Any) -> List[Listed]:
    """What scikit-learn's linear models and networks learned: coef_ and intercept_, or lists of both."""
    out: List[Listed] = []
    for attribute in ("coef_", "intercept_", "coefs_", "intercepts_"):
        value = getattr(model, attribute, None)
        if isinstance(value, list):
            out += [_item(model, attribute, i) for i in range(len(value))]
        elif value is not None:
            out.append(_attribute(model, attribute))
    if not out:
        raise Refused(
            "unsupported",
            "%s has neither coef_ nor coefs_. Use a linear model or a network, and call partial_fit once with all "
            "classes before run.sync" % type(model).__name__,
        )
    return out


def _attribute(model: Any, attribute: str) -> Listed:
    def write(view: Any) -> bool:
        getattr(model, attribute)[...] = view
        return False

    shape = tuple(getattr(model, attribute).shape)
    return Listed(attribute, shape, True, False, lambda: getattr(model, attribute), write, lambda view: False)


def _item(model: Any, attribute: str, index: int) -> Listed:
    def write(view: Any) -> bool:
        getattr(model, attribute)[index][...] = view
        return False

    name, shape = "%s.%d" % (attribute, index), tuple(getattr(model, attribute)[index].shape)
    return Listed(name, shape, True, False, lambda: getattr(model, attribute)[index], write, lambda view: False)
