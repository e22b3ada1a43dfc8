"""A small network for images, in PyTorch. Change it as you like.

disdel submit job.yaml trains it: two copies at once, each on its own rows, with the mean of their weights after every
epoch. Loss, optimiser and data are in the job file.
"""

import torch
from torch import nn


class Net(nn.Module):
    """Two convolutions and a dense layer, for images of any size."""

    def __init__(self, channels: int = 1, classes: int = 10, width: int = 16) -> None:
        # The arguments are in the job file: model.python.arguments.
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(channels, width, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),  # 4 x 4 values a filter, however large the images are
        )
        self.scores = nn.Linear(2 * width * 4 * 4, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        # images is [rows, channels, height, width]. The answer is one score for each class, without softmax.
        return self.scores(self.features(images).flatten(1))
