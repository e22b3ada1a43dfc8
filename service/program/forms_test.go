package program_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service/program"
)

// Every way to write a program is described: by what it makes, not by how it is written.
func TestEveryFormIsDescribed(t *testing.T) {
	const parts = "import torch, disdel\nfrom torch import nn\nimport torch.nn.functional as F\n"
	const made = "nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))"
	adam := &disdel.OwnOptimizer{LearningRate: 0.002, Moments: []string{"exp_avg", "exp_avg_sq"}}
	for name, c := range map[string]struct {
		text  string
		form  string
		basis string
		loss  bool
		own   *disdel.OwnOptimizer
	}{
		"function": {
			parts + "def net(width=3):\n    return " + made + "\n", disdel.PythonModule, disdel.MemoryTraced, false, nil,
		},
		"task": {parts + `
class Digits(disdel.Task):
    def model(self):
        return ` + made + `
    def loss(self, model, batch):
        return F.cross_entropy(model(batch.x), batch.y)
    def optimizer(self, model):
        return torch.optim.Adam(model.parameters(), lr=0.002)
`, disdel.PythonTask, disdel.MemoryTraced, true, adam},
		"loop": {parts + `
def train(run):
    model = ` + made + `
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    run.sync(model, optimizer)
    for x, y in run.batches():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        run.log(loss=loss.item())
    run.sync(model)
`, disdel.PythonLoop, disdel.MemoryTraced, true, adam},
		"kubeml": {parts + `
from kubeml import KubeModel, KubeDataset

class Data(KubeDataset):
    def __init__(self):
        super().__init__("digits")
    def __getitem__(self, i):
        return torch.from_numpy(self.data[i]).float(), int(self.labels[i])
    def __len__(self):
        return len(self.data)

class Model(KubeModel):
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.002)
    def train(self, batch, batch_index):
        x, y = batch
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()
    def validate(self, batch, batch_index):
        x, y = batch
        outputs = self(x)
        return 100. * (outputs.argmax(1) == y).sum().item() / len(y), F.cross_entropy(outputs, y).item()

def main():
    return Model(` + made + `, Data()).start()
`, disdel.PythonKubeML, disdel.MemoryTraced, true, adam},
		"arrays": {`
import numpy, disdel
class Linear(disdel.Task):
    def model(self):
        return {"weight": numpy.zeros((64, 10), "float32"), "bias": numpy.zeros(10, "float32")}
    def predict(self, model, x):
        return x.reshape(len(x), -1) @ model["weight"] + model["bias"]
    def step(self, model, batch, optimizer):
        scores = self.predict(model, batch.x)
        share = numpy.exp(scores - scores.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        loss = -numpy.log(share[range(len(batch.y)), batch.y] + 1e-9).mean()
        share[range(len(batch.y)), batch.y] -= 1
        model["weight"] -= self.rate * batch.x.reshape(len(batch.x), -1).T @ share / len(batch.y)
        return loss
`, disdel.PythonTask, disdel.MemoryProbed, true, &disdel.OwnOptimizer{LearningRate: 0.01}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, needTorch(t), map[string]string{"net.py": c.text})
			if name == "function" {
				o.Python.Entry = "net"
			}
			python, _, err := program.Describe(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			p := python.Network.Python
			if p.Form != c.form || p.Basis != c.basis || p.OwnLoss != c.loss || len(p.Memory) != 2 || p.Memory[0].Train <= 0 {
				t.Errorf("form %s, basis %s %q, own loss %v, memory %v", p.Form, p.Basis, p.Warnings, p.OwnLoss, p.Memory)
			}
			if (p.Optimizer == nil) != (c.own == nil) || c.own != nil && (p.Optimizer.LearningRate != c.own.LearningRate ||
				!slices.Equal(p.Optimizer.Moments, c.own.Moments) || p.Optimizer.Opaque != c.own.Opaque) {
				t.Errorf("optimiser %+v, want %+v", p.Optimizer, c.own)
			}
			values := 0
			for _, a := range python.Network.Params {
				values += product(a.Shape)
			}
			if want := map[bool]int{false: 65*32 + 33*10, true: 650}[name == "arrays"]; values != want {
				t.Errorf("%d values, want %d", values, want)
			}
		})
	}
}

func product(shape []int) int {
	n := 1
	for _, side := range shape {
		n *= side
	}
	return n
}

// A program that cannot be traced is measured on small batches, and says so.
func TestWhatCannotBeTracedIsMeasured(t *testing.T) {
	o := options(t, needTorch(t), map[string]string{"net.py": `
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.f = torch.nn.Linear(64, 10)
    def forward(self, x):
        if type(x) is not torch.Tensor:
            raise ValueError("only real tensors")
        return self.f(x.flatten(1))
`})
	o.Batches = []int{4, 4096}
	python, _, err := program.Describe(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p := python.Network.Python
	if p.Basis != disdel.MemoryProbed || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "only real tensors") {
		t.Errorf("basis %s, warnings %q", p.Basis, p.Warnings)
	}
	if len(p.Memory) != 2 || p.Memory[1].Train < p.Memory[0].Train {
		t.Errorf("memory %v", p.Memory)
	}
}
