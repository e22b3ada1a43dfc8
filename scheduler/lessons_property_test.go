package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// what befalls an activation in a drawn history
type mishap int

const (
	none mishap = iota
	frozen
	killed // for memory, though it held little
)

// drawnHistory is jobs of one kind, planned one after another by what those before them left.
type drawnHistory struct {
	t    *testing.T
	rng  *rand.Rand
	in   PlanInput
	past []disdel.Record // newest first
}

// run plans a job whose actions need so much memory and time. Its work fails by too small limits and by drawn mishaps.
// run keeps the job's record, and returns the limits that the job began with.
func (h *drawnHistory) run(memory disdel.Bytes, took time.Duration, chance float64, kind mishap) disdel.Limits {
	h.in.History = h.past[:min(len(h.past), 20)]
	h.in.ID = disdel.JobID(fmt.Sprintf("job-%d", len(h.past)))
	p, err := NewPlan(h.in)
	if err != nil {
		h.t.Fatal(err)
	}
	r := disdel.Record{ID: h.in.ID, Status: disdel.StatusSucceeded, Job: h.in.Job, Data: h.in.Data, Plan: p}
	train, _ := p.Action(disdel.TaskTrain)
	limits := train.Limits
	for round := range 3 {
		for worker := range p.Workers {
			befalls := none
			if h.rng.Float64() < chance {
				befalls = kind
			}
			limits = h.work(&r, round, worker, limits, disdel.Activation{
				Peak: memory - disdel.Bytes(h.rng.Int64N(int64(memory)/20)), Rows: 100,
				Duration: disdel.Millis(took - time.Duration(h.rng.Int64N(int64(took)/20))),
			}, befalls)
		}
	}
	h.past = slices.Insert(h.past, 0, r)
	return train.Limits
}

// work tries one worker's round until it passes, and returns the limits that the job has by then.
func (h *drawnHistory) work(r *disdel.Record, round, worker int, limits disdel.Limits, needs disdel.Activation,
	befalls mishap,
) disdel.Limits {
	for attempt := 1; attempt <= 8; attempt++ {
		a := needs
		a.Task, a.Round, a.Member, a.Attempt, a.Limits = disdel.TaskTrain, round, worker, attempt, limits
		a.Outcome = disdel.OutcomeSuccess
		switch {
		case befalls == frozen:
			a.Outcome, a.Duration = disdel.OutcomeTimeout, limits.Timeout
			a.Beats = beatsOf(needs.Duration, disdel.Millis(float64(needs.Duration)*(0.1+0.8*h.rng.Float64())))
		case befalls == killed:
			a.Outcome, a.Peak = disdel.OutcomeOutOfMemory, needs.Peak/4
		case needs.Peak > limits.Memory:
			a.Outcome, a.Peak = disdel.OutcomeOutOfMemory, limits.Memory
		case needs.Duration > limits.Timeout:
			a.Outcome, a.Duration = disdel.OutcomeTimeout, limits.Timeout
			a.Beats = beatsOf(needs.Duration, limits.Timeout)
		}
		befalls = none
		r.Activations = append(r.Activations, a)
		if a.Outcome == disdel.OutcomeSuccess {
			return limits
		}
		plan := r.Plan
		plan.Platform = platformLimits
		remedy := FindRemedy(RemedyInput{Activation: a, Job: h.in.Job, Plan: plan})
		if !remedy.Retry {
			h.t.Fatalf("%v at %v: %s", a.Outcome, a.Limits, remedy.Why)
		}
		limits.Memory = max(limits.Memory, remedy.Limits.Memory)
		limits.Timeout = max(limits.Timeout, remedy.Limits.Timeout)
	}
	h.t.Fatalf("job %s never passed with %v", r.ID, limits)
	return limits
}

// beatsOf is the heartbeats, until a time, of work of 50 batches.
func beatsOf(whole, until disdel.Millis) (beats []disdel.Beat) {
	const batches = 50
	for n := 1; n <= batches && whole*disdel.Millis(n)/batches <= until; n++ {
		beats = append(beats, disdel.Beat{At: whole * disdel.Millis(n) / batches, Batch: n, Batches: batches, Epoch: 1})
	}
	return beats
}

