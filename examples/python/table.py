"""A small network for tables, in PyTorch. Change it as you like.

disdel submit job.yaml trains it: two copies at once, each on its own rows, with the mean of their weights after every
epoch. Loss, optimiser and data are in the job file.
"""

import torch
from torch import nn


class Net(nn.Module):
    """Two dense layers for the columns of a table."""

    def __init__(self, columns: int, classes: int, width: int = 64) -> None:
        # The arguments are in the job file: model.python.arguments.
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),  # a row is [1, 1, columns]
            nn.Linear(columns, width),
            nn.ReLU(),
            nn.Linear(width, classes),
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        # The answer is one score for each class, without softmax.
        return self.layers(rows)
