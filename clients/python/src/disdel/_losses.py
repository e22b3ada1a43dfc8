"""The losses of a job file. Each is the mean over the rows; classes count as in disdel's own engine."""

from __future__ import annotations

from typing import Any, Tuple

from .programs import Refused


def outputs_of(answer: Any) -> Any:
    """The outputs among what a model returned: a tensor, the first of a tuple, or the field ``logits``."""
    answer = getattr(answer, "logits", answer)
    if isinstance(answer, (tuple, list)) and answer:
        answer = answer[0]
    if isinstance(answer, dict) and "logits" in answer:
        answer = answer["logits"]
    return answer


def as_rows(outputs: Any, rows: int, classes: int) -> Any:
    """The outputs as [rows, classes].

    :raises Refused: of kind ``user`` for another number of rows or of values a row.
    """
    shape = tuple(getattr(outputs, "shape", ()))
    size = 1
    for side in shape:
        size *= int(side)
    if not shape or shape[0] != rows or size != rows * classes:
        raise Refused(
            "user",
            "the model returned the shape %s for %d rows, and the data has %d classes: it must return [%d, %d]"
            % (list(shape), rows, classes, rows, classes),
        )
    return outputs if len(shape) == 2 else outputs.reshape(outputs.shape[0], classes)


def torch_loss(name: str, outputs: Any, y: Any) -> Any:
    """The loss of [rows, classes] as a tensor: crossEntropy of logits, binaryCrossEntropy of probabilities, or mse."""
    import torch  # type: ignore[import-not-found, unused-ignore]
    from torch.nn import functional  # type: ignore[import-not-found, unused-ignore]

    y = y.long()
    if name in ("", "crossEntropy"):
        return functional.cross_entropy(outputs, y)
    target = (
        functional.one_hot(y, outputs.shape[1]).to(outputs.dtype)
        if outputs.shape[1] > 1
        else y[:, None].to(outputs.dtype)
    )
    if name == "mse":
        return functional.mse_loss(outputs, target)
    if name == "binaryCrossEntropy":
        low, high = float(outputs.detach().min()), float(outputs.detach().max())
        if low < 0 or high > 1:
            raise Refused(
                "user",
                "binaryCrossEntropy needs outputs from 0 to 1, and the model returned %.4g to %.4g. End forward in "
                "torch.sigmoid" % (low, high),
            )
        return functional.binary_cross_entropy(torch.clamp(outputs, 1e-7, 1 - 1e-7), target)
    raise Refused("unsupported", "the loss %s is not known to the Python worker" % name)


def probabilities(outputs: Any, loss: str) -> Any:
    """Outputs of [rows, classes] in NumPy. With crossEntropy they become probabilities, unless they are some."""
    import numpy

    out = numpy.asarray(outputs.detach().float().cpu() if hasattr(outputs, "detach") else outputs, dtype="float32")
    if loss not in ("", "crossEntropy") or are_probabilities(out):
        return out
    shifted = numpy.exp(out - out.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def are_probabilities(outputs: Any) -> bool:
    """Whether all rows are probabilities."""
    return bool(outputs.min() >= 0 and abs(outputs.sum(axis=1) - 1).max() < 1e-3)


def numpy_loss(name: str, outputs: Any, y: Any) -> Tuple[float, int]:
    """The loss of outputs in NumPy, and how many rows are right; logits and probabilities count alike."""
    import numpy

    right = int((outputs.argmax(axis=1) == y).sum())
    rows = numpy.arange(len(y))
    if name in ("", "crossEntropy"):
        chosen = probabilities(outputs, name)[rows, y].astype("float64")
        return float(-numpy.log(numpy.maximum(chosen, 1e-12)).mean()), right
    target = numpy.zeros(outputs.shape)
    target[rows, y] = 1
    if name == "mse":
        return float(((outputs - target) ** 2).mean()), right
    p = numpy.clip(outputs.astype("float64"), 1e-7, 1 - 1e-7)
    return float(-(target * numpy.log(p) + (1 - target) * numpy.log(1 - p)).mean()), right
