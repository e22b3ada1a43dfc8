"""A step of PyTorch."""

import disdel
import torch
from torch import nn


class Net(disdel.Task):
    def model(self):
        torch.manual_seed(1)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def loss(self, model, batch):
        x, y = batch
        return nn.functional.cross_entropy(model(x), y)

    def optimizer(self, model):
        return torch.optim.Adam(model.parameters(), lr=0.003)


def alone(x, y, epochs):
    task = Net()
    model = task.model()
    optimizer = task.optimizer(model)
    for _ in range(epochs):
        loss = task.loss(model, (torch.tensor(x), torch.tensor(y)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
