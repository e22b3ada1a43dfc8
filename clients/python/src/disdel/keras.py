"""Keras in a program with its own loop, with any of Keras' backends."""

from __future__ import annotations

from typing import Any, Iterable

from ._task import Run


def fit(run: Run, model: Any, callbacks: Iterable[Any] = ()) -> None:
    """Trains a compiled model on the batches of a round, as ``model.fit`` does.

    :param run: what ``train(run)`` got.
    :param model: a compiled ``keras.Model``.
    :param callbacks: callbacks of Keras; they see one epoch for each round.

    Example::

        def train(run):
            model = keras.Sequential([keras.Input(run.input), keras.layers.Flatten(), keras.layers.Dense(run.classes)])
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile("adam", loss)
            disdel.keras.fit(run, model)

    The state of the optimiser begins anew in each round. A row has the shape [channels, height, width].
    """
    import keras  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import numpy

    def predict(x: Any) -> Any:
        return numpy.asarray(keras.ops.convert_to_numpy(model(x, training=False)))

    run.sync(model, predict=predict)
    rate = float(numpy.asarray(keras.ops.convert_to_numpy(model.optimizer.learning_rate)))
    told = keras.callbacks.CallbackList(list(callbacks), model=model)
    told.on_train_begin()
    told.on_epoch_begin(run.epoch)
    logs = {}
    for number, (x, y) in enumerate(run.batches()):
        if run.factor != 1:
            model.optimizer.learning_rate = rate * run.factor
        told.on_train_batch_begin(number)
        model.reset_metrics()  # they are means over all batches else
        logs = {name: float(value) for name, value in model.train_on_batch(x, y, return_dict=True).items()}
        told.on_train_batch_end(number, logs)
        run.log(loss=logs["loss"])
    told.on_epoch_end(run.epoch, logs)
    told.on_train_end(logs)
    run.sync(model)
