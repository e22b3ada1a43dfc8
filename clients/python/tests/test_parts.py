"""The readers of streams and of weights, by themselves."""

import io
import json
import struct
from typing import Any, Dict, Optional, Tuple

import pytest

import disdel
from disdel._transport import server_events


def test_a_stream_of_events() -> None:
    text = (
        b": still here\n\nid: a.1\nevent: planned\ndata: one\ndata: two\n\n"
        b"data:three\r\n\r\nid: a.2\nevent: empty\n\nid: a.3\ndata: not whole\n"
    )
    events = [(e.id, e.kind, e.data) for e in server_events(iter(text.splitlines(keepends=True)))]
    assert events == [("a.1", "planned", "one\ntwo"), ("a.1", "message", "three")]


def file(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str, shape: Tuple[Any, ...], begin: int, end: int) -> Dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def test_values_of_all_types() -> None:
    for dtype, data, values in [
        ("F32", struct.pack("<2f", 1.5, -2), [1.5, -2]),
        ("F64", struct.pack("<2d", 1.5, -2), [1.5, -2]),
        ("F16", struct.pack("<2e", 1.5, -2), [1.5, -2]),
        ("BF16", b"\xc0\x3f\x00\xc0", [1.5, -2]),
        ("I64", struct.pack("<2q", 1, -2), [1, -2]),
        ("U8", b"\x01\xff", [1, 255]),
        ("BOOL", b"\x01\x00", [True, False]),
    ]:
        weights = disdel.read_safetensors(file({"x": entry(dtype, (2, 1), 0, len(data))}, data))
        assert weights["x"].values() == values and weights["x"].shape == (2, 1)
        numpy = pytest.importorskip("numpy")
        array = weights.numpy()["x"]
        assert array.shape == (2, 1) and numpy.array_equal(array.ravel(), numpy.array(values))


def test_names_order_and_metadata() -> None:
    header = {"__metadata__": {"a": "b"}, "y": entry("U8", (1,), 2, 3), "x": entry("U8", (2,), 0, 2)}
    weights = disdel.read_safetensors(file(header, b"\x01\x02\x03"))
    assert list(weights) == ["x", "y"] and weights.metadata == {"a": "b"} and "x [2]" in repr(weights)
    assert weights["y"].values() == [3] and len(weights) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 7,
        struct.pack("<Q", 1 << 40),
        file(b"[]"),
        file(b"{"),
        file(b"[" * 100_000),
        file({"x": 1}),
        file({"x": {"dtype": "F32"}}),
        file({"x": entry("F31", (1,), 0, 4)}, b"1234"),
        file({"x": entry("F32", (1.0,), 0, 4)}, b"1234"),
        file({"x": entry("F32", (-1,), 0, 4)}, b"1234"),
        file({"x": entry("F32", (True,), 0, 4)}, b"1234"),
        file({"x": entry("F32", (2,), 0, 4)}, b"1234"),
        file({"x": entry("F32", (1,), 0, 4)}, b"123"),
        file({"x": entry("F32", (1,), 0, 4)}, b"12345"),
        file({"x": entry("U8", (1,), 0, 1), "y": entry("U8", (1,), 0, 1)}, b"1"),
        file({"x": entry("U8", (1,), 1, 2)}, b"12"),
        file(b'{"x": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}, "x": {}}'),
        file({"__metadata__": {"a": 1}}),
    ],
)
def test_damaged_files_are_refused(data: bytes) -> None:
    with pytest.raises(disdel.DisdelError, match="read weights"):
        disdel.read_safetensors(data)


class Connection:
    """What answers are read from, and whether it was closed."""

    def __init__(self, text: bytes) -> None:
        self.read, self.closed = io.BytesIO(text), False
        self.readline = self.read.readline

    def close(self) -> None:
        self.closed = True


def answers(text: bytes) -> Tuple[Connection, disdel.Answers]:
    there: Any = Connection(text)
    return there, disdel.Answers(there, there)


