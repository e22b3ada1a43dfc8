"""Trains a function of KubeML in KubeML's way, and prints the seconds of each epoch.

Each worker of each epoch is a new process. It fetches the weights from Redis by one key for each array, trains on its
rows, and stores its weights under keys of its own. A process that stays averages them after each epoch. The rows come
from files, where KubeML reads them from a database.
"""

import importlib
import json
import socket
import subprocess
import sys
import time
import types

import numpy


class Redis:
    """A client with two commands.

    :param address: host:port.
    """

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._out, self._in = connection.makefile("wb"), connection.makefile("rb")

    def _ask(self, *words):
        self._out.write(b"*%d\r\n" % len(words))
        for word in words:
            self._out.write(b"$%d\r\n%b\r\n" % (len(word), word))
        self._out.flush()
        head = self._in.readline()
        if head[:1] == b"$":
            return self._in.read(int(head[1:]) + 2)[:-2]
        if head[:1] != b"+":
            raise RuntimeError(head.decode())

    def get(self, key):
        return numpy.frombuffer(self._ask(b"GET", key.encode()), "float32")

    def set(self, key, values):
        self._ask(b"SET", key.encode(), numpy.ascontiguousarray(values, "float32").tobytes())


def model_of(asked, rows=slice(0)):
    """The program's model. It has the rows of its worker."""
    import torch

    images, labels = (numpy.array(numpy.load(asked[name], mmap_mode="r")[rows]) for name in ("images", "labels"))

    class KubeDataset(torch.utils.data.Dataset):
        def __init__(self, name):
            self.data, self.labels = images, labels

    class KubeModel:
        def __init__(self, network, dataset, gpu=False):
            self.network, self.dataset = network, dataset
            self.lr, self.batch_size = asked["rate"], asked["batch"]

        def __call__(self, *inputs):
            return self.network(*inputs)

        def parameters(self):
            return self.network.parameters()

        def start(self):
            return self

    torch.set_num_threads(1)
    torch.manual_seed(1)
    library = sys.modules["kubeml"] = types.ModuleType("kubeml")
    library.KubeDataset, library.KubeModel = KubeDataset, KubeModel
    return importlib.import_module(asked["module"]).main()


def function(asked, worker):
    """One call of the function: a worker's part of an epoch."""
    import torch

    redis = Redis(asked["redis"])
    share = asked["rows"] // asked["workers"]
    model = model_of(asked, slice(worker * share, (worker + 1) * share))
    arrays = model.network.state_dict()
    for name, array in arrays.items():
        array.copy_(torch.tensor(redis.get("job:" + name)).reshape(array.shape))
    model.network.train()
    model.optimizer = model.configure_optimizers()
    loader = torch.utils.data.DataLoader(model.dataset, batch_size=asked["batch"])
    for index, batch in enumerate(loader):
        model.train(batch, index)
    for name, array in arrays.items():
        redis.set("job:%s/%d" % (name, worker), array.numpy())


def job(asked):
    """All epochs of a job."""
    redis, workers = Redis(asked["redis"]), range(asked["workers"])
    arrays = model_of(asked).network.state_dict()
    for name, array in arrays.items():
        redis.set("job:" + name, array.numpy())
    seconds = []
    for _ in range(asked["epochs"]):
        began = time.perf_counter()
        calls = [subprocess.Popen([sys.executable, __file__, json.dumps(asked), str(w)]) for w in workers]
        if any([call.wait() for call in calls]):
            raise SystemExit("a call of the function failed")
        for name in arrays:
            redis.set("job:" + name, sum(redis.get("job:%s/%d" % (name, w)) for w in workers) / len(workers))
        seconds.append(time.perf_counter() - began)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        function(json.loads(sys.argv[1]), int(sys.argv[2]))
    else:
        job(json.loads(sys.argv[1]))
