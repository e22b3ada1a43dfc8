"""Describe a user's program before it trains: what it consists of, whether it runs, and what memory it takes.

``python3 -m disdel.describe`` reads one JSON object and writes one line, behind a prefix. What the program prints goes to
the standard error.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import traceback
from typing import Any, Dict, List

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
    _watch(float(request.get("timeoutS") or 60), request.get("folder", ""), answer)
    try:
        told = _needs(request) if request.get("needs") else describe(request)
    except BaseException as error:
        told = {"error": programs.refusal(error, request.get("folder", "")).told()}
    answer(told)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of the program must not keep the process


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
    from . import needs

    return needs.of(*(request.get(name) or "" for name in ("folder", "file", "entry", "requirements")))


def describe(request: Dict[str, Any]) -> Dict[str, Any]:
    """The description of a program as ``disdel.CustomNetwork`` has it in JSON.

    :raises Refused: for everything that is wrong with the program.
    """
    folder, arguments = request["folder"], request.get("arguments") or {}
    program = programs.load(folder, request["file"], request.get("entry", ""), arguments)
    return _Description(request, program, arguments).told()


class _Description:
    def __init__(self, request: Dict[str, Any], program: programs.Program, arguments: Dict[str, Any]) -> None:
        self._request = request
        self._program = program
        self._arguments = arguments
        self._folder: str = request["folder"]
        self._input: List[int] = list(request["input"])
        self._classes = int(request.get("classes") or 0)
        self._batches = sorted({int(b) for b in request.get("batches") or [16]})
        self._seen: Dict[str, Any] = {}

    def told(self) -> Dict[str, Any]:
        from . import memory, trial

        try:
            import torch
        except ImportError as error:
            raise Refused("import", "PyTorch is missing: %s" % error, module="torch") from error
        torch.set_num_threads(int(self._request.get("threads") or 1))
        floor = memory.floor()
        tried = trial.of(
            self._program,
            self._arguments,
            self._folder,
            self._request.get("loss") or "crossEntropy",
            self._request.get("optimizer") or {},
        )
        try:
            outputs = self._dry_run(tried)
        except BaseException as error:
            raise programs.refusal(error, self._folder) from error
        classes = self._checked(outputs)
        model, optimizer = self._seen["model"], self._seen["optimizer"]
        arrays = programs.arrays_of(model)
        rate, moments, opaque = trial.state_of(model, optimizer)
        python: Dict[str, Any] = {
            "entry": self._program.entry,
            "file": self._request["file"],
            "arguments": self._arguments,
            "form": self._program.form,
            "integers": [_param(n, t, False) for n, t in arrays.integers],
            "ownLoss": tried.own_loss,
            "floorBytes": floor,
            "versions": _versions(),
        }
        if tried.own_optimizer:
            python["optimizer"] = {"learningRate": rate or 0, "moments": moments, "opaque": opaque}
        params = [_param(n, t, t.requires_grad) for n, t in arrays.params]
        params += [_param(n, t, False) for n, t in arrays.buffers]
        del arrays, model, optimizer
        self._seen.clear()
        found = memory.estimate(tried, self._folder, self._input, classes, self._batches)
        python.update(found.python)
        return {
            "name": self._program.entry,
            "input": self._input,
            "classes": classes,
            "params": params,
            "activations": found.activations,
            "backward": found.backward,
            "python": python,
        }

    def _dry_run(self, tried: Any) -> Any:
        """Two steps on rows of noise: what fails here would fail in an action."""
        import torch

        rows = min(2, self._batches[-1])
        x, y = noise(rows, self._input, self._classes)
        tried.play([(x, y), (x, y)], lambda model: None, self._keep)
        return tried.outputs(torch.rand(rows, *self._input))

    def _keep(self, model: Any, optimizer: Any) -> None:
        self._seen = {"model": model, "optimizer": optimizer}

    def _checked(self, outputs: Any) -> int:
        """The number of outputs for each row."""
        shape = list(getattr(outputs, "shape", []))
        rows = min(2, self._batches[-1])
        place = "%s gives" % self._program.entry
        if len(shape) == 1 and shape[0] == rows and self._classes == 1:
            return 1
        if len(shape) != 2 or shape[0] != rows:
            raise Refused("user", "%s outputs of shape %s for %d rows, want (%d, classes)" % (place, tuple(shape), rows, rows))
        if self._classes and shape[1] != self._classes:
            raise Refused("user", "%s %d outputs, and the data has %d classes" % (place, shape[1], self._classes))
        return int(shape[1])


def noise(rows: int, shape: List[int], classes: int) -> Any:
    """Rows of noise in [0, 1) with labels."""
    import torch

    return torch.rand(rows, *shape), torch.arange(rows) % max(classes, 1)


def _param(name: str, tensor: Any, trainable: bool) -> Dict[str, Any]:
    return {"name": name, "shape": list(tensor.shape), "trainable": bool(trainable)}


def _versions() -> Dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("torch", "numpy", "torchvision"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            found[name] = str(version)
    return found


if __name__ == "__main__":
    sys.exit(main())
