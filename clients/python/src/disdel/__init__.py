"""A client of ``disdel serve``: jobs, their curves and events, and the models that they trained.

It speaks the HTTP API that the server describes at ``/openapi.json`` and needs nothing but the standard library.
:class:`Client` is where to begin.
"""

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
