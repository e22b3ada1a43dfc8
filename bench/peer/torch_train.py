#!/usr/bin/python3
"""Trains a network of networks.py with PyTorch on random data, on CPUs or a GPU, and prints one JSON line of figures.

    torch_train.py --network lenet5 --input 1x28x28 --classes 10 --batch 64 --steps 100 --warmup 10
"""

import contextlib

import measure


def optimizer(torch, name, parameters):
    """The fastest variant on CPUs: fused where this PyTorch has it (2.4 on), else as measured on 1.13: the lists of
    foreach win for SGD, the plain loop for Adam, whose lists leave the cache.
    """
    make, options = {"sgd": (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
                     "adam": (torch.optim.Adam, {"lr": 0.001})}[name]
    parameters = list(parameters)  # tried twice, and a generator is empty the second time
    try:
        return make(parameters, **options, fused=True)
    except (TypeError, RuntimeError):  # no such option, or it is for GPUs only
        return make(parameters, **options, foreach=name == "sgd")


def main():
    a = measure.arguments(__doc__)
    import torch  # behind arguments, which says how many threads its libraries may start

    import networks
    import sequences

    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    before = measure.memory("VmRSS")
    layout = torch.channels_last if a.channels_last else torch.contiguous_format
    if a.device == "cuda":  # float32 is float32, and not TF32 in convolutions, unless that is asked for
        torch.backends.cudnn.allow_tf32 = a.precision == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = a.precision == "tf32"
        torch.backends.cudnn.benchmark = True
    source = sequences if a.network in sequences.NETWORKS else networks
    model = source.build(a.network, a.input, a.classes).to(a.device, memory_format=layout).train()
    if a.compile:
        model = torch.compile(model)
    opt = optimizer(torch, a.optimizer, model.parameters())
    if source is sequences:
        x, y = sequences.batch(a.network, a.batch, a.input, a.classes)

        def criterion(outputs, targets):
            return sequences.loss_of(a.network, outputs, targets)
    else:
        x = torch.randn(a.batch, *a.input).contiguous(memory_format=layout).to(a.device)
        y = torch.randint(a.classes, (a.batch,)).to(a.device)
        criterion = torch.nn.CrossEntropyLoss()
    loss = None
    cast = torch.autocast(a.device, dtype=torch.bfloat16) if a.precision == "bf16" else contextlib.nullcontext()

    def step():
        nonlocal loss
        opt.zero_grad(set_to_none=True)
        with cast:
            loss = criterion(model(x), y)
        loss.backward()
        opt.step()

    result = measure.run(a, step, lambda: loss.item())
    result["torch"] = torch.__version__
    result["parameters"] = sum(p.numel() for p in model.parameters())
    result["channels_last"] = a.channels_last
    result["compiled"] = a.compile
    result["device"] = a.device
    if a.rss:
        result["rss_before_network_bytes"] = before
    measure.show(result)


if __name__ == "__main__":
    main()
