"""Lightning's modules in a program with its own loop."""

from __future__ import annotations

import importlib
from typing import Any, Iterator, List, Mapping, Tuple

from ._task import Batch, Run


def fit(run: Run, module: Any, **options: Any) -> None:
    """Trains a ``LightningModule`` by Lightning's ``Trainer`` on the batches of a round.

    :param run: what ``train(run)`` got.
    :param module: the module; its ``training_step`` gets ``(x, y)``.
    :param options: further arguments of the ``Trainer``, such as ``callbacks`` or ``gradient_clip_val``.

    Example::

        def train(run):
            disdel.lightning.fit(run, LitNet())

    What the module logs goes to the log of the action. ``validation_step`` is not called: ``evaluate`` and the job's
    validation use ``forward`` and the job's loss.

    :raises ValueError: where the module optimises manually, has several optimisers or a scheduler of its own, or the
        options accumulate gradients.
    """
    _check(module, options)
    kind = next(k for k in type(module).__mro__ if k.__name__ == "LightningModule")
    library: Any = importlib.import_module(
        "lightning" if kind.__module__.startswith("lightning.") else "pytorch_lightning"
    )

    class Round(library.Callback):  # type: ignore[misc, unused-ignore]
        def on_train_start(self, trainer: Any, module: Any) -> None:
            run.sync(module, trainer.optimizers[0])

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, number: int) -> None:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            if loss is None:
                raise ValueError("training_step returned None. Return the loss of each batch")
            run.log(loss=loss)
            for name, value in trainer.callback_metrics.items():  # run.log may have a parameter of this name
                print("step: %s %.6g" % (name, float(value)))

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


def _check(module: Any, options: Mapping[str, Any]) -> None:
    """Refuses what a round of batches cannot do. The optimisers are checked once Lightning asks for them."""
    name, configure = type(module).__name__, module.configure_optimizers
    if not module.automatic_optimization:
        raise ValueError(
            "%s has automatic_optimization = False: disdel.lightning.fit would not know its optimiser. Leave it True, "
            "or write the loop in train(run) with run.sync and run.batches" % name
        )
    if options.get("accumulate_grad_batches", 1) != 1:
        raise ValueError("accumulate_grad_batches must be 1: raise training.batchSize in the job file instead")

    def configured() -> Any:
        made = configure()
        optimizers, schedulers = _parts(made)
        if len(optimizers) != 1:
            raise ValueError(
                "configure_optimizers of %s returns %s optimisers. Return one that trains all parameters; it may have "
                "several param_groups" % (name, len(optimizers) or "no")
            )
        if schedulers:
            raise ValueError(
                "configure_optimizers of %s returns the scheduler %s, which would begin anew in each round. Return "
                "only the optimiser, and set training.schedule in the job file" % (name, _scheduler(schedulers[0]))
            )
        return made

    module.configure_optimizers = configured


def _parts(made: Any) -> Tuple[List[Any], List[Any]]:
    """The optimisers and the schedulers of what ``configure_optimizers`` returned, in any of Lightning's forms."""
    if isinstance(made, dict):
        return [made["optimizer"]], [made["lr_scheduler"]] if made.get("lr_scheduler") else []
    if not isinstance(made, (list, tuple)):
        return [] if made is None else [made], []
    if len(made) == 2 and all(isinstance(part, (list, tuple)) for part in made):
        return list(made[0]), list(made[1])
    several = [_parts(part) for part in made]
    return [o for optimizers, _ in several for o in optimizers], [s for _, schedulers in several for s in schedulers]


def _scheduler(scheduler: Any) -> str:
    return type(scheduler["scheduler"] if isinstance(scheduler, dict) else scheduler).__name__


class _Rows:
    """The batches of a round. The length keeps Lightning from fetching a batch ahead; the batches end before."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __len__(self) -> int:
        return 1 << 30

    def __iter__(self) -> Iterator[Batch]:
        yield from self._run.batches()  # only once a batch is wanted: run.sync comes before
