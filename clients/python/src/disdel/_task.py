"""What users write: a task, or a loop with a run."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional, Tuple


class RoundOver(BaseException):
    """Ends ``train(run)`` where a new round begins. It is no Exception, so that ``except Exception`` lets it pass."""


class Batch(NamedTuple):
    """The rows of one step: ``x, y = batch``."""

    x: Any  #: inputs, [rows, ...], float32
    y: Any  #: classes, [rows], int64


class Task:
    """A training program in parts. Derive a class, and write ``model``; everything else has a default.

    Example::

        class Digits(disdel.Task):
            def model(self):
                return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))

            def loss(self, model, batch):
                x, y = batch
                return torch.nn.functional.cross_entropy(model(x), y)

            def optimizer(self, model):
                return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    Parameters of ``__init__`` are the job file's ``model.python.arguments``.
    """

    epoch: int = 0  #: the epoch that runs, counted from 0
    epochs: int = 0  #: all epochs of the job
    round: int = 0  #: the round that runs; workers average their weights at its end
    rate: float = 0.0  #: the learning rate of this step, for programs without an optimiser of PyTorch

    def model(self) -> Any:
        """The model, made anew: a ``torch.nn.Module``, a dict of NumPy arrays, or an estimator of scikit-learn."""
        raise NotImplementedError("a Task needs a method model(self) that returns the model")

    def loss(self, model: Any, batch: Batch) -> Any:
        """The mean loss of the rows, a tensor with a gradient. The default is the job file's ``training.loss``."""
        raise NotImplementedError

    def optimizer(self, model: Any) -> Any:
        """The optimiser of the model's parameters. The default is the job file's ``training.optimizer``."""
        raise NotImplementedError

    def step(self, model: Any, batch: Batch, optimizer: Any) -> Any:
        """One training step; returns the loss before it. The default calls ``loss``, ``backward`` and the optimiser."""
        raise NotImplementedError

    def metrics(self, model: Any, batch: Batch) -> Mapping[str, float]:
        """Figures of an evaluation. ``accuracy``, from 0 to 1, replaces the share of rows that are right."""
        raise NotImplementedError

    def predict(self, model: Any, x: Any) -> Any:
        """The outputs for rows, [rows, classes]. The default is ``model(x)``."""
        raise NotImplementedError

    def dataset(self, part: str) -> Any:
        """The program's own rows: a list, or an object with ``__len__`` and ``__getitem__``, of pairs (x, y).

        ``disdel dataset add NAME --program FILE`` reads them once, in their order, and stores them. Workers get their
        parts of what was stored, so that a restart sees the same rows.

        :param part: ``train`` or ``test``. None as an answer to ``test`` means that there are no held-out rows.
        """
        raise NotImplementedError

    def schedule(self, epoch: int, epochs: int) -> float:
        """A factor of the learning rate in an epoch, which is counted from 0."""
        return 1.0

    def on_round_end(self, model: Any) -> None:
        """Called at the end of each round, before the workers' weights are averaged."""


def overrides(task: Task, name: str) -> bool:
    """Whether a task has a method of its own."""
    return getattr(type(task), name) is not getattr(Task, name)


class Run:
    """What ``train(run)`` gets. disdel calls ``train`` once for each round; the model has the job's weights after sync.

    Example::

        def train(run):
            model = Net()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            run.sync(model, optimizer)          # the job's weights
            for x, y in run.batches():
                loss = torch.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                run.log(loss=loss)
            run.sync(model)                     # this worker's weights, to be averaged
    """

    def __init__(self, loop: "Loop") -> None:
        self._loop = loop

    epoch: int = 0  #: the epoch that runs, counted from 0
    epochs: int = 0  #: all epochs of the job
    round: int = 0  #: the round that runs
    rate: float = 0.0  #: the learning rate of the job file in this step
    factor: float = 1.0  #: the learning rate over that of the first step: the job's schedule
    batch_size: int = 0  #: rows of a full batch
    input: Tuple[int, ...] = ()  #: the shape of one row: (channels, height, width)
    classes: int = 0  #: of the data set

    def sync(self, model: Any, optimizer: Any = None, *, predict: Optional[Callable[[Any], Any]] = None) -> None:
        """Before the batches: puts the job's weights into the model. After them: hands over this worker's weights.

        :param model: a ``torch.nn.Module``, a dict of NumPy arrays, a Keras model or an estimator of scikit-learn.
        :param optimizer: an optimiser of PyTorch whose state goes on in the next round, and whose learning rate follows
            the job's schedule. Without one, the state begins anew in every round.
        :param predict: what computes the outputs of rows, [rows, classes]; needed for a dict of arrays.
        """
        self._loop.sync(model, optimizer, predict)

    def batches(self) -> Iterator[Batch]:
        """The batches of this worker in this round."""
        return self._loop.batches()

    def log(self, *, loss: Any = None, correct: Any = None, **figures: Any) -> None:
        """Tells the figures of a step.

        :param loss: the mean loss of its rows; a number or a tensor. Every step needs one.
        :param correct: how many of its rows are right.
        :param figures: further figures, which are printed to the log of the action.
        """
        self._loop.log(loss, correct, figures)


class Loop:
    """What stands behind a :class:`Run`; the worker has it."""

    def sync(self, model: Any, optimizer: Any, predict: Optional[Callable[[Any], Any]]) -> None:
        """See :meth:`Run.sync`."""
        raise NotImplementedError

    def batches(self) -> Iterator[Batch]:
        """See :meth:`Run.batches`."""
        raise NotImplementedError

    def log(self, loss: Any, correct: Any, figures: Mapping[str, Any]) -> None:
        """See :meth:`Run.log`."""
        raise NotImplementedError
