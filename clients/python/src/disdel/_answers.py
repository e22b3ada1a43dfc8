"""What a model says of the rows of a data set, as it comes."""

from __future__ import annotations

import http.client
import json
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ._errors import Unavailable, of_failure


class Answer(NamedTuple):
    """What a model says of a row: of a dense one a class and its probabilities, of a sparse one a prediction."""

    row: int  #: its number in the part, from 0
    said: Optional[int] = None  #: the most probable class
    name: Optional[str] = None  #: of that class, where classes have names
    label: Optional[int] = None  #: the class that the data set has
    probabilities: Optional[List[float]] = None  #: of each class
    prediction: Optional[float] = None  #: of a sparse row
    target: Optional[float] = None  #: of a sparse row, as the data set has it


class Answers:
    """Answers for the rows of a data set, in their order, once. They are read while actions work them out, and none is
    kept: ``list(answers)`` keeps all. It is closed with its last row, with a ``with`` block, or by :meth:`close`.
    """

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection, self._answer = connection, answer
        self._end: Optional[Dict[str, Any]] = None
        try:
            self.head: Dict[str, Any] = self._line("head")  #: model, dataset, rows, classes, names, warnings
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[Answer]:
        try:
            while self._end is None:
                kind, said = self._next()
                if kind == "end":
                    self._end = said
                    break
                yield Answer(
                    row=said["row"],
                    said=said.get("class"),
                    name=said.get("name"),
                    label=said.get("label"),
                    probabilities=said.get("probabilities"),
                    prediction=said.get("prediction"),
                    target=said.get("target"),
                )
        finally:
            self.close()

    def __len__(self) -> int:
        return int(self.head["rows"])

    def __enter__(self) -> "Answers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def end(self) -> Dict[str, Any]:
        """How the rows were answered for, once the last one has come: ``right``, how many as their labels say, and the
        ``actions`` that did it."""
        if self._end is None:
            raise ValueError("the last row has not come yet")
        return self._end

    def close(self) -> None:
        """Read no more; whatever the server is still at is given up."""
        self._connection.close()

    def _line(self, kind: str) -> Dict[str, Any]:
        found, said = self._next()
        if found != kind:
            raise Unavailable("the answers begin with %s; is it a disdel server?" % found, kind="unavailable")
        return said

    def _next(self) -> Tuple[str, Dict[str, Any]]:
        """The next line that says something: empty ones keep the connection."""
        try:
            line = b"\n"
            while line == b"\n":
                line = self._answer.readline()
            document = json.loads(line)
            [(kind, said)] = document.items()
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            raise Unavailable("the answers have not come whole: %s" % error, kind="unavailable", hint="ask again") from error
        if kind == "error":
            raise of_failure(said)
        return kind, said
