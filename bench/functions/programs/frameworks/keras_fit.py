"""A compiled model of Keras."""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras


def made():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((1, 8, 8)), keras.layers.Flatten(), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10),
    ])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss)
    return model


def train(run):
    import disdel.keras

    disdel.keras.fit(run, made())


def alone(x, y, epochs):
    return float(made().fit(x, y, batch_size=len(x), epochs=epochs, verbose=0).history["loss"][-1])
