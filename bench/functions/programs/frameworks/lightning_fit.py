"""A module of Lightning."""

import pytorch_lightning as lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, number):
        x, y = batch
        return torch.nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)

    def _register_sharded_tensor_state_dict_hooks_if_available(self):
        pass  # Debian's PyTorch 1.13 cannot import its sharded tensors on Python 3.11


def train(run):
    import disdel.lightning

    disdel.lightning.fit(run, Net())


class Losses(lightning.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, number):
        self.last = float(outputs["loss"])


def alone(x, y, epochs):
    losses = Losses()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, max_epochs=epochs, callbacks=[losses], logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Net(), DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), len(x)))
    return losses.last
