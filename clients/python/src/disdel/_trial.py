"""Trial steps of a user's program: the forms of a worker, with rows of noise in place of the shared file's."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from . import programs
from ._arrays import is_torch
from ._channel import Message, Requests
from ._optimizers import Moments
from ._session import Session, _mentions
from ._task import Batch, RoundOver


class TrialSession(Session):
    """A session without a shared file. ``rows_of(count)`` makes the rows of a step."""

    def __init__(self, request: Mapping[str, Any], form: str) -> None:
        load = {"layout": {}, "batch": 1, "optimizer": {"sgd": {"learningRate": 0.01}}, **request, "form": form}
        load["optimizer"] = load["optimizer"] or {"sgd": {"learningRate": 0.01}}
        super().__init__(load, None)  # type: ignore[arg-type]
        self.optimizer: Any = None  #: the newest that was made
        self.rows_of: Callable[[int], Batch] = self.noise

    def noise(self, count: int) -> Batch:
        """Rows of noise in [0, 1), with labels."""
        import numpy

        y = numpy.arange(count) % max(self.classes, 1)
        if not is_torch(self.model):
            return Batch(numpy.random.random((count, *self.input)).astype("float32"), y)
        import torch  # type: ignore[import-not-found, unused-ignore]

        return Batch(torch.rand(count, *self.input), torch.as_tensor(y))

    def take(self, model: Any, *, new: bool) -> None:
        if is_torch(model):
            self._materialize(model)
        self.model, self.moments = model, None
        self._trained = [p for p in model.parameters() if p.requires_grad] if is_torch(model) else []

    def check(self) -> None:
        pass

    def hold(self, optimizer: Any) -> Moments:
        self.optimizer = optimizer
        self.moments = Moments(optimizer, [], [], [])
        return self.moments

    def rows(self, message: Mapping[str, Any]) -> Batch:
        return self.rows_of(int(message["rows"]))

    def write_labels(self, outputs: Any) -> None:
        pass

    def retake(self) -> None:
        """Takes the model again, whose parameters have been replaced."""
        self.take(self.model, new=False)


class Trial(Requests):
    """A loaded program whose steps can be tried.

    :param request: what ``describe`` is asked.
    """

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request = request
        self._messages: List[Message] = []
        self._round = 0
        # KubeML's module has to be there before the program is loaded; only then is its form known.
        mentions = _mentions(request["folder"], request["file"], b"kubeml")
        self.session = TrialSession(request, programs.KUBEML if mentions else programs.MODULE)
        self.program = self.session.program
        self.form = self._made()

    def _made(self) -> Any:
        if self.program.form == programs.LOOP:
            from ._loop import LoopForm

            return LoopForm(self.session, self)
        if self.program.form == programs.KUBEML:
            from ._kubeml import KubeMLForm

            return KubeMLForm(self.session)
        from ._forms import ModuleForm, TaskForm

        return TaskForm(self.session) if self.program.form == programs.TASK else ModuleForm(self.session)

    @property
    def rebuilds(self) -> bool:
        """Whether every round makes its model anew."""
        return self.program.form == programs.LOOP

    def make(self) -> None:
        """Builds the model."""
        self.form.make(1, True)

    def steps(self, rows: int, count: int) -> None:
        """One round of steps on batches of so many rows."""
        step = self.step_message(rows)
        self._messages = [{**step, "steps": n} for n in range(count)] + [{"op": "round"}]
        while self._messages:
            message = self._messages.pop(0)
            if message["op"] == "step":
                self.form.step(message)
            elif not self.rebuilds:
                self.form.round()

    def step_message(self, rows: int) -> Dict[str, Any]:
        """What asks for a step of a new round, on a batch of so many rows."""
        self.session.batch = rows
        self._round += 1
        base = float(next(iter(self.session.load_optimizer().values())).get("learningRate") or 0.01)
        step = {"op": "step", "rows": rows, "slot": 0, "rate": base, "base": base, "seed": 1, "epochs": 1, "epoch": 0}
        return {**step, "round": self._round}

    def evaluate(self, rows: int) -> None:
        """An evaluation of so many rows."""
        self.session.batch = rows
        self.form.evaluate({"op": "evaluate", "rows": rows, "slot": 0})

    # What a loop asks the worker for.

    def next(self) -> Message:
        if not self._messages:
            raise RoundOver  # a loop that goes on after its round
        return self._messages.pop(0)

    def put_back(self, message: Message) -> None:
        self._messages.insert(0, message)

    def answer(self, answer: Message) -> None:
        pass

    # What is known of the program after a step.

    def own_loss(self) -> bool:
        """Whether the program has a loss of its own."""
        if self.program.form == programs.TASK:
            return bool(self.form._has("loss") or self.form._has("step"))
        return self.program.form in (programs.LOOP, programs.KUBEML)

    def own_optimizer(self) -> Optional[Dict[str, Any]]:
        """The program's optimiser as ``disdel.OwnOptimizer`` has it; None where it trains by the job's."""
        from ._optimizers import state_of

        if self.program.form == programs.MODULE or self.program.form == programs.TASK and self._by_job():
            return None
        optimizer = self.session.optimizer
        job = float(next(iter(self.session.load_optimizer().values())).get("learningRate") or 0.01)
        if not hasattr(optimizer, "param_groups"):
            return {"learningRate": job, "opaque": self.program.form != programs.TASK}
        moments, opaque = state_of(optimizer)
        rate = float(optimizer.param_groups[0].get("lr") or job)
        return {"learningRate": rate, "moments": moments, "opaque": opaque}

    def _by_job(self) -> bool:
        return not self.form._has("optimizer") and is_torch(self.session.model)
