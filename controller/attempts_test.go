package controller

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// Workers that run side by side find out together what is too little: with one retry for the whole job, three of them
// are tried again at the limit that the first one led to. A second failure there is one more than the job allows.
func TestWhatWorkersFindOutTogetherCountsOnce(t *testing.T) {
	for _, outcome := range []disdel.Outcome{disdel.OutcomeOutOfMemory, disdel.OutcomeTimeout} {
		spec := runSpec(3, 1)
		spec.Plan.Platform = disdel.PlatformLimits{MaxMemory: 64 * disdel.GB, MaxTimeout: disdel.Millis(time.Hour)}
		spec.Job.Reliability.Retries.Limit = 1
		m := NewManager(spec)
		failing := map[int]disdel.Activation{}
		for _, o := range m.Step(StartedEvent{}) {
			inv := o.(InvokeOrder).Invocation
			failing[inv.Member] = disdel.Activation{
				Invocation: inv, Outcome: outcome,
				Failure: &disdel.Error{Kind: disdel.OOM},
			}
		}
		again := map[int]disdel.Invocation{}
		for member := range 3 {
			for _, o := range m.Step(EndedEvent{Activation: failing[member]}) {
				if o, ok := o.(InvokeOrder); ok {
					again[member] = o.Invocation
				}
			}
		}
		if len(again) != 3 || again[0].Limits != again[2].Limits || again[0].Limits == failing[0].Limits {
			t.Fatalf("%v: tried again are %+v", outcome, again)
		}
		second := disdel.Activation{Invocation: again[1], Outcome: outcome, Failure: &disdel.Error{Kind: disdel.OOM}}
		orders := m.Step(EndedEvent{Activation: second})
		if len(orders) == 0 {
			t.Fatalf("%v: a second failure is answered by nothing", outcome)
		}
		if _, ok := orders[len(orders)-1].(FinishOrder); !ok {
			t.Errorf("%v: a second failure is answered by %+v", outcome, orders)
		}
	}
}

