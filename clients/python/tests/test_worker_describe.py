"""What a description says of programs, in the process of the test: each is tried for real and then traced."""

import textwrap
from pathlib import Path
from typing import Any, Dict, List

import pytest

from disdel import _needs, programs
from disdel.describe import describe
from disdel.programs import Refused

pytest.importorskip("torch", reason="PyTorch is not installed (Debian: python3-torch)")

_NETWORK = """
import torch
import torch.nn.functional as F
from torch import nn

class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)
    @staticmethod
    def backward(ctx, gradient):
        return gradient * (ctx.saved_tensors[0] > 0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.norm = nn.Linear(64, 64), nn.Linear(64, 10), nn.BatchNorm1d(64)
        self.constant = torch.ones(64) * 2
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
        self.recurrent, self.gates = nn.LSTM(8, 64, batch_first=True), nn.GRU(8, 64, batch_first=True)
        self.picture = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 64))
    def forward(self, x):
        x = self.body(x.flatten(1))
        {line}
        return self.head(y)
"""
_LINE = 26

#: Lines of a network that ask tensors for nothing that they do not have while they are traced.
_SURE = {
    "attention": "q = x.view(-1, 8, 8); y = self.attention(q, q, q)[0].flatten(1)",
    "autocast": "y = torch.autocast('cpu', dtype=torch.bfloat16)(self.body)(x).float()",
    "checkpoint": "from torch.utils.checkpoint import checkpoint; y = checkpoint(self.body, x)",
    "constant": "y = x * self.constant",
    "convolution": "y = self.picture(x.view(-1, 1, 8, 8))",
    "copy": "import copy; y = x + copy.deepcopy(self.body)(x)",
    "double": "y = nn.Linear(64, 64).double()(x.double()).float()",
    "encoder": "y = self.layers(x.view(-1, 8, 8)).flatten(1)",
    "function": "y = Clamp.apply(x)",
    "gates": "y = self.gates(x.view(-1, 4, 16)[:, :, :8])[0][:, -1]",
    "masked fill": "y = x.masked_fill(x > 0.5, 0)",
    "norm": "y = self.norm(x)",
    "order": "y = x.gather(1, x.argsort(1)) + x.topk(3)[0].sum()",
    "print": "print(x.mean()); y = x",
    "random": "y = F.dropout(x + torch.randn_like(x), 0.5, self.training)[torch.randperm(x.shape[0])]",
    "recurrent": "y = self.recurrent(x.view(-1, 8, 8))[0][:, -1]",
    "rows": "y = torch.stack([row * 2 for row in x])",
    "save": "import io; torch.save(self.head.state_dict(), io.BytesIO()); y = x",
    "set": "y = x.clone(); y[y > 0.5] = 0",
}

#: Lines whose answer depends on the values of data, with what is guessed.
_GUESSED = {
    "branch": ("y = x * 2 if x.mean() > 0 else x", "a branch"),
    "equal": ("y = x if torch.equal(x, x) else x * 2", "a branch"),
    "float": ("y = x * float(x.sum())", "a value"),
    "format": ("print(f'{x.mean():.3f}'); y = x", "a value"),
    "item": ("y = x * x.mean().item()", "a value"),
    "list": ("y = x * x.sum(1).tolist()[0]", "a value"),
    "mask": ("y = x * x[x > 0.5].mean()", "a size"),
    "nonzero": ("y = x + (x > -1).nonzero().sum()", "a size"),
    "numpy": ("y = x + torch.from_numpy(x.detach().numpy())", "a value"),
    "one hot": ("y = x + F.one_hot((x[:, 0] * 3).long().clamp(0, 9)).sum()", "a value"),
    "size": ("y = x + torch.zeros(int((x * 3).max().clamp(0, 9)) + 1).sum()", "a value"),
    "unique": ("y = x + torch.unique((x * 10).long()).sum()", "a size"),
    "where": ("y = x + x[torch.where(x > 0.5)].sum()", "a size"),
}


def _described(folder: Path, text: str, **asked: Any) -> Dict[str, Any]:
    (folder / "net.py").write_text(textwrap.dedent(text))
    request = {"folder": str(folder), "file": "net.py", "input": [1, 8, 8], "classes": 10, "batches": [4, 16]}
    return describe({**request, "optimizer": {"adam": {"learningRate": 0.01}}, "timeoutS": 600, **asked})


@pytest.mark.parametrize("name", _SURE)
def test_what_needs_no_values_is_traced_without_guesses(name: str, tmp_path: Path) -> None:
    python = _described(tmp_path, _NETWORK.replace("{line}", _SURE[name]))["python"]
    assert (python["basis"], python["guesses"]) == ("traced", [])
    assert [m["batch"] for m in python["memory"]] == [4, 16]


@pytest.mark.parametrize("name", _GUESSED)
def test_what_depends_on_values_is_guessed_and_told_with_its_line(name: str, tmp_path: Path) -> None:
    line, guess = _GUESSED[name]
    python = _described(tmp_path, _NETWORK.replace("{line}", line))["python"]
    assert python["basis"] == "traced"
    assert any(g.startswith("net.py:%d: %s" % (_LINE, guess)) for g in python["guesses"]), python["guesses"]


