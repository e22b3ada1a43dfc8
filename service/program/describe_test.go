package program_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
	"github.com/disdel/disdel/service/program"
)

// torch is a Python with PyTorch.
var torch = sync.OnceValue(func() string {
	for _, path := range []string{os.Getenv("DISDEL_TEST_TORCH"), "/usr/bin/python3", "python3"} {
		if path != "" && exec.Command(path, "-s", "-c", "import torch").Run() == nil {
			return path
		}
	}
	return ""
})

func needTorch(t *testing.T) string {
	t.Helper()
	if torch() == "" {
		t.Skip("no Python on this machine has torch; Debian's package is python3-torch")
	}
	return torch()
}

// write makes a folder of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func options(t *testing.T, interpreter string, files map[string]string) program.Options {
	t.Helper()
	return program.Options{
		Python: disdel.Python{File: "net.py"}, Dir: write(t, files),
		Input: []int{1, 8, 8}, Classes: 10, Batches: []int{4, 16},
		Loss: "crossEntropy", Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}},
		Interpreter: interpreter, Cache: t.TempDir(),
	}
}

const network = `
import torch
from layers import block

class Net(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = block(width)
        self.head = torch.nn.Linear(width * 36, 10)
        self.same = self.head  # tied weights
        self.register_buffer("seen", torch.zeros(3, dtype=torch.int64))

    def forward(self, x):
        x = self.body(x)
        if x.mean() > 3:
            x = x * 2
        return self.head(x.flatten(1))
`

const layers = `
from torch import nn

def block(width):
    return nn.Sequential(nn.Conv2d(1, width, 3), nn.BatchNorm2d(width), nn.ReLU())
`

// A description has every array once, the memory at each batch, and all files that the program needs.
func TestDescribeTellsWhatANetworkConsistsOf(t *testing.T) {
	o := options(t, needTorch(t), map[string]string{
		"net.py": network, "layers.py": layers, "unused.py": "raise Exception", ".venv/pyvenv.cfg": "",
	})
	o.Python.Arguments = map[string]any{"width": 16}
	python, archive, err := program.Describe(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	n := python.Network
	var names []string
	for _, p := range n.Params {
		names = append(names, p.Name)
	}
	want := []string{
		"body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias", "head.weight", "head.bias",
		"body.1.running_mean", "body.1.running_var",
	}
	if !slices.Equal(names, want) || !n.Params[0].Trainable || n.Params[7].Trainable {
		t.Errorf("arrays %v, want %v", names, want)
	}
	if len(n.Python.Integers) != 2 || n.Python.Integers[0].Name != "seen" {
		t.Errorf("whole numbers %v, want seen and num_batches_tracked", n.Python.Integers)
	}
	if !slices.Equal(n.Params[0].Shape, []int{16, 1, 3, 3}) || n.Classes != 10 || python.Entry != "Net" {
		t.Errorf("shape %v, %d classes, entry %s", n.Params[0].Shape, n.Classes, python.Entry)
	}
	m := n.Python.Memory
	if len(m) != 2 || m[0].Batch != 4 || m[1].Train <= m[0].Train || m[0].Train <= 0 || m[1].Infer > m[1].Train {
		t.Errorf("memory %v", m)
	}
	if n.Python.Floor < 20*disdel.MB || n.Python.Basis != disdel.MemoryTraced || n.Activations == 0 || n.Backward == 0 {
		t.Errorf("floor %v, basis %s, %d activations", n.Python.Floor, n.Python.Basis, n.Activations)
	}
	if len(n.Python.Guesses) != 1 || !strings.HasPrefix(n.Python.Guesses[0], "net.py:15: a branch on data") {
		t.Errorf("guesses %q, want the branch in line 15", n.Python.Guesses)
	}
	if got := namesIn(t, archive); !slices.Equal(got, []string{"layers.py", "net.py"}) {
		t.Errorf("archive %v, want the program and what it imports", got)
	}
	_, again, err := program.Describe(t.Context(), o)
	if err != nil || !bytes.Equal(again, archive) {
		t.Errorf("the same files give another archive (%v)", err)
	}
}

func namesIn(t *testing.T, archive []byte) (names []string) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	return names
}

// A folder is packed without hidden files, caches and virtual environments, whatever their names.
func TestFoldersArePackedWithoutCaches(t *testing.T) {
	o := options(t, needTorch(t), map[string]string{
		"mine/model.py": network, "mine/layers.py": layers, "mine/words.txt": "data",
		"mine/.git/x": "", "mine/env/pyvenv.cfg": "", "mine/env/lib.py": "", "mine/__pycache__/a.pyc": "",
	})
	o.Python.File = "mine"
	python, archive, err := program.Describe(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"layers.py", "model.py", "words.txt"}
	if got := namesIn(t, archive); !slices.Equal(got, want) || python.Network.Python.File != "model.py" {
		t.Errorf("archive %v of %s, want %v of model.py", got, python.Network.Python.File, want)
	}
}

