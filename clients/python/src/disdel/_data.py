"""The data set of a user's program, row by row as arrays in files."""

from __future__ import annotations

import math
import os
from typing import Any, Dict, Mapping, Optional, Tuple

from . import programs
from ._task import Task, overrides
from .programs import Refused


def write(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Writes the rows of ``Task.dataset`` into the folder ``to`` of the request.

    :returns: by part, ``train`` and ``test``, how many rows it has. Files are ``PART-x.npy`` and ``PART-y.npy``. A part
        that the program does not have is left out.
    :raises Refused: with the user's line where a row cannot be read, and for rows that do not fit each other.
    """
    folder, file = request["folder"], request["file"]
    program = programs.load(folder, file, request.get("entry") or "", request.get("arguments") or {})
    task: Any = None
    if program.form == programs.TASK:
        task = programs.built(program, request.get("arguments") or {}, folder)
    if not isinstance(task, Task) or not overrides(task, "dataset"):
        raise Refused(
            "arguments", "%s has no method dataset(self, part) of a disdel.Task, which returns its rows" % file
        )
    out: Dict[str, Any] = {}
    for part in ("train", "test"):
        rows = _of_user("dataset(%r)" % part, folder, lambda: task.dataset(part))
        if rows is not None:
            out[part] = _write(rows, part, folder, request["to"])
    if "train" not in out:
        raise Refused("arguments", "dataset('train') returned no rows")
    return out


def _of_user(what: str, folder: str, call: Any) -> Any:
    """What a call of the user's code returns; its error has the user's line, and names what was read."""
    try:
        return call()
    except BaseException as error:
        refused = programs.refusal(error, folder)
        refused.message = "%s: %s" % (what, refused.message)
        raise refused from error


def _write(rows: Any, part: str, folder: str, to: str) -> int:
    import numpy

    if not hasattr(rows, "__len__") or not hasattr(rows, "__getitem__"):
        raise Refused(
            "arguments",
            "dataset(%r) returned a %s without a length. Return a list, or an object with __len__ and __getitem__"
            % (part, type(rows).__name__),
        )
    count = _of_user("the length of dataset(%r)" % part, folder, lambda: len(rows))
    if count < 1:
        raise Refused("arguments", "dataset(%r) has no rows" % part)
    shape: Optional[Tuple[int, ...]] = None
    labels = numpy.zeros(count, "float64")
    x: Any = None
    for i in range(count):
        what = "row %d of dataset(%r)" % (i, part)
        value, label = _of_user(what, folder, lambda: _row(rows[i]))
        if shape is None:
            shape = value.shape
            x = numpy.lib.format.open_memmap(  # type: ignore[no-untyped-call, unused-ignore]
                os.path.join(to, part + "-x.npy"), "w+", "<f4", (count, *shape)
            )
        if value.shape != shape:
            raise Refused("user", "%s has the shape %s, and row 0 has %s" % (what, list(value.shape), list(shape)))
        if not numpy.isfinite(value).all() or not math.isfinite(label):
            raise Refused("user", "%s has a value that is not finite" % what)
        x[i], labels[i] = value, label
    x.flush()
    whole = labels == labels.round()
    numpy.save(os.path.join(to, part + "-y.npy"), labels.astype("int64") if whole.all() else labels)
    return int(count)


def _row(row: Any) -> Tuple[Any, float]:
    """A row as an array of float32, and its label."""
    import numpy

    x, y = row
    return numpy.asarray(x, dtype="float32"), float(y)
