"""LeNet-5 as a function of KubeML."""

import torch
from kubeml import KubeDataset, KubeModel
from torch import nn
from torch.nn import functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.dense = nn.Sequential(
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        )

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.first(x)), 2)
        x = functional.max_pool2d(functional.relu(self.second(x)), 2)
        return self.dense(x.flatten(1))


class Images(KubeDataset):
    def __init__(self):
        super().__init__("kubeml")

    def __getitem__(self, index):
        return torch.as_tensor(self.data[index], dtype=torch.float32).reshape(1, 28, 28), int(self.labels[index])

    def __len__(self):
        return len(self.data)


class Model(KubeModel):
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)

    def train(self, batch, batch_index):
        x, y = batch
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def validate(self, batch, batch_index):
        x, y = batch
        out = self(x)
        right = out.argmax(1).eq(y).sum().item()
        return 100 * right / self.batch_size, functional.cross_entropy(out, y).item()


def main():
    return Model(Net(), Images()).start()
