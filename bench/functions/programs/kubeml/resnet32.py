"""ResNet-32 for small pictures as a function of KubeML: shortcuts have no weights, and the rate falls by steps."""

import numpy
import torch
from kubeml import KubeDataset, KubeModel
from torch import nn
from torch.nn import functional


class Shortcut(nn.Module):
    def __init__(self, more):
        super().__init__()
        self.more = more

    def forward(self, x):
        return functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.more // 2, self.more // 2))


class Block(nn.Module):
    def __init__(self, before, width):
        super().__init__()
        stride = 1 if before == width else 2
        self.conv1, self.bn1 = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.shortcut = Shortcut(width - before) if stride == 2 else nn.Sequential()

    def forward(self, x):
        out = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


class ResNet32(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        widths = [16] * 6 + [32] * 5 + [64] * 5
        self.blocks = nn.Sequential(*[Block(a, b) for a, b in zip(widths, widths[1:])])
        self.linear = nn.Linear(64, 10)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x):
        x = self.blocks(functional.relu(self.bn(self.conv(x))))
        return self.linear(functional.avg_pool2d(x, x.size()[3]).view(x.size(0), -1))


class Cifar(KubeDataset):
    def __init__(self):
        super().__init__("cifar10")
        self.mean, self.deviation = numpy.array([0.49, 0.48, 0.45]), numpy.array([0.25, 0.24, 0.26])

    def __getitem__(self, index):
        row, label = self.data[index], self.labels[index]
        if self.is_training():
            top, left = numpy.random.randint(0, 9, 2)
            row = numpy.pad(row, ((4, 4), (4, 4), (0, 0)))[top:top + 32, left:left + 32]
        row = ((row / 255 - self.mean) / self.deviation).transpose(2, 0, 1)
        return torch.tensor(row, dtype=torch.float32), torch.tensor(label, dtype=torch.int64)

    def __len__(self):
        return len(self.data)


class Model(KubeModel):
    def __init__(self, network, dataset):
        super().__init__(network, dataset, gpu=True)
        self.criterion = nn.CrossEntropyLoss()

    def configure_optimizers(self):
        self.lr *= 0.1 ** sum(self.epoch >= e for e in (15, 20))
        self.logger.debug("learning rate %f", self.lr)
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9, weight_decay=1e-4)

    def train(self, batch, batch_index) -> float:
        x, y = batch
        self.optimizer.zero_grad()
        loss = self.criterion(self(x), y)
        loss.backward()
        self.optimizer.step()
        return float(loss)

    def validate(self, batch, batch_index):
        x, y = batch
        out = self(x)
        _, said = torch.max(out.data, 1)
        return said.eq(y).sum().item() * 100 / self.batch_size, self.criterion(out, y).item()


def main():
    network = ResNet32()
    return Model(network, Cifar()).start()
