package cli

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel/internal/render"
)

// Programs of every form answer as their ONNX files do, which disdel's own engine computes after an import.
func TestProgramsAnswerAsTheirONNXFiles(t *testing.T) {
	if torchPython() == "" {
		t.Skip("no Python here has PyTorch: install python3-torch, or name a Python with DISDEL_TEST_PYTHON")
	}
	t.Parallel()
	d := build(t)
	d.env = []string{"DISDEL_PYTHON=" + torchPython()}
	folder := t.TempDir()
	program := filepath.Join(folder, "net.py")
	if err := os.WriteFile(program, []byte(programExported), 0o600); err != nil {
		t.Fatal(err)
	}
	must := func(args ...string) string {
		t.Helper()
		out, errs, code := d.run(args...)
		if code != 0 {
			t.Fatalf("%q: exit %d\n%s%s", args, code, out, errs)
		}
		return out
	}
	must("dataset", "add", "digits", "-q")
	rows := filepath.Join(folder, "rows.json")
	if err := os.WriteFile(rows, []byte(must("dataset", "sample", "digits", "--row", "7")), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := func(model string) (out []float32) {
		t.Helper()
		var doc render.Inference
		if err := json.Unmarshal([]byte(must("infer", model, "--input", rows, "-o", "json")), &doc); err != nil {
			t.Fatal(err)
		}
		for _, row := range doc.Probabilities {
			out = append(out, row...)
		}
		return out
	}
	for _, entry := range []string{"Net", "Steps", "train"} {
		name := "own-" + map[string]string{"Net": "module", "Steps": "task", "train": "loop"}[entry]
		file := filepath.Join(folder, name+".onnx")
		must("submit", program+":"+entry, "--data", "digits", "--epochs", "1", "--set", "resources.memory=450MB",
			"--set", "metadata.name="+name, "-q")
		must("model", "export", name, "--to", "onnx", "--file", file)
		must("model", "import", name+"-again", file)
		want, got := answer(name), answer(name+"-again")
		if len(want) != 10 || len(got) != 10 {
			t.Fatalf("%s: %d and %d probabilities of 10 classes", name, len(want), len(got))
		}
		for i := range want {
			if math.Abs(float64(want[i]-got[i])) > 1e-5 {
				t.Errorf("%s, class %d: the program says %v, its ONNX file %v", name, i, want[i], got[i])
			}
		}
	}
	d.nothingStays()
}

const programExported = `import torch
from torch import nn

import disdel


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(8), nn.Flatten(), nn.Dropout(0.5),
            nn.Linear(512, 10))


class Steps(disdel.Task):
    def model(self):
        return Net()

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.1)

    def predict(self, model, x):
        return torch.relu(model(x))


def train(run):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run.sync(model, optimizer)
    for x, y in run.batches():
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(loss=loss)
    run.sync(model)
`
