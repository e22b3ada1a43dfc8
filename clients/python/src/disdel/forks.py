"""The template of an environment's workers: ``python3 -s -B -m disdel.forks``.

The embedded platform starts one template for each environment. It imports PyTorch, which takes seconds, and then forks
a worker for each request in a hundredth of that. It computes nothing itself: it has one thread, and no random number is
drawn in it. Requests come as packets of JSON at descriptor 3, with the descriptors of the worker.
"""

from __future__ import annotations

import array
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from typing import Any, Dict, List, NoReturn, Tuple

_REQUESTS = 3
_PACKET, _FILES = 1 << 16, 16
_PR_SET_PDEATHSIG = 1

#: What a worker gets at descriptors 0 and up, in the order of the descriptors of a request behind the input.
_PLACES = ("control", "shared", "stdout", "stderr", "ended", "run")


class _Template:
    def __init__(self) -> None:
        self._requests = socket.socket(fileno=_REQUESTS)
        self._ended: Dict[int, int] = {}  # by process: the socket for the message of its end
        self._parent = os.getpid()
        self._variables = _variables()

    def serve(self) -> None:
        """Forks until the platform closes the socket."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake)
        self._tell({})
        while True:
            ready, _, _ = select.select([self._requests, woken], [], [])
            if woken in ready:
                os.read(woken, _PACKET)
                self._reap()
            if self._requests in ready and not self._answer():
                return

    def _tell(self, answer: Dict[str, Any]) -> None:
        self._requests.send(json.dumps(answer).encode())

    def _answer(self) -> bool:
        """Serves a request; False where there are no more."""
        data, files = _receive(self._requests)
        if not data:
            return False
        request = json.loads(data)
        named = dict(zip(_PLACES, files))
        try:
            pid = self._fork(request, named)
        except (OSError, ValueError) as error:
            self._tell({"error": str(error)})
            pid = 0
        else:
            self._tell({"pid": pid})
        for name, fd in named.items():
            if not pid or name != "ended" or not self._begun(pid, fd):
                os.close(fd)
        return True

    def _begun(self, pid: int, ended: int) -> bool:
        """Tells a container of its fork, and ends the fork if nobody waits for it any more."""
        try:
            os.write(ended, json.dumps({"pid": pid}).encode())
        except OSError:
            os.kill(pid, signal.SIGKILL)
            return False
        self._ended[pid] = ended
        return True

    def _fork(self, request: Dict[str, Any], files: Dict[str, int]) -> int:
        start = request["start"]
        for name, value in start["env"].items():
            if name in self._variables and len(value.encode()) > self._variables[name][1]:
                raise ValueError("%s is too long: %s" % (name, value))
        pid = os.fork()
        if pid:
            return pid
        try:
            self._become(int(request["group"]), start, files)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(70)

    def _become(self, group: int, start: Dict[str, Any], files: Dict[str, int]) -> NoReturn:
        """Makes a fork a worker of a container."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setpgid(0, group)
        if os.getppid() != self._parent or not os.read(files["run"], 1):
            os._exit(70)  # the platform is gone
        for to, name in enumerate(("stdout", "stderr", "control", "shared"), 1):
            os.dup2(files[name], to + 100)
        for to in range(1, 5):
            os.dup2(to + 100, to, inheritable=to < 3)
        self._requests.detach()
        os.closerange(5, os.sysconf("SC_OPEN_MAX"))
        os.environ.update(start["env"])
        for name, (at, room) in self._variables.items():
            if name in start["env"]:
                ctypes.memmove(at, os.environb[name.encode()].ljust(room, b"\0"), room)
        os.chdir(start["folder"])
        _set_threads(int(os.environ["OMP_NUM_THREADS"]))
        import disdel

        from . import worker

        sys.path[:] = [start["package"] if p == os.path.dirname(disdel.__path__[0]) else p for p in sys.path]
        disdel.__path__[:] = [os.path.join(start["package"], "disdel")]
        worker.main()
        os._exit(0)

    def _reap(self) -> None:
        """Tells of the forks that have ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            fd = self._ended.pop(pid, -1)
            if fd < 0:
                continue
            try:
                os.write(fd, json.dumps({"pid": pid, "status": status, "most": usage.ru_maxrss}).encode())
            except OSError:
                pass  # the container is gone
            os.close(fd)


def _receive(requests: socket.socket) -> Tuple[bytes, List[int]]:
    files = array.array("i")
    data, rights, _, _ = requests.recvmsg(_PACKET, socket.CMSG_SPACE(_FILES * files.itemsize))
    for level, kind, values in rights:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files.frombytes(values[: len(values) - len(values) % files.itemsize])
    return data, list(files)


def _variables() -> Dict[str, Tuple[int, int]]:
    """Where the folders of this process's environment lie: the address and the length of each value.

    The kernel shows other processes the environment that a process began with. Its container finds a fork and what it
    has started by these values, so each fork writes its own over them.
    """
    with open("/proc/self/stat", "rb") as stat:
        numbers = stat.read().rsplit(b") ", 1)[1].split()
    begin, end = int(numbers[47]), int(numbers[48])  # fields 50 and 51: env_start and env_end
    out: Dict[str, Tuple[int, int]] = {}
    at = begin
    for entry in ctypes.string_at(begin, end - begin).split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name in (b"HOME", b"TMPDIR"):
            out[name.decode()] = at + len(name) + 1, len(value)
        at += len(entry) + 1
    return out


def _set_threads(threads: int) -> None:
    """Sets the threads of OpenBLAS, which reads them when it is loaded. The worker sets those of PyTorch."""
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "openblas" in line}
    for library in (ctypes.CDLL(name) for name in loaded):
        for name in ("openblas_set_num_threads", "openblas_set_num_threads64_", "scipy_openblas_set_num_threads64_"):
            if hasattr(library, name):
                getattr(library, name)(threads)


def _import() -> None:
    """Imports what workers of PyTorch need. No library starts threads, which a fork would not have."""
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    import numpy  # noqa: F401
    import torch
    import torch.optim  # noqa: F401

    from . import _forms, _kubeml, _loop, _session, _shared, worker  # noqa: F401

    if int(torch.__version__.split(".")[0]) >= 2:
        import torch._dynamo  # noqa: F401  # the first optimiser imports it
    gc.collect()
    gc.freeze()


def main() -> None:
    """Runs the template; it returns when the platform is gone."""
    template = _Template()
    _import()
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise SystemExit("a template must have one thread, and the imported libraries have started %d" % (threads - 1))
    template.serve()


if __name__ == "__main__":
    main()
