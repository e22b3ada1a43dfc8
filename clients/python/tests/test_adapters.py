"""Libraries other than PyTorch alone: each reaches in actions the loss that it reaches alone, where it is installed."""

import importlib
import importlib.metadata
import importlib.util
from typing import Any, Dict, List, Tuple

import pytest
from runtime_side import Array, Make, Runtime, batch, make

numpy: Any = pytest.importorskip("numpy")

__all__ = ["make"]  # a fixture


def needs(*names: str) -> None:
    for name in names:
        if importlib.util.find_spec(name) is None:
            pytest.skip("%s is not installed" % name)


def trained(worker: Runtime, count: int, length: int = 4) -> List[float]:
    """The losses of steps of rounds."""
    losses = []
    for number in range(count):
        answer = worker.step(number, batch(number), round=number // length)
        assert "error" not in answer, (answer, worker.errors())
        losses.append(answer["loss"])
        if number % length == length - 1:
            assert "error" not in worker.ask("round")
    return losses


def fits(worker: Runtime) -> None:
    """An evaluation and a prediction, which agree and change nothing."""
    before = worker.state()[: worker.layout["x"][0]]
    x, y = batch(50, 5)
    answer, labels = worker.evaluate((x, y))
    assert "error" not in answer, (answer, worker.errors())
    probabilities = worker.predict(x)
    assert [int(v) for v in probabilities.argmax(1)] == labels and abs(probabilities.sum(1) - 1).max() < 1e-5
    assert answer["correct"] == sum(int(a) == b for a, b in zip(y, labels))
    assert worker.state()[: worker.layout["x"][0]] == before


NUMPY = """
    import numpy
    import disdel

    def softmax(z):
        e = numpy.exp(z - z.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    class Net(disdel.Task):
        def model(self):
            weight = numpy.random.normal(size=(16, 3)).astype("float32") * 0.1
            return {"weight": weight, "bias": numpy.zeros(3, "float32"),
                    "rows": numpy.zeros(1, "int64")}

        def predict(self, model, x):
            return softmax(x.reshape(len(x), -1) @ model["weight"] + model["bias"])

        def step(self, model, batch, optimizer):
            x, y = batch
            p = self.predict(model, x)
            loss = -numpy.log(p[range(len(y)), y]).mean()
            p[range(len(y)), y] -= 1
            model["weight"] -= self.rate * x.reshape(len(x), -1).T @ p / len(y)   # in place
            model["bias"] = model["bias"] - self.rate * p.mean(0).astype("float32")  # a new array
            model["rows"] += len(y)
            return loss

    net, parts = Net(), {}

    def train(run):
        numpy.random.seed(7)
        model = net.model()
        run.sync(model, predict=lambda x: net.predict(model, x))
        for batch in run.batches():
            net.rate = run.rate
            run.log(loss=net.step(model, batch, None))
"""
ARRAYS: List[Array] = [("weight", (16, 3), True), ("bias", (3,), True)]


def alone(code: str, count: int, name: str = "Net") -> Tuple[List[float], Dict[str, Any]]:
    import textwrap

    space: Dict[str, Any] = {}
    exec(textwrap.dedent(code), space)
    numpy.random.seed(7)
    net = space["Net"]()
    net.rate, model = 0.1, net.model()
    losses = []
    for number in range(count):
        x, y = batch(number)
        losses.append(float(net.step(model, (x, y), None)))
    return losses, model


@pytest.mark.parametrize("form", ["task", "loop"])
def test_numpy_has_the_losses_of_the_plain_loop(make: Make, form: str) -> None:
    want, model = alone(NUMPY, 8)
    options = {"whole": [("rows", (1,), False)], "form": form, "entry": "Net" if form == "task" else "train"}
    worker = make(NUMPY, ARRAYS, warm=False, **options).ready(7)
    assert trained(worker, 8) == want
    assert all(numpy.array_equal(value, worker.weights()[key]) for key, value in model.items())
    assert worker.weights()["rows"] == 64
    fits(worker)
    assert "torch" not in worker.hello and worker.ask("reset")["rss"] < 80 << 20  # PyTorch was not imported
    first = make(NUMPY, ARRAYS, **options).ready(7)
    losses = trained(first, 4)
    second = make(NUMPY, ARRAYS, state=first.kill(), **options).ready(None)
    for number in range(4, 8):
        losses.append(second.step(number, batch(number), round=1)["loss"])
    assert losses == want and second.weights()["rows"] == 64


SKLEARN = """
    import disdel.sklearn
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPClassifier

    def train(run):
        disdel.sklearn.fit(run, SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.05, random_state=1))

    def net(run):
        disdel.sklearn.fit(run, MLPClassifier((8,), solver="sgd", learning_rate_init=0.05, momentum=0, random_state=1))
"""


@pytest.mark.parametrize("entry", ["train", "net"])
def test_scikit_learn_has_the_losses_of_partial_fit(make: Make, entry: str) -> None:
    needs("sklearn")
    from sklearn.linear_model import SGDClassifier  # type: ignore[import-not-found, import-untyped, unused-ignore]

    reals: List[Array] = [("coef_", (3, 16), True), ("intercept_", (3,), True)]
    if entry == "net":
        reals = [
            ("coefs_.0", (16, 8), True),
            ("coefs_.1", (8, 3), True),
            ("intercepts_.0", (8,), True),
            ("intercepts_.1", (3,), True),
        ]
    worker = make(SKLEARN, reals, form="loop", entry=entry).ready(7)
    losses = trained(worker, 12)
    fits(worker)
    assert losses[0] > 0.9
    if entry == "train":
        model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.05, random_state=1)
        for number in range(12):
            x, y = batch(number)
            model.partial_fit(x.reshape(8, -1).astype("float32"), y, classes=[0, 1, 2])
        assert numpy.allclose(model.coef_, worker.weights()["coef_"], atol=1e-4)
    x, y = batch(0)
    for number in range(12, 80):
        worker.step(number, (x, y), round=number // 4)
    assert worker.evaluate((x, y))[0]["loss"] < losses[0] / 2


KERAS = """
    import keras
    import disdel.keras

    def made(shape, classes):
        model = keras.Sequential([
            keras.Input(shape), keras.layers.Flatten(), keras.layers.Dense(8, activation="relu"),
            keras.layers.BatchNormalization(), keras.layers.Dropout(0.1), keras.layers.Dense(classes)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.1), loss)
        return model

    class Count(keras.callbacks.Callback):
        def on_train_batch_end(self, number, logs=None):
            print("batch", number, round(logs["loss"], 3))

    def train(run):
        disdel.keras.fit(run, made(run.input, run.classes), [Count()])
"""


@pytest.mark.parametrize("backend", ["jax", "torch", "tensorflow"])
def test_keras_has_the_losses_of_train_on_batch(make: Make, backend: str) -> None:
    needs("keras", backend)
    if backend == "torch" and importlib.metadata.version("torch") < "2":
        pytest.skip("Keras needs PyTorch 2")
    reals: List[Array] = [
        ("sequential/dense/kernel", (16, 8), True), ("sequential/dense/bias", (8,), True),
        ("sequential/batch_normalization/gamma", (8,), True), ("sequential/batch_normalization/beta", (8,), True),
        ("sequential/dense_1/kernel", (8, 3), True), ("sequential/dense_1/bias", (3,), True),
        ("sequential/batch_normalization/moving_mean", (8,), False),
        ("sequential/batch_normalization/moving_variance", (8,), False),
    ]  # fmt: skip
    environment = {"KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    worker = make(KERAS, reals, form="loop", entry="train", environment=environment).ready(7)
    losses = trained(worker, 8)
    fits(worker)
    assert worker.printed().count("batch") == 8
    x, y = batch(0)
    for number in range(8, 48):
        worker.step(number, (x, y), round=number // 4)
    assert worker.evaluate((x, y))[0]["loss"] < losses[0] / 2


TRANSFORMERS = """
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
    import disdel.transformers

    def made():
        return BertForSequenceClassification(BertConfig(
            vocab_size=16, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            max_position_embeddings=16, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))

    def train(run):
        arguments = TrainingArguments("out", save_strategy="no", report_to=[], use_cpu=True, learning_rate=0.01,
                                      disable_tqdm=True, optim="adamw_torch", max_grad_norm=0)
        disdel.transformers.fit(run, Trainer(made(), arguments), lambda x, y: {
            "input_ids": (x.reshape(len(x), -1).abs() * 4).long().clamp(0, 15), "labels": y})
"""

LIGHTNING = """
    import torch
    import lightning
    import disdel.lightning

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.out = torch.nn.Linear(16, 3)

        def forward(self, x):
            return self.out(x.flatten(1))

        def training_step(self, batch, number):
            x, y = batch
            self.log("rows", float(len(x)))
            return torch.nn.functional.cross_entropy(self(x), y)

        def validation_step(self, batch, number):
            raise RuntimeError("nobody calls it")

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

        def _register_sharded_tensor_state_dict_hooks_if_available(self):
            pass  # Debian's PyTorch 1.13 cannot import its sharded tensors on Python 3.11

    def train(run):
        disdel.lightning.fit(run, Net())
"""


def plain_torch(model: Any, optimizer: Any, loss: Any, count: int) -> List[float]:
    import torch  # type: ignore[import-not-found, unused-ignore]

    losses = []
    for number in range(count):
        x, y = batch(number)
        value = loss(model, torch.tensor(x), torch.tensor(y))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return losses


@pytest.mark.parametrize("library", ["transformers", "lightning", "pytorch_lightning"])
def test_trainers_have_the_losses_of_the_plain_loop(make: Make, library: str) -> None:
    needs("torch", library)
    import textwrap

    import torch

    code = TRANSFORMERS if library == "transformers" else LIGHTNING.replace("lightning\n", library + " as lightning\n", 1)
    space: Dict[str, Any] = {}
    exec(textwrap.dedent(code), space)
    torch.manual_seed(7)
    if library != "transformers":
        model = space["Net"]()
        optimizer: Any = torch.optim.Adam(model.parameters(), lr=0.01)
        want = plain_torch(model, optimizer, lambda m, x, y: torch.nn.functional.cross_entropy(m(x), y), 8)
    else:
        model = space["made"]().train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0)

        def loss(m: Any, x: Any, y: Any) -> Any:
            return m(input_ids=(x.reshape(len(x), -1).abs() * 4).long().clamp(0, 15), labels=y).loss

        want = plain_torch(model, optimizer, loss, 8)
    moments = ["exp_avg", "exp_avg_sq"]
    worker = make(code, model, form="loop", entry="train", moments=moments).ready(7)
    got = trained(worker, 8)
    assert got == pytest.approx(want, rel=1e-5)
    fits(worker)
    again = make(code, model, form="loop", entry="train", moments=moments).ready(7)
    head = trained(again, 3)
    cold = make(code, model, form="loop", entry="train", moments=moments, state=again.kill()).ready(None)
    assert head + [cold.step(n, batch(n), round=n // 4)["loss"] for n in range(3, 4)] == got[:4]


REFUSED = LIGHTNING + """
    class Manual(Net):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

    class Several(Net):
        def configure_optimizers(self):
            return [torch.optim.SGD(self.parameters(), lr=0.1), torch.optim.SGD(self.parameters(), lr=0.1)]

    class Nothing(Net):
        def configure_optimizers(self):
            return None

    class Scheduled(Net):
        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]

    class Named(Net):
        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler}}

    class Skips(Net):
        def training_step(self, batch, number):
            return None

    def other(run, kind, **options):
        disdel.lightning.fit(run, globals()[kind](), **options)
"""


@pytest.mark.parametrize("library", ["lightning", "pytorch_lightning"])
def test_lightning_refuses_what_a_round_cannot_do(make: Make, library: str) -> None:
    needs("torch", library)
    code = REFUSED.replace("lightning\n", library + " as lightning\n", 1)
    worker = make(code, [("out.weight", (3, 16), True), ("out.bias", (3,), True)], form="loop", entry="other")

    def loaded(**arguments: Any) -> Dict[str, Any]:
        told: Dict[str, Any] = worker.ask("load", **{**worker.load, "arguments": arguments}).get("error", {})
        return told

    for arguments, words in (
        ({"kind": "Manual"}, "automatic_optimization = False"),
        ({"kind": "Several"}, "returns 2 optimisers. Return one"),
        ({"kind": "Nothing"}, "returns no optimisers"),
        ({"kind": "Scheduled"}, "the scheduler StepLR, which would begin anew in each round"),
        ({"kind": "Named"}, "set training.schedule in the job file"),
        ({"kind": "Net", "accumulate_grad_batches": 2}, "raise training.batchSize"),
    ):
        told = loaded(**arguments)
        assert told.get("kind") == "user" and words in told["message"], (arguments, told)
        assert " in other" in told["place"], told
    assert loaded(kind="Skips") == {}
    assert "training_step returned None" in worker.step(0, batch(0))["error"]["message"]
    assert loaded(kind="Net") == {} and worker.step(0, batch(0))["loss"] > 0
    assert "rows 8" in worker.printed()
