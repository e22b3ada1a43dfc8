"""The network of a program as layers of disdel's own engine, and steps by which the two are compared."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Dict, Iterator, List, Mapping

from . import _memory, programs
from ._arrays import arrays_of, floats, is_torch
from ._errors import Invalid
from ._losses import torch_loss
from ._optimizers import described
from ._torch import from_torch
from ._weights import write_safetensors

#: Parts of a task that only the program itself can do.
_OWN = ("step", "predict", "schedule", "metrics", "on_round_end")

#: Losses of a job file; a task's own loss may be one of them.
_LOSSES = ("crossEntropy", "mse", "binaryCrossEntropy")

#: Without a number of steps that were asked for: as many as fit this time.
_SECONDS = 1.0
_MOST = 20

#: Shares of the learning rate, each for a run. In deep networks, each step multiplies a difference by rounding: a small
#: rate tells that from a translation that is wrong.
_FACTORS = (1.0, 0.001)

#: Mallopt's numbers for the sizes from which memory is given back at once.
_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1

#: Files of the comparison: the batches of all steps and of the evaluation after them, and the initial weights.
STEPS, WEIGHTS = "steps.safetensors", "weights.safetensors"


def translation(tried: Any, asked: Mapping[str, Any], end: float) -> Dict[str, Any]:
    """The layers of a program's network, or why there are none.

    Steps train in a throwaway process, on rows that lie in files afterwards, for the other engine. Nothing is dropped
    in them, since each engine draws other numbers.

    :param asked: ``folder`` for the files, ``rows`` of a batch, ``steps`` (0: as many as fit a second), and the ``seed``
        of the initial weights.
    :param end: the time, as ``time.monotonic`` has it, that the steps must not pass.
    """
    told: Dict[str, Any] = {"layers": [], "loss": "", "optimizer": None}
    try:
        _refuse_own(tried)
        told["layers"] = from_torch(tried.session.model)["layers"]
        if tried.program.form == programs.TASK and tried.form._has("optimizer"):
            told["optimizer"] = _optimizer_of(tried)
    except Invalid as error:
        return {"refused": error.message}
    except Exception as error:  # whatever a trace runs into: a branch on data, above all
        return {"refused": "it cannot be traced: %s" % str(error).partition("\n")[0]}
    steps, why = _memory.apart(lambda: _steps(tried, asked), end)
    if steps is None:
        return {"refused": "its steps could not be compared: " + why}
    return {**told, **steps}


def _refuse_own(tried: Any) -> None:
    if tried.program.form not in (programs.MODULE, programs.TASK):
        raise Invalid("the program trains by a loop of its own")
    if not is_torch(tried.session.model):
        raise Invalid("it is no module of PyTorch")
    for name in _OWN:
        if tried.program.form == programs.TASK and tried.form._has(name):
            raise Invalid("%s.%s is the program's own" % (tried.program.entry, name))
    frozen = [name for name, p in tried.session.model.named_parameters() if not p.requires_grad]
    if frozen:
        raise Invalid("%s is not trained, and layers of disdel are trained all" % frozen[0])


def _optimizer_of(tried: Any) -> Dict[str, Any]:
    """The program's own optimiser as a job file has it."""
    optimizer = tried.form.optimizer()
    found = described(optimizer, tried.session.trained())
    if found is None:
        raise Invalid("%s with these settings is no optimiser of disdel" % type(optimizer).__name__)
    return found


def _steps(tried: Any, asked: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
    _keep_freed_memory()
    rows, count, folder, seed = int(asked["rows"]), int(asked["steps"]), asked["folder"], int(asked["seed"])
    loss = ""
    batches: List[Any] = []
    runs: List[Dict[str, Any]] = []

    def drawn(size: int) -> Any:
        batches.append(tried.session.noise(size))
        return batches[-1]

    with _nothing_dropped():
        tried.form.make(seed, True)
        _write(folder, WEIGHTS, {a.name: a.read() for a in floats(arrays_of(tried.session.model))})
        if tried.program.form == programs.TASK and tried.form._has("loss"):
            loss = _loss_of(tried, rows)
        tried.session.rows_of = drawn
        for factor in _FACTORS if count else _FACTORS[-1:]:
            tried.form.make(seed, True)
            batches.clear()  # a step draws the same rows in every run
            runs.append(_trained(tried, rows, count, factor))
        _write(folder, STEPS, {"x": _together([b.x for b in batches]), "y": _together([b.y for b in batches])})
    yield {"loss": loss, "rows": rows, "runs": runs}


def _write(folder: str, name: str, arrays: Dict[str, Any]) -> None:
    with open(os.path.join(folder, name), "wb") as file:
        file.write(write_safetensors(arrays))


def _together(batches: List[Any]) -> Any:
    import torch  # type: ignore[import-not-found, unused-ignore]

    return torch.stack(batches)


def _trained(tried: Any, rows: int, count: int, factor: float) -> Dict[str, Any]:
    """Steps from the initial weights: their losses, their times, and the loss of an evaluation after them."""
    step = tried.step_message(rows)
    step["rate"] *= factor
    losses: List[float] = []
    milliseconds: List[float] = []
    began = time.perf_counter()
    for n in range(count or _MOST):
        before = time.perf_counter()
        losses.append(tried.form.step({**step, "steps": n, "seed": n})["loss"])
        milliseconds.append(1000 * (time.perf_counter() - before))
        if not count and n > 0 and time.perf_counter() - began > _SECONDS:
            break
    evaluated = tried.form.evaluate({"rows": rows, "slot": 0})["loss"]
    return {"factor": factor, "losses": losses, "evaluated": evaluated, "milliseconds": milliseconds}


def _loss_of(tried: Any, rows: int) -> str:
    """The loss of a job file that a task's own loss is, by its value."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    batch = tried.session.noise(max(rows, 2))
    tried.session.model.train()
    with torch.no_grad():
        own = float(tried.form.loss(batch))
        outputs = tried.session.outputs(batch.x)
        for name in _LOSSES:
            with contextlib.suppress(programs.Refused):
                if abs(float(torch_loss(name, outputs, batch.y)) - own) <= 1e-5 * max(1.0, abs(own)):
                    return name
    raise Invalid("%s.loss is no loss of disdel" % tried.program.entry)


@contextlib.contextmanager
def _nothing_dropped() -> Iterator[None]:
    import torch

    functional = torch.nn.functional
    kept = {name: getattr(functional, name) for name in ("dropout", "dropout2d")}

    def same(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        return x

    for name in kept:
        setattr(functional, name, same)
    try:
        yield
    finally:
        for name, own in kept.items():
            setattr(functional, name, own)


def _keep_freed_memory() -> None:
    """Let the allocator keep what is freed, as it does in actions: else steps are slower here than there."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # another libc
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        libc.mallopt(_M_TRIM_THRESHOLD, 64 << 20)
