"""Programs of PyTorch in the worker: the same losses as alone, the same bits after a kill."""

import textwrap
from typing import Any, Dict, List, Tuple

import pytest
from runtime_side import Make, Runtime, batch, make

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: Debian has it as python3-torch")
numpy: Any = pytest.importorskip("numpy")

__all__ = ["make"]  # a fixture

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


def net(code: str = NET, name: str = "Net", **arguments: Any) -> Any:
    """The program's own model, in this process."""
    space: Dict[str, Any] = {}
    exec(textwrap.dedent(code), space)
    made = space[name](**arguments)
    return made if isinstance(made, torch.nn.Module) else made.model()


SGD = {"sgd": {"learningRate": 0.1, "momentum": 0.9, "weightDecay": 0.001}}
ADAM = {"adam": {"learningRate": 0.01}}


def plain(model: Any, optimizer: Any, steps: int, clip: float = 0) -> List[float]:
    """The losses of the plain loop of PyTorch, seeded as an action is."""
    losses = []
    torch.set_num_threads(1)  # as in the worker: more threads give other bits
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


@pytest.mark.parametrize("clip", [0, 0.5])  # a new process, and a fork
def test_a_module_has_the_losses_of_the_plain_loop(make: Make, clip: float) -> None:
    torch.manual_seed(7)
    alone = net()
    worker = make(NET, alone, warm=bool(clip), moments=["momentum"], optimizer=SGD, clipNorm=clip).ready(7)
    assert all(numpy.array_equal(worker.weights()[n], p.detach().numpy()) for n, p in alone.named_parameters())
    want = plain(alone, torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9, weight_decay=0.001), 6, clip)
    answers = [worker.step(i, batch(i)) for i in range(6)]
    assert [a["loss"] for a in answers] == want
    state = alone.state_dict()
    assert all(numpy.array_equal(w, state[n].numpy()) for n, w in worker.weights().items())
    said = worker.ask("round")
    assert not any(a.get("lost") for a in answers) and said["peak"] >= said["rss"] > 0
    assert worker.stop() == 0


def test_a_seed_repeats_draws_without_a_stack_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    from disdel._session import seed

    monkeypatch.delattr("traceback.format_stack")
    drawn = []
    for _ in range(2):
        seed(5)
        drawn.append(torch.rand(3))
    assert torch.equal(*drawn)


TASK = """
    import torch
    import disdel

    class Net(disdel.Task):
        def __init__(self, width=8):
            self.width = width

        def model(self):
            return torch.nn.Sequential(
                torch.nn.Flatten(), torch.nn.Linear(16, self.width), torch.nn.BatchNorm1d(self.width), torch.nn.ReLU(),
                torch.nn.Dropout(0.1), torch.nn.Linear(self.width, 3))

        def loss(self, model, batch):
            x, y = batch
            noise = torch.randn_like(x) * 0.01
            return torch.nn.functional.cross_entropy(model(x + noise), y)

        def optimizer(self, model):
            return torch.optim.Adam(model.parameters(), lr=0.01)
"""

LOOP = """
    import torch

    def train(run, width=8):
        model = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(16, width), torch.nn.BatchNorm1d(width), torch.nn.ReLU(),
            torch.nn.Dropout(0.1), torch.nn.Linear(width, 3))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        run.sync(model, optimizer)
        for x, y in run.batches():
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.log(loss=loss)
        run.sync(model)
        print("round", run.round, "of epoch", run.epoch, "is over")
"""

KUBEML = """
    import torch
    from torch import nn
    from kubeml import KubeModel, KubeDataset

    class Rows(KubeDataset):
        def __init__(self):
            super().__init__("digits")

        def __getitem__(self, index):
            x = torch.tensor(self.data[index], dtype=torch.float32)
            return x.unsqueeze(0), int(self.labels[index])

        def __len__(self):
            return self.num_docs

    class Model(KubeModel):
        def __init__(self, network, dataset):
            super().__init__(network, dataset, gpu=True)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=self.lr)

        def init(self, model):
            raise RuntimeError("KubeML cannot call this")

        def train(self, batch, batch_index):
            x, y = batch
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self(x), y)
            loss.backward()
            self.optimizer.step()
            return loss.item()

        def validate(self, batch, batch_index):
            x, y = batch
            out = self(x)
            correct = out.argmax(1).eq(y).sum().item()
            return 100 * correct / self.batch_size, nn.functional.cross_entropy(out, y).item()

    def main():
        width = 8
        network = nn.Sequential(
            nn.Flatten(), nn.Linear(16, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 3))
        return Model(network, Rows()).start()
"""

SEQUENTIAL = """
    import torch

    class Net:
        def model(self):
            width = 8
            return torch.nn.Sequential(
                torch.nn.Flatten(), torch.nn.Linear(16, width), torch.nn.BatchNorm1d(width), torch.nn.ReLU(),
                torch.nn.Dropout(0.1), torch.nn.Linear(width, 3))
"""

MOMENTS = ["exp_avg", "exp_avg_sq"]
FORMS: Dict[str, Tuple[str, str, Dict[str, Any]]] = {
    "module": (NET, NET, {"optimizer": ADAM}),
    "task": (TASK, SEQUENTIAL, {"form": "task"}),
    "loop": (LOOP, SEQUENTIAL, {"form": "loop", "entry": "train"}),
    "kubeml": (KUBEML, SEQUENTIAL, {"form": "kubeml", "entry": "main"}),
}


