"""A module of Lightning."""

import lightning
import torch


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
        self.losses = []

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, number):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self(x), y)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.003)


def train(run):
    import disdel.lightning

    disdel.lightning.fit(run, Net())


def alone(x, y, epochs):
    net = Net()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y)), len(x))
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    lightning.Trainer(accelerator="cpu", devices=1, max_epochs=epochs, **quiet).fit(net, loader)
    return net.losses[-1]
