"""Follow the memory of a program's steps without computing them: tensors have sizes and no values."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

import torch  # type: ignore[import-not-found, unused-ignore]
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # type: ignore[import-not-found, unused-ignore]
from torch.multiprocessing.reductions import StorageWeakRef  # type: ignore[import-not-found, unused-ignore]
from torch.utils._mode_utils import no_dispatch  # type: ignore[import-not-found, unused-ignore]
from torch.utils._python_dispatch import TorchDispatchMode  # type: ignore[import-not-found, unused-ignore]
from torch.utils._pytree import tree_flatten, tree_map  # type: ignore[import-not-found, unused-ignore]

from . import _guesses as guesses

_ops = torch.ops.aten

#: How torch.tensor hands its real values to a mode, which makes the fake tensor itself.
_LIFTS = [getattr(_ops, name) for name in ("lift", "lift_fresh", "lift_fresh_copy") if hasattr(_ops, name)]

#: Fakes of torch before 2 fail in many operations, some of them by a crash.
_FAKES_COMPUTE = int(torch.__version__.split(".")[0]) >= 2


def fake_mode() -> Any:
    """The mode in which tensors have no values; torch before 2 converts real ones less readily."""
    try:
        return FakeTensorMode(allow_non_fake_inputs=True)
    except TypeError:
        return FakeTensorMode()


class Tracer(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Adds up the storages that are alive after every operation."""

    def __init__(self, mode: Any, guessed: guesses.Guesses) -> None:
        super().__init__()
        self.peak = 0  #: bytes, of the storages of one moment and what its operation needs besides
        self.made = 0  #: bytes of all outputs that are no views
        self.mode = mode
        self._guessed = guessed
        self._shapes: Dict[str, Any] = {}  # of computed operations' outputs
        self._live: Dict[int, Tuple[Any, int]] = {}  # by the storage's address
        self._sum = 0  # of _live, with those that have died since the last sweep
        self._held: List[Tuple[Any, int]] = []  # workspace that lives as long as an output

    def fake(self, value: Any) -> Any:
        """A tensor without values in the place of a real one."""
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
            return self.mode.from_tensor(value)
        return value

    def hold(self, tensor: Any) -> None:
        """Count a tensor's storage from now on."""
        self._add(tensor)

    def reset(self) -> None:
        """Forget the peak so far; what is alive stays counted."""
        self._sweep()
        self.peak, self.made = self._sum, 0

    def live(self) -> int:
        """Bytes that are alive."""
        self._sweep()
        return self._sum

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "overloadpacket", func) not in _LIFTS:
            args, kwargs = tree_map(self.fake, (tuple(args), kwargs))
        answered, out = self._guessed.answer(func, args, kwargs)
        if not answered:
            out = self._run(func, args, kwargs)
        extra, held = _workspace(func, args, out)
        for tensor in tree_flatten(out)[0]:
            if isinstance(tensor, torch.Tensor):
                added = self._add(tensor)
                self.made += added
                if added and held:
                    self._workspace_of(tensor, held)
                    held = 0
        if self._sum + extra > self.peak:
            self._sweep()
            self.peak = max(self.peak, self._sum + extra)
        return out

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """An operation without values. One that fakes cannot do is computed once, on other values of the same sizes."""
        if not _FAKES_COMPUTE and not _is_view(func):
            return self._computed(func, args, kwargs)
        try:
            return func(*args, **kwargs)
        except (NotImplementedError, RuntimeError, TypeError, AssertionError):
            return self._computed(func, args, kwargs)

    def _computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        fakes = [v for v in tree_flatten((args, kwargs))[0] if isinstance(v, FakeTensor)]
        fakes = list({id(v): v for v in fakes}.values())
        numbers = {id(v): i for i, v in enumerate(fakes)}
        plain = tree_map(lambda v: numbers[id(v)] if isinstance(v, FakeTensor) else v, (args, kwargs))
        key = str((func, [(v.shape, v.stride(), v.dtype) for v in fakes], plain))
        if key not in self._shapes:
            with no_dispatch():
                self._shapes[key] = _shapes_of(func, args, kwargs, fakes)
        return tree_map(lambda shape: shape.of(fakes) if isinstance(shape, _Shape) else shape, self._shapes[key])

    def _add(self, tensor: Any) -> int:
        storage = _storage(tensor)
        key = storage._cdata
        known = self._live.get(key)
        if known is not None and not known[0].expired():
            return 0
        size = storage.nbytes()
        self._live[key] = (StorageWeakRef(storage), size)
        self._sum += size - (known[1] if known is not None else 0)
        return int(size)

    def _workspace_of(self, tensor: Any, size: int) -> None:
        self._held.append((StorageWeakRef(_storage(tensor)), size))
        self._sum += size

    def _sweep(self) -> None:
        self._live = {k: v for k, v in self._live.items() if not v[0].expired()}
        self._held = [h for h in self._held if not h[0].expired()]
        self._sum = sum(size for _, size in self._live.values()) + sum(size for _, size in self._held)


