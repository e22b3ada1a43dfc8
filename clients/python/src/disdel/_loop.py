"""The form of a program that has its own loop, ``def train(run)``."""

from __future__ import annotations

import sys
import traceback
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

from . import programs
from ._arrays import is_torch
from ._channel import Requests
from ._forms import Answer, Message, ModuleForm, finite
from ._optimizers import Moments
from ._session import Session, seed
from ._task import Batch, Loop, RoundOver, Run
from .programs import Refused


class LoopForm(ModuleForm):
    """A function ``train(run)``. It is called anew for each round.

    :param session: the loaded program.
    :param requests: the worker.
    """

    def __init__(self, session: Session, requests: Requests) -> None:
        super().__init__(session)
        self._requests = requests
        self._ended = -1  # the round that the function left before its end
        self.running: Optional[RoundLoop] = None

    def make(self, value: int, new: bool) -> None:
        seed(value)
        loop = RoundLoop(self, self._requests, None, new)
        try:
            self._call(loop)
        except _Known:
            return
        raise Refused("user", "train(run) did not call run.sync(model) before it returned", **self._definition())

    def step(self, message: Message) -> Optional[Answer]:
        if int(message.get("round") or 0) == self._ended:
            raise Refused(
                "user",
                "train(run) returned before it took all batches of the round. Take all of run.batches()",
                **self._definition(),
            )
        seed(int(message["seed"]))
        loop = self.running = RoundLoop(self, self._requests, message, False)
        try:
            self._call(loop)
            loop.returned()
            self._ended = -1 if loop.handed_over else loop.round
        except RoundOver:
            pass  # the new message is the next one
        finally:
            self.running = None
        return None

    def _call(self, loop: "RoundLoop") -> None:
        if "keras" in sys.modules:  # it counts the layers of all models, and the names of arrays would change
            sys.modules["keras"].utils.clear_session()
        run = Run(loop)
        loop.tell(run)
        self.session.program.value(run, **self.session.arguments)

    def _definition(self) -> Dict[str, Any]:
        place, source = programs.definition(self.session.program.value, self.session.folder)
        return {"place": place, "source": source}

    def round(self) -> Optional[Answer]:
        self._ended = -1
        return super().round()

    def predict(self, x: Any) -> Any:
        return self.session.outputs(x, self.session.predict)


class _Known(BaseException):
    """Ends ``train(run)`` at its first sync, where only the model is wanted."""


class RoundLoop(Loop):
    """One call of ``train(run)``.

    :param message: the step that begins the round; None where only the model is wanted.
    :param new: whether the model's own values go into the shared file; only where the model is wanted.
    """

    def __init__(self, form: LoopForm, requests: Requests, message: Optional[Message], new: bool) -> None:
        self._form, self._requests, self._session = form, requests, form.session
        self._step: Optional[Message] = message  # not answered yet
        self._first, self._new = message, new
        self._run: Optional[Run] = None
        self._over: Optional[Message] = None  # the round's end, not answered yet
        self.handed_over = False
        self._synced = self._taken = False  # whether the model is known, and whether a batch was yielded
        self._moments: Optional[Moments] = None
        self._loss: Any = None
        self._correct = -1

    @property
    def round(self) -> int:
        """The number of the round."""
        return int((self._first or {}).get("round") or 0)

    def tell(self, run: Optional[Run] = None) -> None:
        """Brings the attributes of the run up to date."""
        self._run = run or self._run
        message, run = self._step or {}, self._run
        if run is not None:
            run.epoch, run.epochs = int(message.get("epoch") or 0), int(message.get("epochs") or 0)
            run.round, run.rate = int(message.get("round") or 0), float(message.get("rate") or 0)
            run.factor = run.rate / (float(message.get("base") or 0) or run.rate or 1)
            run.batch_size, run.input, run.classes = self._session.batch, self._session.input, self._session.classes

    def sync(self, model: Any, optimizer: Any, predict: Optional[Callable[[Any], Any]]) -> None:
        if not self._synced:
            self._begin(model, optimizer, predict)
        elif self._over is not None:
            self._hand_over()
        elif self.handed_over:
            self._wait()
        elif self._step is not None and self._taken:
            self._finish()
            self._expect_end()
            self._hand_over()

    def _begin(self, model: Any, optimizer: Any, predict: Optional[Callable[[Any], Any]]) -> None:
        session = self._session
        session.predict = predict
        if model is not session.model or self._new:
            session.take(model, new=self._new)
        if self._step is None:
            raise _Known
        self._synced = True
        if optimizer is None:
            return
        self._moments = session.hold(optimizer)
        self._moments.begin(int(self._step["steps"]))
        self._rate()

    def _rate(self) -> None:
        if self._moments is not None and self._run is not None:
            self._moments.set_rate(self._run.factor)

    def batches(self) -> Iterator[Batch]:
        if not self._synced:
            raise Refused(
                "user",
                "run.batches() was called before run.sync(model). Call run.sync(model) once the model is made: it puts "
                "the job's weights into the model",
            )
        if self.handed_over:
            self._wait()
        return self._batches()

    def _batches(self) -> Iterator[Batch]:
        if is_torch(self._session.model):
            self._session.model.train()
        while self._step is not None:
            if self._taken:
                self._finish()
                if not self._next():
                    return
            self._session.pull()
            self._taken = True
            self._rate()
            seed(int(self._step["seed"]))
            yield self._session.rows(self._step)

    def _next(self) -> bool:
        """Takes the next step of the round; returns whether there is one."""
        message = self._requests.next()
        if message["op"] == "round":
            self._over = message
            return False
        if int(message.get("round") or 0) != self.round:
            self._requests.put_back(message)
            raise RoundOver
        self._step = message
        self.tell()
        return True

    def _finish(self) -> None:
        """Answers a step."""
        if self._loss is None:
            raise Refused(
                "user",
                "the loss of the step is not known. Call run.log(loss=loss) for each batch",
                **self._here(),
            )
        loss, correct = finite(self._loss), self._correct
        self._correct = -1
        self._session.settle()
        if self._moments is not None:
            self._moments.end()
        self._step = None
        self._requests.answer({"loss": loss, "correct": correct})

    def _here(self) -> Dict[str, Any]:
        place, source = programs.user_line(traceback.extract_stack(), self._session.folder)
        return {"place": place, "source": source} if place else self._form._definition()

    def _expect_end(self) -> None:
        if self._next():
            raise Refused(
                "user", "the loop left run.batches() before the round was over. Take all of its batches", **self._here()
            )

    def _hand_over(self) -> None:
        self._session.check()
        self._over, self.handed_over = None, True
        self._requests.answer({})

    def _wait(self) -> None:
        """Waits for the next round, which calls the function anew."""
        while True:
            message = self._requests.next()
            if message["op"] != "round":
                self._requests.put_back(message)
                raise RoundOver
            self._requests.answer({})

    def log(self, loss: Any, correct: Any, figures: Mapping[str, Any]) -> None:
        if loss is not None:
            self._loss = loss.detach() if hasattr(loss, "detach") else loss
        if correct is not None:
            self._correct = int(correct)
        if figures:
            print("step:", ", ".join("%s %.6g" % (k, float(v)) for k, v in figures.items()))

    def returned(self) -> None:
        """Answers what is open after the function returned."""
        if not self._synced:
            raise Refused("user", "train(run) returned and never called run.sync(model)", **self._form._definition())
        if self._step is not None and self._taken:
            self._finish()
        elif self._step is not None:
            raise Refused(
                "user", "train(run) returned without taking a batch of run.batches()", **self._form._definition()
            )
        if self._over is not None:
            self._hand_over()
