"""Trial steps of a user's program, before it trains: does it run, what does it consist of, what does it take."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Optional, Tuple

from . import programs
from .programs import Refused

Batch = Tuple[Any, Any]


class Trial:
    """A program whose steps can be tried.

    ``play`` makes one step for each batch. It calls ``prepare`` with the network once this is made, and ``seen`` with the
    network and its optimiser after the last step.
    """

    own_loss = False  #: whether the program has a loss of its own
    own_optimizer = False

    def play(self, batches: Iterable[Batch], prepare: Callable[[Any], None], seen: Callable[[Any, Any], None]) -> None:
        raise NotImplementedError

    def outputs(self, x: Any) -> Any:
        """What the network answers for rows, without gradients."""
        raise NotImplementedError


class ModuleTrial(Trial):
    """A plain network: loss and optimiser are the job's."""

    def __init__(self, model: Any, loss: str, optimizer: Dict[str, Any]) -> None:
        import torch

        if not isinstance(model, torch.nn.Module):
            raise Refused("arguments", "the entry gives a %s, not a torch.nn.Module" % type(model).__name__)
        programs.arrays_of(model)
        self.model = model
        self._loss = loss
        self._optimizer = optimizer

    def play(self, batches: Iterable[Batch], prepare: Callable[[Any], None], seen: Callable[[Any, Any], None]) -> None:
        prepare(self.model)
        optimizer = self._made_optimizer()
        self.model.train()
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            self._loss_of(batch).backward()
            optimizer.step()
        seen(self.model, optimizer)

    def outputs(self, x: Any) -> Any:
        import torch

        self.model.eval()
        with torch.no_grad():
            return self.model(x)

    def _made_optimizer(self) -> Any:
        return job_optimizer(self._optimizer, self.model.parameters())

    def _loss_of(self, batch: Batch) -> Any:
        return job_loss(self._loss, self.model(batch[0]), batch[1])


class TaskTrial(ModuleTrial):
    """A class derived from ``disdel.Task``; what it leaves out is the job's."""

    own_loss = True

    def __init__(self, task: Any, loss: str, optimizer: Dict[str, Any]) -> None:
        super().__init__(task.model(), loss, optimizer)
        self._task = task
        self.own_loss = _overrides(task, "loss")
        self.own_optimizer = _overrides(task, "optimizer")

    def _made_optimizer(self) -> Any:
        return self._task.optimizer(self.model) if self.own_optimizer else super()._made_optimizer()

    def _loss_of(self, batch: Batch) -> Any:
        if not self.own_loss:
            return super()._loss_of(batch)
        loss = self._task.loss(self.model, batch)
        return loss[0] if isinstance(loss, tuple) else loss


def _overrides(task: Any, name: str) -> bool:
    """Whether a task has a method that is not the base class's."""
    own = getattr(type(task), name, None)
    return own is not None and not str(getattr(own, "__module__", "")).startswith("disdel.")


def job_loss(name: str, outputs: Any, labels: Any) -> Any:
    """The loss that a job file names."""
    import torch.nn.functional as functional

    if name == "mse":
        return functional.mse_loss(outputs.reshape(len(labels), -1), labels.reshape(len(labels), -1).to(outputs.dtype))
    if name == "binaryCrossEntropy":
        return functional.binary_cross_entropy_with_logits(outputs.reshape(-1), labels.reshape(-1).to(outputs.dtype))
    return functional.cross_entropy(outputs, labels)


def job_optimizer(settings: Dict[str, Any], parameters: Iterable[Any]) -> Any:
    """An optimiser that keeps as much as the one that a job file names."""
    import torch

    name, options = next(((k, v or {}) for k, v in settings.items() if v is not None), ("sgd", {}))
    rate = float(options.get("learningRate") or 0.01)
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=float(options.get("momentum") or 0))
    if name == "lion":  # keeps one value for each weight, as this does
        return torch.optim.SGD(parameters, lr=rate, momentum=0.9)
    return (torch.optim.AdamW if name == "adamw" else torch.optim.Adam)(parameters, lr=rate)


def of(program: programs.Program, arguments: Dict[str, Any], folder: str, loss: str, optimizer: Dict[str, Any]) -> Trial:
    """The trial of a loaded program."""
    kinds: Dict[str, Callable[[Any, str, Dict[str, Any]], Trial]] = {
        programs.MODULE: ModuleTrial,
        programs.TASK: TaskTrial,
    }
    make = kinds.get(program.form)
    if make is None:
        raise Refused("unsupported", "a program of the form %s cannot be described yet" % program.form)
    value = programs.built(program, arguments, folder)
    try:
        return make(value, loss, optimizer)
    except BaseException as error:
        raise programs.refusal(error, folder) from error


def state_of(model: Any, optimizer: Any) -> Tuple[Optional[float], list[str], bool]:
    """The learning rate, the values that the optimiser keeps for each weight, and whether it keeps anything else."""
    trained = [p for p in model.parameters() if p.requires_grad]
    states = [optimizer.state.get(p, {}) for p in trained]
    names = [n for n, v in (states[0] if states else {}).items() if _tensor(v) and v.shape == trained[0].shape and v.ndim]
    moments = [n for n in names if all(_tensor(s.get(n)) and s[n].shape == p.shape for s, p in zip(states, trained))]
    rest = {n for s in states for n, v in s.items() if n not in moments and n != "step" and v is not None}
    rate = optimizer.param_groups[0].get("lr")
    opaque = bool(rest) or len(moments) > 4
    return (None if rate is None else float(rate)), [] if opaque else moments, opaque


def _tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")
