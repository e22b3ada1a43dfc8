"""Networks of five kinds, whose sizes the benchmark draws."""

import torch
from torch import nn


def convolutions(width: int, depth: int) -> nn.Module:
    layers, before = [], 1
    for i in range(depth):
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def dense(width: int, depth: int) -> nn.Module:
    layers, before = [nn.Flatten()], 28 * 28
    for _ in range(depth):
        layers += [nn.Linear(before, width), nn.ReLU(), nn.Dropout(0.1)]
        before = width
    return nn.Sequential(*layers, nn.Linear(width, 10))


class Encoder(nn.Module):
    """Takes the rows of an image as a sequence."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.embed = nn.Linear(28, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embed(x.squeeze(1))).mean(1))


class Recurrent(nn.Module):
    """Takes the rows of an image as a sequence."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(28, width, depth, batch_first=True)
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x.squeeze(1))[0][:, -1])


class Branching(nn.Module):
    """Goes by the number of rows, and repeats a cell."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(28, width)
        self.wide = nn.Linear(width, 4 * width)
        self.head = nn.Linear(width, 10)
        self.depth = depth

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = x.new_zeros(x.shape[0], self.head.in_features)
        for i in range(4 * self.depth):
            state = self.cell(x[:, 0, i % 28], state)
        if x.shape[0] > 64:
            state = self.wide(state).relu().unflatten(1, (4, -1)).mean(1)
        return self.head(state)


class Net(nn.Module):
    def __init__(self, kind: str, width: int, depth: int) -> None:
        super().__init__()
        made = {
            "convolutions": convolutions, "dense": dense, "encoder": Encoder, "recurrent": Recurrent, "branching": Branching,
        }
        self.net = made[kind](width, depth)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)