// Limits follow what the actions need, whatever happened to earlier jobs. Stalls, and kills at a large enough limit,
// leave no trace. Limits rise if jobs need more, and come back down after that.
func TestLimitsFollowWhatActionsNeed(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 31))
		in := planInput(t)
		in.Job.Distribution.Workers = 2
		own, err := NewPlan(in)
		if err != nil {
			t.Fatal(err)
		}
		train, _ := own.Action(disdel.TaskTrain)
		base := train.Limits
		h := &drawnHistory{t: t, rng: rng, in: in}
		memory := disdel.Bytes((0.3 + 0.6*rng.Float64()) * float64(base.Memory))
		took := time.Duration((0.05 + 0.5*rng.Float64()) * float64(base.Timeout))
		chance, kind := 0.1+0.4*rng.Float64(), mishap(1+rng.IntN(2))

		for job := range 2 + rng.IntN(10) { // mishaps never raise what later jobs begin with
			if got := h.run(memory, took, chance, kind); got != base {
				t.Fatalf("seed %d: job %d begins with %+v after mishaps of kind %d, not with %+v\n%s", seed, job, got, kind,
					base, why(h))
			}
		}
		needs := disdel.Bytes((1.1 + 0.9*rng.Float64()) * float64(base.Memory))
		long := time.Duration((1.1 + 2*rng.Float64()) * float64(base.Timeout))
		h.run(needs, long, chance, kind)
		for job := range 1 + rng.IntN(12) { // the need is known at once, and stays known
			got := h.run(needs, long, chance, kind)
			if got.Memory < needs || got.Timeout < disdel.Millis(long) {
				t.Fatalf("seed %d: job %d of those that need %v and %v begins with %+v", seed, job, needs, long, got)
			}
			if got.Memory > 2*needs || got.Timeout > 2*disdel.Millis(long)+disdel.Millis(time.Second) {
				t.Fatalf("seed %d: job %d needs %v and %v, and begins with %+v", seed, job, needs, long, got)
			}
		}
		for range 4 {
			h.run(memory, took, chance, kind)
		}
		for job := range 3 { // the need is gone
			if got := h.run(memory, took, chance, kind); got != base {
				t.Fatalf("seed %d: job %d after the need was gone begins with %+v, not with %+v", seed, job, got, base)
			}
		}
	}
}

func why(h *drawnHistory) string { return strings.Join(h.past[0].Plan.Reasons, "\n") }

// Each limit names the job that taught it.
func TestEachLimitNamesItsJob(t *testing.T) {
	in := planInput(t)
	in.Job.Distribution.Workers = 2
	own, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := own.Action(disdel.TaskTrain)
	short, slow := end(disdel.OutcomeOutOfMemory, train.Limits.Memory.MB(), time.Minute), end(disdel.OutcomeTimeout,
		train.Limits.Memory.MB(), time.Minute)
	lacked, late := earlier(in, short), earlier(in, slow)
	lacked.ID, late.ID = "job-memory", "job-timeout"
	for _, history := range [][]disdel.Record{{lacked, late}, {late, lacked}} {
		in.History = history
		p, err := NewPlan(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, reason := range p.Reasons {
			of, ok := strings.CutPrefix(reason, "train ")
			if _, job, found := strings.Cut(reason, "too little for job-"); ok && found && !strings.HasPrefix(of, job) {
				t.Errorf("%s", reason)
			}
		}
		if got, _ := p.Action(disdel.TaskTrain); got.Limits.Memory <= train.Limits.Memory ||
			got.Limits.Timeout <= train.Limits.Timeout {
			t.Errorf("%+v after %+v", got.Limits, train.Limits)
		}
	}
}

// A job that ended after a stall teaches no longer timeout, and its retry has the time that it had.
func TestAStallIsNoLackOfTime(t *testing.T) {
	in := planInput(t)
	in.Job.Distribution.Workers = 2
	stalled := end(disdel.OutcomeTimeout, 256, time.Minute)
	stalled.Task, stalled.Duration = disdel.TaskTrain, stalled.Limits.Timeout
	stalled.Beats = beatsOf(disdel.Millis(2*time.Second), disdel.Millis(200*time.Millisecond))
	r := FindRemedy(RemedyInput{Activation: stalled, Job: in.Job, Plan: disdel.Plan{Platform: platformLimits}})
	if !r.Retry || r.Limits != stalled.Limits || r.Adjustment != nil || !strings.Contains(r.Why, "stopped answering") {
		t.Errorf("%+v", r)
	}
	in.History = []disdel.Record{earlier(in, stalled, stalled, stalled)}
	p, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := p.Action(disdel.TaskTrain); a.Limits.Timeout != disdel.Millis(time.Minute) {
		t.Errorf("the next job begins with %v", a.Limits.Timeout)
	}
	if got := LimitsReached(&in.History[0], disdel.TaskTrain); got != (disdel.Limits{}) {
		t.Errorf("the job had come to %+v", got)
	}
}
