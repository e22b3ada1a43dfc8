"""A job as its record tells of it."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ._errors import JobFailed

_ENDED = ("succeeded", "failed", "canceled")

#: The curves of a record's rounds.
_CURVES = ("trainLoss", "loss", "accuracy", "trainAccuracy", "durationMs")


class Job:
    """A job and everything that is known about it.

    ``record`` is the whole document, as ``disdel history show -o json`` prints it.
    """

    def __init__(self, record: Dict[str, Any]) -> None:
        self.record = record

    def __repr__(self) -> str:
        return "<disdel.Job %s: %s>" % (self.id, self.status)

    @property
    def id(self) -> str:
        return str(self.record["id"])

    @property
    def name(self) -> str:
        return str(self.record["job"]["metadata"]["name"])

    @property
    def status(self) -> str:
        """``queued``, ``admitted``, ``running``, ``paused``, ``succeeded``, ``failed`` or ``canceled``."""
        return str(self.record["status"])

    @property
    def ended(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.status in _ENDED

    @property
    def accuracy(self) -> Optional[float]:
        """The share of held-out rows that the model has right; None where none were held out, or nothing evaluated."""
        for r in self.record.get("rounds") or []:
            if r.get("accuracy") is not None:
                return float(self.record["accuracy"])
        return None

    @property
    def model(self) -> Optional[str]:
        """The model that it trained, ``NAME:vN``; None where there is none yet."""
        ref = self.record.get("model")
        return "%s:v%d" % (ref["name"], ref["version"]) if ref else None

    def curves(self) -> Dict[str, List[Optional[float]]]:
        """What its rounds gave, by round: ``trainLoss``, ``loss``, ``accuracy``, ``trainAccuracy`` and ``durationMs``,
        and ``round``, from 1. None stands where a round was not evaluated."""
        rounds = self.record.get("rounds") or []
        out: Dict[str, List[Optional[float]]] = {"round": [float(r["round"]) + 1 for r in rounds]}
        for name in _CURVES:
            out[name] = [None if r.get(name) is None else float(r[name]) for r in rounds]
        return out

    def curve(self, name: str) -> List[Optional[float]]:
        """One of :meth:`curves`."""
        curves = self.curves()
        if name not in curves:
            raise ValueError("there is no curve %r: %s" % (name, ", ".join(curves)))
        return curves[name]

    def figures(self) -> Dict[str, Any]:
        """The figures that lists show: ``name``, ``id``, ``status``, ``accuracy``, ``loss``, ``epochs`` and ``model``."""
        rounds = self.record.get("rounds") or []
        losses = [r["loss"] for r in rounds if r.get("loss") is not None]
        return {
            "name": self.name,
            "id": self.id,
            "status": self.status,
            "accuracy": self.accuracy,
            "loss": losses[-1] if losses else None,
            "epochs": self.record["job"].get("training", {}).get("epochs"),
            "model": self.model,
        }

    def _repr_html_(self) -> str:
        from ._compare import Comparison

        return Comparison([self.figures()])._repr_html_()

    def check(self) -> "Job":
        """The job itself; :class:`JobFailed` unless it has succeeded."""
        if self.status == "succeeded":
            return self
        failure = self.record.get("failure") or {}
        parts = [failure.get("op"), failure.get("message"), failure.get("cause")]
        why = ": ".join(str(p) for p in parts if p)
        raise JobFailed(
            "%s is %s%s" % (self.id, self.status, ": " + why if why else ""),
            kind=str(failure.get("kind") or ""),
            hint=str(failure.get("hint") or ""),
        )
