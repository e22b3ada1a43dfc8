"""ResNet-34 as a function of KubeML: it asks for a GPU, and changes its learning rate by the epoch."""

import torch
from kubeml import KubeDataset, KubeModel
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.relu, self.downsample = nn.ReLU(inplace=True), None
        if stride != 1 or before != width:
            self.downsample = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        same = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)) + same)


class ResNet34(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        blocks, before = [], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                blocks.append(Block(before, width, stride if i == 0 else 1))
                before = width
        self.layers = nn.Sequential(*blocks)
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(512, 1000)  # of ImageNet, and there are 10 classes

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(torch.flatten(self.pool(self.layers(x)), 1))


class Cifar(KubeDataset):
    def __init__(self):
        super().__init__("cifar10")

    def __getitem__(self, index):
        row = torch.from_numpy(self.data[index]).permute(2, 0, 1).float() / 255
        if self.is_training() and torch.rand(1).item() < 0.5:
            row = row.flip(2)
        return row, self.labels[index].astype("int64")

    def __len__(self):
        return len(self.data)


class Model(KubeModel):
    def __init__(self, network, dataset):
        super().__init__(network, dataset, gpu=True)

    def configure_optimizers(self):
        if self.epoch >= 25:
            self.lr *= 0.1
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9, weight_decay=1e-4)

    def train(self, batch, batch_index):
        criterion = nn.CrossEntropyLoss()
        x, y = batch
        self.optimizer.zero_grad()
        out = self(x)
        loss = criterion(out, y)
        loss.backward()
        self.optimizer.step()
        if batch_index % 30 == 0:
            self.logger.info(f"index {batch_index}, error: {loss.item()}")
        return loss.item()

    def validate(self, batch, batch_index):
        criterion = nn.CrossEntropyLoss()
        x, y = batch
        out = self(x)
        loss = criterion(out, y)
        _, predicted = torch.max(out.data, 1)
        return 100 * predicted.eq(y).sum().item() / self.batch_size, loss.item()


def main():
    return Model(ResNet34(), Cifar()).start()
