package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// remedyInput is a train action of 256 MB and 60 s that failed, of a job with two workers, on a platform that gives up
// to 512 MB and 5 minutes.
func remedyInput(o disdel.Outcome, k disdel.Kind) RemedyInput {
	in := RemedyInput{Plan: disdel.Plan{
		Workers: 2, Epochs: 1, Platform: platformLimits, Shards: []disdel.RowRange{{End: 500}, {Start: 500, End: 1000}},
		Levels: Tree(2, 8),
		Actions: []disdel.ActionPlan{{
			Task:     disdel.TaskTrain,
			Estimate: disdel.Estimate{Total: 200 * disdel.MB, Activations: 90 * disdel.MB, Shard: 10 * disdel.MB},
		}},
	}}
	in.Job.Training.BatchSize = 64
	a := &in.Activation
	a.Task, a.Invocation.ID, a.Member = disdel.TaskTrain, "round 0/train/1", 1
	a.Limits = disdel.Limits{Memory: 256 * disdel.MB, Timeout: disdel.Millis(time.Minute)}
	a.Outcome, a.Duration, a.Peak = o, disdel.Millis(40*time.Second), 200*disdel.MB
	if k != disdel.UnknownKind {
		a.Failure = &disdel.Error{Kind: k, Op: "train action", Msg: "why"}
	}
	return in
}

func minutes(m int) disdel.Millis { return disdel.Millis(time.Duration(m) * time.Minute) }

func progress(batch, batches int) []disdel.Beat {
	return []disdel.Beat{{At: minutes(1), Epoch: 1, Batch: batch, Batches: batches}}
}

