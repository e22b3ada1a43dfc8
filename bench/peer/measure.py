"""What torch_train.py and tf_train.py share: the command line, the clock, the memory, the JSON line."""

import argparse
import json
import math
import os
import statistics
import time

GROUPS = 5
NETWORKS = ("lenet5", "resnet18", "resnet50", "resnet152", "resnet20-cifar", "vgg16", "vgg16-cifar", "mobilenetv1",
            "inceptionv3", "gpt-small", "bert-tiny", "vit-tiny-cifar", "lstm")


def shape(text):
    channels, height, width = (int(n) for n in text.split("x"))
    return channels, height, width


def positive(text):
    n = int(text)
    if n < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return n


def arguments(description):
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--network", required=True, choices=NETWORKS)
    p.add_argument("--input", required=True, type=shape, metavar="CxHxW")
    p.add_argument("--classes", required=True, type=positive)
    p.add_argument("--batch", required=True, type=positive)
    p.add_argument("--steps", required=True, type=positive, help=f"timed steps, {GROUPS} or more")
    p.add_argument("--warmup", required=True, type=positive, help="steps before the clock starts, 1 or more")
    p.add_argument("--threads", type=positive, default=1)
    p.add_argument("--optimizer", choices=("sgd", "adam"), default="sgd")
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--compile", action="store_true", help="PyTorch 2 alone: by torch.compile, which needs a C++ compiler")
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: PyTorch on a GPU, in float32")
    p.add_argument("--precision", choices=("float32", "tf32", "bf16"), default="float32",
                   help="bf16: under PyTorch's autocast; tf32: on a GPU")
    p.add_argument("--rss", action="store_true", help="also print the memory held before the network is built")
    a = p.parse_args()
    if a.steps < GROUPS:
        p.error(f"--steps must be {GROUPS} or more: samples_per_s is a median over {GROUPS} groups")
    limit_threads(a.threads)
    return a


def limit_threads(threads):
    """Runs before torch or tensorflow is imported: the maths libraries read these once, when they are loaded."""
    for name in ("OMP", "OPENBLAS", "MKL", "BLIS"):
        os.environ[name + "_NUM_THREADS"] = str(threads)


def process_age():
    """Seconds since the kernel started this process, so that the interpreter and the imports count. Ticks of 10 ms."""
    with open("/proc/self/stat") as f:
        started = int(f.read().rpartition(")")[2].split()[19])  # field 22, counted behind the name, which may hold spaces
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def memory(field):
    """VmRSS (held now) or VmHWM (the peak) in bytes."""
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(field)


def blas():
    """The BLAS loaded. Debian's default is the reference one, which makes dense layers many times slower."""
    with open("/proc/self/maps") as f:
        paths = {line.split()[-1] for line in f if ".so" in line}
    return sorted(p for p in paths if any(lib in os.path.basename(p) for lib in ("blas", "libmkl_", "libblis")))


def run(a, step, finish):
    """Warms up and times. step runs one step, finish waits for it and returns its loss."""
    step()
    loss = finish()
    first = process_age()
    for _ in range(a.warmup - 1):
        step()
    loss = finish()
    rates = []
    for group in range(GROUPS):
        steps = a.steps // GROUPS + (group < a.steps % GROUPS)
        start = time.perf_counter()
        for _ in range(steps):
            step()
        loss = finish()
        rates.append(steps * a.batch / (time.perf_counter() - start))
    return {
        "network": a.network,
        "batch": a.batch,
        "samples_per_s": round(statistics.median(rates), 3),
        "peak_rss_bytes": memory("VmHWM"),
        "first_step_ms": round(first * 1000),
        "input": "x".join(str(n) for n in a.input),
        "optimizer": a.optimizer,
        "threads": a.threads,
        "loss": loss if math.isfinite(loss) else None,  # JSON has no NaN
        "blas": blas(),
    }


def show(result):
    print(json.dumps(result), flush=True)
