#!/usr/bin/python3
"""Predicts with an ONNX file by ONNX Runtime, on one core, and prints one JSON line of figures.

    onnx_infer.py --model lenet5.onnx --network lenet5 --input 1x28x28 --classes 10 --batch 1 --steps 1000 --warmup 20
"""

import argparse
import json
import statistics
import time

import measure


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True)
    p.add_argument("--network", required=True)
    p.add_argument("--input", required=True, type=measure.shape, metavar="CxHxW")
    p.add_argument("--classes", required=True, type=measure.positive)
    p.add_argument("--batch", required=True, type=measure.positive)
    p.add_argument("--steps", required=True, type=measure.positive)
    p.add_argument("--warmup", required=True, type=measure.positive)
    a = p.parse_args()
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(a.model, options, providers=["CPUExecutionProvider"])
    x = {"x": numpy.random.default_rng(1).standard_normal((a.batch, *a.input), dtype=numpy.float32)}
    for _ in range(a.warmup):
        session.run(None, x)
    rates = []
    for _ in range(measure.GROUPS):
        n = max(1, a.steps // measure.GROUPS)
        start = time.perf_counter()
        for _ in range(n):
            session.run(None, x)
        rates.append(n * a.batch / (time.perf_counter() - start))
    print(json.dumps({"network": a.network, "batch": a.batch, "samples_per_s": statistics.median(rates),
                      "onnxruntime": onnxruntime.__version__}))


if __name__ == "__main__":
    main()
