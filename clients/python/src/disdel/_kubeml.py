"""KubeML's own interface: ``from kubeml import KubeModel, KubeDataset`` works inside an action, unchanged.

The runtime brings the rows and averages the weights. Of KubeML's Redis, MongoDB and web server nothing is needed.
"""

from __future__ import annotations

import inspect
import logging
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

from ._forms import Answer, Message, ModuleForm, finite, probable
from ._losses import as_rows, outputs_of
from ._optimizers import Moments
from ._session import Session, seed
from ._task import Batch
from .programs import Refused

_started: List["KubeModel"] = []  # those whose start() was called; the newest is the program's


class KubeMLException(Exception):
    """An error with a status of HTTP, as KubeML has it."""

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(message)
        self.message, self.status_code = message, status_code

    def to_dict(self) -> Dict[str, Any]:
        """The error as KubeML's answers have it."""
        return {"error": self.message, "code": self.status_code}


def _fault(name: str, message: str, status: int) -> Type[KubeMLException]:
    def init(self: KubeMLException, given: str = message) -> None:
        KubeMLException.__init__(self, given, status)

    return type(name, (KubeMLException,), {"__init__": init, "__module__": "kubeml.exceptions"})


class Args:
    """The arguments of an invocation, as KubeML's functions have them."""

    def __init__(self) -> None:
        self._job_id, self._N, self._K, self._task, self._func_id = "disdel", 1, -1, "train", 0
        self.lr, self.batch_size, self.epoch = 0.0, 0, 0


class KubeModel:
    """KubeML's model: a network, a data set and methods for their steps.

    :param network: a ``torch.nn.Module``.
    :param dataset: a :class:`KubeDataset`.
    :param gpu: there is none in an action; the model computes on the processor.
    """

    __module__ = "kubeml"

    def __init__(self, network: Any, dataset: "KubeDataset", gpu: bool = False) -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]

        self._network, self._dataset = network, dataset
        self.args = Args()
        self.logger = logging.getLogger("kubeml")
        self.platform, self.device = "cpu", torch.device("cpu")
        self.task: str = "train"
        self.lr: Any = None
        self.batch_size: Any = None
        self.epoch: Any = None
        self.optimizer: Any = None
        if gpu:
            print("KubeModel(gpu=True): the action has no GPU, and computes on the processor", file=sys.stderr)

    def start(self) -> Dict[str, Any]:
        """Where KubeML begins an invocation. disdel only notes the model."""
        _started.append(self)
        return {}

    def __call__(self, *inputs: Any) -> Any:
        return self._network(*inputs)

    def parameters(self) -> Any:
        """The parameters of the network."""
        return self._network.parameters()

    def apply(self, function: Callable[[Any], Any]) -> "KubeModel":
        """Applies a function to all modules of the network."""
        self._network.apply(function)
        return self

    def configure_optimizers(self) -> Any:
        """The optimiser; called at the beginning of each round."""
        raise NotImplementedError

    def init(self) -> None:
        """Called once with new weights."""

    def train(self, batch: Any, batch_index: int) -> float:
        """Trains on a batch and returns its loss."""
        raise NotImplementedError

    def validate(self, batch: Any, batch_index: int) -> Tuple[float, float]:
        """Returns the accuracy in percent and the loss of a batch."""
        raise NotImplementedError

    def infer(self, data: Any) -> Any:
        """Returns the outputs for rows."""
        raise NotImplementedError


class KubeDataset:
    """KubeML's data set. ``data`` and ``labels`` have the rows of the batch that is computed.

    :param dataset: the name of the data set; disdel trains on the job's.
    """

    __module__ = "kubeml"

    def __init__(self, dataset: str, **_: Any) -> None:
        self.dataset = dataset
        self.data: Any = None
        self.labels: Any = None
        self.num_docs = self.num_val_docs = 0
        self._training = True

    def is_training(self) -> bool:
        """Whether the rows are to train on."""
        return self._training


