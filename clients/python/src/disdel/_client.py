"""The client."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import time
import uuid
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union
from urllib.parse import urlsplit

from ._answers import Answers
from ._errors import DisdelError, Invalid, Unavailable, WaitTimeout
from ._job import Job
from ._rows import ROWS_TYPE, dense_rows
from ._transport import _LOOPBACK, Transport, path_of, server_events
from ._weights import Weights, read_safetensors, write_safetensors

#: The server's own address, where nobody says another one.
_HERE = "http://127.0.0.1:7070"

#: The server sends a sign of life every 15 s: a stream that is quiet for longer is broken.
_QUIET = 60.0

#: Pauses before a stream that broke is taken up again, in seconds.
_AGAIN = (0.2, 0.5, 1.0, 2.0, 5.0, 5.0)

#: Weights: arrays by their names, or a file of them.
Arrays = Union[Mapping[str, Any], bytes, str, "os.PathLike[str]"]

JobFile = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Sets = Union[Sequence[str], Mapping[str, Any]]


class Event(NamedTuple):
    """Something that happened to a job."""

    kind: str  #: ``planned``, ``roundEnded``, ``finished``, ...; ``reset``: what came before does not count
    text: str  #: a few words for a person
    what: Dict[str, Any]  #: what it tells, as the API has it
    id: str  #: of the stream, to go on after it


class Client:
    """A server of disdel.

    :param url: its address; without it ``DISDEL_SERVER``, else this machine's own server.
    :param token: who asks; without it ``DISDEL_TOKEN``, else, of a server of this machine, that of who runs it.
    :param timeout: seconds that any one answer may take; waiting for a job is apart from it.
    :param cafile: certificates in PEM that the server's is checked against, instead of the machine's.
    :param insecure: whether the token may go to another machine in the clear.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        timeout: float = 30.0,
        cafile: Optional[str] = None,
        insecure: bool = False,
    ) -> None:
        url = url or os.environ.get("DISDEL_SERVER") or _HERE
        token = token or os.environ.get("DISDEL_TOKEN") or _operator_token(url)
        self._at = Transport(url, token, timeout, cafile, insecure)

    def __repr__(self) -> str:
        return "<disdel.Client %s>" % self._at.url

    # Jobs

    def submit(
        self,
        job: JobFile,
        *,
        sets: Sets = (),
        key: Optional[str] = None,
        priority: int = 0,
        estimator: Optional[str] = None,
        risk: Optional[float] = None,
        probe: bool = False,
    ) -> Job:
        """Submit a job and return it as it was accepted: its record is durable, and it runs when there is room.

        :param job: a job file's path, its text, or what would be in it as a dict. In a dict, ``model.init.weights`` may be
            arrays by their names, which are sent before it, and ``model.keras`` the text of a network.
        :param sets: fields that are changed, ``{"training.epochs": 3}`` or ``["training.epochs=3"]``.
        :param key: a repeated submit with the same one is the same job. Without it one is drawn, so that a submit
            whose answer was lost can be repeated safely, which this does.
        :raises Invalid: with ``faults``, everything that is wrong with the job file.
        """
        asked = self._submission(job, sets)
        asked.update({"priority": priority} if priority else {})
        asked.update({"estimator": estimator} if estimator else {})
        asked.update({"risk": risk} if risk is not None else {})
        asked.update({"probe": True} if probe else {})
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        return Job(self._at.json("POST", path_of("jobs"), asked, headers, again=True))

    def check(self, job: JobFile, *, sets: Sets = ()) -> None:
        """Raise :class:`Invalid` with everything that is wrong with a job; nothing runs."""
        self._at.json("POST", path_of("checks"), self._submission(job, sets), again=True)

    def estimate(self, job: JobFile, *, sets: Sets = ()) -> Dict[str, Any]:
        """What a job would take, in memory, time and cost; nothing runs."""
        found = self._at.json("POST", path_of("estimates"), self._submission(job, sets), again=True)
        return dict(found)

    def job(self, ref: str) -> Job:
        """A job by its id, the start of one, its name or ``@last``."""
        return Job(self._at.json("GET", path_of("jobs", ref)))

    def jobs(
        self,
        *,
        status: Optional[str] = None,
        model: Optional[str] = None,
        dataset: Optional[str] = None,
        since: Optional[str] = None,
        where: Optional[str] = None,
        limit: int = 20,
    ) -> List[Job]:
        """Jobs, newest first. ``since`` is a moment such as ``2026-11-22T08:00:00Z``.

        :param where: a filter in words, such as ``accuracy > 0.9 and tag:lenet``; see docs/reference/filters.md.
        """
        path = path_of("jobs", status=status, model=model, dataset=dataset, since=since, where=where, limit=limit)
        return [Job(record) for record in self._at.json("GET", path)["jobs"]]

    def share(self, kind: str, name: str, *, tenants: Sequence[str] = (), everybody: bool = False) -> Dict[str, Any]:
        """Let other tenants read a ``dataset``, a ``model`` or a ``job``, and return who can read it then.

        :param tenants: their names. ``everybody``: every tenant, also later ones.
        """
        asked = {"with": list(tenants), "all": everybody}
        return dict(self._at.json("PUT", path_of("shares", kind, name), asked, again=True))

    def unshare(self, kind: str, name: str) -> Dict[str, Any]:
        """Let only the owner read a ``dataset``, a ``model`` or a ``job``."""
        return dict(self._at.json("DELETE", path_of("shares", kind, name), again=True))

    def wait(self, ref: str, timeout: Optional[float] = None) -> Job:
        """Wait until a job has ended, and return it. ``wait(ref).check()`` raises if it did not succeed.

        :param timeout: seconds; None: as long as it takes.
        :raises WaitTimeout: if it has not ended by then.
        """
        until = None if timeout is None else time.monotonic() + timeout
        tried = 0
        while True:
            step = 60.0 if until is None else max(0.0, min(60.0, until - time.monotonic()))
            try:
                path = path_of("jobs", ref, "wait", timeout="%dms" % round(step * 1000))
                return Job(self._at.json("GET", path, timeout=step + _QUIET))
            except Unavailable:
                if tried >= len(_AGAIN):
                    raise
                time.sleep(_AGAIN[tried])
                tried += 1
            except DisdelError as error:
                if error.status != 504:
                    raise
                tried = 0
            if until is not None and time.monotonic() >= until:
                raise WaitTimeout("%s has not ended within %s s" % (ref, timeout), kind="timeout")

    def events(self, ref: str, after: Optional[str] = None) -> Iterator[Event]:
        """What happens to a job, from its beginning or from after an event's ``id``, until it ends. A stream that breaks
        is taken up again where it was."""
        last, tried = after or "", 0
        while True:
            try:
                for event in self._stream(ref, last):
                    last, tried = event.id or last, 0
                    yield event
                    if event.kind == "finished":
                        return
                job = self.job(ref)
                if job.ended or job.status == "paused":
                    return
            except Unavailable:
                if tried >= len(_AGAIN):
                    raise
            time.sleep(_AGAIN[min(tried, len(_AGAIN) - 1)])
            tried += 1

    def _stream(self, ref: str, last: str) -> Iterator[Event]:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
        connection, answer = self._at.open(path_of("jobs", ref, "events"), headers, _QUIET)
        try:
            for told in server_events(iter(answer.readline, b"")):
                document = json.loads(told.data)
                if told.kind == "reset":
                    yield Event("reset", "", document, told.id)
                    continue
                what = document.get("what")
                yield Event(told.kind, str(document.get("text", "")), what if isinstance(what, dict) else {}, told.id)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable("the stream of events broke: %s" % error, kind="unavailable") from error
        finally:
            connection.close()

    def cancel(self, ref: str, cause: str = "") -> None:
        """Stop a job for good."""
        self._at.json("POST", path_of("jobs", ref, "cancel"), {"cause": cause} if cause else None)

    def pause(self, ref: str, cause: str = "") -> None:
        """Stop a job until it is resumed."""
        self._at.json("POST", path_of("jobs", ref, "pause"), {"cause": cause} if cause else None)

    def resume(self, ref: str, *, sets: Sets = ()) -> Job:
        """Go on with a job that was paused, stopped or failed, from its newest checkpoint."""
        return Job(self._at.json("POST", path_of("jobs", ref, "resume"), {"sets": _sets(sets)}))

    def logs(self, ref: str) -> List[Dict[str, Any]]:
        """The logs of a job's activations that failed."""
        return list(self._at.json("GET", path_of("jobs", ref, "logs"))["logs"] or [])

    def report(self, ref: str, format: str = "md") -> str:
        """The report of a job, ``md``, ``html`` or ``json``."""
        return self._at.body("GET", path_of("jobs", ref, "report", format=format)).decode()

    def remarks(self) -> Dict[str, Dict[str, Any]]:
        """What people have said of jobs, by their ids: ``tags`` and ``note``."""
        return dict(self._at.json("GET", path_of("remarks"))["remarks"] or {})

    def set_remark(self, ref: str, *, tags: Sequence[str] = (), note: str = "") -> None:
        """Say anew what there is to say of a job; also while it runs."""
        self._at.json("PUT", path_of("jobs", ref, "remark"), {"tags": list(tags), "note": note}, again=True)

    def forget(self, ref: str) -> None:
        """Delete the record and checkpoints of an ended job; its model stays. It takes the role ``admin``."""
        self._at.json("DELETE", path_of("jobs", ref))

    # Models

    def models(self) -> List[Dict[str, Any]]:
        """The models that were trained."""
        return list(self._at.json("GET", path_of("models"))["models"] or [])

    def model(self, ref: str) -> Dict[str, Any]:
        """One of them: ``NAME``, its newest version, ``NAME:vN``, or ``NAME:TAG``, such as ``NAME:best``."""
        return dict(self._at.json("GET", path_of("models", ref)))

    def weights(self, ref: Optional[str]) -> Weights:
        """The weights of a model; ``job.model`` is its name, None of a job that has none."""
        if not ref:
            raise Invalid("there is no model", kind="invalid", hint="wait for the job, and see why it has none: job.check()")
        return read_safetensors(self._at.body("GET", path_of("models", ref, "weights"), timeout=600.0))

    def put_weights(self, weights: Arrays) -> str:
        """Send weights for jobs to begin with, and return what ``model.init.weights`` names them by. They stay with the
        server until :meth:`remove_weights`.

        :param weights: arrays of NumPy, or tensors of PyTorch, by their names, which are those of ``model.weights``; the
            bytes of a safetensors file; or its path. PyTorch's ``num_batches_tracked`` is left out.
        :raises Invalid: for what are no weights. Whether they fit a network is known with a job.
        """
        data = _safetensors(weights)
        name = "sha256:" + hashlib.sha256(data).hexdigest()
        headers = {"Content-Type": "application/octet-stream"}
        self._at.body("PUT", path_of("weights", name), data, headers, again=True, timeout=600.0)
        return name

    def remove_weights(self, name: str) -> None:
        """Delete weights that were sent; jobs that have begun with them have a copy. It takes the role ``admin``."""
        self._at.json("DELETE", path_of("weights", name))

    def promote(self, ref: str, tag: str = "prod") -> Dict[str, Any]:
        """Have ``NAME:TAG`` mean a version from now on."""
        return dict(self._at.json("PUT", path_of("models", ref, "tags", tag), again=True))

    def remove_model(self, ref: str) -> Dict[str, Any]:
        """Delete a version that no tag means. It takes the role ``admin``."""
        return dict(self._at.json("DELETE", path_of("models", ref)))

    def infer(self, ref: str, inputs: Sequence[Any]) -> Dict[str, Any]:
        """What a model says of rows, with values scaled as in training: lists of numbers, lists of such lists, or an
        array of NumPy."""
        rows = [list(_flat(row)) for row in inputs]
        body = json.dumps({"inputs": rows}).encode()
        headers = {"Content-Type": "application/octet-stream"}
        return dict(json.loads(self._at.body("POST", path_of("models", ref, "infer"), body, headers, timeout=600.0)))

    def infer_dataset(self, ref: str, dataset: str, part: str = "all") -> Answers:
        """What a model says of the rows of a data set, which actions read themselves: as it comes, row after row.

        :param dataset: its name, or ``NAME@CHECKSUM``: no other version of it.
        :param part: ``all``, ``train``, or ``test``, what is held out.
        :raises Conflict: for another version than the one that was asked for.
        :raises Invalid: for rows that the model does not take.
        """
        path = path_of("models", ref, "infer", dataset=dataset, part=part)
        return Answers(*self._at.open(path, {"Accept": "application/x-ndjson"}, _QUIET, "POST"))

    def evaluate(self, ref: str, dataset: str) -> Dict[str, Any]:
        """How good a model is on a data set: on its held-out rows, or on all where it has none."""
        return dict(self._at.json("POST", path_of("models", ref, "evaluate", dataset=dataset), timeout=600.0))

    # Data sets

    def datasets(self) -> List[Dict[str, Any]]:
        """The data sets that there are."""
        return list(self._at.json("GET", path_of("datasets"))["datasets"] or [])

    def dataset(self, name: str) -> Dict[str, Any]:
        """One of them."""
        return dict(self._at.json("GET", path_of("datasets", name)))

    def add_dataset(self, name: str, *, overwrite: bool = False) -> Dict[str, Any]:
        """Add a data set that the server knows, such as ``digits``; it takes the role ``admin``."""
        asked = {"source": name, "overwrite": overwrite}
        return dict(self._at.json("POST", path_of("datasets"), asked, timeout=600.0))

    def put_dataset(
        self,
        name: str,
        inputs: Any,
        labels: Sequence[int],
        *,
        held_out: Optional[Tuple[Any, Sequence[int]]] = None,
        names: Optional[Sequence[str]] = None,
        title: str = "",
        overwrite: bool = False,
    ) -> Dict[str, Any]:
        """Send rows as a data set; it takes the role ``admin``.

        :param inputs: an array of NumPy, a tensor of PyTorch, or lists of numbers: rows of ``[values]``,
            ``[height width]`` or ``[channels height width]``. An array of ``uint8`` is kept as bytes, which are 0..1 in
            training; all others are kept as they are, in float32.
        :param labels: the class of each row, from 0.
        :param held_out: inputs and labels of rows that no job learns from.
        :param names: of the classes, in their order.
        :raises Conflict: where there is another data set of the name, unless ``overwrite`` is given.
        """
        parts = [(inputs, labels)] + ([held_out] if held_out is not None else [])
        body = dense_rows(parts, title or "Rows of " + name, names)
        path = path_of("datasets", name, overwrite="true" if overwrite else None)
        return dict(json.loads(self._at.body("PUT", path, body, {"Content-Type": ROWS_TYPE}, again=True, timeout=600.0)))

    def remove_dataset(self, name: str) -> Dict[str, Any]:
        """Delete a data set that no running job reads. It takes the role ``admin``."""
        return dict(self._at.json("DELETE", path_of("datasets", name)))

    def sample(self, name: str, rows: Sequence[int] = (0,), *, seed: int = 1) -> Dict[str, Any]:
        """Held-out rows of a data set, with ``inputs`` as :meth:`infer` takes them, and ``labels``."""
        return dict(self._at.json("GET", path_of("datasets", name, "sample", row=list(rows), seed=seed)))

    def _submission(self, job: JobFile, sets: Sets) -> Dict[str, Any]:
        asked: Dict[str, Any] = {"sets": _sets(sets)} if sets else {}
        if isinstance(job, Mapping):
            job, files = self._sent(job)
            asked["file"] = json.dumps(job)  # YAML is a superset of it
            asked.update({"files": files} if files else {})
        elif isinstance(job, str) and "\n" in job:
            asked["file"] = job
        else:
            path = Path(job)
            try:
                asked.update(file=path.read_text(encoding="utf-8"), name=path.name)
            except (OSError, UnicodeDecodeError) as error:
                raise Invalid("read %s: %s" % (path, error), kind="invalid", hint="check the file's name") from error
        return asked


    def _sent(self, job: Mapping[str, Any]) -> Tuple[Mapping[str, Any], Dict[str, str]]:
        """A job whose model has files and arrays, in which they have names: arrays are with the server by then."""
        model = job.get("model")
        if not isinstance(model, Mapping):
            return job, {}
        model, files = dict(model), {}
        network, init = model.get("keras"), model.get("init")
        if isinstance(network, str) and network.lstrip().startswith("{"):
            model["keras"] = "network.json"
            files["network.json"] = network
        if isinstance(init, Mapping) and isinstance(init.get("weights"), Mapping):
            model["init"] = {**init, "weights": self.put_weights(init["weights"])}
        return {**job, "model": model}, files


