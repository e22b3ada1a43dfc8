"""Programs that misbehave in the worker: each is told in the user's own lines, and leaves nothing behind."""

import os
import signal
import textwrap
from pathlib import Path
from typing import Any, Dict

import pytest
from runtime_side import Make, Runtime, batch, make

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: Debian has it as python3-torch")
numpy: Any = pytest.importorskip("numpy")

__all__ = ["make"]  # a fixture

#: Which of its faults the program has in a step is told by the number of the epoch.
FAULTS = """
    import os, sys, threading, time
    import torch
    import disdel

    class Net(disdel.Task):
        def model(self):
            return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3), torch.nn.BatchNorm1d(3))

        def loss(self, model, batch):
            x, y = batch
            loss = torch.nn.functional.cross_entropy(model(x), y)
            return getattr(self, "fault%d" % self.epoch)(loss)

        def fault0(self, loss):
            return loss

        def fault1(self, loss):
            raise KeyError("no such thing")

        def fault2(self, loss):
            sys.exit(3)

        def fault3(self, loss):
            return loss * float("nan")

        def fault4(self, loss):
            return torch.empty(1 << 50)

        def fault5(self, loss):
            for descriptor in range(3, 256):
                try:
                    os.write(descriptor, b'{"id": 1, "loss": 0}\\n')
                except OSError:
                    pass
            print('{"id": 1, "loss": 0}')
            return loss

        def fault6(self, loss):
            sys.stdout.close()
            sys.stderr = None
            return loss

        def fault7(self, loss):
            return loss.detach()

        def fault8(self, loss):
            return "a word"

        def fault9(self, loss):
            return (loss.exp() * 1e38) ** 2 * 0 + loss  # its gradient is none

        def fault10(self, loss):
            threading.Thread(target=time.sleep, args=(1000,)).start()
            return loss

        def fault11(self, loss):
            if os.fork() == 0:
                return loss  # the fork goes on as if it were the worker
            os.wait()
            return loss

        def fault12(self, loss):
            child = os.fork()
            if child == 0:
                time.sleep(1000)
            print("child", child)
            return loss

        def fault13(self, loss):
            os._exit(5)

        def fault14(self, loss):
            import ctypes
            ctypes.string_at(0)

        def fault15(self, loss):
            print("asleep", flush=True)
            time.sleep(1000)

        def fault16(self, loss):
            raise disdel.RoundOver
"""


def model() -> Any:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3), torch.nn.BatchNorm1d(3))


def line(text: str, code: str = FAULTS) -> int:
    """The number of the first line of a program with a text."""
    return next(i for i, found in enumerate(textwrap.dedent(code).splitlines(), 1) if text in found)


def started(make: Make) -> Runtime:
    return make(FAULTS, model(), form="task").ready(1)


def test_faults_of_a_step_are_told_and_the_worker_goes_on(make: Make) -> None:
    worker, calm = started(make), started(make)
    before = worker.state()[: worker.layout["x"][0]]
    told: Dict[int, Dict[str, Any]] = {}
    for epoch in (1, 2, 3, 4, 7, 8, 9):
        told[epoch] = worker.step(0, batch(0), epoch=epoch)["error"]
    # Statistics of batch norm are set back where the loss or a gradient is not finite: nothing of such a step stays.
    kinds = {epoch: error["kind"] for epoch, error in told.items()}
    assert kinds == {1: "user", 2: "exit", 3: "diverged", 4: "memory", 7: "user", 8: "user", 9: "diverged"}
    assert (
        told[1]["place"] == "net.py:%d in fault1" % line("KeyError")
        and told[1]["source"] == 'raise KeyError("no such thing")'
    )
    assert "KeyError" in told[1]["message"] and "Traceback" in told[1]["trace"]
    assert told[2]["place"] == "net.py:%d in fault2" % line("sys.exit") and "code 3" in told[2]["message"]
    assert told[4]["bytes"] == 4 << 50 and told[4]["place"] == "net.py:%d in fault4" % line("torch.empty")
    assert "gradient" in told[7]["message"] and "no number" in told[8]["message"]
    for number in range(4):
        epoch = [5, 6, 0, 0][number]
        assert worker.step(number, batch(number), epoch=epoch)["loss"] == calm.step(number, batch(number))["loss"]
    assert worker.state()[: len(before)] == calm.state()[: len(before)] != before
    assert worker.printed() == '{"id": 1, "loss": 0}\n'


def test_threads_and_forks_leave_nothing_behind(make: Make) -> None:
    worker, calm = started(make), started(make)
    for number, epoch in enumerate((10, 11, 12, 0)):
        assert worker.step(number, batch(number), epoch=epoch)["loss"] == calm.step(number, batch(number))["loss"]
    child = int(worker.printed().split()[1])
    assert os.getpgid(child) == worker.pid  # the runtime kills the group
    assert not any("socket" in os.readlink(str(f)) for f in Path("/proc/%d/fd" % child).iterdir())
    assert worker.stop() == 0
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait_gone(child)


@pytest.mark.parametrize(
    ("epoch", "code", "said"), [(13, 5, ""), (14, -signal.SIGSEGV, 'net.py", line %d in fault14' % line("string_at"))]
)
def test_the_end_of_the_process_is_seen(make: Make, epoch: int, code: int, said: str) -> None:
    worker = started(make)
    with pytest.raises(EOFError):
        worker.step(0, batch(0), epoch=epoch)
    assert worker.end() == code
    assert said in worker.errors()


