"""The forms of a program that the runtime drives step by step: a plain module, and a task."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import programs
from ._arrays import is_torch
from ._losses import as_rows, outputs_of, torch_loss
from ._optimizers import Moments
from ._session import Session, evaluating, seed
from ._task import Batch, Task, overrides
from .programs import Refused

#: Values of an array whose gradient is looked at in every step.
_SMALL = 1 << 14

Message = Mapping[str, Any]
Answer = Dict[str, Any]


class ModuleForm:
    """A class derived from ``torch.nn.Module``, or a function that returns a module. Loss and optimiser are the job's.

    :param session: the loaded program.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    # What a task replaces.

    def build(self) -> Any:
        """The model, made anew."""
        model = programs.built(self.session.program, self.session.arguments, self.session.folder)
        if not is_torch(model):
            raise Refused(
                "arguments", "%s is %s, and must be a torch.nn.Module" % (self.session.program.entry, type(model))
            )
        return model

    def optimizer(self) -> Any:
        """The optimiser, made anew."""
        return self.session.job_optimizer()

    def loss(self, batch: Batch) -> Any:
        """The loss of a batch, as a tensor."""
        return torch_loss(self.session.loss, self.session.outputs(batch.x), batch.y)

    def predict(self, x: Any) -> Any:
        """The outputs for rows."""
        return self.session.outputs(x)

    # Messages.

    def make(self, value: int, new: bool) -> None:
        """Builds the model under a seed; ``new`` puts its own values into the shared file."""
        seed(value)
        self.session.take(self.build(), new=new)

    def step(self, message: Message) -> Optional[Answer]:
        """Trains on one batch."""
        moments = self._moments(message)
        self.session.pull()
        seed(int(message["seed"]))
        batch = self.session.rows(message)
        self.session.model.train()
        with _Watched(self.session, batch) as watched:
            loss = self._train(batch, moments.optimizer)
        moments.end()
        self.session.settle()
        return {"loss": loss, "correct": watched.correct()}

    def _train(self, batch: Batch, optimizer: Any) -> float:
        with self.session.statistics_kept() as back:
            try:
                optimizer.zero_grad(set_to_none=True)
                loss = self.loss(batch)
                value = finite(loss)
                if not getattr(loss, "requires_grad", False):
                    raise Refused(
                        "user", "the loss has no gradient. Compute it from the outputs of the model, as a tensor"
                    )
                loss.backward()
                parameters = [p for p in self.session.trained() if p.grad is not None]
                _check_gradients(parameters)
            except BaseException:
                back()
                raise
        if self.session.clip:
            import torch  # type: ignore[import-not-found, unused-ignore]

            torch.nn.utils.clip_grad_norm_(parameters, self.session.clip)
        optimizer.step()
        return value

    def _moments(self, message: Message) -> Moments:
        """The optimiser with the state and the learning rate of a step."""
        steps = int(message["steps"])
        moments = self.session.moments
        if moments is None or steps == 0 and moments.count:
            moments = self.session.hold(self.optimizer())
        moments.begin(steps)
        moments.set_rate(float(message["rate"]) / (float(message.get("base") or 0) or float(message["rate"]) or 1))
        return moments

    def round(self) -> Optional[Answer]:
        """Ends a round."""
        if self.session.model is not None:
            self.session.check()
        return {}

    def evaluate(self, message: Message) -> Answer:
        """Measures the model on a batch."""
        self.session.pull()
        batch = self.session.rows(message)
        with evaluating(self.session.model):
            loss, correct, outputs = self.measured(batch)
        self.session.write_labels(outputs)
        if not math.isfinite(loss):
            raise Refused("diverged", "the loss of an evaluation is %s" % loss)
        return {"loss": loss, "correct": correct}

    def measured(self, batch: Batch) -> Tuple[float, int, Any]:
        """The loss, the rows that are right, and the outputs."""
        outputs = self.predict(batch.x)
        loss, correct = self.session.measure(outputs, batch.y)
        return loss, correct, outputs

    def outputs(self, message: Message) -> Answer:
        """Computes the outputs of rows."""
        self.session.pull()
        batch = self.session.rows(message)
        with evaluating(self.session.model):
            self.session.write_outputs(self.predict(batch.x))
        return {}

    def reset(self) -> Answer:
        """Drops the state of the optimiser."""
        self.session.moments = None
        return {}


