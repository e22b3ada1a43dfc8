"""The memory of a program's steps, before it trains."""

from __future__ import annotations

import gc
from typing import Any, Dict, List, NamedTuple

TRACED, PROBED, GIVEN = "traced", "probed", "given"

#: What a process takes over what is alive: the allocator keeps freed blocks. Measured with glibc's.
FACTOR = 1.5

#: Pages of kernels, compiled code and small heaps that no storage shows.
CONSTANT = 4 << 20


class Estimate(NamedTuple):
    """What steps take."""

    python: Dict[str, Any]  #: fields of ``disdel.PythonNetwork``
    activations: int  #: values of one row, forward
    backward: int  #: and for its gradients


def floor() -> int:
    """Private bytes of this process once it has made a first small step."""
    import torch

    network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    for _ in range(2):
        torch.nn.functional.cross_entropy(network(torch.rand(4, 1, 8, 8)), torch.zeros(4, dtype=torch.int64)).backward()
        optimizer.step()
    return private()


def private() -> int:
    """Bytes of this process that no other shares."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def estimate(tried: Any, folder: str, shape: List[int], classes: int, batches: List[int]) -> Estimate:
    """The memory of a step and of an evaluation at each batch, by tracing."""
    from . import guesses

    guessed = guesses.Guesses(folder, classes)
    rows, activations, backward = [], 0, 0
    for batch in batches:
        t = _Trace(tried, guessed, shape, classes, batch)
        t.run()
        rows.append({"batch": batch, "trainBytes": t.train, "inferBytes": t.infer})
        activations, backward = t.forward // 4 // batch, t.backward // 4 // batch
    python = {"memory": rows, "factor": FACTOR, "basis": TRACED, "guesses": guessed.told()}
    return Estimate(python, activations, backward)


class _Trace:
    """Three steps and an evaluation at one batch."""

    def __init__(self, tried: Any, guessed: Any, shape: List[int], classes: int, batch: int) -> None:
        self._tried, self._guessed = tried, guessed
        self._shape, self._classes, self._batch = shape, classes, batch
        self.train = self.infer = 0
        self.forward = self.backward = 0  # bytes of values that are computed

    def run(self) -> None:
        import torch

        from . import guesses, tracing

        gc.collect()
        mode = tracing.fake_mode()
        self._tracer = tracing.Tracer(mode, self._guessed)
        with mode, self._tracer, guesses.patched(self._guessed, self._tracer):
            self._tried.play(self._steps(torch), self._prepare, self._seen)
            x = torch.zeros(self._batch, *self._shape)
            before = self._tracer.live()
            self._tracer.reset()
            self._tried.outputs(x)
            self.infer = max(self._tracer.peak - before, 0) + CONSTANT
            self.forward = self._tracer.made
        self.backward = max(self._made - self.forward, 0)

    def _steps(self, torch: Any) -> Any:
        """The first step makes the optimiser's state; the peak is the second's."""
        for i in range(3):
            batch = torch.zeros(self._batch, *self._shape), torch.zeros(self._batch, dtype=torch.int64)
            if i < 2:
                self._tracer.reset()
                self._rows = _bytes(batch[0]) + _bytes(batch[1])
                yield batch
                self._made, self._peak = self._tracer.made, self._tracer.peak

    def _prepare(self, model: Any) -> None:
        """Put tensors without values into a network that was built with them."""
        known: Dict[int, Any] = {}
        for module in model.modules():
            for values in (module._parameters, module._buffers):
                for name, value in values.items():
                    if value is not None:
                        values[name] = known.setdefault(id(value), self._tracer.fake(value))
        for value in known.values():
            self._tracer.hold(value)

    def _seen(self, model: Any, optimizer: Any) -> None:
        fixed = sum(_bytes(p) * (2 if p.requires_grad else 1) for p in model.parameters())
        fixed += sum(_bytes(b) for b in model.buffers())
        for p in model.parameters():
            fixed += sum(_bytes(v) for v in optimizer.state.get(p, {}).values() if hasattr(v, "numel"))
        self.train = max(self._peak - fixed - self._rows, 0) + CONSTANT


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())
