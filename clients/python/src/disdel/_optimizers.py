"""Optimisers of PyTorch: those of a job file, and the place of their state in the shared file."""

from __future__ import annotations

import collections
import copy
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from .programs import Refused

#: What PyTorch calls a moment that disdel has under another name.
_NAMES = {"momentum": "momentum_buffer"}

#: The count of steps in the state of PyTorch's optimisers.
_STEP = "step"


def of_job(described: Mapping[str, Any], parameters: Sequence[Any]) -> Any:
    """The optimiser that a job file asks for.

    :param described: the job's optimiser: ``{"adam": {"learningRate": 0.001}}``.
    :param parameters: what it trains.
    """
    import torch  # type: ignore[import-not-found, unused-ignore]

    name, options = next(iter(described.items()))
    rate, decay = float(options.get("learningRate", 0)), float(options.get("weightDecay", 0))
    betas = (options.get("beta1") or 0.9, options.get("beta2") or (0.99 if name == "lion" else 0.999))
    if name == "sgd":
        momentum = float(options.get("momentum", 0))
        nesterov = bool(options.get("nesterov", False)) and momentum > 0
        return torch.optim.SGD(parameters, lr=rate, momentum=momentum, weight_decay=decay, nesterov=nesterov)
    if name in ("adam", "adamw"):
        kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
        return kind(parameters, lr=rate, betas=betas, eps=options.get("epsilon") or 1e-8, weight_decay=decay)
    if name == "rmsprop":
        alpha, momentum = options.get("alpha") or 0.99, float(options.get("momentum", 0))
        eps = options.get("epsilon") or 1e-8
        return torch.optim.RMSprop(parameters, lr=rate, alpha=alpha, eps=eps, weight_decay=decay, momentum=momentum)
    if name == "adagrad":
        return torch.optim.Adagrad(parameters, lr=rate, eps=options.get("epsilon") or 1e-10, weight_decay=decay)
    if name == "lamb":
        return _lamb(parameters, rate, betas, options.get("epsilon") or 1e-6, decay)
    if name == "lion":
        return _lion(parameters, rate, betas, decay)
    raise Refused("unsupported", "the optimiser %s is not known to the Python worker" % name)


def described(optimizer: Any, parameters: Sequence[Any]) -> Optional[Dict[str, Any]]:
    """An optimiser of PyTorch as a job file has it; None where a job file has no such one.

    :param parameters: what it must train, all at one rate.
    """
    groups = getattr(optimizer, "param_groups", None) or []
    if len(groups) != 1 or {id(p) for p in groups[0]["params"]} != {id(p) for p in parameters}:
        return None
    group = groups[0]
    name = type(optimizer).__name__.lower()
    own = type(optimizer).__module__.startswith("torch.optim")
    if not own or group.get("maximize") or group.get("amsgrad") or group.get("dampening"):
        return None
    options = {"learningRate": float(group["lr"]), "weightDecay": float(group["weight_decay"])}
    if name == "sgd":
        return {"sgd": {**options, "momentum": float(group["momentum"]), "nesterov": bool(group["nesterov"])}}
    if name in ("adam", "adamw"):
        beta1, beta2 = group["betas"]
        return {name: {**options, "beta1": float(beta1), "beta2": float(beta2), "epsilon": float(group["eps"])}}
    if name == "rmsprop" and not group["centered"]:
        moved = {"alpha": float(group["alpha"]), "momentum": float(group["momentum"])}
        return {name: {**options, **moved, "epsilon": float(group["eps"])}}
    if name == "adagrad" and not group["lr_decay"] and not group["initial_accumulator_value"]:
        return {name: {**options, "epsilon": float(group["eps"])}}
    return None


def _lion(parameters: Sequence[Any], rate: float, betas: Tuple[float, float], decay: float) -> Any:
    """Lion of Chen and others (2023), which PyTorch does not have."""
    import torch

    class Lion(torch.optim.Optimizer):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__(parameters, {"lr": rate, "betas": betas, "weight_decay": decay})

        @torch.no_grad()  # type: ignore[untyped-decorator, unused-ignore]
        def step(self, closure: Optional[Callable[[], Any]] = None) -> None:
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for p in (p for p in group["params"] if p.grad is not None):
                    mean = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.add_((mean * beta1 + p.grad * (1 - beta1)).sign_(), alpha=-group["lr"])
                    mean.mul_(beta2).add_(p.grad, alpha=1 - beta2)

    return Lion()


def _lamb(parameters: Sequence[Any], rate: float, betas: Tuple[float, float], eps: float, decay: float) -> Any:
    """LAMB of You and others (2019), which PyTorch does not have."""
    import torch

    class Lamb(torch.optim.Optimizer):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__(parameters, {"lr": rate, "betas": betas, "eps": eps, "weight_decay": decay})

        @torch.no_grad()  # type: ignore[untyped-decorator, unused-ignore]
        def step(self, closure: Optional[Callable[[], Any]] = None) -> None:
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for p in (p for p in group["params"] if p.grad is not None):
                    state = self.state[p]
                    state["step"] = state.get("step", 0) + 1
                    mean = state.setdefault("exp_avg", torch.zeros_like(p))
                    square = state.setdefault("exp_avg_sq", torch.zeros_like(p))
                    mean.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                    square.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                    root = (square / (1 - beta2 ** state["step"])).sqrt_().add_(group["eps"])
                    move = (mean / (1 - beta1 ** state["step"])).div_(root).add_(p, alpha=group["weight_decay"])
                    weights, length = float(p.norm()), float(move.norm())
                    trust = weights / length if weights > 0 and length > 0 else 1.0
                    p.add_(move, alpha=-group["lr"] * trust)

    return Lamb()


