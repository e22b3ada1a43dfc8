#!/usr/bin/python3
"""Writes a network of networks.py, with first weights, as ONNX of any batch size, for onnx_infer.py.

    onnx_model.py --network lenet5 --input 1x28x28 --classes 10 --out lenet5.onnx
"""

import argparse

import measure


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--network", required=True, choices=measure.NETWORKS)
    p.add_argument("--input", required=True, type=measure.shape, metavar="CxHxW")
    p.add_argument("--classes", required=True, type=measure.positive)
    p.add_argument("--out", required=True)
    a = p.parse_args()
    import torch

    import networks

    torch.manual_seed(1)
    model = torch.nn.Sequential(networks.build(a.network, a.input, a.classes), torch.nn.Softmax(1)).eval()
    torch.onnx.export(model, torch.randn(1, *a.input), a.out, input_names=["x"], output_names=["y"], opset_version=13,
                      dynamic_axes={"x": {0: "rows"}, "y": {0: "rows"}})


if __name__ == "__main__":
    main()
