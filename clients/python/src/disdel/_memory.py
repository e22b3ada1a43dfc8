"""The memory of a program's steps, before it trains: traced without computing, or measured on small batches."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from . import programs
from ._arrays import is_torch

TRACED, PROBED, GIVEN = "traced", "probed", "given"

#: What a process takes over what is alive: the allocator keeps freed blocks. Measured with glibc's.
FACTOR = 1.5

#: Pages of kernels, compiled code and small heaps that no storage shows.
CONSTANT = 1 << 20


class Estimate(NamedTuple):
    """What steps take."""

    python: Dict[str, Any]  #: fields of ``disdel.PythonNetwork``
    activations: int  #: values of one row, forward
    backward: int  #: and for its gradients


def floor() -> int:
    """Private bytes of this process; with PyTorch once it has made a first small step."""
    if "torch" in sys.modules:
        import torch  # type: ignore[import-not-found, unused-ignore]

        nn = torch.nn
        network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
        optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
        for _ in range(2):
            outputs = network(torch.rand(4, 1, 8, 8))
            torch.nn.functional.cross_entropy(outputs, torch.zeros(4, dtype=torch.int64)).backward()
            optimizer.step()
    return private()


def private(peak: bool = False) -> int:
    """Bytes of this process that no other shares, now or at their peak since :func:`forget_peak`."""
    kib: Dict[str, int] = {}
    with open("/proc/self/status") as status:
        for line in status:
            name, _, rest = line.partition(":")
            if rest.endswith("kB\n"):
                kib[name] = int(rest.split()[0])
    if not peak:
        return kib.get("RssAnon", 0) * 1024
    return max(kib.get("VmHWM", 0) - kib.get("RssFile", 0) - kib.get("RssShmem", 0), kib.get("RssAnon", 0)) * 1024


def forget_peak() -> None:
    """Begin the peak of :func:`private` anew."""
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")


def estimate(tried: Any, folder: str, batches: List[int], end: float) -> Estimate:
    """The memory of a step and of an evaluation at each batch.

    A throwaway process traces the program; where that fails, another one measures two small batches and a line goes
    through them. Without both, nothing but a warning is known.

    :param end: the time, as ``time.monotonic`` has it, that tracing and measuring must not pass.
    """
    answers: List[str] = []
    if is_torch(tried.session.model):
        traced, why = apart(lambda: _traced(tried, folder, batches), end)
        if traced is not None:
            return Estimate(traced["python"], traced["activations"], traced["backward"])
        answers.append("its memory could not be traced: " + why)
    probed, why = apart(lambda: _probed(tried, batches), end)
    if probed is not None:
        python = {**probed, "factor": FACTOR, "basis": PROBED, "warnings": answers}
        return Estimate(python, probed["memory"][-1]["trainBytes"] // 8 // batches[-1], 0)
    answers.append("its memory could not be measured: %s; say it by resources.memory" % why)
    return Estimate({"memory": [], "factor": FACTOR, "basis": GIVEN, "warnings": answers}, 0, 0)


def apart(work: Callable[[], Iterator[Dict[str, Any]]], end: float) -> Any:
    """The last that work yields in a process of its own, else None with the reason: a crash there ends nothing here.

    Half of the time until the end is for work.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(work, write)
    os.close(write)
    return _answer_of(child, read, time.monotonic() + max(end - time.monotonic(), 0) / 2)


def _answer(work: Callable[[], Iterator[Dict[str, Any]]], write: int) -> None:
    def tell(told: Dict[str, Any]) -> None:
        line = json.dumps(told).encode() + b"\n"
        while line:
            line = line[os.write(write, line) :]

    try:
        _limit()
        for done in work():
            tell({"done": done})
    except BaseException as error:
        tell({"error": programs.refusal(error, "").message})
    os._exit(0)


