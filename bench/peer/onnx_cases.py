"""Copies ONNX's own cases that have one input and one output of float32 to FOLDER/NAME.onnx and FOLDER/NAME.values, which
has the rows and the answer as float32. Prints NAME and the number of rows."""
import glob
import os
import shutil
import sys

import onnx
from onnx import numpy_helper

folder = sys.argv[1]
cases = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")


def values(file):
    tensor = onnx.TensorProto()
    with open(file, "rb") as f:
        tensor.ParseFromString(f.read())
    return numpy_helper.to_array(tensor)


for model in sorted(glob.glob(cases + "/*/*/model.onnx")):
    source = os.path.dirname(model)
    graph = onnx.load(model).graph
    fixed = {a.name for a in graph.initializer}
    inputs = [v for v in graph.input if v.name not in fixed]
    ends = inputs + list(graph.output)
    if len(inputs) != 1 or len(graph.output) != 1 or any(v.type.tensor_type.elem_type != 1 for v in ends):
        continue
    x, y = (values(f"{source}/test_data_set_0/{part}_0.pb") for part in ("input", "output"))
    if x.ndim not in (2, 4):
        continue
    name = os.path.basename(source)
    shutil.copy(model, f"{folder}/{name}.onnx")
    with open(f"{folder}/{name}.values", "wb") as f:
        f.write(x.tobytes() + y.tobytes())
    print(name, len(x))
