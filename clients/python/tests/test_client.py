"""What a notebook does, against a real server."""

import http.server
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import JOB, Server

import disdel


def test_a_job_from_submit_to_its_curves(client: disdel.Client, trained: disdel.Job) -> None:
    assert trained.ended and trained.status == "succeeded" and trained.name == "small"
    curves = trained.curves()
    assert curves["round"] == [1, 2, 3]
    assert all(isinstance(v, float) for v in curves["trainLoss"] + curves["accuracy"])
    assert trained.curve("accuracy")[-1] == trained.accuracy
    with pytest.raises(ValueError, match="trainLoss"):
        trained.curve("los")
    assert client.job(trained.id[:12]).id == trained.id
    assert trained.id in [job.id for job in client.jobs(status="succeeded", dataset="digits")]
    assert "accuracy" in client.report(trained.id)
    assert client.logs(trained.id) == []


def test_events_can_be_followed_from_anywhere(client: disdel.Client, trained: disdel.Job) -> None:
    events = list(client.events(trained.id))
    kinds = [e.kind for e in events]
    assert kinds[0] == "planned" and kinds[-1] == "finished" and kinds.count("roundEnded") == 3
    assert [e.what["round"] for e in events if e.kind == "roundEnded"] == [0, 1, 2]
    middle = events[len(events) // 2]
    assert list(client.events(trained.id, after=middle.id)) == events[len(events) // 2 + 1 :]
    again = list(client.events(trained.id, after="another.7"))
    assert again[0].kind == "reset" and again[0].what["id"] == trained.id and again[1:] == events


def test_events_come_while_a_job_runs(client: disdel.Client) -> None:
    job = client.submit(JOB)
    assert [e.kind for e in client.events(job.id)][-1] == "finished"


def test_weights_are_arrays_of_numpy(client: disdel.Client, trained: disdel.Job) -> None:
    numpy = pytest.importorskip("numpy")
    weights = client.weights(trained.model)
    arrays = weights.numpy()
    assert set(arrays) == set(weights) and all(a.dtype == numpy.float32 for a in arrays.values())
    for name, tensor in weights.items():
        assert arrays[name].shape == tensor.shape
        assert arrays[name].ravel().tolist() == tensor.values()
        assert numpy.isfinite(arrays[name]).all()


def test_weights_are_a_state_dict_of_torch(client: disdel.Client, trained: disdel.Job) -> None:
    torch = pytest.importorskip("torch")
    state = client.weights(trained.model).torch()
    for name, tensor in client.weights(trained.model).items():
        assert torch.is_tensor(state[name]) and tuple(state[name].shape) == tensor.shape


def test_models_answer(client: disdel.Client, trained: disdel.Job) -> None:
    assert trained.model is not None
    sample = client.sample("digits", [0, 1, 2])
    answer = client.infer(trained.model, sample["inputs"])
    assert len(answer["classes"]) == len(answer["probabilities"]) == 3
    assert client.model(trained.model)["job"] == trained.id
    assert trained.model in ["%s:v%d" % (m["name"], m["version"]) for m in client.models()]
    assert client.dataset("digits")["classes"] == 10
    assert [d["name"] for d in client.datasets()] == ["digits"]


def test_a_model_answers_for_a_data_set(client: disdel.Client, trained: disdel.Job) -> None:
    assert trained.model is not None
    answers = client.infer_dataset(trained.model, "digits", "test")
    assert answers.head["dataset"] == "digits" and answers.head["classes"] == 10
    with pytest.raises(ValueError, match="not come"):
        answers.end
    rows = list(answers)
    assert [a.row for a in rows] == list(range(len(answers))) and len(rows) == answers.head["rows"]
    right = 0
    for a in rows:
        assert a.probabilities is not None and a.said == a.probabilities.index(max(a.probabilities))
        right += a.said == a.label
    assert answers.end["right"] == right and right / len(rows) == pytest.approx(trained.accuracy)
    assert list(answers) == []
    judged = client.evaluate(trained.model, "digits")
    assert judged["model"] == trained.model
    with client.infer_dataset(trained.model, "digits") as some:
        assert next(iter(some)).row == 0
    with pytest.raises(disdel.Conflict):
        client.infer_dataset(trained.model, "digits@sha256:00")
    with pytest.raises(disdel.NotFound):
        client.infer_dataset(trained.model, "nothing")


def test_rows_become_a_data_set(client: disdel.Client, trained: disdel.Job) -> None:
    lists = client.put_dataset("lists", [[0.5, 1], [2, 3], [4, 5]], [0, 1, 1], held_out=([[6, 7]], [0]), names=["a", "b"])
    assert lists["sample"] == [1, 1, 2] and lists["classes"] == 2 and lists["classNames"] == ["a", "b"]
    assert lists["train"]["rows"] == 3 and lists["test"]["rows"] == 1
    assert "warnings" not in lists and "understood" not in lists
    assert client.sample("lists", [0]) == {"inputs": [[6, 7]], "labels": [0], "shape": [1, 1, 2]}
    assert client.put_dataset("lists", [[0.5, 1], [2, 3], [4, 5]], [0, 1, 1], held_out=([[6, 7]], [0]), names=["a", "b"])
    with pytest.raises(disdel.Conflict):
        client.put_dataset("lists", [[1, 1], [2, 3]], [0, 1])
    assert client.put_dataset("lists", [[1, 1], [2, 3]], [0, 1], overwrite=True)["train"]["rows"] == 2
    client.remove_dataset("lists")
    with pytest.raises(disdel.NotFound):
        client.dataset("lists")


def test_arrays_become_a_data_set(client: disdel.Client, trained: disdel.Job) -> None:
    numpy = pytest.importorskip("numpy")
    assert trained.model is not None
    pictures = numpy.random.default_rng(1).integers(0, 256, (20, 8, 8), dtype=numpy.uint8)
    made = client.put_dataset("pictures", pictures, numpy.arange(20) % 10)
    assert made["sample"] == [1, 8, 8] and made["dtype"] == "U8"
    answers = list(client.infer_dataset(trained.model, "pictures"))
    alone = client.infer(trained.model, pictures.reshape(20, 64) * numpy.float32(1 / 255))
    assert [a.said for a in answers] == alone["classes"] and [a.label for a in answers] == [i % 10 for i in range(20)]
    halves = client.put_dataset("halves", pictures[:, ::2] / 2.0, numpy.arange(20) % 10)  # neither in one piece nor bytes
    assert halves["sample"] == [1, 4, 8] and halves["dtype"] == "F32"
    for name in ("pictures", "halves"):
        client.remove_dataset(name)


def test_a_version_is_promoted(client: disdel.Client, trained: disdel.Job) -> None:
    assert trained.model is not None
    name = trained.model.partition(":")[0]
    client.promote(trained.model)
    assert client.model(name + ":prod")["job"] == client.model(name + ":best")["job"] == trained.id
    with pytest.raises(disdel.Conflict, match="prod"):
        client.remove_model(trained.model)
    with pytest.raises(disdel.Invalid):
        client.promote(trained.model, "two words")


def test_jobs_are_remarked_on(client: disdel.Client) -> None:
    job = client.submit(JOB, sets={"metadata.name": "remarked"})
    client.set_remark(job.id, tags=["paper", "base"], note="the first one")
    client.wait(job.id, timeout=300).check()
    assert client.remarks()[job.id] == {"tags": ["base", "paper"], "note": "the first one"}
    client.forget(job.id)
    assert job.id not in client.remarks()
    with pytest.raises(disdel.NotFound):
        client.job(job.id)


def test_a_data_set_is_shared_until_it_is_not(client: disdel.Client, trained: disdel.Job) -> None:
    assert client.share("dataset", "digits", everybody=True)["all"] is True
    ended = client.unshare("dataset", "digits")
    assert (ended["name"], ended["with"], ended["all"]) == ("digits", [], False)
    with pytest.raises(disdel.DisdelError, match="no tenant"):
        client.share("dataset", "digits", tenants=["nobody"])


def test_everything_wrong_with_a_job_is_told(client: disdel.Client, tmp_path: Path) -> None:
    wrong = {**JOB, "training": {"epochs": 0, "batchSize": -1}, "modle": 1}
    for ask in (client.submit, client.check, client.estimate):
        with pytest.raises(disdel.Invalid) as caught:
            ask(wrong)
        assert {"training.epochs", "training.batchSize"} <= {f.path for f in caught.value.faults}
    with pytest.raises(disdel.Invalid, match="no-such-file"):
        client.submit(tmp_path / "no-such-file.yaml")
    client.check(JOB)
    assert client.estimate(JOB, sets=["training.epochs=1"])


def test_a_job_file_is_read(client: disdel.Client, tmp_path: Path) -> None:
    text = "apiVersion: disdel/v1\nkind: TrainingJob\nmetadata: {name: fault}\nmodel: {name: nope}\n"
    path = tmp_path / "job.yaml"
    path.write_text(text)
    for job in (path, str(path), text):
        with pytest.raises(disdel.Invalid) as caught:
            client.check(job)
        assert caught.value.faults


def test_a_repeated_submit_is_the_same_job(client: disdel.Client) -> None:
    first = client.submit(JOB, key="once")
    assert client.submit(JOB, key="once").id == first.id
    assert client.submit(JOB).id != first.id


def test_a_job_can_be_canceled(client: disdel.Client) -> None:
    job = client.submit(JOB, sets={"training.epochs": 500, "metadata.name": "long"})
    with pytest.raises(disdel.WaitTimeout):
        client.wait(job.id, timeout=0.05)
    client.cancel(job.id, "no longer wanted")
    ended = client.wait(job.id, timeout=120)
    assert ended.status == "canceled"
    with pytest.raises(disdel.JobFailed, match="canceled"):
        ended.check()
    with pytest.raises(disdel.Conflict):
        client.cancel(job.id)


def test_errors_have_their_kinds(client: disdel.Client, server: Server) -> None:
    with pytest.raises(disdel.NotFound):
        client.job("job-nobodys")
    with pytest.raises(disdel.NotFound):
        client.weights("nobodys:v1")
    with pytest.raises(disdel.Invalid):
        client.weights(None)
    with pytest.raises(disdel.Denied):
        disdel.Client(server.url, "nobody's").jobs()


def test_who_asks_on_this_machine_is_known(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISDEL_HOME", server.home)
    monkeypatch.setenv("DISDEL_SERVER", server.url)
    monkeypatch.delenv("DISDEL_TOKEN", raising=False)
    assert isinstance(disdel.Client().jobs(), list)
    monkeypatch.setenv("DISDEL_TOKEN", "another's")
    with pytest.raises(disdel.Denied):
        disdel.Client().jobs()


def test_tokens_stay_with_their_server() -> None:
    """Neither another machine in the clear nor another address gets them."""
    with pytest.raises(disdel.Invalid, match="in the clear"):
        disdel.Client("http://train.example", "secret")
    for url in ("train.example", "ftp://train.example", "http://"):
        with pytest.raises(disdel.Invalid):
            disdel.Client(url)
    seen = []

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as there:
        thread = threading.Thread(target=there.serve_forever)
        thread.start()
        try:
            with pytest.raises(disdel.DisdelError, match="302"):
                disdel.Client("http://127.0.0.1:%d" % there.server_port, "secret").jobs()
        finally:
            there.shutdown()
            thread.join()
    assert seen == ["/api/v1/jobs?limit=20"]


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("disdel._transport._AGAIN", (0.0,))
    with pytest.raises(disdel.Unavailable, match="does not answer"):
        disdel.Client("http://127.0.0.1:1", "t").jobs()


def test_the_package_says_that_it_is_typed() -> None:
    assert os.path.exists(os.path.join(os.path.dirname(disdel.__file__), "py.typed"))