def _limit() -> None:
    """Keep a probe from taking all memory of this machine."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_DATA, (private() + free * 3 // 4, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        pass


def _answer_of(child: int, read: int, end: float) -> Any:
    said, why = b"", ""
    while True:
        ready, _, _ = select.select([read], [], [], max(end - time.monotonic(), 0))
        part = os.read(read, 1 << 16) if ready else b""
        if not part:
            break
        said += part
    os.close(read)
    if not ready:
        os.kill(child, signal.SIGKILL)
        why = "it took too long"
    _, status = os.waitpid(child, 0)
    if ready and os.WIFSIGNALED(status):
        why = "the process ended by signal %d" % os.WTERMSIG(status)
    done = None
    for told in map(json.loads, said.split(b"\n")[:-1]):
        done, why = told.get("done", done), told.get("error", why)
    return done, why


def _traced(tried: Any, folder: str, batches: List[int]) -> Iterator[Dict[str, Any]]:
    from . import _guesses

    guessed = _guesses.Guesses(folder, tried.session.classes)
    trace = _Trace(tried, guessed)
    memory: List[Dict[str, int]] = []
    refused: Optional[Exception] = None
    with trace.mode, trace.tracer, _guesses.patched(guessed, trace.tracer):
        for batch in batches:
            try:
                train, infer = trace.of(batch)
            except Exception as error:  # a batch of one row that has no variance, for example
                refused = error
                continue
            memory.append({"batch": batch, "trainBytes": train + CONSTANT, "inferBytes": infer + CONSTANT})
            forward, backward = trace.forward // 4 // batch, trace.backward // 4 // batch
            python = {"memory": memory, "factor": FACTOR, "basis": TRACED, "guesses": guessed.told()}
            yield {"python": python, "activations": forward, "backward": backward}
    if refused is not None and not memory:
        raise refused


class _Trace:
    """Steps and evaluations without values."""

    def __init__(self, tried: Any, guessed: Any) -> None:
        from . import _tracing

        self.mode = _tracing.fake_mode()
        self.tracer = _tracing.Tracer(self.mode, guessed)
        self.forward = self.backward = 0  # bytes of values that were computed
        self._tried = tried
        self._session = tried.session
        self._peaks: List[int] = []
        self._before = self._rows = 0  # bytes before the newest step, and of its batch
        self._replaced = False

    def of(self, batch: int) -> Any:
        """Bytes besides weights, gradients and moments of a step, and besides weights of an evaluation."""
        gc.collect()
        if not self._tried.rebuilds and not self._replaced:
            self._replace(self._session.model)
            self._replaced = True
        self._session.moments = None
        self._session.rows_of = self._begin
        self._peaks = []
        self._tried.steps(batch, 2)
        made = self.tracer.made
        train = self.tracer.peak - self._fixed() - self._rows  # of the second step: the first makes the moments
        self._tried.evaluate(batch)
        self.forward = self.tracer.made
        self.backward = max(made - self.forward, 0)
        return max(train, 0), max(self.tracer.peak - self._before - self._rows, 0)

    def _begin(self, count: int) -> Any:
        """The rows of a step, at its beginning."""
        import torch
        from ._task import Batch

        self._before = self.tracer.live()
        batch = Batch(torch.zeros(count, *self._session.input), torch.zeros(count, dtype=torch.int64))
        self._rows = _bytes(batch.x) + _bytes(batch.y)
        self.tracer.reset()
        return batch

    def _replace(self, model: Any) -> None:
        """Put tensors without values into a network that was built with them."""
        known: Dict[int, Any] = {}
        for module in model.modules():
            for values in (module._parameters, module._buffers):
                for name, value in values.items():
                    if value is not None:
                        value.grad = None
                        values[name] = known.setdefault(id(value), self.tracer.fake(value))
        for value in known.values():
            self.tracer.hold(value)
        self._session.retake()

    def _fixed(self) -> int:
        """Weights, gradients and moments."""
        model, optimizer = self._session.model, self._session.optimizer
        fixed = sum(_bytes(t) for t in [*model.parameters(), *model.buffers()])
        fixed += sum(_bytes(p) for p in model.parameters() if p.requires_grad)
        for p in model.parameters():
            state = getattr(optimizer, "state", {}).get(p) or {}
            fixed += sum(_bytes(v) for v in state.values() if hasattr(v, "numel") and v.shape == p.shape)
        return fixed


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _probed(tried: Any, batches: List[int]) -> Iterator[Dict[str, Any]]:
    """Measured peaks at two batches, and a line through them."""
    _map_arrays()
    train = _line(lambda rows: _peak_of(tried.steps, rows, 2), batches[-1])
    infer = _line(lambda rows: _peak_of(tried.evaluate, rows), batches[-1])
    yield {"memory": [{"batch": b, "trainBytes": train(b), "inferBytes": infer(b)} for b in batches]}


def _line(peak: Callable[[int], int], largest: int) -> Callable[[int], int]:
    """The bytes of any batch, from peaks at small ones.

    What does not depend on the batch, such as a step of the optimizer, can hide what does. The batches grow until the
    rows show, or up to the largest that is asked for.
    """
    rows = max(min(8, largest), 1)
    at, peaks = [rows, 4 * rows], [peak(rows), peak(4 * rows)]
    while peaks[-1] < 2 * peaks[-2] and at[-1] < largest:
        at.append(min(4 * at[-1], largest))
        peaks.append(peak(at[-1]))
    slope = max(peaks[-1] - peaks[-2], 0) / (at[-1] - at[-2])

    def line(batch: int) -> int:
        if batch <= at[-2]:
            return max(*peaks[:-1], CONSTANT)
        return max(int(peaks[-2] + slope * (batch - at[-2])), int(slope * batch), CONSTANT)

    return line


def _peak_of(work: Callable[..., None], *options: int) -> int:
    """The private bytes that work takes over those before it: gradients and moments are there from the first time."""
    work(*options)
    gc.collect()
    _give_back()
    forget_peak()
    before = private()
    work(*options)
    return max(private(peak=True) - before, 0)


def _map_arrays() -> None:
    """Give each larger array pages of its own: freed ones would hide some of the peak. FACTOR stands for them."""
    map_threshold = -3  # M_MMAP_THRESHOLD of glibc
    with contextlib.suppress(OSError, AttributeError):  # another libc
        ctypes.CDLL(None).mallopt(map_threshold, 128 << 10)


def _give_back() -> None:
    """Let the allocator give freed memory back, which would hide what work takes."""
    with contextlib.suppress(OSError, AttributeError):  # another libc
        ctypes.CDLL(None).malloc_trim(0)