// Two workers are killed at the same limits: the remedy of the second must not take back what the first one's retries
// led to.
func TestARemedyLowersNoLimit(t *testing.T) {
	raised := disdel.Limits{Memory: 200 * disdel.MB, Timeout: disdel.Millis(time.Minute)}
	late := disdel.Limits{Memory: 128 * disdel.MB, Timeout: disdel.Millis(2 * time.Minute)}
	m := NewManager(runSpec(2, 1))
	m.attempts.raise(disdel.TaskTrain, raised)
	m.attempts.raise(disdel.TaskTrain, late)
	if got, want := m.attempts.limits[disdel.TaskTrain],
		(disdel.Limits{Memory: 200 * disdel.MB, Timeout: disdel.Millis(2 * time.Minute)}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// An attempt is above every earlier one of its slot in its round, and in rounds that the job went back over above all
// there were; a slot waits for the newest one's end alone, and once.
func TestAnAttemptIsAboveThoseBefore(t *testing.T) {
	s, n := disdel.Slot{Task: disdel.TaskTrain}, newAttempts()
	activation := func(id string) disdel.Activation {
		return disdel.Activation{Invocation: disdel.Invocation{ID: id, Task: s.Task}}
	}
	for want := 1; want <= 3; want++ {
		e := n.next(s, 0)
		if n.await(s, e, "newest"); e.attempt != want {
			t.Fatalf("attempt %d, want %d", e.attempt, want)
		}
	}
	if n.awaits(activation("earlier")) || n.awaits(activation("")) || !n.awaits(activation("newest")) {
		t.Error("the slot waits for something else than its newest invocation")
	}
	if n.close(s); n.awaits(activation("newest")) || n.awaits(activation("")) {
		t.Error("the slot waits for what has ended")
	}
	n.goBack(2)
	for round, want := range []int{4, 4, 1} {
		if n.begin(); n.next(s, round).attempt != want {
			t.Errorf("round %d does not begin with attempt %d", round, want)
		}
	}
}

// A leg in which others were waited for is none that came no further: whoever is late has bounds of its own. Those that
// wait for each other end all the same.
func TestWaitingForOthersIsNoStandstill(t *testing.T) {
	s := disdel.Slot{Task: disdel.TaskTrain}
	for waited, most := range map[bool]int{false: maxStalled, true: maxWaited} {
		n, legs := newAttempts(), 0
		for stalled := false; !stalled && legs <= maxWaited; legs++ {
			_, stalled = n.nextLeg(s, 0, waited)
		}
		if legs != most {
			t.Errorf("waited %v: stalled after %d legs, want %d", waited, legs, most)
		}
	}
	m := NewManager(runSpec(2, 1))
	inv := m.Step(StartedEvent{})[0].(InvokeOrder).Invocation
	result, err := json.Marshal(disdel.TrainResult{Paused: true, Waited: true, BatchesDone: 3})
	if err != nil {
		t.Fatal(err)
	}
	for leg := range 2 * maxStalled {
		orders := m.Step(EndedEvent{
			Activation: disdel.Activation{Invocation: inv, Outcome: disdel.OutcomePaused, Result: result},
		})
		next, ok := orders[0].(InvokeOrder)
		if !ok || next.Invocation.Leg != leg+1 || next.Invocation.Attempt != inv.Attempt {
			t.Fatalf("leg %d that waited is answered by %+v", leg, orders)
		}
		inv = next.Invocation
	}
}

// What a worker cannot be given of another one's step nobody sends again: the round is begun anew, which the store is
// told before anybody.
func TestALostDeltaBeginsTheRoundAnew(t *testing.T) {
	m := NewManager(runSpec(2, 1))
	inv := m.Step(StartedEvent{})[0].(InvokeOrder).Invocation
	orders := m.Step(EndedEvent{Activation: disdel.Activation{
		Invocation: inv, Outcome: disdel.OutcomeApplicationError,
		Failure: &disdel.Error{Kind: disdel.NotFound, Code: disdel.CodeLostUpdate},
	}})
	if len(orders) != 3 {
		t.Fatalf("%+v", orders)
	}
	if _, forgets := orders[0].(ForgetOrder); !forgets {
		t.Errorf("%+v comes first", orders[0])
	}
	for _, o := range orders[1:] {
		if again, ok := o.(InvokeOrder); !ok || again.Invocation.Attempt != 2 {
			t.Errorf("%+v", o)
		}
	}
}

// Containers that a machine kills now and then do not end a job, even if there are more kills than retries. A process
// that dies again and again in one round ends the job.
func TestKilledContainersDoNotCountAgainstTheJob(t *testing.T) {
	for _, deaths := range []int{1, 100} {
		in(t, func(t *testing.T, s *surroundings) {
			s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
				a, err := passes(ctx, inv)
				if inv.Task == disdel.TaskTrain && inv.Attempt <= deaths {
					a.Outcome, a.Result, a.Peak = disdel.OutcomeDeveloperError, nil, disdel.MB
					a.Failure = &disdel.Error{Kind: disdel.Crashed, Msg: "killed"}
				}
				return a, err
			}
			spec := runSpec(3, 6)
			spec.Job.Reliability.Retries.Limit = 2
			rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
			if err != nil || (rec.Status == disdel.StatusSucceeded) != (deaths == 1) {
				t.Errorf("%d deaths of each worker in each round: %v after %d rounds: %v, %v", deaths, rec.Status,
					len(rec.Rounds), rec.Failure, err)
			}
		})
	}
}

// A worker that gets nothing done in time, while the same work was in time before, waited for something slow. It is
// tried again, and only so often as reliability.retries allows.
func TestATimeoutThatOthersKeptIsRetried(t *testing.T) {
	for _, late := range []int{1, 100} { // attempts of round 1 that are not in time
		in(t, func(t *testing.T, s *surroundings) {
			spec := runSpec(1, 2)
			timeout := spec.Plan.Actions[0].Limits.Timeout
			spec.Plan.Platform.MaxTimeout = timeout
			s.end = func(ctx context.Context, inv disdel.Invocation) (disdel.Activation, error) {
				a, err := passes(ctx, inv)
				if a.Duration = timeout / 10; inv.Task == disdel.TaskTrain && inv.Round == 1 && inv.Attempt <= late {
					a.Outcome, a.Result, a.Duration = disdel.OutcomeTimeout, nil, timeout
					a.Failure = &disdel.Error{Kind: disdel.Timeout, Msg: "not in time"}
				}
				return a, err
			}
			rec, err := s.controller().Run(t.Context(), spec, disdel.DataInfo{})
			if err != nil || (rec.Status == disdel.StatusSucceeded) != (late == 1) {
				t.Errorf("%d attempts that are late: %v: %v, %v", late, rec.Status, rec.Failure, err)
			}
		})
	}
}
