"""A client of ``disdel serve``, and what Python programs that disdel trains are written with.

:class:`Client` has jobs, their curves and events, and the models that they trained. It speaks the HTTP API that the
server describes at ``/openapi.json`` and needs nothing but the standard library.

:class:`Task` and :class:`Run` are for programs that train as actions: see ``docs/reference/python-programs.md``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._task import Batch, RoundOver, Run, Task

if TYPE_CHECKING:
    from ._answers import Answer, Answers
    from ._client import Client, Event
    from ._compare import Comparison, compare
    from ._errors import (
        Conflict,
        Denied,
        DisdelError,
        Fault,
        Invalid,
        JobFailed,
        NotFound,
        OverLimit,
        Unavailable,
        WaitTimeout,
    )
    from ._job import Job
    from ._keras import from_keras, keras_weights
    from ._torch import from_torch
    from ._weights import Tensor, Weights, read_safetensors, write_safetensors

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Answers",
    "Batch",
    "Client",
    "Comparison",
    "Conflict",
    "Denied",
    "DisdelError",
    "Event",
    "Fault",
    "Invalid",
    "Job",
    "JobFailed",
    "NotFound",
    "OverLimit",
    "RoundOver",
    "Run",
    "Task",
    "Tensor",
    "Unavailable",
    "WaitTimeout",
    "Weights",
    "compare",
    "from_keras",
    "from_torch",
    "keras_weights",
    "read_safetensors",
    "write_safetensors",
]

#: Where the client's names are. They are imported on use: an action needs none of them, and no memory for them.
_HOMES = {
    "_answers": ("Answer", "Answers"),
    "_client": ("Client", "Event"),
    "_compare": ("Comparison", "compare"),
    "_errors": (
        "Conflict",
        "Denied",
        "DisdelError",
        "Fault",
        "Invalid",
        "JobFailed",
        "NotFound",
        "OverLimit",
        "Unavailable",
        "WaitTimeout",
    ),
    "_job": ("Job",),
    "_keras": ("from_keras", "keras_weights"),
    "_torch": ("from_torch",),
    "_weights": ("Tensor", "Weights", "read_safetensors", "write_safetensors"),
}
_PLACES = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    value = getattr(importlib.import_module("." + _PLACES[name], __name__), name)
    globals()[name] = value
    return value
