"""Jobs beside each other, as tables for notebooks."""

from __future__ import annotations

import html
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence

from ._job import Job


def _fields(value: Any, path: str = "") -> Iterator[Any]:
    """The paths and values of a job file; a list is one value."""
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from _fields(below, path + "." + key if path else key)
    else:
        yield path, value


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return "%.4g" % value if isinstance(value, float) else str(value)


class Comparison(List[Dict[str, Any]]):
    """A row for each job: its name, id, status, accuracy, loss, epochs and model, and the fields that differ."""

    @property
    def columns(self) -> List[str]:
        """The names of the columns, in order."""
        return list(self[0]) if self else []

    def frame(self) -> Any:
        """The rows as a DataFrame, which needs pandas."""
        try:
            import pandas  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise ImportError("a DataFrame needs pandas: pip install pandas") from None
        return pandas.DataFrame(list(self), columns=self.columns)

    def _repr_html_(self) -> str:
        return table(self.columns, ([_text(v) for v in row.values()] for row in self))


def compare(jobs: Sequence[Job]) -> Comparison:
    """Compare jobs: their results, and the fields of the job file that are not the same in all of them."""
    files = [dict(_fields(job.record.get("job") or {})) for job in jobs]
    paths = dict.fromkeys(path for fields in files for path in fields if path != "metadata.name")
    differ = [path for path in paths if any(fields.get(path) != files[0].get(path) for fields in files)]
    return Comparison(dict(job.figures(), **{path: fields.get(path) for path in differ})
                      for job, fields in zip(jobs, files))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: Optional[str] = None) -> str:
    """An HTML table. Names and values are escaped."""
    out = ["<table>"]
    if caption:
        out.append("<caption>%s</caption>" % html.escape(caption))
    out.append("<tr>%s</tr>" % "".join("<th>%s</th>" % html.escape(name) for name in head))
    for row in rows:
        out.append("<tr>%s</tr>" % "".join("<td>%s</td>" % html.escape(value) for value in row))
    return "".join(out) + "</table>"
