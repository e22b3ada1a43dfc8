"""Arrays of every kind in the shared file: views, copies, and what comes back after a kill."""

from pathlib import Path
from typing import Any

import pytest
from runtime_side import Make, batch, make
from test_worker import ADAM, MOMENTS, SGD, net, rounds

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: Debian has it as python3-torch")
numpy: Any = pytest.importorskip("numpy")

__all__ = ["make"]  # a fixture

TIED = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(16, 16)
            self.second = nn.Linear(16, 16)
            self.second.weight = self.first.weight
            self.norm = nn.BatchNorm1d(16)
            self.register_buffer("seen", torch.zeros(3, dtype=torch.int64))
            self.register_buffer("mask", torch.tensor([True, False, True]))
            self.register_buffer("mean", torch.zeros(16))
            self.register_buffer("constant", torch.ones(2), persistent=False)
            self.out = nn.Linear(16, 3)

        def forward(self, x):
            x = x.flatten(1)
            if self.training:
                self.seen[0] += len(x)
                self.seen = self.seen + torch.tensor([0, 1, 1 << 40])  # too large for float32
                self.mean = 0.9 * self.mean + 0.1 * x.mean(0).detach()
            return self.out(torch.relu(self.second(torch.relu(self.first(self.norm(x - self.mean))))))
"""

#: Networks that lose the views of the shared file, or cannot have them.
HALF = (
    TIED.replace("nn.Linear(16, 3)", "nn.Linear(16, 3).to(torch.bfloat16)").replace(
        "return self.out(torch.relu", "return self.last(torch.relu"
    )
    + """
        def last(self, x):
            return self.out(x.to(torch.bfloat16)).float()
