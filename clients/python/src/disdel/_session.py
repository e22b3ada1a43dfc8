"""One loaded program: its model at its place in the shared file, its batches, and what all forms have in common."""

from __future__ import annotations

import contextlib
import os
import random
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from . import programs
from ._arrays import Listed, Placed, arrays_of, floats, integers, is_torch
from ._losses import as_rows, numpy_loss, outputs_of, probabilities, torch_loss
from ._optimizers import Moments, of_job
from ._shared import SharedFile
from ._task import Batch
from .programs import Refused

Message = Mapping[str, Any]


class Session:
    """What a ``load`` message describes.

    :param load: the message.
    :param shared: the shared file.
    """

    def __init__(self, load: Message, shared: SharedFile) -> None:
        self.folder: str = load["folder"]
        self.arguments: Dict[str, Any] = load.get("arguments") or {}
        self.loss: str = load.get("loss") or ""
        self.classes, self.batch = int(load["classes"]), int(load["batch"])
        self.input: Tuple[int, ...] = tuple(load["input"])
        self.clip = float(load.get("clipNorm") or 0)
        self.lost = False
        self.model: Any = None
        self.moments: Optional[Moments] = None
        self.predict: Optional[Callable[[Any], Any]] = None  #: of a loop: what computes outputs
        self._load, self._shared, self._layout = load, shared, load["layout"]
        self._placed: Optional[Placed] = None
        self._listed: List[Listed] = []
        self._inputs: Dict[Tuple[int, bool], Tuple[Any, Any]] = {}
        self._trained: List[Any] = []
        if load["form"] == programs.KUBEML:
            from ._kubeml import install

            install()
        threads = int(load.get("threads") or 1)
        mentioned = _mentions(self.folder, load["file"], b"torch")
        if mentioned:
            import torch  # noqa: F401  # before the program: it may choose other settings

            _quiet_torch(threads)
        self.program = programs.load(self.folder, load["file"], load.get("entry") or "", self.arguments)
        if not mentioned and "torch" in sys.modules:  # another file of the program has imported it
            _quiet_torch(threads)

    # The model and its arrays.

    def take(self, model: Any, *, new: bool) -> None:
        """Makes a model the session's.

        :param new: whether its own values go into the file; else it gets those of the file.
        :raises Refused: of kind ``changed`` if its arrays are not those of the description.
        """
        if is_torch(model):
            self._materialize(model)
        listed = arrays_of(model)
        if is_torch(model) and {p["name"] for p in self._load["params"]} - {a.name for a in listed}:
            self._dry_run(model)  # arrays may be made by the first forward
            listed = arrays_of(model)
        if not any(a.trainable for a in listed):
            raise Refused("unsupported", "%s has no parameters to train" % type(model).__name__)
        differs = self._differs(listed)
        if differs:
            raise Refused("changed", differs)
        self._listed, self.model, self.moments = listed, model, None
        self._trained = self._parameters() if is_torch(model) else []
        self._placed = Placed(listed, self._views(listed))
        if new:
            self._placed.settle()
        self._placed.adopt()

    def _materialize(self, model: Any) -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]

        uninitialized = getattr(torch.nn.parameter, "UninitializedTensorMixin", ())
        if any(isinstance(t, uninitialized) for t in [*model.parameters(), *model.buffers()]):
            self._dry_run(model)

    def _dry_run(self, model: Any) -> None:
        import torch

        with torch.no_grad(), evaluating(model):
            model(torch.zeros(2, *self.input))

    def _differs(self, listed: Sequence[Listed]) -> str:
        """How arrays differ from the description, "" if they do not."""
        for now, said in ((floats(listed), self._load["params"]), (integers(listed), self._load.get("integers") or [])):
            have = [(a.name, list(a.shape)) for a in now]
            want = [(p["name"], list(p["shape"] or [])) for p in said]
            if have == want:
                continue
            for pair in [p for p in want if p not in have] + [p for p in have if p not in want]:
                return (
                    "the model has other arrays than when it was described: %s of shape %s is %s. A model must have "
                    "the same arrays each time it is made" % (pair[0], pair[1], "missing" if pair in want else "new")
                )
            return "the arrays of the model are in another order than when it was described"
        return ""

    def _view(self, offset: int, shape: Sequence[int], dtype: str = "float32") -> Any:
        maker = self._shared.torch if is_torch(self.model) else self._shared.numpy
        return maker(offset, shape, dtype)

    def _views(self, listed: Sequence[Listed]) -> List[Any]:
        out = [self._view(at, a.shape) for a, at in zip(floats(listed), self._layout["weights"])]
        whole = zip(integers(listed), self._layout.get("integers") or [])
        return out + [self._view(at, a.shape, "int64") for a, at in whole]

    def settle(self) -> None:
        """Brings the model's values into the shared file, where they are not there already."""
        if self._placed is not None and self._placed.settle():
            self.lost = True

    def check(self) -> None:
        """Brings the model's values into the shared file at the end of a round.

        The runtime looks for values that are not finite.

        :raises Refused: of kind ``changed`` if the model has other arrays than described.
        """
        differs = self._differs(arrays_of(self.model))
        if differs:
            raise Refused("changed", differs)
        self.settle()

    def pull(self) -> None:
        """Takes over what the runtime wrote, for arrays that the model does not share."""
        if self._placed is not None:
            self._placed.pull()

    @contextlib.contextmanager
    def statistics_kept(self) -> Iterator[Callable[[], None]]:
        """Gives a function that sets the model's statistics back to what they were."""
        views = [v for a, v in zip(self._listed, self._views_of_statistics()) if v is not None]
        saved = [v.clone() for v in views]

        def back() -> None:
            self.settle()
            for view, value in zip(views, saved):
                view.copy_(value)

        yield back

    def _views_of_statistics(self) -> List[Any]:
        if not is_torch(self.model) or self._placed is None:
            return [None] * len(self._listed)
        return [None if a.trainable else view for a, view in self._placed.pairs()]

    # The optimiser.

    def load_optimizer(self) -> Mapping[str, Any]:
        """The job's optimiser, by its name."""
        described: Mapping[str, Any] = self._load["optimizer"]
        return described

    def trained(self) -> List[Any]:
        """The parameters of a module of PyTorch that training changes, in the order of the description."""
        return self._trained

    def _parameters(self) -> List[Any]:
        owners = {name: p for name, p in self.model.named_parameters()}
        return [owners[a.name] for a in self._listed if a.trainable]

    def job_optimizer(self) -> Any:
        """The optimiser of the job file."""
        return of_job(self._load["optimizer"], self.trained())

    def hold(self, optimizer: Any) -> Moments:
        """Puts the state of an optimiser into the shared file."""
        names = self._load.get("moments") or []
        views: List[List[Any]] = []
        trained: List[Any] = []
        if names:
            trained = self.trained()
            places = self._layout.get("moments") or []
            views = [[self._view(at, p.shape) for p, at in zip(trained, moment)] for moment in places]
        self.moments = Moments(optimizer, trained, names, views)
        return self.moments

    # Batches.

    def rows(self, message: Message) -> Batch:
        """The rows of a message: tensors for a model of PyTorch, else arrays of NumPy."""
        slot, rows, torch = int(message["slot"]), int(message["rows"]), is_torch(self.model)
        if (slot, torch) not in self._inputs:
            x = self._view(self._layout["x"][slot], (self.batch, *self.input))
            self._inputs[slot, torch] = x, self._view(self._layout["y"][slot], (self.batch,), "int32")
        x, y = self._inputs[slot, torch]
        if rows > self.batch:
            raise Refused("unsupported", "a batch of %d rows does not fit the shared file" % rows)
        return Batch(x[:rows], y[:rows].long() if torch else y[:rows].astype("int64"))

    # What a program without methods of its own does.

    def outputs(self, x: Any, predict: Optional[Callable[[Any], Any]] = None) -> Any:
        """The outputs of the model for rows, [rows, classes]."""
        if predict is not None:
            answer = predict(x)
        elif callable(self.model):
            answer = self.model(x)
        else:
            answer = _predicted(self.model, x)
        try:
            return as_rows(outputs_of(answer), len(x), self.classes)
        except Refused as error:
            error.place, error.source = programs.definition(getattr(self.model, "forward", None), self.folder)
            raise

    def measure(self, outputs: Any, y: Any) -> Tuple[float, int]:
        """The job's loss of outputs, and how many rows are right."""
        if hasattr(outputs, "detach"):
            right = int((outputs.detach().argmax(dim=1) == y).sum())
            return float(torch_loss(self.loss, outputs, y)), right
        return numpy_loss(self.loss, outputs, y)

    def write_labels(self, outputs: Any) -> None:
        """Writes the class of each row: that of its largest output, the first of equal ones."""
        labels = self._shared.numpy(self._layout["labels"], (self.batch,), "int32")
        values = probabilities(outputs, "mse")  # the values as they are
        labels[: len(values)] = values.argmax(axis=1)

    def write_outputs(self, outputs: Any) -> None:
        """Writes the outputs of rows; those of crossEntropy as probabilities."""
        place = self._shared.numpy(self._layout["outputs"], (self.batch, self.classes))
        place[: len(outputs)] = probabilities(outputs, self.loss)


