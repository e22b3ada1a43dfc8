package faults

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// Rig runs jobs and disturbs them. It is for one goroutine.
type Rig struct {
	Program string        // the built disdel
	Dir     string        // of the homes; those of jobs that were lost or changed stay
	Job     []byte        // the job file: Job's, or ExchangeJob's
	Data    []string      // the command that adds the job's data set; nil: the digits
	Pace    time.Duration // the longest wait from one fault to the next
	PerJob  int           // most faults of one job
	Log     io.Writer     // gets the jobs that were lost or changed
	Differs bool          // two runs of the job differ: it is asked for a model alone, and none is Changed

	rng   *rand.Rand
	want  result // of the job left alone
	homes int
	auth  string // key of another process's platform, "" for the embedded one
}

// Tally is what came of the jobs that were disturbed.
type Tally struct {
	Faults     int
	Jobs       int
	Lost       int // ended without a model
	Changed    int // ended with other bits
	Aggregates int // aggregate activations that died
	Duplicates int // deliveries that were found done already
	Back       int // the most rounds that a job went back at once
}

// result is what a job came to, as far as it must not depend on what happened on the way.
type result struct {
	weights  string // checksum of the model's tensors
	accuracy float64
}

// Job is the file of a job of a few seconds. It has a tree of two levels, dropout, an optimiser with state, and rounds
// of less than an epoch: whatever is lost or done twice changes its weights. It has 6 rounds an epoch.
func Job(epochs, checkpointEvery int) []byte {
	return fmt.Appendf(nil, `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: faults}
model: {name: digits-cnn}
data: {source: "dataset://digits", split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: %d, batchSize: 16, optimizer: {adam: {learningRate: 0.002}}}
distribution:
  workers: 4
  sync: {every: 5}
  aggregation: {fanIn: 2, optimizer: average}
reliability:
  checkpointEvery: %d
  retries: {limit: 1000, perWorker: 1000, backoff: {initial: 20ms, max: 500ms}}
`, epochs, checkpointEvery)
}

// StagedJob is the file of a job that trains two networks side by side, each in two stages.
func StagedJob(epochs, checkpointEvery int) []byte {
	return []byte(strings.NewReplacer("workers: 4", "workers: 2\n  stages: 2", "optimizer: average", "optimizer: keep",
		"batchSize: 16", "batchSize: 64, microBatch: 16").Replace(string(Job(epochs, checkpointEvery))))
}

// ExchangeJob is the file of a job whose workers exchange updates after every step, as exchange says, on ExchangeData.
// A round is an epoch and has some 80 steps. more are further lines of its distribution.
func ExchangeJob(epochs int, exchange string, more ...string) []byte {
	for _, line := range more {
		exchange += "\n  " + line
	}
	return fmt.Appendf(nil, `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: faults}
model: {name: pmf, rank: 8}
data: {source: "dataset://films"}
training:
  epochs: %d
  batchSize: 25
  optimizer: {sgd: {learningRate: 0.2, momentum: 0.8, nesterov: true}}
distribution:
  workers: 4
  exchange: %s
reliability:
  checkpointEvery: 2
  retries: {limit: 1000, perWorker: 1000, backoff: {initial: 20ms, max: 500ms}}
`, epochs, exchange)
}

// ExchangeData is the command that adds the data set of ExchangeJob.
func ExchangeData() []string {
	return strings.Fields("dataset generate ratings films --users 200 --items 100 --rows 9000 --seed 5")
}

// Seeded returns a rig whose moments and victims follow from seed.
func Seeded(program, dir string, job []byte, seed uint64) *Rig {
	return &Rig{
		Program: program, Dir: dir, Job: job, Pace: time.Second, PerJob: 20, Log: os.Stderr,
		rng: rand.New(rand.NewPCG(seed, 0xfa017)),
	}
}

// Undisturbed runs the job once left alone, keeps what it comes to as what every other must, and returns the time it
// took.
func (r *Rig) Undisturbed() (time.Duration, error) {
	home, job, err := r.home()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	r.want, _, err = r.start(home, "submit", job).wait()
	return time.Since(start), err
}

