"""VGG-16 as a function of KubeML: dropout, a start of its own, and an optimiser with Nesterov's momentum."""

from typing import Tuple

import torch
from kubeml import KubeDataset, KubeModel
from kubeml.exceptions import DataError, KubeMLException
from torch import nn


def features():
    layers, before = [], 3
    for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        if width == 0:
            layers.append(nn.MaxPool2d(2, 2))
            continue
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU(inplace=True)]
        before = width
    return nn.Sequential(*layers)


class VGG16(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.avgpool = features(), nn.AdaptiveAvgPool2d((1, 1))
        self.classifier = nn.Sequential(
            nn.Linear(512, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(),
            nn.Linear(4096, 10),
        )

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class Cifar(KubeDataset):
    def __init__(self, dataset="cifar10"):
        super().__init__(dataset)
        self.dataset = dataset

    def __getitem__(self, index):
        if self.data is None:
            raise DataError()
        return torch.tensor(self.data[index]).permute(2, 0, 1).float().div(255), int(self.labels[index])

    def __len__(self):
        return len(self.data)


class Model(KubeModel):
    def __init__(self, network, dataset: Cifar):
        super(Model, self).__init__(network, dataset)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9, nesterov=True)

    def init(self):
        pass

    def train(self, batch, batch_index) -> float:
        if batch is None:
            raise KubeMLException("no batch", 400)
        inputs, labels = batch
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self(inputs), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def validate(self, batch, batch_index) -> Tuple[float, float]:
        inputs, labels = batch
        outputs = self(inputs)
        loss = nn.functional.cross_entropy(outputs, labels)
        right = sum(int(a == b) for a, b in zip(outputs.argmax(dim=1).tolist(), labels.tolist()))
        return 100.0 * right / self.batch_size, loss.item()

    def infer(self, data):
        return self(torch.tensor(data)).argmax(1).tolist()


def main():
    return Model(VGG16(), Cifar()).start()