// Every rule of the Failure Manager, one by one.
func TestDecide(t *testing.T) {
	oom := func(in *RemedyInput) { in.Activation.Limits.Memory = 512 * disdel.MB }
	late := func(in *RemedyInput) { in.Activation.Limits.Timeout = minutes(5) }
	type change = func(in *RemedyInput)
	for _, c := range []struct {
		name    string
		outcome disdel.Outcome
		kind    disdel.Kind
		change  []change
		want    string // the adjustment, "again", or "no"
		why     string
	}{
		{"memory", disdel.OutcomeOutOfMemory, disdel.OOM, nil, "memory 256MB 320MB", "256 MB x 1.25"},
		{"memory, the job's factor", disdel.OutcomeOutOfMemory, disdel.OOM, []change{func(in *RemedyInput) {
			in.Job.Reliability.Retries = disdel.Retries{Limit: 1, PerWorker: 1, MemoryFactor: 1.5}
		}}, "memory 256MB 384MB", "x 1.5"},
		{
			"memory, by the peak", disdel.OutcomeOutOfMemory, disdel.OOM,
			[]change{func(in *RemedyInput) { in.Activation.Peak = 400 * disdel.MB }},
			"memory 256MB 440MB",
			"measured peak 400 MB",
		},
		{
			"memory, within the ceiling", disdel.OutcomeOutOfMemory, disdel.OOM,
			[]change{func(in *RemedyInput) { in.Job.Resources.MaxMemory = 300 * disdel.MB }},
			"memory 256MB 300MB",
			"resources.maxMemory is 300 MB",
		},
		{
			"memory, within the pool", disdel.OutcomeOutOfMemory, disdel.OOM,
			[]change{func(in *RemedyInput) { in.Plan.Platform.Pool = 310 * disdel.MB }},
			"memory 256MB 310MB",
			"the pool's memory is 310 MB",
		},
		{
			"memory at the ceiling: half the batch", disdel.OutcomeOutOfMemory, disdel.OOM,
			[]change{oom},
			"batchSize 64 32",
			"the platform's maximum of 512 MB",
		},
		{
			"memory fixed by the user: half the batch", disdel.OutcomeOutOfMemory, disdel.OOM,
			[]change{func(in *RemedyInput) { in.Job.Resources.Memory = 256 * disdel.MB }},
			"batchSize 64 32",
			"resources.memory of 256 MB",
		},
		{
			"memory at the ceiling, a large shard", disdel.OutcomeOutOfMemory, disdel.OOM,
			[]change{oom, func(in *RemedyInput) { in.Plan.Actions[0].Estimate.Shard = 100 * disdel.MB }},
			"workers 2 3",
			"the shard is much of it",
		},
		{"a large shard, workers fixed", disdel.OutcomeOutOfMemory, disdel.OOM, []change{oom, func(in *RemedyInput) {
			in.Plan.Actions[0].Estimate.Shard, in.Job.Distribution.Workers = 100*disdel.MB, 2
		}}, "batchSize 64 32", "platform"},
		{
			"memory at the ceiling, one sample", disdel.OutcomeOutOfMemory, disdel.OOM,
			[]change{oom, func(in *RemedyInput) { in.Job.Training.BatchSize = 1 }},
			"workers 2 3", "platform",
		},
		{"nothing left to divide", disdel.OutcomeOutOfMemory, disdel.OOM, []change{oom, func(in *RemedyInput) {
			in.Job.Training.BatchSize, in.Job.Distribution.Workers = 1, 2
		}}, "no", "cannot be divided further"},
		{
			"an aggregation has no batch", disdel.OutcomeOutOfMemory, disdel.OOM,
			[]change{oom, func(in *RemedyInput) { in.Activation.Task = disdel.TaskAggregate }},
			"no",
			"cannot be divided further",
		},
		{"time", disdel.OutcomeTimeout, disdel.Timeout, nil, "timeout 1m0s 2m0s", "1m0s x 2"},
		{
			"time, by progress", disdel.OutcomeTimeout, disdel.Timeout,
			[]change{func(in *RemedyInput) { in.Activation.Beats = progress(20, 50) }},
			"timeout 1m0s 3m45s",
			"20 of 50 batches",
		},
		{
			"time, within the platform's", disdel.OutcomeTimeout, disdel.Timeout,
			[]change{func(in *RemedyInput) { in.Activation.Beats = progress(8, 400) }},
			"timeout 1m0s 5m0s",
			"the platform's maximum is 5m0s",
		},
		{
			"time at the maximum: goes on", disdel.OutcomeTimeout, disdel.Timeout,
			[]change{late, func(in *RemedyInput) { in.Activation.Beats = progress(20, 50) }},
			"again",
			"goes on from its stored state, 20 of 50",
		},
		{
			"time at the maximum, no progress", disdel.OutcomeTimeout, disdel.Timeout,
			[]change{late},
			"workers 2 4",
			"the platform's maximum of 5m0s",
		},
		{
			"time at the maximum, while others were fast", disdel.OutcomeTimeout, disdel.Timeout,
			[]change{late, func(in *RemedyInput) { in.Passed = minutes(1) }},
			"again", "others of this job needed at most 1m0s",
		},
		{
			"time at the maximum, as long as others", disdel.OutcomeTimeout, disdel.Timeout,
			[]change{late, func(in *RemedyInput) { in.Passed = minutes(5) }},
			"workers 2 4", "the platform's maximum of 5m0s",
		},
		{"time fixed by the user", disdel.OutcomeTimeout, disdel.Timeout, []change{func(in *RemedyInput) {
			in.Job.Resources.Timeout, in.Job.Distribution.Workers = disdel.Duration(time.Minute), 2
		}}, "no", "resources.timeout of 1m0s, and nothing came of it"},
		{"lost", disdel.OutcomeLost, disdel.Lost, nil, "again", "platform"},
		{"internal", disdel.OutcomeInternalError, disdel.Unavailable, nil, "again", "platform"},
		{"not started", disdel.OutcomeStartFailure, disdel.Unavailable, nil, "again", "platform"},
		{"not startable", disdel.OutcomeStartFailure, disdel.Invalid, nil, "no", "would happen again"},
		{"other limits on the invoker", disdel.OutcomeStartFailure, disdel.OverLimit, nil, "no", "would happen again"},
		{"throttled", disdel.OutcomeThrottled, disdel.Unavailable, nil, "again", "platform"},
		{"the store is away", disdel.OutcomeApplicationError, disdel.Unavailable, nil, "again", "platform"},
		{"refused by the key", disdel.OutcomeInternalError, disdel.Denied, nil, "no", "would happen again"},
		{"crashed once", disdel.OutcomeDeveloperError, disdel.Crashed, nil, "again", "the machine"},
		{
			"killed twice", disdel.OutcomeDeveloperError, disdel.Crashed,
			[]change{func(in *RemedyInput) { in.Attempts.Crashes = 1 }},
			"again", "the machine",
		},
		{
			"killed too often", disdel.OutcomeDeveloperError, disdel.Crashed,
			[]change{func(in *RemedyInput) { in.Attempts.Crashes, in.Attempts.Worker = 3, 3 }},
			"no", "perWorker",
		},
		{
			"crashed twice without a trace", disdel.OutcomeDeveloperError, disdel.Crashed,
			[]change{func(in *RemedyInput) { in.Attempts.Crashes, in.Activation.Peak = 1, 0 }},
			"memory 256MB 320MB",
			"possibly out of memory",
		},
		{
			"died without a word", disdel.OutcomeDeveloperError, disdel.Crashed,
			[]change{func(in *RemedyInput) { in.Activation.Suspected = true }},
			"memory 256MB 320MB", "possibly out of memory",
		},
		{
			"died without a word at the ceiling", disdel.OutcomeDeveloperError, disdel.Crashed,
			[]change{oom, func(in *RemedyInput) { in.Activation.Suspected = true }},
			"again", "the machine",
		},
		{
			"died without a word, three times", disdel.OutcomeDeveloperError, disdel.Crashed,
			[]change{func(in *RemedyInput) { in.Activation.Suspected, in.Attempts.Crashes = true, 2 }},
			"again", "the machine",
		},
		{
			"an aggregation is not bound by a train action's limit", disdel.OutcomeOutOfMemory, disdel.OOM,
			[]change{func(in *RemedyInput) {
				in.Activation.Task, in.Job.Resources.Memory = disdel.TaskAggregate, 256*disdel.MB
			}},
			"memory 256MB 320MB", "256 MB x 1.25",
		},
		{
			"crashed three times without a trace", disdel.OutcomeDeveloperError, disdel.Crashed,
			[]change{func(in *RemedyInput) { in.Attempts.Crashes, in.Activation.Peak = 2, 0 }},
			"again", "the machine",
		},
		{"a defect once", disdel.OutcomeApplicationError, disdel.Internal, nil, "again", "the machine"},
		{
			"a defect twice", disdel.OutcomeApplicationError, disdel.Internal,
			[]change{func(in *RemedyInput) { in.Attempts.Crashes = 1 }},
			"no", "died 2 times",
		},
		{"invalid", disdel.OutcomeApplicationError, disdel.Invalid, nil, "no", "would happen again"},
		{"denied", disdel.OutcomeApplicationError, disdel.Denied, nil, "no", "would happen again"},
		{"diverged", disdel.OutcomeDiverged, disdel.Diverged, nil, "no", "diverge again"},
		{"damaged data", disdel.OutcomeCorrupt, disdel.Corrupt, nil, "no", "its input is damaged"},
		{"too large", disdel.OutcomeTooLarge, disdel.OverLimit, nil, "no", "would happen again"},
		{"cancelled", disdel.OutcomeCanceled, disdel.Canceled, nil, "no", "no failure"},
		{"paused", disdel.OutcomePaused, disdel.UnknownKind, nil, "no", "no failure"},
		{
			"the job's retries are used up", disdel.OutcomeOutOfMemory, disdel.OOM,
			[]change{func(in *RemedyInput) { in.Attempts.Job = 6 }},
			"no", "6 retries are used up (reliability.retries.limit)",
		},
		{
			"the worker's are", disdel.OutcomeTimeout, disdel.Timeout,
			[]change{func(in *RemedyInput) { in.Attempts.Worker = 3 }},
			"no", "perWorker)",
		},
		{
			"the platform is not counted with them", disdel.OutcomeLost, disdel.Lost,
			[]change{func(in *RemedyInput) { in.Attempts = Attempts{Job: 6, Worker: 3, Platform: 5} }},
			"again", "platform",
		},
		{
			"but not for ever", disdel.OutcomeInternalError, disdel.Unavailable,
			[]change{func(in *RemedyInput) { in.Attempts.Platform = 6 }},
			"no", "failed it 7 times",
		},
		{
			"what was lost longer", disdel.OutcomeLost, disdel.Lost,
			[]change{func(in *RemedyInput) { in.Attempts.Platform = 23 }},
			"again", "platform",
		},
		{
			"and an image that is missing hardly", disdel.OutcomeStartFailure, disdel.Unavailable,
			[]change{func(in *RemedyInput) {
				in.Attempts.Platform, in.Activation.Failure.Code = 1, disdel.CodeImageMissing
			}},
			"no", "failed it 2 times",
		},
		{
			"nor a device that is missing", disdel.OutcomeApplicationError, disdel.Unavailable,
			[]change{func(in *RemedyInput) {
				in.Attempts.Platform, in.Activation.Failure.Code = 1, disdel.CodeNoDevice
			}},
			"no", "failed it 2 times",
		},
		{
			"never served", disdel.OutcomeLost, disdel.Lost,
			[]change{func(in *RemedyInput) { in.Activation.Failure.Code = disdel.CodeNeverServed }},
			"no", "wait again",
		},
		{"a damaged update", disdel.OutcomeCorrupt, disdel.Corrupt, []change{func(in *RemedyInput) {
			in.Activation.Task, in.Activation.Failure.Code = disdel.TaskAggregate, disdel.CodeLostUpdate
		}}, "again", "damaged on its way"},
	} {
		in := remedyInput(c.outcome, c.kind)
		for _, f := range c.change {
			f(&in)
		}
		r := FindRemedy(in)
		got := "no"
		switch {
		case r.Retry && r.Adjustment != nil:
			got = fmt.Sprint(r.Adjustment.Field, " ", r.Adjustment.From, " ", r.Adjustment.To)
			if r.Adjustment.Cause != c.outcome || r.Adjustment.Invocation != in.Activation.Invocation.ID {
				t.Errorf("%s: %+v", c.name, r.Adjustment)
			}
		case r.Retry:
			got = "again"
			if r.Limits != in.Activation.Limits {
				t.Errorf("%s: limits %+v", c.name, r.Limits)
			}
		}
		if got != c.want || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got, r.Why, c.want, c.why)
		}
	}
}

