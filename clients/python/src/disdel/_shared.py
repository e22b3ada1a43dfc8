"""The file that the runtime and the worker share: weights, moments and batches, at the places that the runtime chose."""

from __future__ import annotations

import mmap
from typing import Any, Sequence

#: Bytes of a value, by the name that PyTorch and NumPy have for its type.
_BYTES = {"float32": 4, "int32": 4, "int64": 8}


def count(shape: Sequence[int]) -> int:
    """The number of values of an array."""
    out = 1
    for side in shape:
        out *= int(side)
    return out


class SharedFile:
    """The mapped file.

    :param fd: its descriptor.
    :param size: its length in bytes.
    """

    def __init__(self, fd: int, size: int) -> None:
        self._map = mmap.mmap(fd, size)

    def torch(self, offset: int, shape: Sequence[int], dtype: str = "float32") -> Any:
        """A tensor whose values are those of the file."""
        import torch  # type: ignore[import-not-found, unused-ignore]

        kind = getattr(torch, dtype)
        if count(shape) == 0:
            return torch.empty(list(shape), dtype=kind)
        self._check(offset, shape, dtype)
        return torch.frombuffer(self._map, dtype=kind, count=count(shape), offset=offset).view(list(shape))

    def numpy(self, offset: int, shape: Sequence[int], dtype: str = "float32") -> Any:
        """An array of NumPy whose values are those of the file."""
        import numpy

        self._check(offset, shape, dtype)
        return numpy.frombuffer(self._map, dtype=dtype, count=count(shape), offset=offset).reshape(list(shape))

    def _check(self, offset: int, shape: Sequence[int], dtype: str) -> None:
        if offset % 64 or offset + count(shape) * _BYTES[dtype] > len(self._map):
            raise ValueError("the array at %d of shape %s does not fit the shared file" % (offset, list(shape)))