def rounds(worker: Runtime, first: int, last: int, length: int = 4) -> List[float]:
    """Steps of rounds of a length; returns the losses."""
    losses = []
    for number in range(first, last):
        answer = worker.step(number, batch(number), round=number // length, rate=0.01, base=0.01)
        assert "error" not in answer, (answer, worker.errors())
        losses.append(answer["loss"])
        if number % length == length - 1:
            assert "error" not in worker.ask("round")
    return losses


def evaluated(worker: Runtime) -> None:
    """An evaluation and a prediction, which agree and change nothing."""
    before = worker.state()[: worker.layout["x"][0]]
    x, y = batch(50, 5)
    answer, labels = worker.evaluate((x, y))
    probabilities = worker.predict(x)
    assert abs(probabilities.sum(1) - 1).max() < 1e-5
    assert [int(v) for v in probabilities.argmax(1)] == labels
    assert answer["correct"] == sum(int(a) == b for a, b in zip(y, labels))
    assert worker.state()[: worker.layout["x"][0]] == before


@pytest.mark.parametrize("form", list(FORMS))
def test_kills_and_evaluations_leave_the_same_bits(make: Make, form: str) -> None:
    code, model, options = FORMS[form]
    reference = make(code, net(model), moments=MOMENTS, **options).ready(3)
    want = rounds(reference, 0, 12)
    draw = numpy.random.default_rng(len(form))
    losses: List[float] = []
    worker = make(code, net(model), moments=MOMENTS, **options).ready(3)
    for at in sorted(int(n) for n in draw.choice(range(1, 12), 2, replace=False)):
        losses += rounds(worker, len(losses), at)
        evaluated(worker)
        state = worker.state()  # as a checkpoint has it, after a step
        fields = {"rate": 0.01, "base": 0.01, "steps": at, "seed": 0, "round": at // 4}
        worker.send("step", slot=at % 2, rows=worker.put(at % 2, *batch(at)), **fields)
        if draw.integers(2):
            worker.answer()
        worker.kill()
        worker = make(code, net(model), moments=MOMENTS, state=state, **options).ready(None)
    assert losses + rounds(worker, len(losses), 12) == want
    evaluated(worker)
    assert worker.state()[: worker.layout["x"][0]] == reference.state()[: worker.layout["x"][0]]


def test_a_loop_goes_on_after_its_last_sync(make: Make) -> None:
    worker = make(LOOP, net(SEQUENTIAL), moments=MOMENTS, form="loop", entry="train").ready(3)
    rounds(worker, 0, 8)
    assert worker.stop() == 0
    assert worker.printed().splitlines() == ["round 0 of epoch 0 is over", "round 1 of epoch 0 is over"]


def test_kubemls_older_interfaces_give_the_same_losses(make: Make) -> None:
    worker = make(KUBEML, net(SEQUENTIAL), moments=MOMENTS, form="kubeml", entry="main").ready(3)
    want = rounds(worker, 0, 5)
    old = "(self, batch, batch_index):\n            x, y = batch"
    code = KUBEML.replace("def train" + old, "def train(self, x, y, index):")
    code = code.replace("def validate" + old, "def validate(self, x, y, _):")
    assert code.count("x, y = batch") == 0
    older = make(code, net(SEQUENTIAL), moments=MOMENTS, form="kubeml", entry="main").ready(3)
    assert rounds(older, 0, 5) == want
    # The last batch of an epoch is short, and the program divides by its batch size.
    for rows in (8, 5):
        answer, labels = older.evaluate(batch(50, rows))
        assert answer["correct"] == sum(int(a) == b for a, b in zip(batch(50, rows)[1], labels)) > 0


def test_kubemls_accuracy_may_be_a_share(make: Make) -> None:
    code = KUBEML.replace("return 100 * correct", "return correct")
    worker = make(code, net(SEQUENTIAL), moments=MOMENTS, form="kubeml", entry="main").ready(3)
    answer, labels = worker.evaluate(batch(50, 8))
    assert answer["correct"] == sum(int(a) == b for a, b in zip(batch(50, 8)[1], labels)) > 0


def test_kubemls_network_may_have_more_outputs_than_classes(make: Make) -> None:
    wide = [code.replace("nn.Linear(width, 3)", "nn.Linear(width, 7)") for code in (KUBEML, SEQUENTIAL)]
    worker = make(wide[0], net(wide[1]), moments=MOMENTS, form="kubeml", entry="main").ready(3)
    rounds(worker, 0, 3)
    evaluated(worker)


def test_kubeml_gets_bytes_where_the_data_set_has_bytes() -> None:
    from disdel._kubeml import _as_uploaded

    pixels = numpy.random.default_rng(1).integers(0, 256, (4, 3, 5, 6)).astype("uint8")
    scaled = (pixels / numpy.float32(255)).astype("float32")
    assert numpy.array_equal(_as_uploaded(scaled), pixels.transpose(0, 2, 3, 1))
    real = numpy.random.default_rng(1).normal(size=(4, 1, 5, 6)).astype("float32")
    assert numpy.array_equal(_as_uploaded(real), real[:, 0])
