"""Trains a program's network with a plain PyTorch loop. Prints the seconds of all steps, the first included."""

import importlib
import json
import sys
import time

import numpy
import torch

asked = json.loads(sys.argv[1])
torch.set_num_threads(asked["threads"])
torch.manual_seed(1)
images = torch.from_numpy(numpy.load(asked["images"]))
labels = torch.from_numpy(numpy.load(asked["labels"]).astype("int64"))
net = importlib.import_module(asked["module"]).Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
loss_of = torch.nn.CrossEntropyLoss()
net.train()
began = time.perf_counter()
order = torch.randperm(len(images))
for start in range(0, len(images), asked["batch"]):
    rows = order[start:start + asked["batch"]]
    optimizer.zero_grad()
    loss = loss_of(net(images[rows]), labels[rows])
    loss.backward()
    optimizer.step()
    loss.item()
print(json.dumps({"seconds": time.perf_counter() - began}))
