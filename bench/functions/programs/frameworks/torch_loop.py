"""A loop of PyTorch."""

import torch
from torch import nn


def made():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(run):
    model, optimizer = made()
    run.sync(model, optimizer)
    for batch in run.batches():
        run.log(loss=step(model, optimizer, *batch))
    run.sync(model)


def step(model, optimizer, x, y):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def alone(x, y, epochs):
    model, optimizer = made()
    for _ in range(epochs):
        loss = step(model, optimizer, torch.tensor(x), torch.tensor(y))
    return loss.item()
