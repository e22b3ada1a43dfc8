package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/disdel/disdel"
)

// programTakenOver has what a restart could lose: dropout's draws, statistics of batch norm, and a count of batches.
const programTakenOver = `
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2), nn.Flatten())
        self.head = nn.Linear(144, 10)

    def forward(self, x):
        return self.head(self.body(x))
`

const jobTakenOver = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: own}
model: {python: {file: net.py, entry: Net}}
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 6, batchSize: 32, optimizer: {adam: {learningRate: 0.002}}}
distribution: {workers: 2, aggregation: {optimizer: average}}
reliability: {checkpointEvery: 1}
resources: {memory: 400MB}
`

// A server that is killed leaves a job of a Python program to the next one, which comes to the same bits.
func TestAServerTakesOverAJobOfAPythonProgram(t *testing.T) {
	if torchPython() == "" {
		t.Skip("no Python here has PyTorch: install python3-torch, or name a Python with DISDEL_TEST_PYTHON")
	}
	t.Parallel()
	d := build(t)
	// The first is for commands; a server takes the python3 of its path.
	d.env = []string{
		"DISDEL_PYTHON=" + torchPython(),
		"PATH=" + filepath.Dir(torchPython()) + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
	job := d.file(jobTakenOver)
	if err := os.WriteFile(filepath.Join(filepath.Dir(job), "net.py"), []byte(programTakenOver), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := d.run("submit", job, "-q"); code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	want := d.weights("own")

	first := d.serves("first")
	submit, _, said := d.command("--context", "first", "submit", job)
	if err := submit.Start(); err != nil {
		t.Fatal(err)
	}
	d.until("a checkpoint", func() bool {
		list := d.checkpoints()
		return len(list) > 0 && filepath.Base(filepath.Dir(list[len(list)-1])) >= "000002"
	})
	first.Process.Kill()
	first.Wait()
	submit.Process.Kill() // it waits for its server
	submit.Wait()
	if submit.ProcessState.Success() {
		t.Fatalf("the job ended before its server was killed:\n%s", said)
	}
	d.until("the containers' end", func() bool { return len(d.children()) == 0 })

	second := d.serves("second")
	_, errs, code := d.run("--context", "second", "job", "wait", "@last")
	out, _, _ := d.run("--context", "second", "history", "show", "@last", "-o", "json")
	var rec disdel.Record
	if err := json.Unmarshal([]byte(out), &rec); code != 0 || err != nil {
		t.Fatalf("exit %d, %v\n%s%s", code, err, errs, out)
	}
	if rec.Status != disdel.StatusSucceeded || rec.Resumes != 1 {
		t.Errorf("the job is %s after %d resumes: %v", rec.Status, rec.Resumes, rec.Failure)
	}
	second.Process.Signal(os.Interrupt)
	second.Wait()
	if d.weights("own") != want {
		t.Error("the weights differ from those of a job that nobody disturbed")
	}
	d.nothingStays()
}

var servesAt = regexp.MustCompile(`"url": *"(http://[^"]+)"`)

// serves starts a server in the home and adds a context for it. The server ends with the test.
func (d *tool) serves(context string) *exec.Cmd {
	d.t.Helper()
	cmd, _, errs := d.command("serve", "--listen", "127.0.0.1:0", "-o", "json")
	document := filepath.Join(d.t.TempDir(), "serve.json")
	out, err := os.Create(document)
	if err != nil {
		d.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() //nolint:errcheck // it may have ended
	})
	var url string
	d.until("a server that listens", func() bool {
		text, _ := os.ReadFile(document)
		if m := servesAt.FindSubmatch(text); m != nil {
			url = string(m[1])
		}
		return url != ""
	})
	token := filepath.Join(d.home, "server.token")
	if _, said, code := d.run("context", "add", context, "--server", url, "--token-file", token); code != 0 {
		d.t.Fatalf("exit %d\n%s%s", code, said, errs)
	}
	return cmd
}
