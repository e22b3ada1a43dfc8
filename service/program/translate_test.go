package program_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service/program"
)

const translatable = `
import torch
import torch.nn.functional as F
from torch import nn

class Block(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != width:
            self.shortcut = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))
    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Sequential(Block(1, 8, 1), Block(8, 16, 2)), nn.Linear(16, 10)
    def forward(self, x):
        return self.fc(F.dropout(self.body(x).mean((2, 3)), 0.2, self.training))
`

func translated(t *testing.T, text string, entry string) *disdel.PythonTranslation {
	t.Helper()
	o := options(t, needTorch(t), map[string]string{"net.py": text})
	o.Python.Entry, o.Batch, o.Seed, o.Translated = entry, 16, 7, true
	o.Weights = filepath.Join(o.Dir, "initial.safetensors")
	python, _, err := program.Describe(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	tr := python.Network.Python.Translation
	if _, err := os.Stat(o.Weights); (err == nil) != (len(tr.Layers) > 0) {
		t.Errorf("%d layers, and initial weights: %v", len(tr.Layers), err)
	}
	return tr
}

// A network whose layers disdel has becomes those: twenty steps from the same weights lose the same.
func TestANetworkIsTranslatedAndCompared(t *testing.T) {
	tr := translated(t, translatable, "Net")
	if len(tr.Layers) == 0 || tr.Steps != 20 || tr.Rows != 16 || tr.Speedup <= 0 {
		t.Fatalf("%+v", tr)
	}
	if tr.Difference > disdel.MostDifference {
		t.Errorf("losses differ by %g", tr.Difference)
	}
	if first := tr.Layers[0]; first.Name != "body.0.conv1" || first.Kind != "conv" {
		t.Errorf("first layer %+v", first)
	}
}

// The optimiser and the loss of a task are recognised where a job file has them.
func TestATaskIsTranslatedWithItsLossAndItsOptimizer(t *testing.T) {
	tr := translated(t, translatable+`
import disdel
class Digits(disdel.Task):
    def model(self):
        return Net()
    def loss(self, model, batch):
        return F.cross_entropy(model(batch.x), batch.y)
    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
`, "Digits")
	if tr.Loss != "crossEntropy" || tr.Optimizer == nil || tr.Optimizer.SGD == nil || tr.Optimizer.SGD.Momentum != 0.9 ||
		tr.Difference > disdel.MostDifference {
		t.Errorf("%d layers, %s, loss %s, optimiser %+v, difference %g", len(tr.Layers), tr.Refused, tr.Loss, tr.Optimizer,
			tr.Difference)
	}
}

// A translation that computes something else is found out, and one that cannot be says why.
func TestWhatIsNotTheSameIsNotTranslated(t *testing.T) {
	const head = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\nclass Net(nn.Module):\n" +
		"    def __init__(self):\n        super().__init__()\n        self.f, self.g = nn.Linear(64, 64), nn.Linear(64, 10)\n" +
		"    def forward(self, x):\n        x = self.f(x.flatten(1))\n        "
	for name, c := range map[string]struct{ text, why string }{
		"unknown layer":    {head + "return self.g(F.celu(x))\n", "there is no layer like celu"},
		"branch on data":   {head + "return self.g(x * 2 if x.mean() > 3 else x)\n", "cannot be traced"},
		"unused layer":     {head + "return x[:, :10] if False else self.f(x)[:, :10]\n", "used twice"},
		"other evaluation": {head + "return self.g(torch.relu(x) if self.training else x)\n", "differ by up to"},
		"double softmax":   {head + "return torch.softmax(self.g(x), 1)\n", "differ by up to"},
		"loop": {`
import torch
def train(run):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    run.sync(model)
    for x, y in run.batches():
        run.log(loss=torch.nn.functional.cross_entropy(model(x), y).item())
    run.sync(model)
`, "loop of its own"},
		"own schedule": {head + "return self.g(x)\n" + `
import disdel
class Digits(disdel.Task):
    def model(self):
        return Net()
    def schedule(self, epoch, epochs):
        return 0.5
`, "Digits.schedule is the program's own"},
	} {
		t.Run(name, func(t *testing.T) {
			entry := "Net"
			if strings.Contains(c.text, "Digits") {
				entry = "Digits"
			} else if strings.Contains(c.text, "def train") {
				entry = "train"
			}
			if doubt := translated(t, c.text, entry).Doubt(); !strings.Contains(doubt, c.why) {
				t.Errorf("doubt %q, want %q", doubt, c.why)
			}
		})
	}
}
