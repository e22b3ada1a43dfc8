"""A real server for the tests: the program that DISDEL_BIN names, in a home of its own."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Iterator, NamedTuple

import pytest

import disdel


class Server(NamedTuple):
    url: str
    home: str
    token: str  #: of who runs it


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("home")
    env = {k: v for k, v in os.environ.items() if not k.startswith("DISDEL_")}
    env["DISDEL_HOME"] = str(home)
    said = home / "said"
    with open(said, "wb") as messages:
        process = subprocess.Popen(
            [os.environ["DISDEL_BIN"], "serve", "--listen", "127.0.0.1:0", "-o", "json"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=messages,
        )
    try:
        assert process.stdout is not None
        document = b""
        for line in process.stdout:  # it serves as soon as it has said where
            document += line
            if line.startswith(b"}"):
                break
        assert document, said.read_text()
        told = json.loads(document)
        yield Server(told["url"], str(home), Path(home, "server.token").read_text().strip())
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(scope="session")
def client(server: Server) -> disdel.Client:
    out = disdel.Client(server.url, server.token)
    out.add_dataset("digits")
    return out


JOB = {
    "apiVersion": "disdel/v1",
    "kind": "TrainingJob",
    "metadata": {"name": "small"},
    "model": {"name": "digits-cnn"},
    "data": {"source": "dataset://digits", "split": {"train": 0.8, "validation": 0.2, "seed": 1}},
    "training": {"epochs": 2, "batchSize": 64, "optimizer": {"adam": {"learningRate": 0.004}}},
}


@pytest.fixture(scope="session")
def trained(client: disdel.Client) -> disdel.Job:
    return client.wait(client.submit(JOB, sets={"training.epochs": 3}).id, timeout=300).check()