def _predicted(model: Any, x: Any) -> Any:
    """The outputs of a model of another library."""
    flat = x.reshape(len(x), -1)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(flat)
    if hasattr(model, "decision_function"):
        return model.decision_function(flat)
    raise Refused(
        "unsupported",
        "it is not known how a %s computes the outputs of rows. Give the function: run.sync(model, predict=f), or a "
        "method predict of the Task" % type(model).__name__,
    )


def _mentions(folder: str, file: str, word: bytes) -> bool:
    with contextlib.suppress(OSError), open(os.path.join(folder, file), "rb") as source:
        return word in source.read()
    return False


def _quiet_torch(threads: int) -> None:
    """Sets PyTorch's threads, and algorithms that give the same bits each time."""
    import torch

    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    if hasattr(torch.utils, "deterministic"):
        torch.utils.deterministic.fill_uninitialized_memory = False


def seed(value: int) -> None:
    """Seeds Python, and NumPy and PyTorch where they are imported."""
    random.seed(value)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(value & 0xFFFFFFFF)
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if torch.cuda.is_initialized():
        torch.manual_seed(value & 0x7FFFFFFFFFFFFFFF)
    else:  # manual_seed would also format a stack of calls for GPUs, at each step
        torch.default_generator.manual_seed(value & 0x7FFFFFFFFFFFFFFF)


@contextlib.contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """A module in the mode of evaluation, without gradients; its modes are what they were afterwards."""
    if not is_torch(model):
        yield
        return
    import torch

    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
