package python

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
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

const rows, classes = 6, 3

var input = []int{1, 4, 4}

// header begins the programs of tests.
const header = `
import os, sys, time
import torch
from torch import nn

`

// small is a network with all sorts of arrays: batch norm's statistics and count, and dropout's random numbers.
const small = header + `
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(64, 3)
        self.register_buffer("large", torch.tensor([2**40 + 1, -3]))

    def forward(self, x):
        return self.out(self.drop(torch.tanh(self.norm(self.conv(x)))).flatten(1))
`

// described is a program on disk, as a job has it.
type described struct {
	folder string
	graph  *model.Graph
	python disdel.Python
}

// descriptions are those of this test program: each takes seconds.
var (
	descriptions sync.Map // source and optimiser -> described
	folders      string   // of the programs
)

func TestMain(m *testing.M) {
	var err error
	if folders, err = os.MkdirTemp("", "programs-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folders)
	os.Exit(code)
}

// describe writes a program and describes it.
func describe(t *testing.T, source string, optimizer disdel.Optimizer) described {
	t.Helper()
	if torch() == "" {
		t.Skip("no Python on this machine has torch; Debian's package is python3-torch")
	}
	key := source + optimizer.Name()
	if known, ok := descriptions.Load(key); ok {
		return known.(described)
	}
	d, err := describeAnew(t, source, optimizer)
	if err != nil {
		t.Fatal(err)
	}
	descriptions.Store(key, d)
	return d
}

func describeAnew(t *testing.T, source string, optimizer disdel.Optimizer) (d described, err error) {
	t.Helper()
	if d.folder, err = os.MkdirTemp(folders, "p-"); err != nil {
		return d, err
	}
	if err = os.WriteFile(filepath.Join(d.folder, "net.py"), []byte(source), 0o600); err != nil {
		return d, err
	}
	d.python, _, err = program.Describe(t.Context(), program.Options{
		Python: disdel.Python{File: "net.py"}, Dir: d.folder, Input: input, Classes: classes, Batches: []int{rows},
		Loss: "crossEntropy", Optimizer: optimizer, Interpreter: torch(), Cache: filepath.Join(folders, "cache"),
	})
	if err != nil {
		return d, err
	}
	d.graph, err = model.Build(disdel.Network{Custom: d.python.Network, Input: input, Classes: classes})
	return d, err
}

// misbehaving is a program that was described as the small one, and then does something else in its forward.
func misbehaving(t *testing.T, imports, forward string) described {
	t.Helper()
	d := describe(t, small, adam)
	source := strings.Replace(imports+small, "    def forward(self, x):\n", "    def forward(self, x):\n        "+
		strings.ReplaceAll(strings.TrimSpace(forward), "\n", "\n        ")+"\n", 1)
	d.folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(d.folder, "net.py"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

var adam = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}}

// spec is what an engine of the program is made for.
func (d described) spec(optimizer disdel.Optimizer) engine.Spec {
	if own := d.python.Network.Python.Optimizer; own != nil {
		optimizer = disdel.Optimizer{Own: own}
	}
	return engine.Spec{
		Graph: d.graph, Code: d.folder, BatchSize: rows, Optimizer: optimizer, Loss: "crossEntropy", Threads: 1,
		Training: true,
	}
}

// start makes an engine that ends with the test.
func start(t *testing.T, s engine.Spec) *Engine {
	t.Helper()
	e, err := newTestEngine(t, Backend{}, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Init(disdel.Init{Seed: 7}); err != nil {
		t.Fatal(err)
	}
	e.SetSeed(11)
	return e
}

func newTestEngine(t *testing.T, b Backend, s engine.Spec) (*Engine, error) {
	t.Helper()
	c, err := b.check(&s)
	if err != nil {
		return nil, err
	}
	if b.Stdout == nil {
		b.Stdout, b.Stderr = new(log), new(log)
	}
	e, err := newEngine(s, c, b)
	if err == nil {
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return e, err
}

// log is what a program printed.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// batch is rows by a number.
func batch(number int) dataset.Batch {
	n := rows
	if number%3 == 2 {
		n = rows / 2
	}
	b := dataset.Dense(n, make([]float32, n*16), make([]int32, n))
	for i := range b.Input.Values {
		b.Input.Values[i] = float32((i*7+number*13)%11)/11 - 0.4
	}
	for i := range b.Target.Classes {
		b.Target.Classes[i] = int32((i + number) % classes)
	}
	return b
}

// steps trains on the batches from (included) to (not).
func steps(t *testing.T, e *Engine, from, to int) (losses []float64) {
	t.Helper()
	for i := from; i < to; i++ {
		m, err := e.Step(batch(i))
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		losses = append(losses, m.Loss)
	}
	return losses
}

// same compares bits.
func same(t *testing.T, what string, want, got disdel.Weights) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d arrays, want %d", what, len(got), len(want))
	}
	for i := range want {
		if want[i].Name != got[i].Name || !slices.Equal(want[i].Data, got[i].Data) {
			t.Errorf("%s: %s is %.5v, want %.5v", what, got[i].Name, got[i].Data, want[i].Data)
		}
	}
}

func everything(e *Engine) disdel.Weights { return engine.Copies(e.State()) }

// restore sets the state of an engine.
func restore(t *testing.T, e *Engine, state disdel.Weights) {
	t.Helper()
	to := e.State()
	for i, v := range state {
		if err := to[i].Set(v); err != nil {
			t.Fatal(err)
		}
	}
}

// alive tells whether a process exists.
func alive(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(state), ") Z ")
}

// wants fails unless an error is of a kind and has these words.
func wants(t *testing.T, err error, kind disdel.Kind, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error %v of kind %v, want %v", err, disdel.KindOf(err), kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not have %q", err, w)
		}
	}
}