def _sets(sets: Sets) -> List[str]:
    """Changed fields as ``PATH=VALUE``; values are JSON, and texts as they are."""
    if isinstance(sets, str):
        raise TypeError("sets is a dict, or a list of PATH=VALUE")
    if not isinstance(sets, Mapping):
        return [str(s) for s in sets]
    return ["%s=%s" % (k, v if isinstance(v, str) else json.dumps(v)) for k, v in sets.items()]


def _safetensors(weights: Arrays) -> bytes:
    """A file of weights."""
    if isinstance(weights, bytes):
        return weights
    if isinstance(weights, Mapping):
        return write_safetensors({k: v for k, v in weights.items() if not k.endswith("num_batches_tracked")})
    try:
        return Path(weights).read_bytes()
    except OSError as error:
        raise Invalid("read %s: %s" % (weights, error), kind="invalid", hint="check the file's name") from error


def _flat(values: Any) -> Iterator[float]:
    """The numbers of nested lists or of an array, row-major."""
    for v in values:
        if hasattr(v, "__iter__"):
            yield from _flat(v)
        else:
            yield float(v)


def _operator_token(url: str) -> Optional[str]:
    """The token of who runs a server of this machine, where its home is this user's."""
    if urlsplit(url).hostname not in _LOOPBACK:
        return None
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    home = os.environ.get("DISDEL_HOME") or os.path.join(data, "disdel")
    try:
        return Path(home, "server.token").read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
