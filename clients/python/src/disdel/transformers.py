"""Hugging Face's ``Trainer`` in a program with its own loop."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Optional

from ._task import Batch, Run

Inputs = Callable[[Any, Any], Dict[str, Any]]


def fit(run: Run, trainer: Any, inputs: Optional[Inputs] = None) -> None:
    """Trains a model by a ``Trainer`` on the batches of a round.

    :param run: what ``train(run)`` got.
    :param trainer: a ``transformers.Trainer`` without a data set. Its arguments should have ``save_strategy="no"``,
        ``report_to=[]`` and ``use_cpu=True``, and no accumulation of gradients.
    :param inputs: makes the model's named inputs of the rows ``x`` and the classes ``y``. The default is
        ``{"input_ids": x as whole numbers, "labels": y}``.

    Example::

        def train(run):
            model = AutoModelForSequenceClassification.from_config(config)
            arguments = TrainingArguments("out", save_strategy="no", report_to=[], use_cpu=True)
            disdel.transformers.fit(run, Trainer(model, arguments))

    The learning rate follows the job's schedule; that of the arguments is constant.
    """
    from transformers import TrainerCallback  # type: ignore[import-not-found, unused-ignore]

    named, model, step = inputs or _tokens, trainer.model, trainer.training_step
    if trainer.args.gradient_accumulation_steps != 1:
        raise ValueError("gradient_accumulation_steps must be 1: raise training.batchSize in the job file instead")

    def predict(x: Any) -> Any:
        import torch  # type: ignore[import-not-found, unused-ignore]

        given = named(x, torch.zeros(len(x), dtype=torch.long))
        return model(**{name: value for name, value in given.items() if name != "labels"}).logits

    class Begin(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_train_begin(self, *_: Any, optimizer: Any = None, **more: Any) -> None:
            run.sync(model, getattr(optimizer, "optimizer", optimizer), predict=predict)

    def training_step(*given: Any, **more: Any) -> Any:
        loss = step(*given, **more)
        run.log(loss=loss.detach())
        return loss

    trainer.add_callback(Begin())
    trainer.training_step = training_step
    rows = _Rows(run, named, trainer)
    trainer.get_train_dataloader = lambda: rows
    trainer.args.max_steps, trainer.args.lr_scheduler_type = 1 << 30, "constant"
    trainer.train()
    run.sync(model)


def _tokens(x: Any, y: Any) -> Dict[str, Any]:
    return {"input_ids": x.reshape(len(x), -1).long(), "labels": y}


class _Rows:
    """The batches of a round as the trainer's data loader; it has them once."""

    def __init__(self, run: Run, named: Inputs, trainer: Any) -> None:
        self._run, self._named, self._trainer = run, named, trainer
        self._batches: Optional[Iterator[Batch]] = None
        self.dataset = self  # the trainer looks at its length

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        if self._batches is None:
            self._batches = self._run.batches()
            for x, y in self._batches:
                yield self._named(x, y)
        self._trainer.control.should_training_stop = True
