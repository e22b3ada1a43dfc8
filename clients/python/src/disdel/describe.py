"""Describe a user's program before it trains: what it consists of, whether it runs, and what memory it takes.

``python3 -m disdel.describe`` reads one JSON object and writes one line, behind a prefix. What the program prints goes
to the standard error.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
import traceback
from typing import Any, Dict

from . import programs
from .programs import Refused

PREFIX = "disdel-description: "


def main() -> int:
    """Answer the request on the standard input."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the program's prints must not look like an answer
    answered = threading.Lock()

    def answer(told: Dict[str, Any]) -> None:
        if answered.acquire(blocking=False):
            out.write(PREFIX + json.dumps(told) + "\n")
            out.flush()

    request = json.load(sys.stdin)
    _watch(_seconds(request), request.get("folder", ""), answer)
    try:
        told = _asked(request)
    except BaseException as error:
        told = {"error": programs.refusal(error, request.get("folder", "")).told()}
    answer(told)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of the program must not keep the process


def _asked(request: Dict[str, Any]) -> Dict[str, Any]:
    """What a request asks for: the needs of a program, its rows, its network as ONNX, or its description."""
    if request.get("needs"):
        return _needs(request)
    if request.get("onnx"):
        from . import _onnx

        return _onnx.write(request)
    if request.get("to"):
        from . import _data

        return _data.write(request)
    return describe(request)


def _seconds(request: Dict[str, Any]) -> float:
    """How long a description may take."""
    return float(request.get("timeoutS") or 60)


def _watch(seconds: float, folder: str, answer: Any) -> None:
    """End the process at its deadline, with the line that the program is at."""
    main_thread = threading.main_thread().ident

    def end() -> None:
        frame = sys._current_frames().get(main_thread or 0)
        stack = traceback.extract_stack(frame)
        place, source = programs.user_line(stack, folder)
        message = "the program was not described within %g s" % seconds
        trace = "".join(traceback.format_list(stack))
        answer({"error": Refused("timeout", message, place=place, source=source, trace=trace).told()})
        os._exit(0)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _needs(request: Dict[str, Any]) -> Dict[str, Any]:
    from . import _needs

    return _needs.of(*(request.get(name) or "" for name in ("folder", "file", "entry", "requirements")))


def describe(request: Dict[str, Any]) -> Dict[str, Any]:
    """The description of a program as ``disdel.CustomNetwork`` has it in JSON.

    :raises Refused: for everything that is wrong with the program.
    """
    try:
        return _Description(request).told()
    except BaseException as error:
        raise programs.refusal(error, request["folder"]) from error


class _Description:
    def __init__(self, request: Dict[str, Any]) -> None:
        self._request = request
        self._folder: str = request["folder"]
        self._end = time.monotonic() + _seconds(request)
        self._rows = min(2, max(int(b) for b in request["batches"]))

    def told(self) -> Dict[str, Any]:
        from . import _memory
        from ._trial import Trial

        tried = Trial(self._request)
        floor = _memory.floor()
        tried.make()
        self._arrays(tried)  # an optimiser says less clearly that there is nothing to train
        if not tried.session.classes:
            tried.session.classes = self._outputs(tried)
        tried.steps(self._rows, 2)
        tried.evaluate(self._rows)
        warning = _nondeterministic()
        params, integers = self._arrays(tried)
        python: Dict[str, Any] = {
            "entry": tried.program.entry,
            "file": self._request["file"],
            "arguments": self._request.get("arguments") or {},
            "form": tried.program.form,
            "integers": integers,
            "optimizer": tried.own_optimizer(),
            "ownLoss": tried.own_loss(),
            "floorBytes": floor,
            "versions": _versions(),
        }
        batches = sorted({int(b) for b in self._request["batches"]})
        found = _memory.estimate(tried, self._folder, batches, self._end)
        python.update(found.python)
        if warning:
            python["warnings"] = [*(python.get("warnings") or []), warning]
        if self._request.get("translate"):
            from . import _translate

            python["translation"] = _translate.translation(tried, self._request["translate"], self._end)
        return {
            "name": tried.program.entry,
            "input": list(self._request["input"]),
            "classes": tried.session.classes,
            "params": params,
            "activations": found.activations,
            "backward": found.backward,
            "python": python,
        }

    def _outputs(self, tried: Any) -> int:
        """The number of outputs for each row, where the data do not say it."""
        from ._losses import outputs_of
        from ._session import evaluating

        with evaluating(tried.session.model):
            shape = outputs_of(tried.session.model(tried.session.noise(self._rows).x)).shape
        return int(shape[1]) if len(shape) > 1 else 1

    def _arrays(self, tried: Any) -> Any:
        from . import _arrays

        listed = _arrays.arrays_of(tried.session.model)
        if not any(a.trainable for a in listed):
            raise Refused("unsupported", "%s has no parameters to train" % type(tried.session.model).__name__)
        told = [[_param(a) for a in some] for some in (_arrays.floats(listed), _arrays.integers(listed))]
        return told[0], told[1]


def _param(array: Any) -> Dict[str, Any]:
    return {"name": array.name, "shape": list(array.shape), "trainable": bool(array.trainable)}


def _nondeterministic() -> str:
    """The warning for a program that has switched PyTorch's deterministic algorithms off, "" for others."""
    torch = sys.modules.get("torch")
    if torch is None or torch.are_deterministic_algorithms_enabled():
        return ""
    return "it switches deterministic algorithms off: after a restart its weights may have other bits"


def _versions() -> Dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("torch", "numpy", "torchvision", "keras", "sklearn"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            found[name] = str(version)
    return found


if __name__ == "__main__":
    sys.exit(main())
