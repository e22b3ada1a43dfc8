"""A program's network with trained weights, as a file of ONNX that PyTorch writes."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, Dict, Mapping

from ._arrays import arrays_of, is_torch
from ._losses import are_probabilities, probabilities
from ._session import evaluating
from ._trial import Trial
from ._weights import Weights, read_safetensors
from .programs import Refused

_OPSET = 13


def write(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Writes the network of a program to the file ``onnx`` of the request, with the weights of the file ``weights``.

    The graph's input is ``input``, [rows, ...]. Its output is ``output``, [rows, classes]: what ``infer`` answers.

    :returns: ``opset``, the version of the operators.
    :raises Refused: for a model that is none of PyTorch, weights of other arrays, and operators that the exporter of
        PyTorch does not write.
    """
    tried = Trial(request)
    tried.make()
    session = tried.session
    if not is_torch(session.model):
        raise Refused(
            "export",
            "its model is a %s, and only PyTorch writes programs as ONNX" % type(session.model).__name__,
        )
    session.batch = 2
    with evaluating(session.model):  # arrays may be made by the first forward
        tried.form.predict(session.noise(2).x)
    _fill(session.model, read_safetensors(request["weights"]))
    with evaluating(session.model):
        _export(tried, request["onnx"])
    return {"opset": _OPSET}


def _fill(model: Any, weights: Weights) -> None:
    import torch  # type: ignore[import-not-found, unused-ignore]

    values, listed = weights.torch(), arrays_of(model)
    have = {name: value.numel() for name, value in values.items()}
    want = {a.name: a.read().numel() for a in listed}
    differ = sorted(name for name in {**have, **want} if have.get(name) != want.get(name))
    if differ:
        words = "its model has not the arrays of the trained weights, as %s shows. A model must have the same arrays "
        raise Refused("export", (words + "each time it is made") % differ[0])
    with torch.no_grad():
        for array in listed:
            array.read().copy_(values[array.name].reshape(array.shape))


def _export(tried: Trial, file: str) -> None:
    import torch

    session, predict = tried.session, tried.form.predict
    x = session.noise(2).x
    answers = predict(x)
    softmax = session.loss in ("", "crossEntropy") and not are_probabilities(probabilities(answers, "mse"))

    class Answers(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.model = session.model

        def forward(self, x: Any) -> Any:
            outputs = predict(x)
            return torch.softmax(outputs, 1) if softmax else outputs

    options = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    names = {"input_names": ["input"], "output_names": ["output"]}
    rows = {"dynamic_axes": {"input": {0: "rows"}, "output": {0: "rows"}}}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # checks of shapes do not depend on the values
            torch.onnx.export(Answers().eval(), (x,), file, opset_version=_OPSET, **names, **rows, **options)
    except (RuntimeError, NotImplementedError) as error:  # UnsupportedOperatorError, and what tracing cannot follow
        if "onnx" not in type(error).__module__ and "ONNX" not in str(error) and "onnx" not in str(error):
            raise
        why = str(error).split("\n")[0]
        raise Refused("export", "PyTorch %s cannot write it: %s" % (torch.__version__, why)) from error
