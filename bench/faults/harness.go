package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
)

// harness runs jobs and disturbs them.
type harness struct {
	program  string
	dir      string
	rng      *rand.Rand
	want     result // of the job left alone
	homes    int
	failures int
}

// result is what a job came to, as far as it must not depend on what happened on the way.
type result struct {
	weights  string // checksum of the model's tensors
	accuracy float64
}

// jobText is a job of a few seconds with a tree of two levels, dropout, an optimiser with state, and rounds of less than an
// epoch: whatever is lost or done twice changes its weights.
const jobText = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: faults}
model: {name: digits-cnn}
data: {source: "dataset://digits", split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: 10, batchSize: 16, optimizer: {adam: {learningRate: 0.002}}}
distribution:
  workers: 4
  sync: {every: 5}
  aggregation: {fanIn: 2, optimizer: average}
reliability:
  retries: {limit: 1000, perWorker: 1000, backoff: {initial: 20ms, max: 500ms}}
`

// home makes a fresh home with the digits in it, and a job file.
func (h *harness) home() (home, job string, err error) {
	h.homes++
	home = filepath.Join(h.dir, fmt.Sprintf("%03d", h.homes))
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", "", err
	}
	job = filepath.Join(home, "job.yaml")
	if err := os.WriteFile(job, []byte(jobText), 0o644); err != nil {
		return "", "", err
	}
	out, err := h.command(home, "dataset", "add", "digits", "-q").CombinedOutput()
	if err != nil {
		return "", "", fmt.Errorf("dataset add digits: %w: %s", err, out)
	}
	return home, job, nil
}

func (h *harness) command(home string, args ...string) *exec.Cmd {
	cmd := exec.Command(h.program, args...)
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+home)
	return cmd
}

// undisturbed is what the job comes to when it is left alone.
func (h *harness) undisturbed() (result, error) {
	home, job, err := h.home()
	if err != nil {
		return result{}, err
	}
	start := time.Now()
	r, err := h.started(home, "submit", job).wait()
	if err == nil {
		figure("faults_job_s", time.Since(start).Seconds(), "s")
	}
	return r, err
}

// weightsOf is a checksum of a file's tensors: its metadata has the job's id.
func weightsOf(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, t := range f.Tensors {
		fmt.Fprintln(sum, t.Name, t.Shape)
		sum.Write(t.Data)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// process is a disdel that runs a job.
type process struct {
	home     string
	cmd      *exec.Cmd
	out, err bytes.Buffer
	done     chan struct{}
	fail     error
}

func (h *harness) started(home string, args ...string) *process {
	p := &process{home: home, cmd: h.command(home, append(args, "-o", "json", "-q")...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if p.fail = p.cmd.Start(); p.fail != nil {
		close(p.done)
		return p
	}
	go func() {
		p.fail = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// errNotAccepted is a job that disdel was killed before it had accepted: there is nothing to lose.
var errNotAccepted = errors.New("the job was not accepted")

// wait returns what the job came to.
func (p *process) wait() (r result, err error) {
	<-p.done
	switch {
	case p.fail != nil && bytes.Contains(p.err.Bytes(), []byte(`there is no job "@last"`)):
		return r, errNotAccepted
	case p.fail != nil:
		return r, fmt.Errorf("%w: %s", p.fail, bytes.TrimSpace(p.err.Bytes()))
	}
	var rec disdel.Record
	if err := json.Unmarshal(p.out.Bytes(), &rec); err != nil {
		return r, err
	}
	if rec.Model == nil {
		return r, fmt.Errorf("%s ended as %v without a model", rec.ID, rec.Status)
	}
	sum, err := weightsOf(filepath.Join(p.home, "models", rec.Model.Path))
	return result{sum, rec.Accuracy}, err
}

// running waits a random time of up to most, and tells whether the process still runs.
func (p *process) running(rng *rand.Rand, most time.Duration) bool {
	select {
	case <-p.done:
		return false
	case <-time.After(time.Duration(rng.Int64N(int64(most)))):
		return true
	}
}

// judge counts a job that was lost or changed.
func (h *harness) judge(home string, r result, err error) (lost, changed int) {
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "lost (%s): %v\n", home, err)
		lost = 1
	case r != h.want:
		fmt.Fprintf(os.Stderr, "changed (%s): %+v, not %+v\n", home, r, h.want)
		changed = 1
	default:
		os.RemoveAll(home) //nolint:errcheck // the whole folder goes at the end
	}
	h.failures += lost + changed
	return lost, changed
}
