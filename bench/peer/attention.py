#!/usr/bin/python3
"""Computes an attention of six heads of 64 channels forward and back with PyTorch on one core, and prints the
processor time of a step in milliseconds and what the peak memory is above that before the first step, as one JSON line.

    attention.py --positions 2048 --rows 1 --steps 10 [--causal] [--eager]

It takes F.scaled_dot_product_attention where PyTorch has that (2.0), else the definition; --eager: always the definition.
"""

import argparse
import json
import statistics
import time

import measure


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("positions", "rows", "steps"):
        p.add_argument("--" + name, type=measure.positive, required=True)
    for name in ("causal", "eager"):
        p.add_argument("--" + name, action="store_true")
    a = p.parse_args()
    measure.limit_threads(1)
    import torch
    from torch.nn import functional as F

    import sequences

    torch.set_num_threads(1)
    fused = hasattr(F, "scaled_dot_product_attention") and not a.eager
    attend = F.scaled_dot_product_attention if fused else sequences.defined
    # Views, as a projection to queries, keys and values gives them.
    joined = torch.randn(a.rows, a.positions, 3, 6, 64, requires_grad=True)
    slope = torch.randn(a.rows, 6, a.positions, 64)

    def step():
        q, k, v = joined.permute(2, 0, 3, 1, 4)
        joined.grad = None
        attend(q, k, v, is_causal=a.causal).backward(slope)

    warm = torch.randn(1, 1, 8, 8, requires_grad=True)  # what the libraries keep is not the attention's
    attend(warm, warm, warm).sum().backward()
    (torch.randn(256, 256) @ torch.randn(256, 256)).sum()
    held = measure.memory("VmHWM")
    step()
    times = []
    for _ in range(a.steps):
        start = time.process_time()
        step()
        times.append(1000 * (time.process_time() - start))
    print(json.dumps({
        "step_ms": statistics.median(times), "rss_bytes": measure.memory("VmHWM") - held, "torch": torch.__version__,
        "fused": fused,
    }))


if __name__ == "__main__":
    main()
