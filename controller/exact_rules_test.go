package controller

import (
	"testing"

	"github.com/disdel/disdel"
)

// A checkpoint is due after every so many rounds, counted from 1. The last round writes the model instead.
func TestCheckpointsAreDueAfterEverySoManyRounds(t *testing.T) {
	for every := range 6 {
		for rounds := 1; rounds < 14; rounds++ {
			s := Spec{Plan: disdel.Plan{Rounds: rounds}}
			s.Job.Reliability.CheckpointEvery = every
			due := map[int]bool{}
			for n := every; every > 0 && n < rounds; n += every {
				due[n-1] = true
			}
			for round := range rounds {
				if s.checkpointDue(round) != due[round] {
					t.Errorf("every %d of %d: after round %d it is due: %t", every, rounds, round, !due[round])
				}
			}
		}
	}
}

// A failure for a limit was answered only if that limit has been raised above the one that it ran with.
func TestAFailureIsAnsweredByAHigherLimit(t *testing.T) {
	ran := disdel.Limits{Memory: 256 * disdel.MB, Timeout: 60e9, Device: 512 * disdel.MB}
	memory := disdel.Activation{Outcome: disdel.OutcomeOutOfMemory}
	device := disdel.Activation{
		Outcome: disdel.OutcomeOutOfMemory, Failure: &disdel.Error{Code: disdel.CodeDeviceMemory},
	}
	slow := disdel.Activation{Outcome: disdel.OutcomeTimeout}
	crashed := disdel.Activation{Outcome: disdel.OutcomeDeveloperError}
	for _, more := range []int{-1, 0, 1} {
		by := disdel.Bytes(more)
		for what, c := range map[string]struct {
			a      disdel.Activation
			raised disdel.Limits
		}{
			"memory":       {memory, disdel.Limits{Memory: ran.Memory + by}},
			"the device's": {device, disdel.Limits{Device: ran.Device + by}},
			"time":         {slow, disdel.Limits{Timeout: ran.Timeout + disdel.Millis(more)}},
		} {
			tries := newAttempts()
			c.a.Task, c.a.Limits = disdel.TaskTrain, ran
			tries.limits[disdel.TaskTrain] = c.raised
			if got := tries.answered(c.a); got != (more > 0) {
				t.Errorf("%s limit, raised by %d: answered %t", what, more, got)
			}
			tries.limits[disdel.TaskTrain] = disdel.Limits{Memory: 1 << 40, Timeout: 1e15, Device: 1 << 40}
			if crashed.Task = disdel.TaskTrain; tries.answered(crashed) {
				t.Error("a crash is answered by limits")
			}
			if tries.limits = map[disdel.Task]disdel.Limits{disdel.TaskEvaluate: c.raised}; tries.answered(c.a) {
				t.Errorf("%s limit: another task's is no answer", what)
			}
		}
	}
}

// Limits that a job names may be exactly the platform's.
func TestAJobMayNeedAllThatThePlatformAllows(t *testing.T) {
	p := disdel.PlatformLimits{MinMemory: 128 * disdel.MB, MaxMemory: 512 * disdel.MB}
	for memory, fits := range map[disdel.Bytes]bool{
		0: true, 128*disdel.MB - 1: false, 128 * disdel.MB: true, 512 * disdel.MB: true, 512*disdel.MB + 1: false,
	} {
		var job disdel.Job
		job.Resources.Memory = memory
		if err := CheckPlatform(job, p); (err == nil) != fits {
			t.Errorf("%v of %v to %v: %v", memory, p.MinMemory, p.MaxMemory, err)
		}
		p := p
		p.Pool = 512 * disdel.MB
		p.MaxMemory *= 2
		if err := CheckPlatform(job, p); (err == nil) != fits {
			t.Errorf("%v of a pool of %v: %v", memory, p.Pool, err)
		}
	}
	p.MaxTimeout = 60e9
	for timeout, fits := range map[disdel.Duration]bool{0: true, 60e9: true, 60e9 + 1: false} {
		var job disdel.Job
		job.Resources.Timeout = timeout
		if err := CheckPlatform(job, p); (err == nil) != fits {
			t.Errorf("%v of at most %v: %v", timeout, p.MaxTimeout, err)
		}
	}
}

// The holds of a leg: in the shortest one something may be trained, and in a useful one something surely is.
func TestHoldsOfALeg(t *testing.T) {
	const second = disdel.Millis(1e9)
	for _, c := range []struct {
		cost            legCost
		minimum, useful disdel.Millis
	}{
		{legCost{}, second / 10, second / 10},
		{legCost{fixed: second / 25, step: second / 50}, second / 10, second / 10},
		{legCost{fixed: 2 * second, step: second}, 3 * second, 9 * second / 2},
		{legCost{fixed: second, step: 2 * second}, 3 * second, 9 * second / 2},
		{legCost{fixed: 2 * second, step: second, tooShort: 2 * second}, 3 * second, 9 * second / 2},
		{legCost{fixed: 2 * second, step: second, tooShort: 4 * second}, 4 * second, 8 * second},
	} {
		if c.cost.minimum() != c.minimum || c.cost.useful() != c.useful {
			t.Errorf("%+v: at least %v, useful %v; not %v and %v", c.cost, c.cost.minimum(), c.cost.useful(), c.minimum,
				c.useful)
		}
	}
}
