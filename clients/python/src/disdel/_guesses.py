"""Answers in place of values that no tensor has while a program is traced. Every guess is counted with its line."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch  # type: ignore[import-not-found, unused-ignore]

from . import programs

_ops = torch.ops.aten

BRANCH = "a branch on data was guessed to be taken"
VALUE = "a value of a tensor was guessed"
SIZE = "a size that depends on data was guessed as its largest"


class Guesses:
    """The guesses of one trace.

    :param classes: an integer that a tensor would have is guessed to be the last class.
    """

    def __init__(self, folder: str, classes: int) -> None:
        self._folder = folder
        self._classes = max(classes, 1)
        self._count: Dict[Tuple[str, str], int] = {}

    def told(self) -> List[str]:
        """Every place with what was guessed there."""
        lines = []
        for (place, what), times in sorted(self._count.items()):
            often = " (%d times)" % times if times > 1 else ""
            lines.append("%s: %s%s" % (place, what, often))
        return lines

    def note(self, what: str) -> None:
        """Count a guess at the program's line that is being run. What optimisers and disdel ask is none."""
        frame: Any = sys._getframe(1)
        while frame is not None and not programs.inside(frame.f_code.co_filename, self._folder):
            name = frame.f_globals.get("__name__", "")
            if name.startswith(("torch.optim.", "disdel.")) and name not in (__name__, "disdel._tracing"):
                return
            frame = frame.f_back
        if frame is not None:
            place = "%s:%d" % (programs.relative(frame.f_code.co_filename, self._folder), frame.f_lineno)
            self._count[place, what] = self._count.get((place, what), 0) + 1

    def answer(self, func: Any, args: Any, kwargs: Any) -> Tuple[bool, Any]:
        """The guessed output of an operation whose output depends on values."""
        packet = getattr(func, "overloadpacket", func)
        rule = _RULES.get(packet)
        if rule is not None:
            return rule(self, args, kwargs)
        return False, None

    def scalar(self, dtype: Any) -> Any:
        """A guessed value of one element."""
        if dtype == torch.bool:
            self.note(BRANCH)
            return True
        self.note(VALUE)
        if dtype.is_floating_point:
            return 1.0
        return complex(1) if dtype.is_complex else self._classes - 1

    def values(self, tensor: Any) -> Any:
        """Guessed values of a whole tensor, as NumPy has them."""
        import numpy

        value = self.scalar(tensor.dtype)
        name = str(tensor.dtype).split(".")[-1]
        return numpy.full(tuple(tensor.shape), value, dtype="float32" if name == "bfloat16" else name)


def _item(g: Guesses, args: Any, kwargs: Any) -> Tuple[bool, Any]:
    return True, g.scalar(args[0].dtype)


def _equal(g: Guesses, args: Any, kwargs: Any) -> Tuple[bool, Any]:
    g.note(BRANCH)
    return True, args[0].shape == args[1].shape


def _nonzero(g: Guesses, args: Any, kwargs: Any) -> Tuple[bool, Any]:
    g.note(SIZE)
    return True, torch.zeros((args[0].numel(), args[0].ndim), dtype=torch.int64)


def _unique(g: Guesses, args: Any, kwargs: Any) -> Tuple[bool, Any]:
    g.note(SIZE)
    x = args[0]
    counts = torch.zeros((x.numel(),), dtype=torch.int64)
    return True, (torch.zeros((x.numel(),), dtype=x.dtype), torch.zeros_like(x, dtype=torch.int64), counts)


def _masked_select(g: Guesses, args: Any, kwargs: Any) -> Tuple[bool, Any]:
    g.note(SIZE)
    return True, torch.zeros((args[0].numel(),), dtype=args[0].dtype)


def _masks(indices: Any) -> bool:
    return any(isinstance(i, torch.Tensor) and i.dtype in (torch.bool, torch.uint8) for i in indices)


def _index(g: Guesses, args: Any, kwargs: Any) -> Tuple[bool, Any]:
    x, indices = args[0], args[1]
    if not _masks(indices):
        return False, None
    g.note(SIZE)
    shape, at = [], 0
    for i in indices:
        if i is None:
            shape.append(x.shape[at])
            at += 1
        elif i.dtype in (torch.bool, torch.uint8):
            shape.append(i.numel())
            at += i.ndim
        else:
            shape.append(i.numel())
            at += 1
    return True, torch.zeros(shape + list(x.shape[at:]), dtype=x.dtype)


def _index_put(g: Guesses, args: Any, kwargs: Any) -> Tuple[bool, Any]:
    return (True, args[0]) if _masks(args[1]) else (False, None)


def _new_index_put(g: Guesses, args: Any, kwargs: Any) -> Tuple[bool, Any]:
    return (True, torch.zeros_like(args[0])) if _masks(args[1]) else (False, None)


_RULES: Dict[Any, Callable[[Guesses, Any, Any], Tuple[bool, Any]]] = {
    _ops._local_scalar_dense: _item,
    _ops.equal: _equal,
    _ops.nonzero: _nonzero,
    _ops._unique2: _unique,
    _ops.unique_consecutive: _unique,
    _ops.masked_select: _masked_select,
    _ops.index: _index,
    _ops.index_put: _new_index_put,
    _ops.index_put_: _index_put,
    _ops._index_put_impl_: _index_put,
}


@contextlib.contextmanager
def patched(guessed: Guesses, tracer: Any) -> Iterator[None]:
    """Within it, what leaves torch for Python's numbers is guessed, too."""
    from torch._subclasses.fake_tensor import FakeTensorMode  # type: ignore[import-not-found, unused-ignore]

    tensor = torch.Tensor
    before: List[Tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, value: Any) -> None:
        before.append((owner, name, owner.__dict__.get(name)))
        setattr(owner, name, value)

    def apply(module: Any, change: Any, *rest: Any) -> Any:
        """Module.to and its kind: torch's own way swaps tensors in place, which fakes refuse."""
        for child in module.children():
            apply(child, change)
        for name, value in module._parameters.items():
            if value is not None:
                with torch.no_grad():
                    module._parameters[name] = torch.nn.Parameter(change(tracer.fake(value)), value.requires_grad)
        for name, value in module._buffers.items():
            if value is not None:
                module._buffers[name] = change(tracer.fake(value))
        return module

    put(torch.autograd.profiler.record_function, "__enter__", lambda self: self)
    put(torch.autograd.profiler.record_function, "__exit__", lambda self, *error: None)
    put(torch, "save", lambda *args, **options: None)
    put(tensor, "numpy", lambda self, *args, **options: guessed.values(self))
    put(tensor, "__array__", lambda self, dtype=None, *args, **options: guessed.values(self).astype(dtype or None))
    put(tensor, "tolist", lambda self: guessed.values(self).tolist())
    put(tensor, "__repr__", lambda self, *args, **options: "tensor of shape %s" % list(self.shape))
    put(tensor, "__format__", lambda self, spec: "tensor" if self.ndim else format(guessed.scalar(self.dtype), spec))
    put(torch.nn.Module, "_apply", apply)
    put(FakeTensorMode, "__deepcopy__", lambda self, memo: self)
    try:
        yield
    finally:
        for owner, name, value in reversed(before):
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