def test_answers_are_read_as_they_come() -> None:
    head, row = b'{"head": {"rows": 2}}\n', b'{"answer": {"row": 0, "prediction": 1.5, "target": 2}}\n'
    there, of = answers(b"\n" + head + b"\n\n" + row + b"\n" + b'{"end": {"right": 0}}\n')
    assert list(of) == [disdel.Answer(row=0, prediction=1.5, target=2)] and of.end == {"right": 0} and there.closed
    there, of = answers(head + row)
    with pytest.raises(disdel.Unavailable, match="whole"):
        list(of)
    assert there.closed
    there, of = answers(head + row + b'{"error": {"kind": "conflict", "message": "it has changed", "hint": "ask again"}}\n')
    with pytest.raises(disdel.Conflict, match="it has changed"):
        list(of)
    for text in (b"", b"<html>", row, head[:9]):
        with pytest.raises(disdel.DisdelError):
            answers(text)


def test_rows_that_are_none() -> None:
    from disdel._rows import dense_rows

    for inputs, labels, why in [
        ([[1, 2], [3]], [0, 1], "several shapes"),
        ([[1, 2]], [0, 1], "1 rows have 2 labels"),
        ([[1, 2]], [0.5], "a label is 0.5"),
        ([[1, 2]], [-1], "a label is -1"),
        ([[1, 2]], [2**31], "a label is 2147483648"),
        ([1, 2], [0, 1], "of shape"),
        ([[[[[1]]]]], [0], "of shape"),
        ([[[1], []]], [0], "several lengths"),
        ([["a"]], [0], "'a' is text"),
        ([[None]], [0], "no number"),
        ([[1e39]], [0], "no number"),
        ([[1]], [float("nan")], "no number"),
        ([[1]], [None], "no number"),
    ]:
        with pytest.raises(disdel.Invalid, match=why):
            dense_rows([(inputs, labels)], "t", None)
    with pytest.raises(disdel.Invalid, match="held-out rows are f4 of shape"):
        dense_rows([([[1, 2]], [0]), ([[1]], [0])], "t", None)


def test_names_of_classes_may_be_an_array() -> None:
    from disdel._rows import dense_rows

    numpy = pytest.importorskip("numpy")
    rows = [([[1, 2]], [0])]
    assert dense_rows(rows, "t", numpy.array(["a", "b"])) == dense_rows(rows, "t", ["a", "b"])
    assert dense_rows(rows, "t", numpy.array([], dtype=str)) == dense_rows(rows, "t", None)


def job(name: str, rate: float, accuracy: Optional[float]) -> disdel.Job:
    return disdel.Job(
        {
            "id": "job-" + name,
            "status": "succeeded",
            "accuracy": accuracy or 0,
            "rounds": [{"round": 0, "loss": 0.5, "accuracy": accuracy}],
            "model": {"name": name, "version": 2},
            "job": {
                "metadata": {"name": name},
                "training": {"epochs": 3, "optimizer": {"adam": {"learningRate": rate}}},
            },
        }
    )


def test_jobs_are_compared() -> None:
    both = disdel.compare([job("a", 0.1, 0.9), job("<b>", 0.01, None)])
    rate = "training.optimizer.adam.learningRate"
    assert both.columns == ["name", "id", "status", "accuracy", "loss", "epochs", "model", rate]
    assert [row[rate] for row in both] == [0.1, 0.01] and both[1]["accuracy"] is None
    shown = both._repr_html_()
    assert "<td>0.9</td>" in shown and "<td>-</td>" in shown and "&lt;b&gt;" in shown and "<b>" not in shown
    assert "<td>a:v2</td>" in job("a", 0.1, 0.9)._repr_html_()
    assert disdel.compare([]).columns == []


def test_a_comparison_is_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = disdel.compare([job("a", 0.1, 0.9), job("b", 0.01, 0.8)]).frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame["accuracy"]) == [0.9, 0.8]


def test_an_accuracy_is_a_share_or_a_percentage() -> None:
    from disdel._forms import _rows_of

    assert [_rows_of(a, 64) for a in (0.0, 0.25, 1.0, 25.0, 100.0, 300.0, -1.0)] == [0, 16, 64, 16, 64, 64, 0]