def test_the_memory_of_a_step_is_what_a_process_takes(tmp_path: Path) -> None:
    """A wide network at a large batch: its peak is measured in a process of its own, with memory given back at once."""
    import json
    import os
    import subprocess
    import sys

    text = """
    from torch import nn
    def net():
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 10))
    """
    told = _described(tmp_path, text, entry="net", batches=[2048])
    values = sum(int(_product(p["shape"])) for p in told["params"])
    measured = """
    import sys, json, torch
    sys.path.insert(0, sys.argv[1])
    import net
    from disdel import _memory
    before = _memory.floor()
    model = net.net()
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.rand(2048, 1, 8, 8), torch.zeros(2048, dtype=torch.int64)
    for step in range(3):
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step == 0:
            _memory.forget_peak()
    print(json.dumps(_memory.private(peak=True) - before - x.numel() * 4 - y.numel() * 8))
    """
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(Path(programs.__file__).parent.parent)
    command = [sys.executable, "-s", "-c", textwrap.dedent(measured), str(tmp_path)]
    real = int(json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout))
    estimate = told["python"]["memory"][0]["trainBytes"] + 4 * 4 * values
    assert 0.9 * real < estimate < 1.15 * real, (estimate, real)


def _product(shape: List[int]) -> int:
    out = 1
    for side in shape:
        out *= side
    return out


@pytest.mark.parametrize("switch", ["True, warn_only=True", "False"])
def test_a_program_without_deterministic_algorithms_is_warned(switch: str, tmp_path: Path) -> None:
    text = _NETWORK.replace("{line}", "torch.use_deterministic_algorithms(%s); y = x" % switch)
    warnings = _described(tmp_path, text)["python"].get("warnings") or []
    assert ["deterministic" in w for w in warnings] == [True] * (switch == "False")


def test_a_program_whose_other_files_import_torch_is_deterministic(tmp_path: Path) -> None:
    import torch

    torch.use_deterministic_algorithms(False)  # as in a new process
    made = "from torch import nn\ndef made():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    (tmp_path / "parts_of_net.py").write_text(made)
    text = "import parts_of_net\ndef net():\n    return parts_of_net.made()\n"
    assert not _described(tmp_path, text, entry="net")["python"].get("warnings")
    assert torch.are_deterministic_algorithms_enabled()


def test_a_probe_tells_more_memory_for_more_rows(tmp_path: Path) -> None:
    told = _described(
        tmp_path,
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.wide, self.out = torch.nn.Linear(64, 65536), torch.nn.Linear(65536, 10)
            def forward(self, x):
                if type(x) is not torch.Tensor:
                    raise ValueError("only real tensors")
                return self.out(torch.relu(self.wide(x.flatten(1))))
        """,
        batches=[16, 256],
    )["python"]
    assert told["basis"] == "probed"
    train = [m["trainBytes"] for m in told["memory"]]
    assert train[1] - train[0] > 240 * 65536 * 4, train  # at least one wide array


def test_tied_weights_are_listed_once_and_whole_numbers_apart(tmp_path: Path) -> None:
    told = _described(
        tmp_path,
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.Linear(64, 10)
                self.second = self.first
                self.register_buffer("count", torch.zeros(2, dtype=torch.int64))
                self.register_buffer("constant", torch.ones(3), persistent=False)
            def forward(self, x):
                return self.first(x.flatten(1)) + self.second(x.flatten(1))
        """,
    )
    assert [p["name"] for p in told["params"]] == ["first.weight", "first.bias"]
    assert [p["name"] for p in told["python"]["integers"]] == ["count"]


def test_arguments_choose_among_entries(tmp_path: Path) -> None:
    text = """
    import torch
    class Block(torch.nn.Module):
        def __init__(self, inside, outside):
            super().__init__()
            self.f = torch.nn.Linear(inside, outside)
        def forward(self, x):
            return self.f(x)
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block(64, 10)
        def forward(self, x):
            return self.block(x.flatten(1))
    """
    assert _described(tmp_path, text)["name"] == "Net"


def test_the_files_that_a_program_imports_are_found(tmp_path: Path) -> None:
    files = {
        "net.py": "import a\nfrom pack import b\ndef train(run): pass\n",
        "a.py": "import json\n",
        "pack/__init__.py": "from . import c\n",
        "pack/b.py": "from .c import x\ntry:\n    import nothing\nexcept ImportError:\n    pass\n",
        "pack/c.py": "x = 1\n",
        "other.py": "import nothing_either\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    needs = _needs.of(str(tmp_path), "net.py")
    assert needs["files"] == ["a.py", "net.py", "pack/__init__.py", "pack/b.py", "pack/c.py"]
    assert needs["missing"] == []
    assert _needs.of(str(tmp_path), "", "train")["file"] == "net.py"


def test_the_file_of_a_folder_must_be_clear(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("def train(run): pass\n")
    with pytest.raises(Refused, match="several files define something to train: one.py, two.py"):
        _needs.of(str(tmp_path))


@pytest.mark.parametrize(
    "line, fulfilled",
    [
        ("torch", True),
        ("torch>=1.10  # any", True),
        ("torch==0.1", False),
        ("numpy<99; python_version > '3'", True),
        ("absent; python_version < '3'", True),
        ("absent", False),
        ("--extra-index-url https://packages.example/simple", True),
        ("./local.whl", False),
        ("-r other.txt", False),
        ("# a comment", True),
    ],
)
def test_requirements_are_judged_line_by_line(line: str, fulfilled: bool, tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(line + "\n")
    assert (_needs.unmet(str(path)) == []) is fulfilled
