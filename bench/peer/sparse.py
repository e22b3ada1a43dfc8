#!/usr/bin/python3
"""Measures what this Python has of PyTorch, scikit-learn and LightFM on sparse rows, on one thread, and prints lines

    peer NAME ROWS_PER_S        rows a second of training: pmf_BATCH, logistic_BATCH
    peer torch_to_loss SECONDS  with --ratings FILE --target LOSS: PyTorch's time to that held-out loss, on --threads
                                threads, by tables with sparse gradients; torch_dense_to_loss by dense ones

    sparse.py [--ratings .cache/movielens/ml-100k.inter --target 0.9 --threads 2]
"""

import argparse
import os
import random
import time

USERS, ITEMS, RANK, RATINGS = 943, 1682, 20, 90_000
COLUMNS, ENTRIES, CLICKS = 100_000, 39, 60_000
SECONDS = 3.0


def rate(step, rows):
    """Rows a second of step, which trains so many and is called until the time is over; the first call is not counted."""
    step()
    begun, done = time.perf_counter(), 0
    while time.perf_counter() - begun < SECONDS:
        step()
        done += rows
    return done / (time.perf_counter() - begun)


def say(name, value):
    print(f"peer {name} {value:.1f}", flush=True)


def factors(torch, sparse, offset):
    """A factorisation with biases, as Embedding tables of one column more."""
    class Factors(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.users = torch.nn.Embedding(USERS, RANK + 1, sparse=sparse)
            self.items = torch.nn.Embedding(ITEMS, RANK + 1, sparse=sparse)
            for table in (self.users, self.items):
                torch.nn.init.normal_(table.weight, std=0.1)

        def forward(self, user, item):
            u, v = self.users(user), self.items(item)
            return offset + u[:, -1] + v[:, -1] + (u[:, :-1] * v[:, :-1]).sum(1)

    return Factors()


def trainer(torch, sparse, offset, learning_rate):
    model = factors(torch, sparse, offset)
    opt = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.8)

    def step(user, item, rating):
        opt.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(user, item), rating)
        loss.backward()
        opt.step()

    return model, step


def torch_pmf(torch):
    for batch in (250, 6250):
        best = 0.0
        for sparse in (False, True):  # tables with dense gradients may be faster where they are small
            _, step = trainer(torch, sparse, 3.5, 0.4)
            rows = [(torch.randint(USERS, (batch,)), torch.randint(ITEMS, (batch,)), torch.randn(batch)) for _ in range(20)]
            turn = iter(range(10**9))
            best = max(best, rate(lambda: step(*rows[next(turn) % len(rows)]), batch))
        say(f"pmf_{batch}", best)


def torch_to_loss(torch, a):
    torch.set_num_threads(a.threads)
    with open(a.ratings, encoding="utf-8") as f:
        next(f)
        rows = [line.split("\t")[:3] for line in f]
    users, items = {}, {}
    data = [(users.setdefault(u, len(users)), items.setdefault(i, len(items)), float(r)) for u, i, r in rows]
    random.Random(1).shuffle(data)
    held, data = data[:len(data) // 10], data[len(data) // 10:]
    column = lambda rows, k, kind: torch.tensor([r[k] for r in rows], dtype=kind)
    test = [column(held, k, kind) for k, kind in ((0, torch.long), (1, torch.long), (2, torch.float32))]
    train = [column(data, k, kind) for k, kind in ((0, torch.long), (1, torch.long), (2, torch.float32))]
    for name, sparse in (("torch_to_loss", True), ("torch_dense_to_loss", False)):
        to_loss(torch, a, name, sparse, test, train)


def to_loss(torch, a, name, sparse, test, train):
    model, step = trainer(torch, sparse, train[2].mean().item(), a.rate)
    begun = time.perf_counter()
    while time.perf_counter() - begun < 200:
        order = torch.randperm(len(train[0]))
        for at in range(0, len(order) - a.batch + 1, a.batch):
            rows = order[at:at + a.batch]
            step(*(c[rows] for c in train))
        with torch.no_grad():
            loss = torch.nn.functional.mse_loss(model(test[0], test[1]), test[2]).item()
        if loss <= a.target:
            say(name, time.perf_counter() - begun)
            return


def sklearn_logistic(linear_model, numpy, scipy):
    index = numpy.random.randint(COLUMNS, size=CLICKS * ENTRIES)
    start = numpy.arange(0, CLICKS * ENTRIES + 1, ENTRIES)
    x = scipy.csr_matrix((numpy.ones(CLICKS * ENTRIES), index, start), shape=(CLICKS, COLUMNS))
    y = numpy.random.randint(2, size=CLICKS)
    for batch in (125, 6250):
        model, parts = linear_model.SGDClassifier(loss="log_loss"), [(x[at:at + batch], y[at:at + batch])
                                                                    for at in range(0, 6250 * 4, batch)]
        turn = iter(range(10**9))

        def step():
            rows, targets = parts[next(turn) % len(parts)]
            model.partial_fit(rows, targets, classes=(0, 1))

        say(f"logistic_{batch}", rate(step, batch))


def lightfm_pmf(lightfm, numpy, scipy):
    ratings = scipy.coo_matrix((numpy.random.choice([-1.0, 1.0], RATINGS),
                                (numpy.random.randint(USERS, size=RATINGS), numpy.random.randint(ITEMS, size=RATINGS))),
                               shape=(USERS, ITEMS), dtype=numpy.float32)
    model = lightfm.LightFM(no_components=RANK, loss="logistic")
    say("pmf_1", rate(lambda: model.fit_partial(ratings, num_threads=1), RATINGS))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ratings")
    p.add_argument("--target", type=float)
    p.add_argument("--batch", type=int, default=1000)
    p.add_argument("--rate", type=float, default=1.6)
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    for name in ("OMP", "OPENBLAS", "MKL", "BLIS"):  # the libraries read it once, when they are loaded
        os.environ[name + "_NUM_THREADS"] = str(a.threads)
    try:
        import torch
        torch.set_num_threads(1)
        torch.manual_seed(1)
        torch_to_loss(torch, a) if a.ratings else torch_pmf(torch)
    except ImportError:
        pass
    if a.ratings:
        return
    try:
        import numpy
        import scipy.sparse
        from sklearn import linear_model
        sklearn_logistic(linear_model, numpy, scipy.sparse)
    except ImportError:
        pass
    try:
        import lightfm
        lightfm_pmf(lightfm, numpy, scipy.sparse)
    except (ImportError, NameError):
        pass


if __name__ == "__main__":
    main()