"""
)
DOUBLE = TIED.replace("self.out = nn.Linear(16, 3)", "self.out = nn.Linear(16, 3); self.double()").replace(
    "x = x.flatten(1)", "x = x.flatten(1).double()"
)
CLONES = TIED.replace("x = x.flatten(1)", "x = x.flatten(1); self.out.weight.data = self.out.weight.data.clone()")
ASSIGNED = TIED.replace(
    "x = x.flatten(1)", "x = x.flatten(1); self.load_state_dict({k: v.clone() for k, v in self.state_dict().items()})"
)
LAZY = TIED.replace("nn.Linear(16, 3)", "nn.LazyLinear(3)").replace("nn.BatchNorm1d(16)", "nn.LazyBatchNorm1d()")
LATER = TIED.replace("x = x.flatten(1)", """x = x.flatten(1)
            if not hasattr(self, "later"):
                self.later = nn.Linear(16, 16)
            x = self.later(x)""")  # fmt: skip
UNUSED = TIED.replace(
    "self.out = nn.Linear(16, 3)", "self.out = nn.Linear(16, 3); self.unused = nn.Linear(2, 2)"
).replace(
    "x = x.flatten(1)",
    "x = x.flatten(1); x = x + (self.unused.bias.sum() if self.training and self.seen[1] > 4 else 0)",
)
SHAPES = TIED.replace(
    "x = x.flatten(1)", "x = x.flatten(1); chosen = x[x[:, 0] > 0]; x = x + (chosen.mean() if len(chosen) else 0)"
)

NETS = {
    "tied": TIED, "bfloat16": HALF, "float64": DOUBLE, "clones": CLONES, "loads": ASSIGNED,
    "lazy": LAZY, "later": LATER, "unused": UNUSED, "shapes of data": SHAPES,
}  # fmt: skip


@pytest.mark.parametrize("name", list(NETS))
def test_arrays_of_every_kind_come_back_after_a_kill(make: Make, name: str) -> None:
    model = net(NETS[name])
    if name in ("lazy", "later"):
        model.eval()(torch.zeros(2, 1, 4, 4))
    reference = make(NETS[name], model, moments=MOMENTS, optimizer=ADAM).ready(5)
    names = [n for n, _, _ in reference.reals]
    assert "second.weight" not in names and "constant" not in names and "mean" in names
    assert [n for n, _, _ in reference.whole] == ["seen", "mask", "norm.num_batches_tracked"]
    want = rounds(reference, 0, 8)
    first = make(NETS[name], model, moments=MOMENTS, optimizer=ADAM).ready(5)
    losses = rounds(first, 0, 3)
    second = make(NETS[name], model, moments=MOMENTS, optimizer=ADAM, state=first.kill()).ready(None)
    assert losses + rounds(second, 3, 8) == want
    for runtime in (reference, second):
        weights = runtime.weights()
        assert list(weights["seen"]) == [64, 8, 8 << 40]
        assert list(weights["mask"]) == [1, 0, 1] and weights["norm.num_batches_tracked"] == 8
    assert second.state()[: second.layout["x"][0]] == reference.state()[: reference.layout["x"][0]]
    lost = second.step(8, batch(8)).get("lost", False)
    assert lost == (name in ("clones",))


def test_what_the_runtime_writes_counts_at_once(make: Make) -> None:
    for code in (TIED, HALF):
        model = net(code)
        worker = make(code, model, moments=["momentum"], optimizer=SGD).ready(5)
        rounds(worker, 0, 2)
        at, values = worker.layout["weights"][[n for n, _, _ in worker.reals].index("out.bias")], [9.0, 0.0, 0.0]
        worker.map[at : at + 12] = numpy.array(values, dtype="<f4").tobytes()
        assert list(worker.predict(batch(0)[0]).argmax(1)) == [0] * 8
        before = worker.state()
        again = make(code, model, moments=["momentum"], optimizer=SGD, state=before).ready(None)
        assert rounds(worker, 2, 5) == rounds(again, 2, 5)
        worker.close()
        again.close()


def test_arrays_that_change_their_shape_are_refused(make: Make) -> None:
    grows = TIED.replace("self.mean = 0.9 * self.mean + 0.1 * x.mean(0).detach()", "self.mean = self.mean.repeat(2)")
    grows = grows.replace("x - self.mean", "x - self.mean[:16]")
    worker = make(grows, net(grows), optimizer=SGD).ready(5)
    told = worker.step(0, batch(0))["error"]
    assert told["kind"] == "changed" and "mean was [16] and is now [32]" in told["message"]


def test_a_rate_of_the_job_scales_the_programs_own(make: Make) -> None:
    code = """
        import torch
        import disdel

        class Net(disdel.Task):
            def model(self):
                return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))

            def optimizer(self, model):
                first, second = model.parameters()
                return torch.optim.SGD([{"params": [first], "lr": 0.5}, {"params": [second], "lr": 0.25}], lr=1)

            def schedule(self, epoch, epochs):
                return 0.5 if epoch else 1
    """
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    worker = make(code, model, form="task").ready(2)
    x, y = torch.tensor(batch(0)[0]), torch.tensor(batch(0)[1])
    for number, (rate, epoch, factor) in enumerate([(0.1, 0, 1), (0.05, 0, 0.5), (0.1, 1, 0.5), (0.05, 1, 0.25)]):
        names = [n for n, _, _ in worker.reals]
        before = worker.weights()
        with torch.no_grad():
            for key, parameter in zip(names, model.parameters()):
                parameter.copy_(torch.tensor(before[key]))
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        worker.step(number, batch(0), rate=rate, base=0.1, epoch=epoch)
        for key, parameter, own in zip(names, model.parameters(), (0.5, 0.25)):
            want = before[key] - own * factor * parameter.grad.numpy()
            assert numpy.allclose(worker.weights()[key], want, atol=1e-7)


@pytest.mark.parametrize("name", ["Adagrad", "NAdam", "Lion", "Lamb", "LBFGS", "Adadelta", "RMSprop", "Adamax", "AdamW"])
def test_the_state_of_optimisers_is_known(tmp_path: Path, name: str) -> None:
    from disdel._optimizers import of_job, state_of

    parameters = [torch.nn.Parameter(torch.zeros(4, 5))]
    if name in ("Lion", "Lamb"):
        optimizer = of_job({name.lower(): {"learningRate": 0.1}}, parameters)
    else:
        optimizer = getattr(torch.optim, name)(parameters, lr=0.1)
    want = {
        "Adagrad": ["sum"], "NAdam": [], "Lion": ["exp_avg"], "LBFGS": [], "Adadelta": ["square_avg", "acc_delta"],
        "RMSprop": ["square_avg"], "Adamax": ["exp_avg", "exp_inf"], "AdamW": MOMENTS,
        "Lamb": MOMENTS,
    }  # fmt: skip
    moments, opaque = state_of(optimizer)
    assert moments == want[name] and opaque == (name in ("NAdam", "LBFGS"))
    assert name == "Adagrad" or not optimizer.state  # the optimiser itself has made no step


def test_lamb_moves_an_array_by_a_share_of_its_norm() -> None:
    from disdel._optimizers import of_job

    weights, zeros = torch.nn.Parameter(torch.tensor([3.0, 4.0])), torch.nn.Parameter(torch.zeros(2))
    optimizer = of_job({"lamb": {"learningRate": 0.1, "epsilon": 1e-12}}, [weights, zeros])
    weights.grad, zeros.grad = torch.tensor([2.0, -7.0]), torch.tensor([5.0, -0.1])
    optimizer.step()  # Adam's first direction is the sign
    assert torch.allclose(weights, torch.tensor([3 - 0.5 / 2**0.5, 4 + 0.5 / 2**0.5]))
    assert torch.allclose(zeros, torch.tensor([-0.1, 0.1]))
    decayed = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    optimizer = of_job({"lamb": {"learningRate": 0.1, "weightDecay": 2.0}}, [decayed])
    for k in range(2):  # without a gradient the direction is the decay, and the step still has the norm's share
        decayed.grad = torch.zeros(2)
        optimizer.step()
    assert torch.allclose(decayed, 0.81 * torch.tensor([3.0, 4.0]))


@pytest.mark.parametrize(
    "job",
    [
        {"rmsprop": {"learningRate": 0.1, "weightDecay": 0.2, "alpha": 0.9, "momentum": 0.5, "epsilon": 1e-3}},
        {"adagrad": {"learningRate": 0.1, "weightDecay": 0.2, "epsilon": 1e-3}},
    ],
)
def test_an_optimiser_of_a_job_is_described_as_the_job_has_it(job: Any) -> None:
    from disdel._optimizers import described, of_job

    parameters = [torch.nn.Parameter(torch.zeros(4, 5))]
    assert described(of_job(job, parameters), parameters) == job
    assert described(torch.optim.RMSprop(parameters, centered=True), parameters) is None
    assert described(torch.optim.Adagrad(parameters, lr_decay=0.1), parameters) is None