// The pause before the same is tried again grows to its bound; the minute's quota needs a new minute.
func TestPauses(t *testing.T) {
	in := remedyInput(disdel.OutcomeLost, disdel.Lost)
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 30} {
		in.Attempts.Platform = n
		if got := FindRemedy(in).After; got != want*time.Second {
			t.Errorf("try %d: %v, want %v s", n, got, int(want))
		}
	}
	in = remedyInput(disdel.OutcomeThrottled, disdel.Unavailable)
	in.Activation.Failure.Code = disdel.CodeQuotaMinute
	if got := FindRemedy(in).After; got != time.Minute {
		t.Errorf("the minute's quota: %v", got)
	}
	if got := FindRemedy(remedyInput(disdel.OutcomeOutOfMemory, disdel.OOM)).After; got != 0 {
		t.Errorf("more memory need not wait: %v", got)
	}
}

// attemptsBefore counts the failures among earlier activations: of the whole job, and of the work that failed is the
// newest try of. earlier must not have failed itself.
func attemptsBefore(earlier []disdel.Activation, failed disdel.Activation) Attempts {
	var n Attempts
	for _, a := range earlier {
		if !a.Outcome.Failed() {
			continue
		}
		mine := a.Task == failed.Task && a.Round == failed.Round && a.Level == failed.Level && a.Member == failed.Member
		if PlatformFault(a) {
			n.Platform += countIf(mine)
			continue
		}
		n.Job++
		n.Worker += countIf(mine)
		n.Crashes += countIf(mine && CrashedItself(a))
	}
	return n
}

func countIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// What counts against which bound.
func TestAttemptsBefore(t *testing.T) {
	of := func(o disdel.Outcome, k disdel.Kind, round, member int) disdel.Activation {
		a := remedyInput(o, k).Activation
		a.Round, a.Member = round, member
		return a
	}
	failed := of(disdel.OutcomeDeveloperError, disdel.Crashed, 1, 1)
	got := attemptsBefore([]disdel.Activation{
		of(disdel.OutcomeSuccess, disdel.UnknownKind, 0, 1), of(disdel.OutcomePaused, disdel.UnknownKind, 1, 1),
		of(disdel.OutcomeCanceled, disdel.Canceled, 1, 1),
		of(disdel.OutcomeLost, disdel.Lost, 1, 1), of(disdel.OutcomeLost, disdel.Lost, 1, 0),
		of(disdel.OutcomeOutOfMemory, disdel.OOM, 0, 1),
		of(disdel.OutcomeOutOfMemory, disdel.OOM, 1, 1), of(disdel.OutcomeDeveloperError, disdel.Crashed, 1, 1),
		of(disdel.OutcomeTimeout, disdel.Timeout, 1, 0),
	}, failed)
	if want := (Attempts{Job: 4, Worker: 2, Platform: 1, Crashes: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Whatever outcomes come, the sequence of remedies ends: for every worker and round within its own bound and the
// platform's, for the job within both; limits never fall and never pass a ceiling, and every refusal says why.
func TestRemediesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := remedyInput(disdel.OutcomeLost, disdel.Lost)
		in.Job.Reliability.Retries = disdel.Retries{
			Limit:     rapid.IntRange(0, 9).Draw(t, "limit"),
			PerWorker: rapid.IntRange(0, 9).Draw(t, "perWorker"),
		}
		in.Job.Resources.MaxMemory = disdel.Bytes(rapid.IntRange(0, 600).Draw(t, "maxMemory")) * disdel.MB
		in.Job.Training.BatchSize = rapid.IntRange(1, 512).Draw(t, "batch")
		in.Plan.Actions[0].Estimate.Shard = disdel.Bytes(rapid.IntRange(0, 200).Draw(t, "shard")) * disdel.MB
		retries := retriesOf(in.Job)
		limits := in.Activation.Limits
		var before []disdel.Activation
		for n := 0; ; n++ {
			if most := retries.Limit + lostRetries*in.Plan.Workers + 1; n > most {
				t.Fatalf("%d failures and no end in sight, bound %d", n, most)
			}
			a := &in.Activation
			a.Limits = limits
			a.Outcome = disdel.Outcome(rapid.IntRange(0, int(disdel.OutcomeCorrupt)).Draw(t, "outcome"))
			a.Member = rapid.IntRange(0, 1).Draw(t, "worker")
			a.Failure = &disdel.Error{
				Kind: disdel.Kind(rapid.IntRange(0, int(disdel.Internal)).Draw(t, "kind")),
				Code: rapid.SampledFrom([]disdel.Code{"", disdel.CodeLostUpdate, disdel.CodeLostReference}).Draw(t, "code"),
			}
			a.Peak = disdel.Bytes(rapid.IntRange(0, 600).Draw(t, "peak")) * disdel.MB
			a.Beats = slices.Repeat(progress(rapid.IntRange(0, 50).Draw(t, "batches"), 50),
				rapid.IntRange(0, 2).Draw(t, "beats"))
			in.Attempts = attemptsBefore(before, *a)
			r := FindRemedy(in)
			if r.Why == "" {
				t.Errorf("%v: no reason", a.Outcome)
			}
			if !r.Retry {
				return
			}
			if r.Limits.Memory < limits.Memory || r.Limits.Timeout < limits.Timeout ||
				r.Limits.Memory > max(limits.Memory, 512*disdel.MB) || r.Limits.Timeout > minutes(5) {
				t.Errorf("limits %+v after %+v", r.Limits, limits)
			}
			if r.BatchSize > 0 && r.BatchSize >= in.Job.Training.BatchSize || r.Workers > 0 &&
				(r.Workers <= in.Plan.Workers || r.Workers*in.Job.Training.BatchSize > 1000) {
				t.Errorf("planned again with batch %d of %d, %d workers of %d", r.BatchSize, in.Job.Training.BatchSize, r.Workers,
					in.Plan.Workers)
			}
			if r.BatchSize > 0 {
				in.Job.Training.BatchSize = r.BatchSize
			}
			if limits = r.Limits; r.Workers > 0 {
				in.Plan.Workers = r.Workers
			}
			before = append(before, *a)
		}
	})
}