def test_a_hang_shows_the_line(make: Make) -> None:
    worker = started(make)
    worker.send("step", slot=0, rows=worker.put(0, *batch(0)), rate=0.1, base=0.1, steps=0, seed=0, epoch=15)
    worker.wait_for("asleep", worker.printed)
    os.kill(worker.pid, signal.SIGUSR1)
    worker.wait_for("in _run_module_as_main", worker.errors)
    assert 'net.py", line %d in fault15' % (line("asleep") + 1) in worker.errors()
    worker.kill()


LOADS = """
    import torch
    from torch import nn

    class Net(nn.Linear):
        def __init__(self, width=16):
            super().__init__(width, 3)

        def forward(self, x):
            return super().forward(x.flatten(1))

    class Empty(nn.Module):
        def forward(self, x):
            return x.flatten(1)[:, :3]

    class Frozen(Net):
        def __init__(self):
            super().__init__()
            self.requires_grad_(False)

    class Wide(Net):
        def __init__(self):
            super().__init__()
            self.more = nn.Linear(2, 2)

    class Torn(Net):
        def __init__(self):
            super().__init__()
            self.table = {}["missing"]

    class Square(Net):
        def forward(self, x):
            return super().forward(x) @ torch.ones(3, 5)

    def number():
        return 7

    def listed():
        return nn.Linear(16, 3, bias=[][0])
"""


def test_faults_of_a_load_are_told(make: Make) -> None:
    worker = make(LOADS, torch.nn.Linear(16, 3))
    answer = worker.ask("step", slot=0)
    assert answer["error"]["kind"] == "unsupported" and "before load" in answer["error"]["message"]

    def loaded(entry: str = "Net", **more: Any) -> Dict[str, Any]:
        told: Dict[str, Any] = worker.ask("load", **{**worker.load, "entry": entry, **more}).get("error", {})
        return told

    assert loaded() == {}
    for entry, kind, words, place in (
        ("Empty", "unsupported", "no parameters", ""),
        ("Frozen", "unsupported", "no parameters", ""),
        ("Wide", "changed", "more.weight of shape [2, 2] is new", ""),
        ("Torn", "user", "KeyError: 'missing'", "net.py:%d in __init__" % line('["missing"]', LOADS)),
        ("number", "arguments", "torch.nn.Module", ""),
        ("listed", "user", "IndexError", "net.py:%d in listed" % line("[][0]", LOADS)),
        ("nothing", "arguments", "nothing", ""),
    ):
        told = loaded(entry)
        assert told.get("kind") == kind, (entry, told)
        assert words in told["message"] and told.get("place", "").startswith(place), (entry, told)
    assert "wide" in loaded(arguments={"wide": 3})["message"]
    assert loaded(arguments={"width": 5})["kind"] == "changed"
    (worker.folder / "bad.py").write_text("def train(run):\n    return return\n")
    told = loaded("train", file="bad.py", form="loop")
    assert (told["kind"], told["place"].split(" ")[0]) == ("syntax", "bad.py:2")
    (worker.folder / "lacks.py").write_text("import torch\nimport nowhere_to_be_found\n")
    told = loaded(file="lacks.py")
    assert (
        told["kind"] == "import" and told["module"] == "nowhere_to_be_found" and told["place"].startswith("lacks.py:2")
    )
    assert loaded("Square") == {}
    told = worker.step(0, batch(0))["error"]
    assert told["kind"] == "user" and "[8, 5] for 8 rows, and the data has 3 classes" in told["message"]
    assert told["place"].startswith("net.py:%d in forward" % (line("ones(3, 5)", LOADS) - 1))
    assert loaded() == {} and worker.step(0, batch(0))["loss"] > 0


LOOPS = """
    import torch
    from torch import nn

    def made():
        return nn.Sequential(nn.Flatten(), nn.Linear(16, 3))

    def early(run):
        for x, y in run.batches():
            pass

    def never(run):
        made()

    def silent(run):
        run.sync(made())
        for x, y in run.batches():
            pass

    def leaves(run):
        run.sync(made())
        for x, y in run.batches():
            run.log(loss=1.0)
            break

    def idle(run):
        run.sync(made())

    def again(run):
        model = made()
        for epoch in range(10):
            run.sync(model)
            for x, y in run.batches():
                run.log(loss=run.round + 1, correct=2, other=0.5)
"""


def test_faults_of_a_loop_are_told(make: Make) -> None:
    worker = make(LOOPS, torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3)), form="loop")

    def loaded(entry: str) -> Dict[str, Any]:
        told: Dict[str, Any] = worker.ask("load", **{**worker.load, "entry": entry}).get("error", {})
        return told

    told = loaded("early")
    assert (
        told["place"].startswith("net.py:%d in early" % (line("def early", LOOPS) + 1))
        and "run.sync(model)" in told["message"]
    )
    assert loaded("never")["place"].startswith("net.py:%d in never" % line("def never", LOOPS))
    assert loaded("silent") == {}
    told = worker.step(0, batch(0))["error"]
    assert (
        told["place"].startswith("net.py:%d in silent" % (line("def silent", LOOPS) + 2))
        and "run.log(loss=loss)" in told["message"]
    )
    assert loaded("leaves") == {}
    assert worker.step(0, batch(0))["loss"] == 1
    assert "all batches" in worker.step(1, batch(0))["error"]["message"]
    assert loaded("idle") == {}
    assert "without taking a batch" in worker.step(0, batch(0))["error"]["message"]
    assert loaded("again") == {}
    for number in range(9):  # a loop over epochs is called anew, too: its next round begins with the job's weights
        answer = worker.step(number, batch(0), round=number // 3)
        assert (answer["loss"], answer["correct"]) == (number // 3 + 1, 2)
        if number in (2, 5):
            assert "error" not in worker.ask("round")
    assert worker.stop() == 0 and "other 0.5" in worker.printed()
