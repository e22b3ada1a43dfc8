"""The runtime's end of the worker's protocol, for tests: a socket, a shared file, and a real worker process."""

import fcntl
import functools
import importlib.util
import json
import math
import mmap
import os
import signal
import socket
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import pytest

import disdel

Array = Tuple[str, Sequence[int], bool]
Shape = Sequence[int]

_PACKAGE = str(Path(disdel.__file__).parent.parent)
# What chooses the kernels of PyTorch's libraries: a test computes with those of its worker, and other kernels round
# otherwise. Some machines set OPENBLAS_CORETYPE for all processes.
_KERNELS = {k: v for k, v in os.environ.items() if k.startswith(("ATEN_", "DNNL_", "MKL_", "ONEDNN_", "OPENBLAS_"))}


def arrays_of(module: Any) -> Tuple[List[Array], List[Array]]:
    """The arrays of a module of PyTorch as a description lists them: reals, then whole numbers."""
    kept = set(module.state_dict())
    reals: List[Array] = [(n, tuple(p.shape), p.requires_grad) for n, p in module.named_parameters()]
    buffers = [(n, b) for n, b in module.named_buffers() if n in kept]
    reals += [(n, tuple(b.shape), False) for n, b in buffers if b.is_floating_point()]
    return reals, [(n, tuple(b.shape), False) for n, b in buffers if not b.is_floating_point()]


class _Fork:
    """The end of a fork, of which its template tells."""

    def __init__(self, told: socket.socket) -> None:
        self._told = told
        self.pid = int(self._next()["pid"])

    def _next(self) -> Dict[str, Any]:
        told: Dict[str, Any] = json.loads(self._told.recv(1 << 16))
        return told

    def wait(self) -> int:
        """Waits for the process; returns its status."""
        status = int(self._next()["status"])
        self._told.close()
        return status