// An invocation that was not taken has an outcome too.
func TestRefused(t *testing.T) {
	for want, e := range map[disdel.Outcome]*disdel.Error{
		disdel.OutcomeThrottled:     {Kind: disdel.Unavailable, Code: disdel.CodeQuotaMinute},
		disdel.OutcomeInternalError: {Kind: disdel.Unavailable, Msg: "nobody there"},
		disdel.OutcomeTooLarge:      {Kind: disdel.OverLimit},
		disdel.OutcomeCanceled:      {Kind: disdel.Canceled},
	} {
		if got := Refused(e); got != want {
			t.Errorf("%v: %v, want %v", e, got, want)
		}
	}
}

// A timeout that the user set, in which nothing was trained, is the user's to raise: starting takes as long with any
// number of workers. The platform's own maximum leaves only smaller shards.
func TestAUsersTimeoutIsNotAnsweredByWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		own     disdel.Duration
		workers int
	}{
		"the user's": {disdel.Duration(time.Second), 0},
		"platform's": {0, 4},
	} {
		in := remedyInput(disdel.OutcomeTimeout, disdel.UnknownKind)
		in.Job.Resources.Timeout = c.own
		in.Activation.Limits.Timeout = disdel.Millis(time.Second)
		if c.own == 0 {
			in.Activation.Limits.Timeout = in.Plan.Platform.MaxTimeout
		}
		r := FindRemedy(in)
		if r.Workers != c.workers || r.Retry != (c.workers > 0) || c.own > 0 &&
			!strings.Contains(r.Why, "the timeout is at resources.timeout of 1s") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// More workers are a remedy for train actions, unless the job file sets their number or the network has stages.
func TestMoreWorkersAreForTrainActions(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(in *RemedyInput)
		workers int
	}{
		"a train action": {func(*RemedyInput) {}, 3},
		"an aggregation": {func(in *RemedyInput) { in.Activation.Task = disdel.TaskAggregate }, 0},
		"an evaluation":  {func(in *RemedyInput) { in.Activation.Task = disdel.TaskEvaluate }, 0},
		"the job file's": {func(in *RemedyInput) { in.Job.Distribution.Workers = 2 }, 0},
		"at the maximum": {func(in *RemedyInput) { in.Job.Distribution.MaxWorkers = 2 }, 0},
		"stages":         {func(in *RemedyInput) { in.Plan.Stages = make([]disdel.PlannedStage, 2) }, 0},
	} {
		in := remedyInput(disdel.OutcomeOutOfMemory, disdel.OOM)
		in.Job.Training.BatchSize, in.Activation.Limits.Memory = 1, in.Plan.Platform.MaxMemory
		c.change(&in)
		if r := FindRemedy(in); r.Workers != c.workers || r.Retry != (c.workers > 0) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
