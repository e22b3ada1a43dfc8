"""Lightning's modules in a program with its own loop."""

from __future__ import annotations

import importlib
from typing import Any, Iterator

from ._task import Batch, Run


def fit(run: Run, module: Any, **options: Any) -> None:
    """Trains a ``LightningModule`` by Lightning's ``Trainer`` on the batches of a round.

    :param run: what ``train(run)`` got.
    :param module: the module; its ``training_step`` gets ``(x, y)``.
    :param options: further arguments of the ``Trainer``, such as ``callbacks`` or ``gradient_clip_val``.

    Example::

        def train(run):
            disdel.lightning.fit(run, LitNet())

    One optimiser may be configured. Its learning rate follows the job's schedule besides the module's own scheduler.
    """
    kind = next(k for k in type(module).__mro__ if k.__name__ == "LightningModule")
    library: Any = importlib.import_module(
        "lightning" if kind.__module__.startswith("lightning.") else "pytorch_lightning"
    )

    class Round(library.Callback):  # type: ignore[misc, unused-ignore]
        def on_train_start(self, trainer: Any, module: Any) -> None:
            optimizers = trainer.optimizers
            run.sync(module, optimizers[0] if len(optimizers) == 1 else None)

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, number: int) -> None:
            loss = outputs["loss"] if isinstance(outputs, dict) else outputs
            run.log(loss=loss)

    callbacks = [*options.pop("callbacks", []), Round()]
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = library.Trainer(
        **{"accelerator": "cpu", "devices": 1, "max_epochs": 1, "callbacks": callbacks, **quiet, **options}
    )
    trainer.fit(module, train_dataloaders=_Rows(run))
    run.sync(module)


class _Rows:
    """The batches of a round. The length keeps Lightning from fetching a batch ahead; the batches end before."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __len__(self) -> int:
        return 1 << 30

    def __iter__(self) -> Iterator[Batch]:
        yield from self._run.batches()  # only once a batch is wanted: run.sync comes before