class TaskForm(ModuleForm):
    """A class derived from :class:`disdel.Task`."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.task: Task = programs.built(session.program, session.arguments, session.folder)
        if not isinstance(self.task, Task):
            raise Refused("arguments", "%s is not derived from disdel.Task" % session.program.entry)

    def _has(self, name: str) -> bool:
        return overrides(self.task, name)

    def build(self) -> Any:
        return self.task.model()

    def optimizer(self) -> Any:
        if self._has("optimizer"):
            return self.task.optimizer(self.session.model)
        if is_torch(self.session.model):
            return super().optimizer()
        return None

    def loss(self, batch: Batch) -> Any:
        if not self._has("loss"):
            return super().loss(batch)
        loss = self.task.loss(self.session.model, batch)
        return loss[0] if isinstance(loss, tuple) else loss

    def predict(self, x: Any) -> Any:
        if not self._has("predict"):
            return super().predict(x)
        return as_rows(outputs_of(self.task.predict(self.session.model, x)), len(x), self.session.classes)

    def step(self, message: Message) -> Optional[Answer]:
        self._tell(message)
        if not self._has("step"):
            return super().step(message)
        moments = self._moments(message)
        self.session.pull()
        seed(int(message["seed"]))
        batch = self.session.rows(message)
        if is_torch(self.session.model):
            self.session.model.train()
        with _Watched(self.session, batch) as watched:
            loss = finite(self.task.step(self.session.model, batch, moments.optimizer))
        moments.end()
        self.session.settle()
        return {"loss": loss, "correct": watched.correct()}

    def _tell(self, message: Message) -> None:
        task = self.task
        task.epoch, task.epochs = int(message.get("epoch") or 0), int(message.get("epochs") or 0)
        task.round = int(message.get("round") or 0)
        task.rate = float(message["rate"]) * task.schedule(task.epoch, task.epochs)

    def _moments(self, message: Message) -> Moments:
        factor = self.task.schedule(self.task.epoch, self.task.epochs)
        base = float(message.get("base") or 0) or float(message["rate"])
        return super()._moments({**message, "rate": float(message["rate"]) * factor, "base": base})

    def round(self) -> Optional[Answer]:
        if self.session.model is not None:
            self.task.on_round_end(self.session.model)
        return super().round()

    def measured(self, batch: Batch) -> Tuple[float, int, Any]:
        if self._has("loss"):
            with _Watched(self.session, batch) as watched:
                loss = float(self.loss(batch))
            outputs = watched.outputs()
            if outputs is None or self._has("predict"):
                outputs = self.predict(batch.x)
            correct = int((probable(outputs) == batch.y).sum())
        else:
            outputs = self.predict(batch.x)
            loss, correct = self.session.measure(outputs, batch.y)
        if self._has("metrics"):
            figures = self.task.metrics(self.session.model, batch)
            correct = _rows_of(float(figures["accuracy"]), len(batch.y)) if "accuracy" in figures else correct
            print("evaluation:", ", ".join("%s %.6g" % (k, float(v)) for k, v in figures.items()))
        return loss, correct, outputs


def _rows_of(accuracy: float, rows: int) -> int:
    """The rows that an accuracy stands for: a share, or above 1 a percentage."""
    return min(rows, max(0, round(accuracy * rows / (100 if accuracy > 1 else 1))))


def probable(outputs: Any) -> Any:
    """The class of each row's largest output."""
    return outputs.argmax(1)


def finite(loss: Any) -> float:
    """A loss as a number.

    :raises Refused: of kind ``diverged`` if it is not finite, and of kind ``user`` if it is no number.
    """
    try:
        value = float(loss.detach() if hasattr(loss, "detach") else loss)
    except (TypeError, ValueError, RuntimeError):
        raise Refused(
            "user",
            "the loss is no number: it is a %s of shape %s" % (type(loss).__name__, list(getattr(loss, "shape", ()))),
        ) from None
    if not math.isfinite(value):
        raise Refused("diverged", "the loss is %s. Lower the learning rate, or set training.clipNorm" % value)
    return value


def _check_gradients(parameters: List[Any]) -> None:
    import torch

    if not parameters:
        raise Refused("user", "no parameter has a gradient: the loss does not depend on the model")
    # A gradient that is not finite makes those of the layers before it so, whose small arrays tell. Reading all arrays
    # would take 3 % of a step of ResNet-18. The end of the round looks at all weights.
    looked = [p.grad for i, p in enumerate(parameters) if i == 0 or p.numel() <= _SMALL]
    total = torch.stack([g.sum() for g in looked]).sum()
    if not torch.isfinite(total) and not all(bool(torch.isfinite(g).all()) for g in looked):
        raise Refused("diverged", "a gradient is not finite. Lower the learning rate, or set training.clipNorm")


class _Watched:
    """Sees what the model returns while a step runs, to count the rows that are right."""

    def __init__(self, session: Session, batch: Batch) -> None:
        self._session, self._batch = session, batch
        self._returned: List[Any] = []
        self._hook: Any = None

    def __enter__(self) -> "_Watched":
        if is_torch(self._session.model):
            self._hook = self._session.model.register_forward_hook(self._see)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._hook is not None:
            self._hook.remove()

    def _see(self, module: Any, inputs: Any, outputs: Any) -> None:
        self._returned.append(outputs_of(outputs))

    def outputs(self) -> Any:
        """What the model returned, [rows, classes]; None where it was called not once, or returned something else."""
        if len(self._returned) != 1:
            return None
        fits = tuple(getattr(self._returned[0], "shape", ())) == (len(self._batch.y), self._session.classes)
        return self._returned[0].detach() if fits else None

    def correct(self) -> int:
        """Rows that are right; -1 where the outputs are not known."""
        outputs = self.outputs()
        return -1 if outputs is None else int((probable(outputs) == self._batch.y).sum())