class _Template:
    """The template of workers, as the embedded platform has it: PyTorch is imported once for all tests."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests = ours
        env = {
            "PATH": os.environ["PATH"], "HOME": "/" * 500, "PYTHONPATH": _PACKAGE, "PYTHONHASHSEED": "0",
            "PYTHONUNBUFFERED": "1", **_KERNELS,
        }  # fmt: skip
        command = [sys.executable, "-s", "-B", "-m", "disdel.forks"]
        os.posix_spawn(sys.executable, command, env, file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 3)])
        theirs.close()
        assert self._requests.recv(1 << 16), "the template did not start"

    def fork(self, env: Dict[str, str], folder: Path, files: Sequence[int]) -> _Fork:
        """Forks a worker; the files are its output, its errors, the socket and the shared file."""
        told, ended = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        run, go = os.pipe()
        os.write(go, b"x")
        start = {"env": env, "folder": str(folder), "package": _PACKAGE}
        out, errors, control, shared = files
        sent = [control, shared, out, errors, ended.fileno(), run]
        socket.send_fds(self._requests, [json.dumps({"group": 0, "start": start}).encode()], sent)
        answer = json.loads(self._requests.recv(1 << 16))
        assert "pid" in answer, answer
        for fd in (run, go):
            os.close(fd)
        ended.close()
        return _Fork(told)


@functools.lru_cache(maxsize=None)
def template() -> Optional[_Template]:
    """The template of all tests; None without PyTorch, where a worker starts in no time."""
    return _Template() if importlib.util.find_spec("torch") else None


class Runtime:
    """A worker with a program, at work.

    :param code: the text of net.py.
    :param reals: the program's arrays of real numbers; a module of PyTorch stands for its own.
    :param moments: what the optimiser keeps for each weight.
    :param state: the bytes of the shared file of an earlier worker, to go on from.
    :param warm: whether the worker may be a fork of the template; one with an environment never is.
    """

    def __init__(
        self,
        folder: Path,
        code: str,
        reals: Union[Any, List[Array]],
        *,
        whole: Sequence[Array] = (),
        moments: Sequence[str] = (),
        state: Optional[bytes] = None,
        input: Shape = (1, 4, 4),
        classes: int = 3,
        batch: int = 8,
        environment: Optional[Dict[str, str]] = None,
        warm: bool = True,
        **load: Any,
    ) -> None:
        (folder / "net.py").write_text(textwrap.dedent(code))
        if not isinstance(reals, list):
            reals, whole = arrays_of(reals)
        self.reals, self.whole, self.moments = reals, list(whole), list(moments)
        self.input, self.classes, self.batch = tuple(input), classes, batch
        self.folder, self._id, self._read = folder, 0, b""
        self.layout = self._lay_out()
        self._memory = fcntl.fcntl(os.memfd_create("shared"), fcntl.F_DUPFD_CLOEXEC, 10)  # 3 and 4 are the worker's
        os.ftruncate(self._memory, self.layout["size"])
        self.map = mmap.mmap(self._memory, self.layout["size"])
        if state is not None:
            self.map[:] = state
        self._start(environment or {}, warm)
        self.hello = self._receive()
        self.load: Dict[str, Any] = {
            "folder": str(folder), "file": "net.py", "entry": "Net", "arguments": {}, "form": "module",
            "input": list(input), "classes": classes, "batch": batch, "loss": "crossEntropy",
            "training": True, "threads": 1,
            "optimizer": {"sgd": {"learningRate": 0.1}}, "moments": self.moments, "layout": self.layout, "clipNorm": 0,
            "params": [{"name": n, "shape": list(s), "trainable": t} for n, s, t in reals],
            "integers": [{"name": n, "shape": list(s), "trainable": False} for n, s, _ in self.whole],
            **load,
        }  # fmt: skip

    def _lay_out(self) -> Dict[str, Any]:
        at = 0

        def place(values: int, size: int) -> int:
            nonlocal at
            here = at
            at = (at + values * size + 63) // 64 * 64
            return here

        rows, sample = self.batch, math.prod(self.input)
        out: Dict[str, Any] = {"weights": [place(math.prod(s), 4) for _, s, _ in self.reals]}
        out["moments"] = [[place(math.prod(s), 4) for _, s, t in self.reals if t] for _ in self.moments]
        out["integers"] = [place(math.prod(s), 8) for _, s, _ in self.whole]
        slots = [(place(rows * sample, 4), place(rows, 4)) for _ in range(2)]
        out["x"], out["y"] = [x for x, _ in slots], [y for _, y in slots]
        out["outputs"], out["labels"] = place(rows * self.classes, 4), place(rows, 4)
        return {**out, "size": max(at, 64)}

    def _start(self, environment: Dict[str, str], warm: bool) -> None:
        ours, pair = socket.socketpair()
        theirs = fcntl.fcntl(pair, fcntl.F_DUPFD_CLOEXEC, 10)
        pair.close()
        self._out, self._err = (open(self.folder / name, "w+b") for name in ("stdout", "stderr"))
        env = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": _PACKAGE, "PYTHONHASHSEED": "0",
            "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1", **_KERNELS, **environment,
        }  # fmt: skip
        files = [self._out.fileno(), self._err.fileno(), theirs, self._memory]
        parent = template() if warm and not environment else None
        self._fork: Optional[_Fork] = None
        if parent:
            self._fork = parent.fork(env, self.folder, files)
            self.pid = self._fork.pid
        else:
            actions = [(os.POSIX_SPAWN_DUP2, file, place) for place, file in enumerate(files, 1)]
            command = [sys.executable, "-s", "-B", "-m", "disdel.worker"]
            self.pid = os.posix_spawn(sys.executable, command, env, file_actions=actions, setpgroup=0)
        os.close(theirs)
        self._socket = ours
        self._status: Optional[int] = None

    def _receive(self) -> Dict[str, Any]:
        while b"\n" not in self._read:
            part = self._socket.recv(1 << 16)
            if not part:
                raise EOFError("the worker closed the socket")
            self._read += part
        line, self._read = self._read.split(b"\n", 1)
        answer: Dict[str, Any] = json.loads(line)
        return answer

    def send(self, op: str, **fields: Any) -> None:
        """Sends a message, whose answer is then to be received."""
        self._id += 1
        self._socket.sendall(json.dumps({"id": self._id, "op": op, **fields}).encode() + b"\n")

    def answer(self) -> Dict[str, Any]:
        """Receives the answer to the newest message."""
        answer = self._receive()
        assert answer["id"] == self._id
        return answer

    def ask(self, op: str, **fields: Any) -> Dict[str, Any]:
        """Sends a message and returns the answer to it."""
        self.send(op, **fields)
        return self.answer()

    def ready(self, seed: Optional[int] = 7) -> "Runtime":
        """Loads the program, and gives it new weights unless the seed is None."""
        answer = self.ask("load", **self.load)
        assert "error" not in answer, (answer, self.errors())
        if seed is not None:
            answer = self.ask("init", seed=seed)
            assert "error" not in answer, (answer, self.errors())
        return self

    def put(self, slot: int, x: Any, y: Any) -> int:
        """Writes the rows of a batch; returns their number."""
        import numpy

        x, y = numpy.asarray(x, dtype="<f4"), numpy.asarray(y, dtype="<i4")
        self.map[self.layout["x"][slot] : self.layout["x"][slot] + x.nbytes] = x.tobytes()
        self.map[self.layout["y"][slot] : self.layout["y"][slot] + y.nbytes] = y.tobytes()
        return len(y)

    def step(self, number: int, batch: Tuple[Any, Any], *, round: int = 0, **fields: Any) -> Dict[str, Any]:
        """Trains on a batch; number counts the optimiser's steps."""
        rows = self.put(number % 2, *batch)
        message = {
            "slot": number % 2, "rows": rows, "rate": 0.1, "base": 0.1, "steps": number, "seed": 1000 + number,
            "round": round, "epoch": 0, "epochs": 1, "batch": number, **fields,
        }  # fmt: skip
        return self.ask("step", **message)

    def evaluate(self, batch: Tuple[Any, Any]) -> Tuple[Dict[str, Any], List[int]]:
        """Measures on a batch; returns the answer and the class of each row."""
        rows = self.put(0, *batch)
        answer = self.ask("evaluate", slot=0, rows=rows)
        return answer, [int(v) for v in self.array(self.layout["labels"], (self.batch,), "<i4")[:rows]]

    def predict(self, x: Any) -> Any:
        """The outputs of rows."""
        rows = self.put(0, x, [0] * len(x))
        answer = self.ask("predict", slot=0, rows=rows)
        assert "error" not in answer, answer
        return self.array(self.layout["outputs"], (self.batch, self.classes))[:rows]

    def array(self, offset: int, shape: Shape, kind: str = "<f4") -> Any:
        """A copy of an array of the shared file."""
        import numpy

        return numpy.frombuffer(self.map, dtype=kind, count=math.prod(shape), offset=offset).reshape(shape).copy()

    def weights(self) -> Dict[str, Any]:
        """Copies of all weights by their names."""
        out = {n: self.array(at, s) for (n, s, _), at in zip(self.reals, self.layout["weights"])}
        whole = zip(self.whole, self.layout["integers"])
        return {**out, **{n: self.array(at, s, "<i8") for (n, s, _), at in whole}}

    def state(self) -> bytes:
        """All bytes of the shared file."""
        return self.map[:]

    def printed(self) -> str:
        """What the program printed."""
        return (self.folder / "stdout").read_text()

    def errors(self) -> str:
        """What the process wrote to the standard error."""
        return (self.folder / "stderr").read_text(errors="replace")

    def end(self) -> int:
        """Waits for the process, which ends by itself; returns its exit code, or minus the signal that ended it."""
        if self._status is None:
            status = self._fork.wait() if self._fork else os.waitpid(self.pid, 0)[1]
            self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def stop(self) -> int:
        """Stops the worker; returns its exit code."""
        if self._status is None:
            self.send("stop")
        code = self.end()
        self.close()
        return code

    def kill(self) -> bytes:
        """Kills the process and returns the shared file."""
        if self._status is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.end()
        state = self.state()
        self.close()
        return state

    def close(self) -> None:
        """Closes what the test holds."""
        if self._status is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.end()
        self._socket.close()
        if not self.map.closed:
            self.map.close()
            os.close(self._memory)
        self._out.close()
        self._err.close()

    def wait_for(self, text: str, where: Callable[[], str]) -> None:
        """Waits until the process has written a text.

        :raises AssertionError: if it ended before.
        """
        while text not in where():
            assert self._status is None and not _zombie(self.pid), self.errors()
            time.sleep(0.01)

    def wait_gone(self, pid: int) -> None:
        """Waits until a process is gone."""
        while os.path.exists("/proc/%d/stat" % pid) and not _zombie(pid):
            time.sleep(0.01)


def _zombie(pid: int) -> bool:
    try:
        return Path("/proc/%d/stat" % pid).read_text().split(")")[1].split()[0] == "Z"
    except OSError:
        return True


Make = Callable[..., Runtime]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes workers and ends them."""
    made: List[Runtime] = []

    def one(*arguments: Any, **options: Any) -> Runtime:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Runtime(folder, *arguments, **options))
        return made[-1]

    yield one
    for runtime in made:
        runtime.close()


def batch(number: int, rows: int = 8) -> Tuple[Any, Any]:
    """Drawn rows of three classes, the same for a number each time."""
    import numpy

    draw = numpy.random.default_rng(number)
    return draw.normal(size=(rows, 1, 4, 4)).astype("float32"), draw.integers(0, 3, rows)