// Beside returns a rig for the same job in another folder, with moments and victims of its own. It expects what the
// undisturbed job of r came to.
func (r *Rig) Beside(dir string, seed uint64) *Rig {
	other := Seeded(r.Program, dir, r.Job, seed)
	other.Data, other.Pace, other.PerJob, other.Log = r.Data, r.Pace, r.PerJob, r.Log
	other.Differs, other.want = r.Differs, r.want
	return other
}

// random is a duration below maximum.
func (r *Rig) random(maximum time.Duration) time.Duration {
	return time.Duration(r.rng.Int64N(int64(maximum)))
}

// home makes a fresh home with the digits in it, and a job file.
func (r *Rig) home() (home, job string, err error) {
	r.homes++
	home = filepath.Join(r.Dir, fmt.Sprintf("%03d", r.homes))
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", "", err
	}
	job = filepath.Join(home, "job.yaml")
	if err := os.WriteFile(job, r.Job, 0o644); err != nil {
		return "", "", err
	}
	data := r.Data
	if data == nil {
		data = []string{"dataset", "add", "digits"}
	}
	out, err := r.command(home, append(slices.Clone(data), "-q")...).CombinedOutput()
	if err != nil {
		return "", "", fmt.Errorf("%s: %w: %s", strings.Join(data, " "), err, out)
	}
	return home, job, nil
}

func (r *Rig) command(home string, args ...string) *exec.Cmd {
	cmd := exec.Command(r.Program, args...)
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+home)
	if r.auth != "" {
		cmd.Env = append(cmd.Env, "DISDEL_AUTH="+r.auth)
	}
	return cmd
}

// disturb runs jobs, with args of submit besides, until there were enough faults. hit tells how many there
// were since the last time, one that it made itself among them.
func (r *Rig) disturb(faults int, hit func(p *process) (int, error), args ...string) (Tally, error) {
	var t Tally
	for ; t.Faults < faults; t.Jobs++ {
		home, job, err := r.home()
		if err != nil {
			return t, err
		}
		p := r.start(home, append([]string{"submit", job}, args...)...)
		for n := 0; p.runs(r.random(r.Pace)); {
			if n >= r.PerJob || t.Faults >= faults {
				continue
			}
			more, err := hit(p)
			if err != nil {
				return t, errors.Join(err, p.cmd.Process.Kill())
			}
			n, t.Faults = n+more, t.Faults+more
		}
		res, rec, err := p.wait()
		r.judge(&t, home, res, rec, err)
	}
	return t, nil
}

// judge counts what came of a job.
func (r *Rig) judge(t *Tally, home string, res result, rec disdel.Record, err error) {
	t.Aggregates += deadAggregates(rec)
	t.Back = max(t.Back, wentBack(rec))
	for _, round := range rec.Rounds {
		t.Duplicates += round.Duplicates
	}
	switch {
	case err != nil:
		fmt.Fprintf(r.Log, "lost (%s): %v\n", home, err)
		t.Lost++
	case res != r.want && !r.Differs:
		fmt.Fprintf(r.Log, "changed (%s): %+v, not %+v\n", home, res, r.want)
		t.Changed++
	default:
		os.RemoveAll(home) //nolint:errcheck // the whole folder goes at the end
	}
}

func deadAggregates(rec disdel.Record) int {
	n := 0
	for _, a := range rec.Activations {
		if a.Task == disdel.TaskAggregate && a.Outcome != disdel.OutcomeSuccess {
			n++
		}
	}
	return n
}

// wentBack is the most rounds that a job's training went back at once.
func wentBack(rec disdel.Record) int {
	newest, maximum := 0, 0
	for _, a := range rec.Activations {
		if a.Task == disdel.TaskTrain {
			maximum, newest = max(maximum, newest-a.Round), max(newest, a.Round)
		}
	}
	return maximum
}
