"""scikit-learn in a program with its own loop: estimators with ``partial_fit`` and coefficients."""

from __future__ import annotations

from typing import Any

from ._losses import numpy_loss
from ._task import Run


def fit(run: Run, model: Any) -> None:
    """Trains an estimator on the batches of a round by ``partial_fit``.

    :param run: what ``train(run)`` got.
    :param model: a classifier with ``partial_fit``, and ``coef_`` or ``coefs_``: ``SGDClassifier``, ``MLPClassifier``.

    Example::

        def train(run):
            disdel.sklearn.fit(run, SGDClassifier(loss="log_loss", random_state=1))

    The loss of a step is that of the rows before it. Counters of the estimator begin anew in each round.
    """
    import numpy

    classes = numpy.arange(run.classes)
    size = int(numpy.prod(run.input))
    model.partial_fit(numpy.zeros((run.classes, size), "float32"), classes, classes=classes)  # it has no arrays before
    if hasattr(model, "coef_"):
        model.coef_[...], model.intercept_[...] = 0, 0
    run.sync(model, predict=lambda x: outputs(model, x, run.classes))
    for x, y in run.batches():
        loss, correct = numpy_loss("crossEntropy", outputs(model, x, run.classes), y)
        model.partial_fit(x.reshape(len(x), -1), y)
        run.log(loss=loss, correct=correct)
    run.sync(model)


def outputs(model: Any, x: Any, classes: int) -> Any:
    """What an estimator says of rows, [rows, classes]: probabilities where it has them, else its decision function.

    :param x: the rows, of any shape.
    """
    import numpy

    flat = x.reshape(len(x), -1)
    if hasattr(model, "predict_proba"):
        found = model.predict_proba(flat)
    else:
        found = model.decision_function(flat)
    if found.ndim == 1:
        found = numpy.stack([-found, found], axis=1)
    out: Any = numpy.asarray(found, dtype="float32").reshape(len(x), classes)
    return out
