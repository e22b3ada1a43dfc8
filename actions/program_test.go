package actions

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/internal/test/wait"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
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

// convolutional is a program for the digits. While it trains it looks into a file whether it is to kill itself.
const convolutional = `
import os
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, orders=""):
        super().__init__()
        self.orders = orders
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2), nn.Flatten())
        self.head = nn.Linear(288, 10)

    def forward(self, x):
        if self.training and self.orders and os.path.exists(self.orders):
            left = int(open(self.orders).read())
            if left == 0:
                os.remove(self.orders)
                os.kill(os.getpid(), 9)
            with open(self.orders, "w") as f:
                f.write(str(left - 1))
        return self.head(self.body(x))
`

// withProgram has a job train a program, and returns the blob URL of its models.
func (b *bench) withProgram(source string, arguments map[string]any) (models string) {
	b.t.Helper()
	if torch() == "" {
		b.t.Skip("no Python on this machine has torch; Debian's package is python3-torch")
	}
	dir := b.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "net.py"), []byte(source), 0o600); err != nil {
		b.t.Fatal(err)
	}
	described, archive, err := program.Describe(b.t.Context(), program.Options{
		Python: disdel.Python{File: "net.py", Arguments: arguments}, Dir: dir, Input: b.net.Input, Classes: b.net.Classes,
		Batches: []int{16}, Loss: "crossEntropy", Optimizer: b.train(0).Optimizer, Interpreter: torch(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	models = "file://" + b.t.TempDir()
	store, err := modelstore.Open(b.t.Context(), models)
	if err != nil {
		b.t.Fatal(err)
	}
	if code, err := store.WriteProgram(b.t.Context(), archive); err != nil || code != described.Code {
		b.t.Fatalf("stored as %s, described as %s: %v", code, described.Code, err)
	}
	b.net.Name, b.net.Custom = "", described.Network
	return models
}

// What a user's program holds fills the estimate. The limit of the collector leaves room nevertheless while steps
// compute: at its limit the collector runs for each message of a step.
func TestTheCollectorHasRoomBesideAProgram(t *testing.T) {
	b := setUp(t)
	models := b.withProgram(convolutional, nil)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	var highest int64 // limit at a look at memory
	h := NewHost(func(pids ...int) (disdel.Bytes, disdel.Bytes) {
		highest = max(highest, debug.SetMemoryLimit(-1))
		return probe(pids...)
	}, backends.Standard(nil))
	defer h.Close()
	req := b.train(0)
	req.Models, req.Memory, req.Estimate = models, disdel.GB, disdel.MB
	if _, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req); err != nil {
		t.Fatal(err)
	}
	if highest <= int64(leastHeap) {
		t.Errorf("the highest limit at a look is %d", highest)
	}
}

// Two workers, one aggregation, one evaluation, one inference: every task once with a user's program.
func TestARoundOfAPython(t *testing.T) {
	b := setUp(t)
	models := b.withProgram(convolutional, nil)
	cold := NewHost(probe, backends.Standard(nil))
	defer cold.Close()
	req := b.train(1)
	req.Models = models
	if _, err := ask[disdel.TrainResult](t, cold, disdel.TaskTrain, req); err != nil {
		t.Fatal(err)
	}
	want := engine.Weights(cold.built.engine)
	b.forget()
	if err := cold.Close(); err != nil {
		t.Fatal(err)
	}
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	var members []disdel.UpdateID
	var processes []int
	for w := range 2 {
		req := b.train(w)
		req.Models = models
		res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Losses) != 2 || res.Losses[1] >= res.Losses[0] || len(res.Accuracies) != 2 || res.Accuracies[1] <= 0.1 ||
			!strings.Contains(res.Usage.Kernels, "torch") {
			t.Errorf("worker %d: %+v", w, res)
		}
		members = append(members, disdel.UpdateID{Job: "job-1", Member: w})
		processes = append(processes, workers()...)
	}
	if len(processes) != 2 || processes[0] != processes[1] {
		t.Errorf("the workers trained in the processes %v, want one", processes)
	}
	if diff := weightsDiff(want, engine.Weights(h.built.engine)); diff != "" {
		t.Errorf("a worker in a warm process of another one (-cold +warm):\n%.300s", diff)
	}
	path := modelstore.WeightsPath("m", "job-1")
	agg, err := ask[disdel.AggregateResult](t, h, disdel.TaskAggregate, disdel.AggregateRequest{
		Job: "job-1", Level: 1, Attempt: 1, Members: members, Top: true, Store: b.store, Network: b.net, Models: models,
		WeightsKey: path,
	})
	if err != nil {
		t.Fatal(err)
	}
	eval, err := ask[disdel.EvaluateResult](t, h, disdel.TaskEvaluate, disdel.EvaluateRequest{
		Job: "job-1", Network: b.net, Data: b.data, Rows: disdel.RowRange{End: 200}, BatchSize: 50, Loss: "crossEntropy",
		Models: models, Store: b.store,
	})
	if err != nil || eval.Samples != 200 || eval.Accuracy < 0.3 || eval.Loss <= 0 || eval.ByClass == nil {
		t.Errorf("%+v, %v", eval, err)
	}
	inf, err := ask[disdel.InferResult](t, h, disdel.TaskInfer, disdel.InferRequest{
		Models: models, WeightsKey: path, Checksum: agg.Checksum, Network: b.net, Inputs: [][]float32{make([]float32, 64)},
	})
	if err != nil || len(inf.Classes) != 1 || len(inf.Probabilities[0]) != 10 {
		t.Fatalf("%+v, %v", inf, err)
	}
	var sum float32
	for _, p := range inf.Probabilities[0] {
		sum += p
	}
	if sum < 0.999 || sum > 1.001 {
		t.Errorf("probabilities %v", inf.Probabilities)
	}
	root := h.code.root
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); err == nil || root == "" {
		t.Errorf("the program's files are still in %q", root)
	}
}