def state_of(optimizer: Any) -> Tuple[List[str], bool]:
    """What an optimiser keeps: the names of its moments, and whether there is more than moments and a count of steps.

    A moment has a value for each weight. The names are PyTorch's. The optimiser itself is not changed.
    """
    state = _twin_state(optimizer, 0)
    if state is None:
        return [], True
    shape = _twin_shape()
    moments = [key for key, value in state.items() if tuple(getattr(value, "shape", ())) == shape]
    rest = [key for key, value in state.items() if key not in moments and key != _STEP and value is not None]
    opaque = bool(rest) or len(moments) > 4
    return ([] if opaque else moments), opaque


def _twin_shape() -> Tuple[int, ...]:
    return (2, 3)


def _twin_state(optimizer: Any, group: int) -> Optional[Dict[str, Any]]:
    """The state of one array after one step of a copy of the optimiser; None where it cannot be told."""
    import torch

    groups = getattr(optimizer, "param_groups", None)
    if not isinstance(optimizer, torch.optim.Optimizer) or not groups:
        return None
    dummy = torch.nn.Parameter(torch.ones(_twin_shape()))
    dummy.grad = torch.ones(_twin_shape())
    try:
        twin = copy.copy(optimizer)
        twin.state = collections.defaultdict(dict)
        twin.param_groups = [{**groups[group], "params": [dummy]}]
        if hasattr(type(optimizer), "share_memory"):  # Adagrad makes its state when it is built
            value = groups[group].get("initial_accumulator_value", 0)
            twin.state[dummy] = {_STEP: torch.tensor(0.0), "sum": torch.full_like(dummy.data, value)}
        twin.step()
    except Exception:
        return None
    return dict(twin.state[dummy])


class Moments:
    """The state of one optimiser in the shared file.

    :param optimizer: an optimiser of PyTorch, just made.
    :param parameters: the arrays that training changes, in the order of the description.
    :param names: the moments, as the job has them.
    :param views: for each moment, the view of each parameter's values.
    """

    def __init__(
        self, optimizer: Any, parameters: Sequence[Any], names: Sequence[str], views: Sequence[Sequence[Any]]
    ) -> None:
        self.optimizer = optimizer
        self._names = [_NAMES.get(n, n) for n in names]
        self._views = [(p, [views[m][i] for m in range(len(names))]) for i, p in enumerate(parameters)]
        self._count = 0
        self._initial = [g["lr"] for g in optimizer.param_groups] if hasattr(optimizer, "param_groups") else []
        self._groups = {id(p): i for i, g in enumerate(getattr(optimizer, "param_groups", [])) for p in g["params"]}
        self._templates: Dict[int, Optional[Dict[str, Any]]] = {}

    @property
    def count(self) -> int:
        """Steps since the state began."""
        return self._count

    def set_rate(self, factor: float) -> None:
        """Sets the learning rates to a multiple of those that the optimiser was made with."""
        if self._initial:
            for group, initial in zip(self.optimizer.param_groups, self._initial):
                group["lr"] = initial * factor

    def begin(self, count: int) -> None:
        """Makes the state that of a count of steps above 0, with the moments of the file."""
        if count == self._count or not self._names:
            self._pull()
            self._count = count
            return
        for p, views in self._views:
            if id(p) in self._groups:
                self._restore(p, views, count)
        self._count = count

    def end(self) -> None:
        """Brings the moments into the file after a step, and shares them from then on."""
        self._count += 1
        for p, views in self._views if self._names else ():
            if id(p) not in self._groups:
                continue
            state = self.optimizer.state[p]
            if not state or any(state.get(name) is None for name in self._names):
                self._restore(p, views, self._count)  # it had no gradient: a restart begins with this state, too
                continue
            if p.grad is None and _STEP in state:
                state[_STEP] = _counted(state[_STEP], self._count)  # its count would stay behind that of a restart
            for name, view in zip(self._names, views):
                value = state[name]
                if value.data_ptr() != view.data_ptr() or value.dtype != view.dtype:
                    view.copy_(value)
                    if value.dtype == view.dtype:
                        state[name] = view

    def _pull(self) -> None:
        for p, views in self._views if self._names else ():
            state = self.optimizer.state.get(p) or {}
            for name, view in zip(self._names, views):
                if state.get(name) is not None and state[name].dtype != view.dtype:
                    state[name].copy_(view)

    def _restore(self, p: Any, views: Sequence[Any], count: int) -> None:
        group = self._groups[id(p)]
        if group not in self._templates:
            self._templates[group] = _twin_state(self.optimizer, group)
        template = self._templates[group]
        if template is None or any(name not in template for name in self._names):
            raise Refused(
                "unsupported",
                "the state of %s cannot be restored after an interruption. Set aggregation.optimizer: reset in the job "
                "file" % type(self.optimizer).__name__,
            )
        state = self.optimizer.state[p]
        for key, value in template.items():
            if key in self._names:
                view = views[self._names.index(key)]
                state[key] = view if p.dtype == view.dtype else view.to(p.dtype)
            elif key == _STEP:
                state[key] = _counted(value, count)
            else:
                state[key] = copy.copy(value)


def _counted(value: Any, count: int) -> Any:
    """A count of steps, of the type that an optimiser keeps it in."""
    return value.clone().fill_(count) if hasattr(value, "clone") else count
