"""The process in an action that runs a user's program: ``python3 -s -B -m disdel.worker``.

The runtime starts it with a control socket at descriptor 3 and the shared file at descriptor 4. Each message is one
line of JSON with the field ``op``; the worker answers each with one line.
"""

from __future__ import annotations

import faulthandler
import fcntl
import os
import platform
import signal
import sys
import traceback
from typing import Any, Dict, Optional

from . import programs
from ._channel import Channel, Message, Requests, memory

_CONTROL, _SHARED = 3, 4


class _Closed(BaseException):
    """The runtime is gone, or has sent ``stop``."""


class _Worker(Requests):
    """The process. It serves messages until ``stop``."""

    def __init__(self, channel: Channel, shared: int) -> None:
        self._channel, self._fd = channel, shared
        self._shared: Any = None
        self._session: Any = None
        self._form: Any = None
        self._asked: Optional[Message] = None  # not answered yet
        self._again: Optional[Message] = None
        self._folder = ""

    def serve(self) -> None:
        """Serves messages until the runtime closes the socket or sends ``stop``."""
        self._channel.send({"hello": 1, "versions": {"python": platform.python_version()}})
        while True:
            self._handle(self._receive())

    # What a loop needs.

    def next(self) -> Message:
        """The next ``step`` or ``round``; others are served. A message that replaces the model ends the loop first."""
        from ._task import RoundOver

        while True:
            message = self._receive()
            if message["op"] in ("step", "round"):
                return message
            if message["op"] in ("load", "init", "reset"):
                self.put_back(message)
                raise RoundOver
            self._handle(message)

    def put_back(self, message: Message) -> None:
        """Makes a message the next one again."""
        self._again = message

    def answer(self, answer: Dict[str, Any]) -> None:
        """Answers the newest message."""
        asked, self._asked = self._asked, None
        if asked is None:
            if "error" in answer:  # of code behind the end of a round, which nobody waits for
                print(answer["error"].get("trace") or answer["error"]["message"], file=sys.stderr)
            return
        out: Dict[str, Any] = {"id": asked.get("id"), **answer}
        if asked["op"] != "step":
            out.update(memory())
        if self._session is not None and self._session.lost:
            out["lost"] = True
        _flush()
        self._channel.send(out)

    # Messages.

    def _receive(self) -> Message:
        message, self._again = self._again, None
        if message is None:
            message = self._channel.receive()
            if message is None or message["op"] == "stop":
                raise _Closed
        self._asked = message
        return message

    def _handle(self, message: Message) -> None:
        try:
            answer = self._done(message)
            if answer is not None:
                self.answer(answer)
        except _Closed:
            raise
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the program's, too
            from ._task import RoundOver

            if isinstance(error, RoundOver):
                raise
            self.answer({"error": self._told(error)})

    def _told(self, error: BaseException) -> Dict[str, Any]:
        told = programs.refusal(error, self._folder).told()
        if not told.get("place"):
            place, source = programs.user_line(traceback.extract_tb(error.__traceback__), self._folder)
            told.update({"place": place, "source": source} if place else {})
        return told

    def _done(self, message: Message) -> Optional[Dict[str, Any]]:
        op = message["op"]
        if op == "load":
            return self._load(message)
        if self._form is None:
            raise programs.Refused("unsupported", "the message %s came before load" % op)
        answer: Optional[Dict[str, Any]]
        if op == "init":
            self._form.make(int(message["seed"]), True)
            answer = {}
        elif op == "step":
            answer = self._form.step(message)
        elif op == "round":
            answer = self._form.round()
        elif op == "evaluate":
            answer = self._form.evaluate(message)
        elif op == "predict":
            answer = self._form.outputs(message)
        elif op == "reset":
            answer = self._form.reset()
        else:
            raise programs.Refused("unsupported", "the worker does not know the message %s" % op)
        return answer

    def _load(self, message: Message) -> Dict[str, Any]:
        from ._session import Session
        from ._shared import SharedFile

        self._folder = message["folder"]
        self._session = self._form = None
        if self._shared is None:
            self._shared = SharedFile(self._fd, int(message["layout"]["size"]))
        session = Session(message, self._shared)
        form = self._of(session, message["form"])
        form.make(int(message.get("seed") or 0), False)
        self._session, self._form = session, form
        return {"versions": _versions()}

    def _of(self, session: Any, form: str) -> Any:
        if form == programs.LOOP:
            from ._loop import LoopForm

            return LoopForm(session, self)
        if form == programs.KUBEML:
            from ._kubeml import KubeMLForm

            return KubeMLForm(session)
        from ._forms import ModuleForm, TaskForm

        return TaskForm(session) if form == programs.TASK else ModuleForm(session)


def _versions() -> Dict[str, str]:
    out = {"python": platform.python_version()}
    for name in ("torch", "numpy", "keras", "sklearn"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            out[name] = str(version)
    return out


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # the program may have closed or replaced it


def main() -> None:
    """Runs the worker; it does not return."""
    stderr = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 400)
    faulthandler.enable(stderr)
    faulthandler.register(signal.SIGUSR1, stderr, all_threads=True)
    shared = fcntl.fcntl(_SHARED, fcntl.F_DUPFD_CLOEXEC, 400)
    os.close(_SHARED)
    worker = _Worker(Channel(_CONTROL), shared)
    try:
        worker.serve()
    except _Closed:
        code = 0
    except BaseException:  # a fault of the worker itself
        code = 70
        os.write(stderr, traceback.format_exc().encode())
    _flush()
    os._exit(code)  # threads of the program must not keep the process


if __name__ == "__main__":
    main()