// A program that is killed at drawn steps of a round, and another one between rounds, come to the bits of one that
// nobody disturbs.
func TestKilledProgramsComeToTheSameBits(t *testing.T) {
	orders := filepath.Join(t.TempDir(), "orders")
	b := setUp(t)
	models := b.withProgram(convolutional, map[string]any{"orders": orders})
	request := func(round, attempt int) disdel.TrainRequest {
		req := b.train(0)
		req.Models, req.Round, req.Attempt, req.SaveEvery, req.Epochs = models, round, attempt, 1, 3
		return req
	}
	// run trains two rounds and returns the updates; before is called before each attempt.
	run := func(before func(h *Host, round, attempt int)) (out []disdel.Update, attempts int) {
		h := NewHost(probe, backends.Standard(nil))
		defer h.Close()
		for round := range 2 {
			for attempt := 1; ; attempt++ {
				before(h, round, attempt)
				attempts++
				res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, request(round, attempt))
				if err == nil && res.Duplicate {
					t.Fatalf("round %d was delivered before", round)
				}
				if err == nil {
					break
				}
				if !errors.Is(err, disdel.Crashed) || attempt > 9 {
					t.Fatal(err)
				}
			}
			u := b.fetch(round, h)
			if err := b.board.PutReference(t.Context(), "job-1", round+1, u.Weights); err != nil {
				t.Fatal(err)
			}
			out = append(out, u)
		}
		if _, err := b.board.Sweep(t.Context(), "job-1"); err != nil {
			t.Fatal(err)
		}
		return out, attempts
	}
	want, attempts := run(func(*Host, int, int) {})
	if attempts != 2 {
		t.Fatalf("%d attempts without a kill", attempts)
	}
	draw := rand.New(rand.NewPCG(2, 3))
	got, attempts := run(func(h *Host, round, attempt int) {
		if round == 1 && attempt == 1 {
			killWorkers(t) // the engine is warm and its process gone, which costs no attempt
		}
		if attempt <= 2 {
			if err := os.WriteFile(orders, []byte(strconv.Itoa(draw.IntN(6))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	if attempts != 6 {
		t.Errorf("%d attempts, want three for each round", attempts)
	}
	for round := range want {
		if diff := weightsDiff(want[round].Weights, got[round].Weights); diff != "" {
			t.Errorf("round %d: weights differ:\n%.300s", round, diff)
		}
	}
}

// killWorkers kills the Python processes that this process has started.
func killWorkers(t *testing.T) {
	t.Helper()
	for _, pid := range workers() {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may be gone
		wait.Until(t, fmt.Sprintf("end of process %d", pid), func() bool { return syscall.Kill(pid, 0) != nil })
	}
}

func workers() (out []int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range list {
		text, _ := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, fields, _ := strings.Cut(string(stat), ") ")
		if bytes.Contains(text, []byte("disdel.worker")) && strings.Fields(fields + " - -")[1] == strconv.Itoa(os.Getpid()) {
			out = append(out, pid)
		}
	}
	return out
}

// A program that does not say how many rows are right has no accuracy, rather than one of 0.
func TestAProgramThatCountsNothing(t *testing.T) {
	b := setUp(t)
	models := b.withProgram(convolutional+`
import disdel

class Twice(disdel.Task):
    def model(self):
        return Net()

    def loss(self, model, batch):
        return nn.functional.cross_entropy(model(batch.x) + model(batch.x), batch.y)
`, nil)
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	req := b.train(0)
	req.Models = models
	res, err := ask[disdel.TrainResult](t, h, disdel.TaskTrain, req)
	if err != nil || len(res.Losses) != 2 || res.Accuracies != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// An exception of the user's ends the action with the user's line, leaves no process, and does not spoil the next.
func TestAFailedProgramLeavesNothing(t *testing.T) {
	b := setUp(t)
	raising := strings.Replace(convolutional, "return self.head",
		"raise ValueError('no rows')\n        return self.head", 1)
	b.withProgram(convolutional, nil)
	described := b.net.Custom
	store := filepath.Join(t.TempDir(), "models")
	models, err := modelstore.Open(t.Context(), "file://"+store)
	if err != nil {
		t.Fatal(err)
	}
	changed, python := *described, *described.Python
	if python.Code, err = models.WriteProgram(t.Context(), zipped(t, map[string]string{"net.py": raising})); err != nil {
		t.Fatal(err)
	}
	changed.Python = &python
	b.net.Custom = &changed
	h := NewHost(probe, backends.Standard(nil))
	defer h.Close()
	req := b.train(0)
	req.Models = "file://" + store
	_, err = ask[disdel.TrainResult](t, h, disdel.TaskTrain, req)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "in forward: ValueError: no rows") {
		t.Errorf("error %v", err)
	}
	if h.built.engine != nil || len(workers()) > 0 {
		t.Errorf("an engine of %v and the processes %v are left", h.built.engine, workers())
	}
}

// An archive is unpacked below its folder and within the bounds, or refused.
func TestArchivesAreUnpackedOrRefused(t *testing.T) {
	race.SkipSequential(t)
	to := filepath.Join(t.TempDir(), "program")
	if err := unpack(zipped(t, map[string]string{"net.py": "a", "part/layers.py": "b"}), to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "part", "layers.py")); err != nil || string(text) != "b" {
		t.Errorf("%q, %v", text, err)
	}
	many := map[string]string{}
	for i := range maxProgramFiles + 1 {
		many[strconv.Itoa(i)] = ""
	}
	for name, archive := range map[string][]byte{
		"escape":   zipped(t, map[string]string{"../net.py": "a"}),
		"absolute": zipped(t, map[string]string{"/net.py": "a"}),
		"large":    zipped(t, map[string]string{"net.py": strings.Repeat("a", maxProgramBytes+1)}),
		"many":     zipped(t, many),
		"no zip":   []byte("no archive"),
		"link":     linked(t),
	} {
		if err := unpack(archive, filepath.Join(t.TempDir(), "program")); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range files {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// linked is an archive with a symbolic link.
func linked(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	h := &zip.FileHeader{Name: "net.py"}
	h.SetMode(os.ModeSymlink | 0o777)
	f, err := w.CreateHeader(h)
	if err == nil {
		_, err = f.Write([]byte("/etc/passwd"))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
