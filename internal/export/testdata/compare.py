"""Run every NAME.onnx of a folder on NAME.input.npy and print by how much NAME.output.npy is off at most."""

import pathlib
import sys

import numpy
import onnxruntime

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (given,), (wanted,) = session.get_inputs(), session.get_outputs()
    assert (given.name, wanted.name) == ("input", "output"), (given, wanted)
    rows = numpy.load(path.with_suffix(".input.npy"))
    want = numpy.load(path.with_suffix(".output.npy"))
    (got,) = session.run(None, {"input": rows})
    assert got.shape == want.shape, (got.shape, want.shape)
    print(path.stem, float(numpy.abs(got - want).max()))
