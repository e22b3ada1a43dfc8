"""Networks and weights of Keras, held against what Keras itself says, where it is there."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any, Dict, List

import pytest
from conftest import JOB

import disdel

if importlib.util.find_spec("keras") is None:  # one that is there and does not work is no reason to skip
    pytest.skip("Keras is not installed", allow_module_level=True)

keras: Any = importlib.import_module("keras")
numpy: Any = importlib.import_module("numpy")

#: Steps too short to change a weight, and statistics that hardly move: what is trained is what was given.
STILL = {"epochs": 1, "batchSize": 64, "optimizer": {"sgd": {"learningRate": 1e-30}}}


def drawn(net: Any) -> Any:
    """The network with weights that nobody would draw: statistics and biases are drawn, too."""
    lot = numpy.random.default_rng(3)
    for layer in net.layers:
        arrays = []
        for array in layer.get_weights():
            arrays.append(lot.uniform(0.4, 1.0, array.shape) if array.ndim == 1 else lot.normal(0, 0.3, array.shape))
        layer.set_weights(arrays)
    return net


def sequential() -> Any:
    layers = keras.layers
    return drawn(
        keras.Sequential(
            [
                keras.Input((8, 8, 1)),
                layers.Conv2D(6, (3, 2), padding="same", activation="relu", name="stem"),
                layers.BatchNormalization(momentum=1 - 1e-9, name="norm"),
                layers.MaxPooling2D(2),
                layers.Conv2D(4, 3, use_bias=False, groups=2, name="grouped"),
                layers.Flatten(name="flat"),
                layers.BatchNormalization(momentum=1 - 1e-9, scale=False, name="flatnorm"),
                layers.Dropout(0.25),
                layers.Dense(12, activation="tanh", name="hidden"),
                layers.Dense(10, activation="softmax", name="out"),
            ]
        )
    )


def functional() -> Any:
    layers = keras.layers
    image = keras.Input((8, 8, 1), name="image")
    x = layers.SeparableConv2D(5, 3, padding="same", activation="relu", name="apart")(image)
    y = layers.DepthwiseConv2D((2, 3), padding="same", name="deep")(x)
    x = layers.Add(name="sum")([x, y])
    z = layers.Conv2D(3, 1, strides=2, name="small")(x)
    x = layers.AveragePooling2D(2, name="mean")(x)
    x = layers.Concatenate(name="both")([x, z])
    x = layers.Flatten(name="flat")(x)
    x = layers.Dense(10, use_bias=False, name="out")(x)
    return drawn(keras.Model(image, layers.Activation("softmax", name="softmax")(x)))


def answers(client: disdel.Client, net: Any, model: Dict[str, Any], name: str) -> None:
    """What a job has that begins with the weights, and goes nowhere, answers what Keras answers."""
    job = {**JOB, "metadata": {"name": name}, "model": model, "training": STILL}
    done = client.wait(client.submit(job).id, timeout=300).check()
    sample = client.sample("digits", list(range(20)))
    want = net.predict(numpy.array(sample["inputs"], dtype="float32").reshape(-1, 8, 8, 1), verbose=0)
    assert done.model is not None
    got = numpy.array(client.infer(done.model, sample["inputs"])["probabilities"])
    assert want.max(axis=1).min() < 0.99, "answers that are all sure tell little"
    assert numpy.abs(got - want).max() < 1e-5


@pytest.mark.parametrize("net", [sequential, functional])
def test_a_job_begins_where_keras_is(client: disdel.Client, net: Any) -> None:
    made = net()
    answers(client, made, disdel.from_keras(made, weights=True), "keras-" + net.__name__)


@pytest.mark.parametrize("net", [sequential, functional])
@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_files_have_the_same_weights(net: Any, ending: str, tmp_path: Path) -> None:
    made = net()
    path = tmp_path / ("net." + ending)
    made.save(path)
    want, got = disdel.keras_weights(made), disdel.keras_weights(path)
    assert set(got) == set(want)
    for name, array in want.items():
        assert numpy.array_equal(got[name], array), name
    assert disdel.from_keras(path)["keras"]


def test_a_choice_of_two_has_two_outputs() -> None:
    one = drawn(keras.Sequential([keras.Input((5,)), keras.layers.Dense(1, activation="sigmoid", name="out")]))
    two = drawn(
        keras.Sequential([keras.Input((5,)), keras.layers.Dense(1, name="out"), keras.layers.Activation("sigmoid")])
    )
    rows = numpy.random.default_rng(1).normal(size=(7, 5)).astype("float32")
    for net in (one, two):
        weights = disdel.keras_weights(net)
        z = rows @ weights["out.weight"].T + weights["out.bias"]
        share = numpy.exp(z) / numpy.exp(z).sum(axis=1, keepdims=True)
        assert numpy.allclose(share[:, 1:], net.predict(rows, verbose=0), atol=1e-6)


def test_what_does_not_fit_is_told_at_once(client: disdel.Client) -> None:
    made = sequential()
    model = disdel.from_keras(made, weights=True)
    weights = model["init"]["weights"]
    weights["hidden.weight"] = weights["hidden.weight"][:, 1:]
    del weights["stem.bias"]
    weights["other.weight"] = numpy.zeros((2, 2))
    with pytest.raises(disdel.Invalid) as caught:
        client.check({**JOB, "model": model})
    told = [f.message for f in caught.value.faults]
    assert {f.path for f in caught.value.faults} == {"model.init.weights"}
    for part in ("hidden.weight", "stem.bias", "other.weight"):
        assert sum(part in message for message in told) == 1, told


def test_layers_that_are_none_are_named(tmp_path: Path) -> None:
    net = keras.Sequential([keras.Input((2, 8, 8, 1)), keras.layers.ConvLSTM2D(2, 3, name="up")])
    with pytest.raises(disdel.Invalid, match="up: there is no layer like ConvLSTM2D"):
        disdel.keras_weights(net)
    wrong = tmp_path / "net.keras"
    wrong.write_bytes(b"nothing")
    with pytest.raises(disdel.Invalid, match="no file that model.save"):
        disdel.from_keras(wrong)
    with pytest.raises(disdel.Invalid, match="check the file's name"):
        disdel.from_keras(tmp_path / "none.keras")


def test_weights_of_a_model_come_back(client: disdel.Client, trained: disdel.Job) -> None:
    """Arrays that are sent are those that a job begins with; what is no more cannot be begun with."""
    arrays: Dict[str, Any] = dict(client.weights(trained.model).numpy())
    name = client.put_weights(arrays)
    assert client.put_weights(disdel.write_safetensors(arrays)) == name
    models: List[Dict[str, Any]] = [{"weights": name}, {"weights": trained.model}]
    ends = []
    for i, init in enumerate(models):
        job = {**JOB, "metadata": {"name": "again-%d" % i}, "model": {"name": "digits-cnn", "init": init}, "training": STILL}
        ends.append(client.wait(client.submit(job).id, timeout=300).check())
    first, second = (client.weights(end.model).numpy() for end in ends)
    assert all(numpy.array_equal(first[k], second[k]) for k in arrays)
    client.remove_weights(name)
    with pytest.raises(disdel.Invalid, match="no weights sha256"):
        client.check({**JOB, "model": {"name": "digits-cnn", "init": {"weights": name}}})
    with pytest.raises(disdel.NotFound):
        client.remove_weights(name)
    with pytest.raises(disdel.Invalid):
        client.put_weights(b"no weights at all")
