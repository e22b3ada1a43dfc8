"""The worker's end of the control socket, and the memory that its process takes."""

from __future__ import annotations

import fcntl
import json
import os
from typing import Any, Dict, Optional

Message = Dict[str, Any]

#: Descriptors of a program are small numbers. The socket's gets a large one, which nobody meets by chance.
_FIRST = 500


class Channel:
    """Lines of JSON over a socket.

    The socket moves to another descriptor, so that a program which writes to descriptor 3 does not reach it. Processes
    that the program starts or forks do not have it.

    :param fd: the socket's descriptor; it is closed.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST)
        os.close(fd)
        self._owner = os.getpid()
        self._read = b""
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def receive(self) -> Optional[Message]:
        """The next message; None where the other end is closed."""
        if os.getpid() != self._owner:
            os._exit(0)  # a fork of the program came back from its code: it is no worker
        while b"\n" not in self._read:
            part = os.read(self._fd, 1 << 16)
            if not part:
                return None
            self._read += part
        line, self._read = self._read.split(b"\n", 1)
        message: Message = json.loads(line)
        return message

    def send(self, message: Message) -> None:
        """Sends one line."""
        if os.getpid() != self._owner:
            os._exit(0)
        line = json.dumps(message, allow_nan=False, default=str).encode() + b"\n"
        while line:
            line = line[os.write(self._fd, line) :]


class Requests:
    """What a loop needs of the worker: the messages that come while the loop waits in ``run.batches()``."""

    def next(self) -> Message:
        """The next ``step`` or ``round``; other messages are served meanwhile."""
        raise NotImplementedError

    def answer(self, answer: Message) -> None:
        """Messages the newest message."""
        raise NotImplementedError

    def put_back(self, message: Message) -> None:
        """Makes a message the next one again."""
        raise NotImplementedError


def memory() -> Dict[str, int]:
    """The private memory of this process in bytes, now and at its peak: without pages of files."""
    kib: Dict[bytes, int] = {}
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith((b"VmHWM", b"RssAnon", b"RssFile", b"RssShmem")):
                    name, value = line.split(b":")
                    kib[name] = int(value.split()[0])
    except OSError:
        return {"rss": 0, "peak": 0}
    anon = kib.get(b"RssAnon", 0)
    peak = kib.get(b"VmHWM", 0) - kib.get(b"RssFile", 0) - kib.get(b"RssShmem", 0)
    return {"rss": anon * 1024, "peak": max(anon, peak) * 1024}
