"""Writes what Keras answers: networks, their weights by disdel's names, rows and answers.

PYTHONPATH=clients/python/src KERAS_BACKEND=jax python make.py
"""

import json
from pathlib import Path

import keras
import numpy

import disdel

layers = keras.layers


def drawn(net):
    lot = numpy.random.default_rng(3)
    for layer in net.layers:
        layer.set_weights([lot.normal(0, 0.4, array.shape).round(3) for array in layer.get_weights()])
    return net


def tokens():
    row = keras.Input((9,), dtype="int32", name="row")
    x = layers.Embedding(20, 6, mask_zero=True, name="words")(row)
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True), name="both")(x)
    x = layers.LayerNormalization(name="norm")(x)
    y = layers.Dense(8, name="wide")(layers.LSTM(7, name="last")(x))
    x = layers.Dense(7, activation="tanh", name="by_position")(x)
    x = layers.Bidirectional(layers.GRU(4), name="ends")(x)
    return keras.Model(row, layers.Dense(5, activation="softmax", name="out")(layers.Add(name="sum")([x, y])))


def windows():
    return keras.Sequential(
        [
            keras.Input((9,), dtype="int32"),
            layers.Embedding(20, 6, name="words"),
            layers.Conv1D(8, 3, padding="same", activation="relu", name="same"),
            layers.Conv1D(6, 2, padding="causal", dilation_rate=2, use_bias=False, name="causal"),
            layers.Conv1D(6, 4, strides=2, padding="same", name="strided"),
            layers.Conv1D(6, 2, name="valid"),
            layers.GRU(6, return_sequences=True, name="steps"),
            layers.GlobalAveragePooling1D(name="mean"),
            layers.Dense(5, activation="softmax", name="out"),
        ]
    )


def raised():
    return keras.Sequential(
        [
            keras.Input((8, 7, 2)),
            layers.Conv2D(6, 3, strides=2, activation="relu", name="down"),
            layers.Conv2DTranspose(5, 3, strides=2, padding="same", activation="relu", name="same"),
            layers.Conv2DTranspose(4, (4, 3), strides=(2, 1), use_bias=False, name="valid"),
            layers.LayerNormalization(name="norm"),
            layers.GlobalAveragePooling2D(name="mean"),
            layers.Dense(10, activation="softmax", name="out"),
        ]
    )


def numbers(array):
    return [float(v) for v in numpy.asarray(array, dtype=numpy.float32).ravel()]


def main():
    here = Path(__file__).parent
    lot = numpy.random.default_rng(5)
    for make in (tokens, windows, raised):
        net = drawn(make())
        if make is raised:
            rows = lot.normal(size=(5, 8, 7, 2)).astype("float32")
            x = rows.transpose(0, 3, 1, 2)
        else:
            rows = x = lot.integers(1, 20, (5, 9))
            for i in range(1, 5):
                rows[i, 9 - i :] = 0
        saved = here / "net.keras"
        net.save(saved)
        arrays = disdel.keras_weights(saved)
        saved.unlink()
        document = {
            "Network": net.to_json(),
            "Weights": [{"Name": n, "Shape": list(a.shape), "Data": numbers(a)} for n, a in arrays.items()],
            "X": numbers(x),
            "Answers": numbers(net.predict(rows, verbose=0)),
        }
        (here / (make.__name__ + ".json")).write_text(json.dumps(document) + "\n")


main()
