package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/report"
)

var (
	adviceSeed  = flag.Uint64("advice-seed", 1, "of the failures whose reports' commands are run")
	adviceKinds = flag.Int("advice-kinds", 4, "how many kinds of failure, of those there are")
)

// reportOf is the report of a job as -o json has it.
func (d *tool) reportOf(id string) report.Report {
	d.t.Helper()
	out, errs, code := d.run("report", id, "-o", "json")
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		d.t.Fatalf("exit %d, %v\n%s", code, err, errs)
	}
	return r
}

// shell runs lines as a user would who copies them.
func (d *tool) shell(lines []string) (string, error) {
	cmd := exec.Command("sh", "-ec", strings.Join(lines, "\n"))
	cmd.Dir = d.t.TempDir()
	cmd.Env = append(os.Environ(), "DISDEL_HOME="+d.home, "TMPDIR="+d.temp, "PATH="+filepath.Dir(d.path)+":"+
		os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// everyCommandPasses runs each command that the report of a job offers and sees that its job succeeds.
func (d *tool) everyCommandPasses(id string, least int) {
	d.t.Helper()
	r := d.reportOf(id)
	if len(r.Advice.Commands) < least {
		d.t.Errorf("%s: %d commands: %s", id, len(r.Advice.Commands), r.Advice.Why)
	}
	for _, c := range r.Advice.Commands {
		if out, err := d.shell(c.Lines); err != nil {
			d.t.Errorf("%s (%s), %s: %v\n%s\n%s", id, r.Failure.Cause, c.When, err, strings.Join(c.Lines, "\n"), out)
			continue
		}
		if after := d.record(); after.Status != disdel.StatusSucceeded {
			d.t.Errorf("%s: %s: %v", strings.Join(c.Lines, "\n"), after.ID, after.Status)
		}
	}
}

// Every command that the report of a job offers that failed of itself lets it pass, and the screen's hint names the
// same change.
func TestEveryCommandOfAReportLetsTheJobPass(t *testing.T) {
	t.Parallel()
	d := build(t)
	steady := d.file(strings.NewReplacer("epochs: 16", "epochs: 2", "optimizer: average",
		"optimizer: reset").Replace(steadyJob))
	wide := d.file(wideJob)
	if _, errs, code := d.run("submit", wide, "-q"); code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	d.understated()
	for _, args := range [][]string{
		{wide, "--estimator", "learned", "--set", "reliability.retries.limit=0"},
		{steady, "--set", "training.optimizer={sgd: {learningRate: 1e+12, momentum: 0.9}}", "--backend", "native"},
		{steady, "--set", "training.optimizer={adamw: {learningRate: 1e+30}}", "--pool-memory", "1GB"},
	} {
		_, errs, code := d.run(append([]string{"submit"}, args...)...)
		rec := d.record()
		if code == 0 || rec.Status != disdel.StatusFailed {
			t.Fatalf("%q: exit %d, %v\n%s", args, code, rec.Status, errs)
		}
		sets := d.reportOf(string(rec.ID)).Advice.Sets
		if hint := "hint: --set " + strings.Join(sets, " --set "); len(sets) == 0 || !strings.Contains(errs, hint) {
			t.Errorf("%q: stderr has no %q:\n%s", args, hint, errs)
		}
		if n := strings.Count(errs, "resources."); n > len(sets)+1 {
			t.Errorf("%q: more than one limit is named:\n%s", args, errs)
		}
		d.everyCommandPasses(string(rec.ID), 2)
	}
}

// The same for failures of every kind that are written into the record of a job that was submitted with options: which
// action failed, how, at which limits and with which heartbeats comes from a seed.
func TestCommandsOfAnyFailureAreAccepted(t *testing.T) {
	t.Parallel()
	d := build(t)
	t.Logf("repeat with -advice-seed %d", *adviceSeed)
	random := rand.New(rand.NewPCG(*adviceSeed, 0))
	job := d.file(strings.NewReplacer("epochs: 16", "epochs: 2", "optimizer: average",
		"optimizer: reset").Replace(steadyJob))
	options := [][]string{
		{"--set", "training.optimizer={sgd: {learningRate: 0.05}}", "--set", "resources.maxCost=900GB-s"},
		{"--set", "resources.memory=160MB", "--set", "resources.maxMemory=200MB", "--action-memory", "1GB"},
		{
			"--set", "distribution.sync=end", "--set", "resources.timeout=90s", "--set", "reliability.deadline=3m", "--risk",
			"0.01",
		},
		{"--set", "distribution={workers: 3, sync: {every: 10}}", "--estimator", "paper", "--action-timeout", "2m"},
	}
	passed := map[int]disdel.Record{} // by the options that it was submitted with
	for i, n := range random.Perm(len(failures))[:min(*adviceKinds, len(failures))] {
		kind, with := failures[n], i%len(options)
		rec, there := passed[with]
		if !there {
			if _, errs, code := d.run(append([]string{"submit", job, "-q"}, options[with]...)...); code != 0 {
				t.Fatalf("%q: exit %d\n%s", options[with], code, errs)
			}
			rec = d.record()
			passed[with] = rec
		}
		rec.Activations = slices.Clone(rec.Activations)
		rec.ID = disdel.JobID(fmt.Sprintf("job-00000000000000000000000%03d", i))
		fail(&rec, kind, random)
		withStore(t, d.home, func(ctx context.Context, h *history.Store) {
			if err := h.Save(ctx, &rec); err != nil {
				t.Fatal(err)
			}
		})
		d.everyCommandPasses(string(rec.ID), kind.commands)
	}
}

// kindOfFailure is one way to fail and how many commands its report has at least.
type kindOfFailure struct {
	outcome  disdel.Outcome
	kind     disdel.Kind
	tasks    []disdel.Task // none: no activation is to blame
	commands int
}

var (
	anyTask  = []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate}
	failures = []kindOfFailure{
		{disdel.OutcomeOutOfMemory, disdel.OOM, []disdel.Task{disdel.TaskTrain}, 2},
		{disdel.OutcomeOutOfMemory, disdel.OOM, []disdel.Task{disdel.TaskAggregate}, 2},
		{disdel.OutcomeOutOfMemory, disdel.OOM, []disdel.Task{disdel.TaskEvaluate}, 2},
		{disdel.OutcomeTimeout, disdel.Timeout, []disdel.Task{disdel.TaskTrain}, 2},
		{disdel.OutcomeTimeout, disdel.Timeout, []disdel.Task{disdel.TaskAggregate}, 2},
		{disdel.OutcomeTimeout, disdel.Timeout, []disdel.Task{disdel.TaskEvaluate}, 2},
		{disdel.OutcomeDiverged, disdel.Diverged, []disdel.Task{disdel.TaskTrain}, 2},
		{disdel.OutcomeTooLarge, disdel.OverLimit, []disdel.Task{disdel.TaskTrain}, 0},
		{disdel.OutcomeLost, disdel.Lost, anyTask, 2},
		{disdel.OutcomeDeveloperError, disdel.Crashed, anyTask, 2},
		{disdel.OutcomeUnknown, disdel.OverLimit, nil, 0}, // over budget, where there is one
		{disdel.OutcomeUnknown, disdel.Timeout, nil, 2},   // the deadline
		{disdel.OutcomeUnknown, disdel.Unavailable, nil, 2},
	}
)

// fail has a job that passed have failed.
func fail(r *disdel.Record, k kindOfFailure, random *rand.Rand) {
	r.Status, r.Model = disdel.StatusFailed, nil
	r.Failure = &disdel.Error{Kind: k.kind, Op: "run job", Msg: "why"}
	if k.kind == disdel.Timeout && len(k.tasks) == 0 && r.Job.Reliability.Deadline == 0 {
		r.Job.Reliability.Deadline = disdel.Duration(time.Second)
	}
	if len(k.tasks) == 0 {
		return
	}
	task := k.tasks[random.IntN(len(k.tasks))]
	i := slices.IndexFunc(r.Activations, func(a disdel.Activation) bool { return a.Task == task })
	a := &r.Activations[i]
	a.Outcome, a.Peak = k.outcome, a.Limits.Memory
	a.Failure = &disdel.Error{Kind: k.kind, Op: "action", Msg: "why", Activation: a.ID}
	r.Failure.Activation = a.ID
	a.Limits.Timeout = disdel.Millis(time.Duration(100+random.IntN(20_000)) * time.Millisecond)
	a.Beats = nil
	for n := range random.IntN(4) {
		a.Beats = append(a.Beats, disdel.Beat{
			At: disdel.Millis(time.Duration(n+1) * time.Second), Resident: disdel.Bytes(100+random.IntN(28)) * disdel.MB,
			Epoch: 1, Batch: 1 + 7*n, Batches: 45,
		})
	}
	r.Activations = r.Activations[:i+1]
}
