"""The file that the runtime and the worker share: weights, moments and batches, at places that the runtime chose."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any, Optional, Sequence

#: Bytes of a value, by the name that PyTorch and NumPy have for its type.
_BYTES = {"float32": 4, "int32": 4, "int64": 8}


_MAP_FIXED = 0x10  # Linux; the module mmap does not have it


def _map(at: Optional[int], size: int, flags: int, fd: int) -> int:
    """Maps memory that can be read and written; returns its address."""
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    found: Optional[int] = call(at, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
    if found is None or found == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, "map the shared file of %d bytes: %s" % (size, os.strerror(number)))
    return found


def count(shape: Sequence[int]) -> int:
    """The number of values of an array."""
    out = 1
    for side in shape:
        out *= int(side)
    return out


class SharedFile:
    """The mapped file.

    The module mmap keeps a descriptor of the file open, which a program could write to by mistake. This keeps none.

    :param fd: the file's descriptor; it is closed.
    :param size: the file's length in bytes.
    """

    def __init__(self, fd: int, size: int) -> None:
        self._size, self._at = size, _map(None, size, mmap.MAP_SHARED, fd)
        os.close(fd)
        self._map: Any = (ctypes.c_char * size).from_address(self._at)
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """Gives a process that the program forks a copy of its own: what it computes must not change the worker's."""
        values = ctypes.string_at(self._at, self._size)
        _map(self._at, self._size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED, -1)
        ctypes.memmove(self._at, values, self._size)

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
