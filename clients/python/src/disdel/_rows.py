"""Rows of a data set on their way to a server, as ``dataset.WriteDenseRows`` writes them."""

from __future__ import annotations

import json
import struct
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._errors import Invalid

#: The media type of rows.
ROWS_TYPE = "application/vnd.disdel.rows"

_MAGIC = b"disdel rows 1\n"
_LEARNED, _HELD_OUT, _END = b"\0", b"\1", b"\2"
_MOST = 2**31 - 1  # a label is an int32


def dense_rows(
    parts: Sequence[Tuple[Any, Any]], title: str, names: Optional[Sequence[str]]
) -> bytes:
    """Rows to learn from, and held-out ones where there are any, each part inputs and their labels."""
    arrays = [_array(inputs, labels) for inputs, labels in parts]
    shape, code = arrays[0].shape, arrays[0].code
    if any(a.shape != shape or a.code != code for a in arrays):
        raise _wrong("held-out rows are %s of shape %s, and the others %s of %s" % (
            arrays[-1].code, list(arrays[-1].shape), code, list(shape)))
    most = max((max(a.labels) for a in arrays if a.labels), default=-1)
    called = [] if names is None else [str(name) for name in names]  # an array of NumPy is neither true nor false
    head: Dict[str, Any] = {"title": title, "shape": _sample(shape), "classes": max(most + 1, len(called))}
    head.update({"classNames": called} if called else {})
    head.update({"bytes": True} if code == "u1" else {})
    text = json.dumps({"dense": head}).encode()
    out = [_MAGIC, struct.pack("<I", len(text)), text]
    for a, mark in zip(arrays, (_LEARNED, _HELD_OUT)):
        for label, row in zip(a.labels, a.rows):
            out += (mark, struct.pack("<i", label), row)
    return b"".join([*out, _END, struct.pack("<d", 0.0)])


class _Rows:
    """Rows as bytes."""

    def __init__(self, shape: Tuple[int, ...], code: str, rows: List[bytes], labels: List[int]) -> None:
        self.shape, self.code, self.rows, self.labels = shape, code, rows, labels


def _array(inputs: Any, labels: Any) -> _Rows:
    try:
        return _read(inputs, labels)
    except (TypeError, ValueError, OverflowError, struct.error) as error:  # of text, of None, of 1e39
        raise _wrong("a value is no number of float32, or a label none at all: %s" % error) from error


def _read(inputs: Any, labels: Any) -> _Rows:
    classes = _classes(labels)
    if hasattr(inputs, "detach"):
        inputs = inputs.detach().cpu().numpy()
    if hasattr(inputs, "dtype"):
        import numpy

        code = "u1" if inputs.dtype == numpy.uint8 else "<f4"
        array = numpy.ascontiguousarray(inputs, dtype=code)
        shape = tuple(int(n) for n in array.shape[1:])
        rows = [row.tobytes() for row in array]
    else:
        code, nested = "<f4", list(inputs)
        shape = _nested(nested[0]) if nested else ()
        if any(_nested(row) != shape for row in nested):
            raise _wrong("rows are of several shapes")
        rows = [struct.pack("<%df" % len(v), *v) for v in (_flat(row) for row in nested)]
    if len(rows) != len(classes):
        raise _wrong("%d rows have %d labels" % (len(rows), len(classes)))
    if not 1 <= len(shape) <= 3:
        raise _wrong("a row is of shape %s, and it is [values], [height width] or [channels height width]" % list(shape))
    return _Rows(shape, code.strip("<"), rows, classes)


def _classes(labels: Any) -> List[int]:
    out = []
    for label in labels:
        if int(label) != label or not 0 <= label <= _MOST:
            raise _wrong("a label is %s, and classes are 0, 1, 2, ..." % label)
        out.append(int(label))
    return out


def _sample(shape: Tuple[int, ...]) -> List[int]:
    """A row's shape as data sets have it, [channels height width]."""
    return [1] * (3 - len(shape)) + list(shape)


def _nested(row: Any) -> Tuple[int, ...]:
    """The shape of nested lists, all of a depth as long as the first."""
    if isinstance(row, (str, bytes)):
        raise _wrong("%.40r is text, and values are numbers" % row)
    if not hasattr(row, "__len__"):
        return ()
    inner = {_nested(part) for part in row}
    if len(inner) != 1:
        raise _wrong("the lists of a row are of several lengths, or empty")
    return (len(row), *inner.pop())


def _flat(row: Any) -> List[float]:
    if not hasattr(row, "__len__"):
        return [float(row)]
    return [v for part in row for v in _flat(part)]


def _wrong(why: str) -> Invalid:
    return Invalid("write rows: " + why, kind="invalid")
