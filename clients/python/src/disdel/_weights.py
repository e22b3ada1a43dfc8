"""Weights in the safetensors format: 8 bytes of header length, a JSON header, little-endian values."""

from __future__ import annotations

import json
import struct
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple, Union

from ._errors import DisdelError, Invalid

if TYPE_CHECKING:
    import numpy
    import numpy.typing

_MOST_HEADER = 16 << 20

#: Type: bytes of a value, the code of the struct module, NumPy's name. BF16 has no code: it is the upper half of an F32.
_TYPES: Dict[str, Tuple[int, str, str]] = {
    "BOOL": (1, "?", "?"),
    "U8": (1, "B", "<u1"),
    "I8": (1, "b", "<i1"),
    "I16": (2, "h", "<i2"),
    "U16": (2, "H", "<u2"),
    "F16": (2, "e", "<f2"),
    "BF16": (2, "", ""),
    "I32": (4, "i", "<i4"),
    "U32": (4, "I", "<u4"),
    "F32": (4, "f", "<f4"),
    "I64": (8, "q", "<i8"),
    "U64": (8, "Q", "<u8"),
    "F64": (8, "d", "<f8"),
}


class Tensor(NamedTuple):
    """An array of a file."""

    dtype: str  #: ``F32``, ``I64``, ...
    shape: Tuple[int, ...]
    data: memoryview  #: its values, little-endian, row-major

    def values(self) -> List[Any]:
        """Its values one after the other, without NumPy."""
        if self.dtype == "BF16":
            halves = struct.unpack("<%dH" % (len(self.data) // 2), self.data)
            return list(struct.unpack("<%df" % len(halves), struct.pack("<%dI" % len(halves), *(h << 16 for h in halves))))
        size, code, _ = _TYPES[self.dtype]
        return list(struct.unpack("<%d%s" % (len(self.data) // size, code), self.data))

    def numpy(self) -> "numpy.typing.NDArray[Any]":
        """It as an array of NumPy, on the memory of the file where NumPy has the type."""
        import numpy

        if self.dtype == "BF16":
            halves = numpy.frombuffer(self.data, dtype="<u2").astype("<u4") << 16
            return halves.view("<f4").reshape(self.shape)
        array = numpy.frombuffer(self.data, dtype=_TYPES[self.dtype][2]).reshape(self.shape)
        return array if sys.byteorder == "little" else array.astype(array.dtype.newbyteorder("="))


class Weights(Mapping[str, Tensor]):
    """The weights of a model, by name, with PyTorch's names and layouts."""

    def __init__(self, tensors: Dict[str, Tensor], metadata: Dict[str, str]) -> None:
        self._tensors = tensors
        self.metadata = metadata  #: what the file says about itself

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        shapes = ", ".join("%s %s" % (name, list(t.shape)) for name, t in self._tensors.items())
        return "<disdel.Weights %s>" % shapes

    def numpy(self) -> "Dict[str, numpy.typing.NDArray[Any]]":
        """All of them as arrays of NumPy."""
        return {name: t.numpy() for name, t in self._tensors.items()}

    def torch(self) -> Dict[str, Any]:
        """All of them as a state dict of PyTorch: ``net.load_state_dict(weights.torch())``."""
        import torch  # type: ignore[import-not-found, unused-ignore]

        return {name: torch.from_numpy(array) for name, array in self.numpy().items()}


def read_safetensors(source: Union[str, bytes, bytearray, memoryview]) -> Weights:
    """The arrays of a file, or of its bytes. It trusts nothing: every number of the header is checked against the bytes
    that there are, and :class:`DisdelError` says what is wrong."""
    if isinstance(source, str):
        with open(source, "rb") as file:
            source = bytearray(file.read())
    data = memoryview(source)
    if len(data) < 8:
        raise _damaged("it has %d bytes" % len(data))
    (length,) = struct.unpack("<Q", data[:8])
    if length > min(_MOST_HEADER, len(data) - 8):
        raise _damaged("a header of %d bytes does not fit %d" % (length, len(data)))
    try:
        header = json.loads(bytes(data[8 : 8 + length]), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise _damaged("its header is no JSON: %s" % error) from error
    if not isinstance(header, dict):
        raise _damaged("its header is no object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _damaged("its metadata are no texts")
    body = data[8 + length :]
    entries = sorted(
        ((name, *_entry(name, entry, len(body))) for name, entry in header.items()), key=lambda e: (e[3], e[4], e[0])
    )
    at, tensors = 0, {}
    for name, dtype, shape, begin, end in entries:
        if begin != at:
            raise _damaged("%r begins at %d, not at %d" % (name, begin, at))
        at = end
        tensors[name] = Tensor(dtype, shape, body[begin:end])
    if at != len(body):
        raise _damaged("%d bytes belong to nothing" % (len(body) - at))
    return Weights(tensors, metadata)


def write_safetensors(arrays: Mapping[str, Any]) -> bytes:
    """A file of arrays, in float32: of NumPy, tensors of PyTorch, or :class:`Tensor`, by their names."""
    header: Dict[str, Any] = {}
    parts: List[bytes] = []
    at = 0
    for name in sorted(arrays):
        shape, data = _float32(name, arrays[name])
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def _float32(name: str, array: Any) -> Tuple[Tuple[int, ...], bytes]:
    """The shape and the values of an array."""
    if isinstance(array, Tensor):
        if array.dtype == "F32":
            return array.shape, bytes(array.data)
        array = array.numpy()
    if hasattr(array, "detach"):
        array = array.detach().cpu().float().numpy()
    try:
        import numpy

        values = numpy.ascontiguousarray(array, dtype="<f4")
    except (TypeError, ValueError) as error:
        raise Invalid("%s is no array: %s" % (name, error), kind="invalid") from error
    return numpy.shape(array), values.tobytes()


def _entry(name: str, entry: Any, most: int) -> Tuple[str, Tuple[int, ...], int, int]:
    """Type, shape and place of an array, checked."""
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged("%r has no dtype, shape and data_offsets" % name) from error
    numbers = (*shape, begin, end)
    if dtype not in _TYPES or not all(type(v) is int and v >= 0 for v in numbers):
        raise _damaged("%r is %r of %r" % (name, dtype, shape))
    size = _TYPES[dtype][0]
    for side in shape:
        size *= side
    if begin > end or end > most or end - begin != size:
        raise _damaged("%r has %d bytes at %d to %d of %d" % (name, size, begin, end, most))
    return dtype, shape, begin, end


def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """An object whose names are there once each."""
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name is there twice")
    return out


def _damaged(why: str) -> DisdelError:
    return DisdelError("read weights: " + why, kind="corrupt")
