package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

// A killing ends one process of a running job.
type killing string

const (
	child      killing = "child"      // the Python process of an action
	action     killing = "action"     // the container around it
	controller killing = "controller" // the command that runs the job, with its platform
)

// kills trains one job without and many with a kill at a drawn moment, and prints how many end with other weights or not
// at all.
func (b *bencher) kills() error {
	d, err := b.draw("kills", 640, 1, 28, 28)
	if err != nil {
		return err
	}
	want, took, err := b.undisturbed(d)
	if err != nil {
		return err
	}
	differ, lost, killed := 0, 0, 0
	kinds := []killing{child, action, controller}
	for i := range b.disturbed {
		kind := kinds[i%len(kinds)]
		after := time.Duration(b.rng.Float64() * float64(took))
		got, hit, err := b.killedJob(d, kind, after)
		switch {
		case err != nil:
			lost++
			fmt.Fprintf(os.Stderr, "bench: %s killed after %v: %v\n", kind, after, err)
		case got != want:
			differ++
			fmt.Fprintf(os.Stderr, "bench: %s killed after %v: weights %s, want %s\n", kind, after, got, want)
		}
		if hit {
			killed++
		}
	}
	rig.Figure("function_kills", float64(killed), "kills")
	rig.Figure("function_bits", float64(differ), "jobs that end with other weights")
	rig.Figure("function_lost_jobs", float64(lost), "jobs")
	return nil
}

// disturbable are the arguments of the job: two workers, six rounds, and batch norm's whole numbers among its arrays.
func (b *bencher) disturbable(d data) []string {
	args := []string{
		"submit", filepath.Join(b.programs, "drawn.py") + ":Net", "--data", "dataset://" + d.name, "--python", b.python,
		"-o", "json", "-q",
	}
	for _, set := range []string{
		"distribution.workers=2", "training.epochs=6", "training.batchSize=32",
		"training.optimizer={adam: {learningRate: 0.001}}",
		"model.python.arguments={kind: convolutions, width: 16, depth: 2}",
	} {
		args = append(args, "--set", set)
	}
	return args
}

// undisturbed trains the job, and returns the digest of its weights and how long it took.
func (b *bencher) undisturbed(d data) (weights string, took time.Duration, err error) {
	begin := time.Now()
	out, err := b.Run(nil, b.disturbable(d)...)
	if err != nil {
		return "", 0, err
	}
	weights, err = b.weightsOf(out)
	return weights, time.Since(begin), err
}

// weightsOf is a digest of the values of a job's model. The file's header names the job.
func (b *bencher) weightsOf(record []byte) (string, error) {
	var rec disdel.Record
	if err := json.Unmarshal(record, &rec); err != nil {
		return "", err
	}
	if rec.Model == nil {
		return "", fmt.Errorf("job %s is %s and has no model", rec.ID, rec.Status)
	}
	file, err := os.ReadFile(filepath.Join(b.Home, "models", filepath.FromSlash(rec.Model.Path)))
	if err != nil {
		return "", err
	}
	const lengthBytes = 8
	header := binary.LittleEndian.Uint64(file)
	return fmt.Sprintf("%x", sha256.Sum256(file[lengthBytes+header:])), nil
}

// killedJob trains the job and kills a process of it after a time. hit tells whether there was one.
func (b *bencher) killedJob(d data, kind killing, after time.Duration) (weights string, hit bool, err error) {
	cmd := exec.Command(b.Path, b.disturbable(d)...)
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+b.Home)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		return "", false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for end := time.Now().Add(after); !hit; time.Sleep(time.Millisecond) {
		select {
		case err := <-ended: // before there was a process of the kind
			if err != nil {
				return "", false, fmt.Errorf("%w: %s", err, said.String())
			}
			weights, err = b.weightsOf([]byte(out.String()))
			return weights, false, err
		default:
		}
		if time.Now().After(end) {
			hit = kind.strike(cmd.Process.Pid)
		}
	}
	err = <-ended
	if kind == controller {
		return b.resumed(said.String())
	}
	if err != nil {
		return "", true, fmt.Errorf("%w: %s", err, said.String())
	}
	weights, err = b.weightsOf([]byte(out.String()))
	return weights, true, err
}

// resumed continues the newest job, whose controller was killed.
func (b *bencher) resumed(said string) (weights string, hit bool, err error) {
	out, err := b.Run(nil, "resume", "@last", "--from-start", "-o", "json", "-q")
	if err != nil {
		return "", true, errors.Join(err, errors.New(said))
	}
	weights, err = b.weightsOf(out)
	return weights, true, err
}

// strike kills a process of the kind among those that a command has started, and tells whether there is one.
func (k killing) strike(command int) bool {
	for _, pid := range startedBy(command) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		words := strings.Split(string(line), "\x00")
		python := len(words) > 4 && (words[4] == "disdel.worker" || words[4] == "disdel.forks" && parentOf(pid) != command)
		if k == controller && len(words) > 2 && words[1] == "runtime" { // the job has a record by now
			return syscall.Kill(command, syscall.SIGKILL) == nil
		}
		if k == child && python || k == action && len(words) > 2 && words[1] == "runtime" {
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}

// startedBy lists the processes that a process and its children have started.
func startedBy(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				out = append(append(out, child), startedBy(child)...)
			}
		}
	}
	return out
}

func parentOf(pid int) (parent int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fmt.Sscanf(rest, "%1s %d", new(string), &parent) //nolint:errcheck // of a process that has ended
	return parent
}
