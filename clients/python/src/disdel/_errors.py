"""What goes wrong, as the server has it: a kind, a message and a hint."""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Type


class Fault(NamedTuple):
    """One thing that is wrong with a job file."""

    path: str  #: dotted path of the field: ``training.batchSize``
    line: int  #: from 1; 0 where there is no file
    column: int
    message: str
    hint: str


class DisdelError(Exception):
    """An error of the server, or of the way to it."""

    def __init__(
        self, message: str, *, kind: str = "", hint: str = "", status: int = 0, faults: Optional[List[Fault]] = None
    ) -> None:
        text = message
        for fault in faults or []:
            text += "\n%d:%d: %s: %s" % (fault.line, fault.column, fault.path, fault.message)
        if hint:
            text += "\nhint: " + hint
        super().__init__(text)
        self.message = message
        self.kind = kind  #: ``notFound``, ``overLimit``, ...
        self.hint = hint  #: what to do next
        self.status = status  #: of HTTP; 0 where there was no answer
        self.faults: List[Fault] = faults or []  #: everything that is wrong with a job file


class Invalid(DisdelError):
    """The request is wrong; ``faults`` has all of it where it is a job file."""


class NotFound(DisdelError):
    """What was named is not there."""


class Denied(DisdelError):
    """The token is none, or allows less."""


class Conflict(DisdelError):
    """It is there already, or has changed meanwhile."""


class OverLimit(DisdelError):
    """It does not fit a limit or a quota."""


class Unavailable(DisdelError):
    """The server does not answer, or asks to come later."""


class JobFailed(DisdelError):
    """A job ended and did not succeed."""


class WaitTimeout(DisdelError, TimeoutError):
    """A job has not ended within the time that was waited for."""


# The next step of a message about a layer that disdel does not have.
OWN_CODE = "it runs as your own Python code: model.python, docs/reference/python-programs.md"

_KINDS: Dict[str, Type[DisdelError]] = {
    "invalid": Invalid,
    "notFound": NotFound,
    "denied": Denied,
    "conflict": Conflict,
    "overLimit": OverLimit,
    "unavailable": Unavailable,
}


def of_answer(status: int, body: bytes) -> DisdelError:
    """The error that an answer tells of, whatever its body is."""
    try:
        document: Any = json.loads(body)
        failure = of_failure(document["error"])
        faults = [
            Fault(
                str(f.get("path", "")),
                int(f.get("line", 0)),
                int(f.get("column", 0)),
                str(f.get("message", "")),
                str(f.get("hint", "")),
            )
            for f in document.get("faults") or []
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return DisdelError("the server answered %d, and nothing that a disdel server says" % status, status=status)
    message = "the job file has %d faults" % len(faults) if faults else failure.message
    return type(failure)(message, kind=failure.kind, hint=failure.hint, status=status, faults=faults)


def of_failure(told: Any) -> DisdelError:
    """The error that a document of one tells of."""
    kind, parts = str(told.get("kind", "")), [told.get("op"), told.get("message"), told.get("cause")]
    message = ": ".join(str(p) for p in parts if p)
    return _KINDS.get(kind, DisdelError)(message or kind, kind=kind, hint=str(told.get("hint") or ""))
