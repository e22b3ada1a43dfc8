package report_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/report"
)

// What a failed job is told to change, and why, derived from the figures in testdata.
func TestAdvice(t *testing.T) {
	for name, want := range map[string][]string{
		// 512 MB is the platform's; the failure says which batch was planned and fits.
		"oom": {"training.batchSize=128"},
		// 37 % in 112.5 s leads to 302 s, above 300 s, and a round has six epochs.
		"timeout":  {"distribution.sync=epoch"},
		"deadline": {"reliability.deadline=1m15s"}, // 6/2 x 20 s x 1.25
		"crashed":  nil,
		"diverged": {"training.optimizer.sgd.learningRate=0.01", "training.clipNorm=1"},
		"canceled": nil,
		"old":      {"resources.memory=192MB"}, // 128 x 1.5, no ceiling known
	} {
		a := report.New(load(t, name), now).Advice
		if a == nil || len(a.Commands) != 1 && name != "oom" {
			t.Fatalf("%s: %+v", name, a)
		}
		if diff := cmp.Diff(want, a.Sets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"succeeded", "missing", "running"} {
		if a := report.New(load(t, name), now).Advice; a != nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// What is advised is worked out from kinds, codes and figures: it is the same however the failures are worded.
func TestAdviceDoesNotHangOnWords(t *testing.T) {
	otherwise := func(err *disdel.Error) {
		if err != nil {
			err.Op, err.Msg, err.Hint, err.Err = "zzz", "zzz", "zzz", errors.New("zzz")
		}
	}
	for _, name := range []string{"oom", "timeout", "deadline", "crashed", "diverged", "canceled", "old"} {
		r := load(t, name)
		want := report.New(r, now).Advice.Sets
		otherwise(r.Failure)
		for i := range r.Activations {
			otherwise(r.Activations[i].Failure)
		}
		if diff := cmp.Diff(want, report.New(r, now).Advice.Sets); diff != "" {
			t.Errorf("%s (-as said +otherwise):\n%s", name, diff)
		}
	}
}

// A job with a checkpoint can go on from it, unless what has to change does not fit the rounds that are done. One that
// runs by its record may have lost its controller.
func TestAJobWithACheckpointCanGoOn(t *testing.T) {
	resumes := func(name string, change func(*disdel.Record)) string {
		r := load(t, name)
		r.Checkpoint = &disdel.Checkpoint{Round: 1}
		if change != nil {
			change(r)
		}
		if a := report.New(r, now).Advice; a != nil && strings.HasPrefix(a.Commands[0].Lines[0], "disdel resume ") {
			return a.Commands[0].When + ": " + strings.TrimPrefix(a.Commands[0].Lines[0], "disdel resume "+string(r.ID))
		}
		return ""
	}
	for name, want := range map[string]string{
		"oom": "from round 2 of 6:  --set training.batchSize=128", "timeout": "", "canceled": "from round 2 of 6: ",
		"running": "from round 2 of 6: ", "succeeded": "",
	} {
		if got := resumes(name, nil); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := resumes("oom", func(r *disdel.Record) { r.Plan.Batches = 5 }); got != "" {
		t.Errorf("rounds of batches, with another batch: %q", got)
	}
	if got := resumes("running", func(r *disdel.Record) { r.Checkpoint = nil }); got != "" {
		t.Errorf("without a checkpoint: %q", got)
	}
}

// A job whose store was gone, or whose checkpoint was refused, is resumed once that is over. The report has the
// command, with the flags of the job's place wherever it stands.
func TestAJobThatNothingIsWrongWithIsResumed(t *testing.T) {
	for code, says := range map[disdel.Code]string{
		disdel.CodeStoreGone: "once its store is back", disdel.CodeUnkept: "once the disk or storage takes its files",
	} {
		r := load(t, "crashed")
		r.Checkpoint, r.Place = &disdel.Checkpoint{Round: 1}, []disdel.Option{{Name: "home", Value: "/h"}}
		r.Failure = &disdel.Error{
			Kind: disdel.Unavailable, Code: code, Hint: "mend it; then disdel resume " + string(r.ID),
		}
		a := report.New(r, now).Advice
		command := "disdel resume " + string(r.ID) + " --home /h"
		if len(a.Sets) > 0 || len(a.Commands) == 0 || !slices.Equal(a.Commands[0].Lines, []string{command}) ||
			a.Commands[0].When != "from round 2 of 6" {
			t.Errorf("%s: %+v", code, a)
		}
		if !strings.Contains(a.Why, says+": mend it; then disdel --home /h resume "+string(r.ID)) {
			t.Errorf("%s: %q", code, a.Why)
		}
	}
}

func TestAdviceFollowsTheCeiling(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *disdel.Record)
		want   []string
	}{
		"room on the platform": {
			func(r *disdel.Record) { r.Plan.Platform.MaxMemory = 2 * disdel.GB },
			[]string{"resources.memory=871MB"},
		},
		"the user's own ceiling": {func(r *disdel.Record) {
			r.Plan.Platform.MaxMemory, r.Job.Resources.MaxMemory = 2*disdel.GB, 512*disdel.MB
		}, []string{"resources.memory=871MB", "resources.maxMemory=871MB"}},
		"some room": {
			func(r *disdel.Record) { r.Plan.Platform.MaxMemory = 600 * disdel.MB },
			[]string{"resources.memory=600MB"},
		},
		"the job's own factor": {func(r *disdel.Record) {
			r.Plan.Platform.MaxMemory, r.Job.Reliability.Retries.MemoryFactor = 2*disdel.GB, 2
		}, []string{"resources.memory=1024MB"}},
		"nothing was planned that fits": {func(r *disdel.Record) { r.Failure.Changes = nil }, nil},
	} {
		r := load(t, "oom")
		c.change(r)
		a := report.New(r, now).Advice
		if diff := cmp.Diff(c.want, a.Sets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if none := len(c.want) == 0; none != (len(a.Commands) == 0) {
			t.Errorf("%s: %d commands for %v", name, len(a.Commands), a.Sets)
		}
	}
}

func TestAdviceOnTime(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *disdel.Record)
		want   []string
	}{
		// 302 s x 1.3
		"the platform allows more": {
			func(r *disdel.Record) { r.Plan.Platform.MaxTimeout *= 4 },
			[]string{"resources.timeout=7m0s"},
		},
		"under a deadline": {func(r *disdel.Record) {
			r.Plan.Platform.MaxTimeout *= 4
			r.Job.Reliability.Deadline = disdel.Duration(150e9)
		}, []string{"resources.timeout=7m0s", "reliability.deadline=16m30s"}},
		// 70 of 235 batches in 100 s: 338 s x 1.3 is 439 s, in steps of half a minute 450 s, or 1.5 times the maximum
		"one epoch": {func(r *disdel.Record) {
			r.Plan.Epochs = 1
			for i := range r.Activations[0].Beats[1:] {
				b := &r.Activations[0].Beats[1+i]
				b.Epoch, b.Batch = 1, 7*(i+1)
			}
		}, []string{"distribution.workers=3", "resources.timeout=5m0s"}},
		// nobody knows: the platform's maximum
		"no heartbeat": {func(r *disdel.Record) { r.Activations[0].Beats = nil }, []string{"resources.timeout=5m0s"}},
	} {
		r := load(t, "timeout")
		c.change(r)
		if diff := cmp.Diff(c.want, report.New(r, now).Advice.Sets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Whatever is advised is a job file that is accepted.
func TestAdviceIsAccepted(t *testing.T) {
	for _, name := range []string{"oom", "timeout", "deadline", "crashed", "diverged", "canceled", "old"} {
		r := report.New(load(t, name), now)
		spec, err := jobfile.Print(r.Job)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := jobfile.Parse("job.yaml", spec, r.Advice.Sets); err != nil {
			t.Errorf("%s: %v\n%s", name, err, spec)
		}
	}
}

// A memory limit is never advised above the platform's maximum, nor one that is not above what failed.
func TestAdvisedMemoryIsWithinBounds(t *testing.T) {
	base := load(t, "oom")
	rapid.Check(t, func(t *rapid.T) {
		r := *base
		limit := disdel.Bytes(rapid.IntRange(128, 4096).Draw(t, "limit")) * disdel.MB
		most := limit + disdel.Bytes(rapid.IntRange(0, 4096).Draw(t, "room"))*disdel.MB
		r.Activations = append([]disdel.Activation(nil), base.Activations...)
		last := &r.Activations[len(r.Activations)-1]
		last.Limits.Memory, last.Peak, last.Beats = limit, limit, nil
		r.Plan.Platform.MaxMemory, r.Plan.Platform.Pool = most, 0
		for _, s := range report.New(&r, now).Advice.Sets {
			text, ok := strings.CutPrefix(s, "resources.memory=")
			if !ok {
				continue
			}
			got, err := disdel.ParseBytes(text)
			if err != nil || got <= limit || got > most {
				t.Errorf("%v of %v after %v: %v", got, most, limit, err)
			}
		}
	})
}

// A shell takes every command apart into the words that were meant.
func TestCommandsAreSafeInAShell(t *testing.T) {
	r := load(t, "hostile")
	a := report.New(r, now).Advice
	line, _, _ := strings.Cut(a.Commands[len(a.Commands)-1].Lines[0], " >")
	out, err := exec.Command("sh", "-c", strings.Replace(line, "disdel report", "printf '%s\\n'", 1)).CombinedOutput()
	if want := string(r.ID) + "\n--spec\n"; err != nil || string(out) != want {
		t.Errorf("%s\ngave %q, want %q (%v)", line, out, want, err)
	}
}

// If nothing was trained, the advised deadline follows the forecast, or without one the timeouts of all actions.
func TestADeadlineFollowsTheForecast(t *testing.T) {
	for want, forecast := range map[string]*disdel.Forecast{
		"reliability.deadline=6m0s":  nil,
		"reliability.deadline=10m0s": {Duration: disdel.Interval[disdel.Millis]{High: disdel.Millis(10 * time.Minute)}},
	} {
		r := load(t, "deadline")
		r.Activations, r.Rounds = nil, nil
		r.Plan.Forecast, r.Job.Reliability.Deadline = forecast, disdel.Duration(time.Minute)
		if a := report.New(r, now).Advice; len(a.Sets) != 1 || a.Sets[0] != want {
			t.Errorf("%v, want %s", a.Sets, want)
		}
	}
}

// No field of a job sets the memory of aggregate and evaluate actions: the history does, as long as there is room.
func TestAdviceBesideTraining(t *testing.T) {
	for name, c := range map[string]struct {
		task disdel.Task
		most disdel.Bytes
		sets []string
		why  string
	}{
		"room": {disdel.TaskAggregate, 2 * disdel.GB, nil, "the next job of this kind gives it 871 MB"},
		"an aggregation's limit": {
			disdel.TaskAggregate, 512 * disdel.MB,
			[]string{"training.batchSize=128"},
			"this was planned and fits 512 MB",
		},
	} {
		r := load(t, "oom")
		r.Plan.Platform.MaxMemory, r.Plan.Platform.Pool = c.most, 0
		for i := range r.Activations {
			if r.Activations[i].Outcome == disdel.OutcomeOutOfMemory {
				r.Activations[i].Task = c.task
			}
		}
		a := report.New(r, now).Advice
		if diff := cmp.Diff(c.sets, a.Sets); diff != "" || !strings.Contains(a.Why, c.why) {
			t.Errorf("%s: %s (-want +got):\n%s", name, a.Why, diff)
		}
	}
}
