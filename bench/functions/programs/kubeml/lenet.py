"""LeNet-5 as a function of KubeML: the data set makes tensors of its rows itself."""

import logging

import torch
from kubeml import KubeDataset, KubeModel
from torch import nn
from torch.nn import functional


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.dense = nn.Sequential(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.first(x)), 2)
        x = functional.max_pool2d(functional.relu(self.second(x)), 2)
        return self.dense(torch.flatten(x, 1))


class Digits(KubeDataset):
    def __init__(self):
        super().__init__("digits")

    def __getitem__(self, index):
        row = torch.from_numpy(self.data[index]).float().unsqueeze(0)
        if row.max() > 1:
            row = row / 255
        return (row - 0.13) / 0.31, self.labels[index].astype("int64")

    def __len__(self):
        return len(self.data)


class Model(KubeModel):
    def __init__(self, network, dataset):
        super().__init__(network, dataset)

    def init(self):
        def normal(module):
            if isinstance(module, nn.Linear):
                nn.init.xavier_normal_(module.weight)

        self.apply(normal)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)

    def train(self, batch, batch_index):
        x, y = batch
        x, y = x.to(self.device), y.to(self.device)
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self(x), y)
        loss.backward()
        self.optimizer.step()
        if batch_index % 10 == 0:
            logging.info(f"batch {batch_index}, loss {loss.item():.3f}")
        return loss.item()

    def validate(self, batch, batch_index):
        x, y = batch
        out = self(x.to(self.device))
        right = out.argmax(1).eq(y).sum().item()
        return right * 100 / self.batch_size, functional.cross_entropy(out, y).item()

    def infer(self, data):
        return self(torch.as_tensor(data)).argmax(1)


def main():
    return Model(LeNet(), Digits()).start()