def install() -> None:
    """Serves the modules ``kubeml`` and ``kubeml.exceptions``, unless they are there already."""
    if "kubeml" in sys.modules:
        return
    package, exceptions = types.ModuleType("kubeml"), types.ModuleType("kubeml.exceptions")
    served: Dict[str, Any] = {"KubeModel": KubeModel, "KubeDataset": KubeDataset, "exceptions": exceptions}
    package.__dict__.update(served, __path__=[], __all__=["KubeModel", "KubeDataset"])
    faults = [
        _fault("MergeError", "Error merging model", 500),
        _fault("DataError", "Error loading data", 500),
        _fault("InvalidFormatError", "Invalid format", 400),
        _fault("StorageError", "Error accessing storage", 500),
        _fault("DatasetNotFoundError", "Dataset not found", 404),
        _fault("InvalidArgsError", "Invalid arguments", 400),
    ]
    exceptions.__dict__.update({f.__name__: f for f in faults}, KubeMLException=KubeMLException)
    sys.modules.update({"kubeml": package, "kubeml.exceptions": exceptions})


class KubeMLForm(ModuleForm):
    """A file with ``main()``, which makes a :class:`KubeModel` and returns ``start()`` of it.

    :param session: the loaded program.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.kube: Any = None
        self._round: Optional[int] = None
        self._index = 0

    def build(self) -> Any:
        program, known = self.session.program, len(_started)
        main = getattr(program.module, "main", None)
        if not callable(main):
            raise Refused("arguments", "the program has no main() that makes the KubeModel and returns start() of it")
        main()
        if len(_started) == known:
            raise Refused("arguments", "main() did not call start() of a KubeModel")
        self.kube = _started[-1]
        del _started[:]
        return self.kube._network

    def make(self, value: int, new: bool) -> None:
        super().make(value, new)
        if new and _inits(self.kube):
            self.kube.task = "init"
            self.kube.init()
            self.session.settle()

    def optimizer(self) -> Any:
        self.kube.optimizer = self.kube.configure_optimizers()
        return self.kube.optimizer

    def step(self, message: Message) -> Optional[Answer]:
        moments = self._begin(message)
        self.session.pull()
        seed(int(message["seed"]))
        batch = self.session.rows(message)
        items = self._items(batch, True)
        self.kube.task, self.kube.batch_size = "train", len(batch.y)
        self.session.model.train()
        with _Outputs(self.session.model) as seen:
            loss = finite(_called(self.kube.train, items, self._index))
        self._index += 1
        moments.end()
        self.session.settle()
        outputs = seen.of(len(batch.y), self.session.classes)
        return {"loss": loss, "correct": -1 if outputs is None else int((probable(outputs) == batch.y).sum())}

    def _begin(self, message: Message) -> Moments:
        """The optimiser, which KubeML makes anew in each invocation: it changes ``lr`` by the epoch."""
        steps, now = int(message["steps"]), int(message.get("round") or 0)
        moments = self.session.moments
        if moments is None or now != self._round or steps == 0 and moments.count:
            self._round, self._index = now, 0
            kube, rate, epoch = self.kube, float(message["rate"]), int(message.get("epoch") or 0)
            kube.lr, kube.batch_size, kube.epoch, kube.task = rate, self.session.batch, epoch, "train"
            kube.args.lr, kube.args.batch_size, kube.args.epoch = rate, self.session.batch, epoch
            moments = self.session.hold(self.optimizer())
        moments.begin(steps)
        return moments

    def _items(self, batch: Batch, training: bool) -> Any:
        """The batch as the program's data set makes it of rows."""
        from torch.utils.data import default_collate  # type: ignore[import-not-found, unused-ignore]

        dataset = self.kube._dataset
        dataset._training = training
        dataset.data, dataset.labels = _as_uploaded(batch.x.numpy()), batch.y.numpy()
        dataset.num_docs = dataset.num_val_docs = len(batch.y)
        return default_collate([dataset[i] for i in range(len(batch.y))])

    def measured(self, batch: Batch) -> Tuple[float, int, Any]:
        kube, rows = self.kube, len(batch.y)
        items = self._items(batch, False)
        kube.task, kube.batch_size = "val", rows
        with _Outputs(self.session.model) as seen:
            accuracy, loss = _called(kube.validate, items, 0)
        outputs = seen.of(rows, self.session.classes)
        if outputs is None:
            outputs = self._network(items)
        right = int((probable(outputs) == batch.y).sum())
        correct = round(accuracy * rows / 100)
        # A program that divides by a constant batch size gives too little for the last, short batch. Some programs say
        # a share instead of a percentage.
        if rows < self.session.batch or accuracy <= 1 and abs(accuracy * rows - right) < abs(correct - right):
            correct = right
        return finite(loss), min(rows, max(0, correct)), outputs

    def predict(self, x: Any) -> Any:
        import torch

        batch = Batch(x, torch.zeros(len(x), dtype=torch.long))
        return self._network(self._items(batch, False))

    def _network(self, items: Any) -> Any:
        """The outputs; ``infer`` is asked only where the network does not take the batch's inputs."""
        x = items[0] if isinstance(items, (tuple, list)) else items
        import torch

        kube, rows = self.kube, len(x)
        outputs = _first(outputs_of(self.session.model(x)), rows, self.session.classes)
        if outputs is not None:
            return outputs
        kube.task = "infer"
        # Published programs declare infer(data), and KubeML calls infer(network, data): both orders are served.
        two = len(inspect.signature(kube.infer).parameters) > 1
        answer = kube.infer(self.session.model, x) if two else kube.infer(x)
        return as_rows(torch.as_tensor(answer), rows, self.session.classes)


