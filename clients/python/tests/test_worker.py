"""Programs of PyTorch in the worker: the same losses as alone, the same bits after a kill."""

import textwrap
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from runtime_side import Runtime

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: Debian has it as python3-torch")
numpy: Any = pytest.importorskip("numpy")

Make = Callable[..., Runtime]

NET = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, width=8):
            super().__init__()
            self.conv = nn.Conv2d(1, width, 3, padding=1)
            self.norm = nn.BatchNorm2d(width)
            self.drop = nn.Dropout(0.2)
            self.out = nn.Linear(width * 16, 3)

        def forward(self, x):
            x = torch.relu(self.norm(self.conv(x)))
            return self.out(self.drop(x.flatten(1)))
"""


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


def net(code: str = NET, name: str = "Net", **arguments: Any) -> Any:
    """The program's own model, in this process."""
    space: Dict[str, Any] = {}
    exec(textwrap.dedent(code), space)
    made = space[name](**arguments)
    return made if isinstance(made, torch.nn.Module) else made.model()


def batch(number: int, rows: int = 8) -> Tuple[Any, Any]:
    draw = numpy.random.default_rng(number)
    return draw.normal(size=(rows, 1, 4, 4)).astype("float32"), draw.integers(0, 3, rows)


SGD = {"sgd": {"learningRate": 0.1, "momentum": 0.9, "weightDecay": 0.001}}
ADAM = {"adam": {"learningRate": 0.01}}


def plain(model: Any, optimizer: Any, steps: int, clip: float = 0) -> List[float]:
    """The losses of the plain loop of PyTorch, seeded as an action is."""
    losses = []
    for number in range(steps):
        torch.manual_seed(1000 + number)
        model.train()
        x, y = batch(number)
        loss = torch.nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(y))
        optimizer.zero_grad()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.parametrize("clip", [0, 0.5])
def test_a_module_has_the_losses_of_the_plain_loop(make: Make, clip: float) -> None:
    torch.manual_seed(7)
    alone = net()
    worker = make(NET, alone, moments=["momentum"], optimizer=SGD, clipNorm=clip).ready(7)
    assert all(numpy.array_equal(worker.weights()[n], p.detach().numpy()) for n, p in alone.named_parameters())
    want = plain(alone, torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9, weight_decay=0.001), 6, clip)
    answers = [worker.step(i, batch(i)) for i in range(6)]
    assert [a["loss"] for a in answers] == want
    state = alone.state_dict()
    assert all(numpy.array_equal(w, state[n].numpy()) for n, w in worker.weights().items())
    assert not any(a.get("lost") for a in answers) and answers[0]["peak"] >= answers[0]["rss"] > 0
    assert worker.stop() == 0