// What is wrong with a program is told with its own line, before anything is planned.
func TestABadProgramIsRefusedWithItsLine(t *testing.T) {
	const head = "import torch\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
	const linear = head + "        self.f = torch.nn.Linear(64, 10)\n    def forward(self, x):\n"
	for name, c := range map[string]struct {
		text string
		want string      // in the message or the hint, separated by |
		kind disdel.Kind // UnknownKind: Invalid
	}{
		"syntax": {text: "def train(run)\n    pass\n", want: "net.py:1: def train(run)"},
		"import": {text: "1 / 0\n", want: "ZeroDivisionError|net.py:1 in <module>: 1 / 0"},
		"package": {
			text: "import nosuchthing\nimport nor_this\n",
			want: "nor_this, nosuchthing|pip install nor_this nosuchthing",
		},
		"late package": {
			text: head + "        import nosuchthing\n",
			want: "net.py:6 in __init__|pip install nosuchthing",
		},
		"exit": {text: "import sys\nsys.exit(3)\n", want: "ended by itself with code 3|net.py:2"},
		"hard exit": {
			text: "import os\nos.write(2, b'last words')\nos._exit(3)\n", want: "exit status 3|last words",
		},
		"crash":   {text: "import ctypes\nctypes.string_at(0)\n", want: "segmentation fault|net.py"},
		"nothing": {text: "x = 1\n", want: "nothing to train"},
		"arguments": {
			text: strings.Replace(head, "self)", "self, width)", 1), want: "'width'|net.py:4 in __init__|arguments",
		},
		"parameters": {text: head, want: "Net has no parameters to train"},
		"several": {
			text: linear + "        return self.f(x.flatten(1))\nclass Other(Net):\n    pass\n",
			want: "Net, Other|name one",
		},
		"user": {
			text: linear + "        return self.f(x)\n", want: "RuntimeError|net.py:8 in forward: return self.f(x)",
		},
		"outputs": {
			text: strings.Replace(linear, "10", "7", 1) + "        return self.f(x.flatten(1))\n",
			want: "[2, 7] for 2 rows|10 classes",
		},
		"memory": {text: linear + "        raise MemoryError\n", want: "MemoryError|net.py:8", kind: disdel.OOM},
		"endless": {
			text: "import time\ntime.sleep(9999)\n", want: "net.py:2 in <module>: time.sleep(9999)",
			kind: disdel.Timeout,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, needTorch(t), map[string]string{"net.py": c.text})
			if c.kind == disdel.Timeout {
				o.Timeout = 15 * time.Second
			}
			_, _, err := program.Describe(t.Context(), o)
			if want := cmp.Or(c.kind, disdel.Invalid); disdel.KindOf(err) != want {
				t.Fatalf("error %v of kind %v, want %v", err, disdel.KindOf(err), want)
			}
			full := err.Error() + " | " + disdel.AsError(err).Hint
			for want := range strings.SplitSeq(c.want, "|") {
				if !strings.Contains(full, want) {
					t.Errorf("%q does not say %q", full, want)
				}
			}
			if disdel.AsError(err).Hint == "" {
				t.Errorf("%q has no hint", full)
			}
		})
	}
}

// If the network refuses a batch size, the description lacks it and has the others.
func TestABatchThatTheNetworkRefusesIsLeftOut(t *testing.T) {
	o := options(t, needTorch(t), map[string]string{"net.py": `
from torch import nn
def net():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, 10))
`})
	o.Python.Entry, o.Batches = "net", []int{1, 4, 16} // one row has no variance
	python, _, err := program.Describe(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p := python.Network.Python
	if len(p.Memory) != 2 || p.Memory[0].Batch != 4 || p.Basis != disdel.MemoryTraced {
		t.Errorf("basis %s, memory %v, want batches 4 and 16", p.Basis, p.Memory)
	}
}

// Prints of a program are no answer, whatever they look like and however many there are.
func TestPrintsAreNoAnswer(t *testing.T) {
	o := options(t, needTorch(t), map[string]string{"net.py": network + `
for i in range(3000):
    print("disdel-description: {}", "x" * 20000)
`, "layers.py": layers})
	if _, _, err := program.Describe(t.Context(), o); err != nil {
		t.Error(err)
	}
}

// Files above the limit are refused, with the way on.
func TestALargeProgramIsRefused(t *testing.T) {
	o := options(t, needTorch(t), map[string]string{
		"mine/net.py": "def train(run):\n    pass\n", "mine/data.bin": strings.Repeat("x", program.MaxArchive),
	})
	o.Python.File = "mine"
	_, _, err := program.Describe(t.Context(), o)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "8.00 MB") {
		t.Errorf("error %v, want one that says 8.00 MB", err)
	}
}

// A description that is stopped leaves no process: the child would hold the machine.
func TestAStoppedDescriptionLeavesNoProcess(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "pid")
	o := options(t, needTorch(t), map[string]string{"net.py": `
import os, subprocess, time
child = subprocess.Popen(["sleep", "9999"])
open("` + mark + `.part", "w").write("%d %d" % (os.getpid(), child.pid))
os.rename("` + mark + `.part", "` + mark + `")
time.sleep(9999)
`})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, _, err := program.Describe(ctx, o)
		ended <- err
	}()
	wait.Until(t, "program that runs", func() bool { _, err := os.Stat(mark); return err == nil })
	stop()
	if err := <-ended; !errors.Is(err, disdel.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	pids, _ := os.ReadFile(mark)
	for pid := range strings.FieldsSeq(string(pids)) {
		wait.Until(t, "end of the process", func() bool {
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	}
}