def _called(method: Any, items: Any, index: int) -> Any:
    """Calls ``train`` or ``validate``: with (batch, index), or with (x, y, index) as older programs have it."""
    if len(inspect.signature(method).parameters) == 3 and isinstance(items, (tuple, list)) and len(items) == 2:
        return method(*items, index)
    return method(items, index)


def _first(outputs: Any, rows: int, classes: int) -> Any:
    """The outputs of the classes; None for another shape. Published programs have 1000 outputs for 10 classes."""
    shape = tuple(getattr(outputs, "shape", ()))
    return outputs.detach()[:, :classes] if len(shape) == 2 and shape[0] == rows and shape[1] >= classes else None


def _inits(kube: KubeModel) -> bool:
    """Whether ``init`` is the program's own and can be called as KubeML does, without arguments."""
    if type(kube).init is KubeModel.init:
        return False
    try:
        inspect.signature(kube.init).bind()
    except TypeError:
        return False
    return True


def _as_uploaded(x: Any) -> Any:
    """Rows as KubeML's users upload them: [rows, height, width] or channels last, as bytes if they were."""
    import numpy

    if x.ndim == 4:
        x = x[:, 0] if x.shape[1] == 1 else x.transpose(0, 2, 3, 1)
    if x.size and x.min() >= 0 and x.max() <= 1:
        scaled = x * 255
        whole = numpy.rint(scaled)
        if numpy.abs(scaled - whole).max() < 1e-3:
            return whole.astype("uint8")
    return numpy.ascontiguousarray(x)


class _Outputs:
    """What a network returned while a method of the program ran."""

    def __init__(self, network: Any) -> None:
        self._network, self._returned = network, []  # type: Any, List[Any]

    def __enter__(self) -> "_Outputs":
        self._hook = self._network.register_forward_hook(lambda m, i, o: self._returned.append(outputs_of(o)))
        return self

    def __exit__(self, *_: Any) -> None:
        self._hook.remove()

    def of(self, rows: int, classes: int) -> Any:
        """The newest outputs of [rows, classes]; None if there are none."""
        found = [_first(outputs, rows, classes) for outputs in reversed(self._returned)]
        return next((outputs for outputs in found if outputs is not None), None)