class _Shape:
    """What a computed tensor was like."""

    def __init__(self, tensor: Any, twins: List[Any]) -> None:
        self._size, self._stride, self._dtype = tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
        self._offset = tensor.storage_offset()
        same = [i for i, t in enumerate(twins) if t is tensor]
        place = _storage(tensor).data_ptr()
        shared = [i for i, t in enumerate(twins) if t.numel() and _storage(t).data_ptr() == place]
        self._same = same[0] if same else None  # of an operation in place
        self._shared = shared[0] if shared else None  # of a view that does not say that it is one

    def of(self, fakes: List[Any]) -> Any:
        """A tensor like it, without values."""
        if self._same is not None:
            return fakes[self._same]
        if self._shared is not None:
            whole = fakes[self._shared]
            return whole.as_strided(self._size, self._stride, self._offset + whole.storage_offset())
        return torch.empty_strided(self._size, self._stride, dtype=self._dtype)


def _shapes_of(func: Any, args: Any, kwargs: Any, fakes: List[Any]) -> Any:
    """The outputs' shapes. Whole numbers are 0, which are valid places; where that is refused they are 1."""
    try:
        return _shapes_with(0, func, args, kwargs, fakes)
    except RuntimeError:
        return _shapes_with(1, func, args, kwargs, fakes)


def _shapes_with(whole: int, func: Any, args: Any, kwargs: Any, fakes: List[Any]) -> Any:
    twins = [torch.empty_strided(tuple(v.shape), tuple(v.stride()), dtype=v.dtype) for v in fakes]
    for twin in twins:
        twin.fill_(1 if twin.is_floating_point() else whole)
    by_fake = {id(v): t for v, t in zip(fakes, twins)}
    args, kwargs = tree_map(lambda v: by_fake.get(id(v), v), (args, kwargs))
    out = func(*args, **kwargs)
    return tree_map(lambda v: _Shape(v, twins) if isinstance(v, torch.Tensor) else v, out)


def _is_view(func: Any) -> bool:
    """Whether an operation's output shares its input's storage by its own word, or it changes a tensor's shape."""
    if getattr(torch, "Tag", None) is not None and torch.Tag.inplace_view in getattr(func, "tags", ()):
        return True
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


def _storage(tensor: Any) -> Any:
    get = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage
    with torch._C.DisableTorchFunction():
        return get(tensor)


def _size(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _blocked(tensor: Any) -> int:
    """Bytes of a copy in blocks of 16 channels, as kernels of convolutions want it."""
    channels = tensor.shape[1] if tensor.ndim > 1 else 1
    padded = -(-channels // 16) * 16 if channels > 4 else channels
    return int(_size(tensor) // max(channels, 1) * padded)


def _workspace(func: Any, args: Any, out: Any) -> Tuple[int, int]:
    """Bytes that an operation takes while it runs, and those that live until its output dies."""
    rule = _RULES.get(getattr(func, "overloadpacket", func))
    return rule(args, out) if rule else (0, 0)


def _convolution(args: Any, out: Any) -> Tuple[int, int]:
    x, weight = args[0], args[1]
    copies = 0 if x.is_contiguous() else _size(x)
    return copies + _blocked(x) + _blocked(out) + _size(weight), 0


def _convolution_backward(args: Any, out: Any) -> Tuple[int, int]:
    grad, x, weight = args[:3]
    copies = sum(_size(t) for t in (grad, x) if not t.is_contiguous())
    return copies + _blocked(grad) + _blocked(x) + _size(weight) * 3 // 2, 0


def _recurrent(args: Any, out: Any) -> Tuple[int, int]:
    x, weight, hidden = args[0], args[1], args[5]
    steps, rows = x.shape[0], x.shape[1]
    return 3 * _size(weight), 5 * hidden.shape[-1] * steps * rows * x.element_size()


def _encoder_layer(args: Any, out: Any) -> Tuple[int, int]:
    """A whole layer of a transformer in one operation: queries, keys and values, scores, and the wide layer."""
    x, heads = args[0], args[2]
    wide: Any = args[14] if len(args) > 14 else None
    scores = x.shape[0] * heads * x.shape[-2] * x.shape[-2] * x.element_size()
    known = isinstance(wide, torch.Tensor) and wide.ndim == 2
    hidden = _size(x) // x.shape[-1] * wide.shape[0] if known else 4 * _size(x)
    return max(5 * _size(x) + 2 * scores, 2 * hidden + _size(x)), 0


_RULES: Dict[Any, Callable[[Any, Any], Tuple[int, int]]] = {
    _ops.convolution: _convolution,
    _ops.convolution_backward: _convolution_backward,
}
for _name, _rule in (("mkldnn_rnn_layer", _recurrent), ("_transformer_encoder_layer_fwd", _encoder_layer)):
    if hasattr(_ops, _name):
        _RULES[getattr(_ops, _name)] = _rule
