package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// Workers that run side by side find out together what is too little: with one retry for the whole job, three of them are tried
// again at the limit that the first one led to. A second failure there is one more than the job allows.
func TestWhatWorkersFindOutTogetherCountsOnce(t *testing.T) {
	for _, outcome := range []disdel.Outcome{disdel.OutcomeOutOfMemory, disdel.OutcomeTimeout} {
		spec := runSpec(3, 1)
		spec.Plan.Platform = disdel.PlatformLimits{MaxMemory: 64 * disdel.GB, MaxTimeout: disdel.Millis(time.Hour)}
		spec.Job.Reliability.Retries.Limit = 1
		m := NewManager(spec)
		failing := map[int]disdel.Activation{}
		for _, o := range m.Step(Event{Kind: EventStarted}) {
			failing[o.Invocation.Member] = disdel.Activation{Invocation: o.Invocation, Outcome: outcome, Failure: &disdel.Error{Kind: disdel.OOM}}
		}
		again := map[int]disdel.Invocation{}
		for member := range 3 {
			for _, o := range m.Step(Event{Kind: EventEnded, Activation: failing[member]}) {
				if o.Kind == OrderInvoke {
					again[member] = o.Invocation
				}
			}
		}
		if len(again) != 3 || again[0].Limits != again[2].Limits || again[0].Limits == failing[0].Limits {
			t.Fatalf("%v: tried again are %+v", outcome, again)
		}
		second := disdel.Activation{Invocation: again[1], Outcome: outcome, Failure: &disdel.Error{Kind: disdel.OOM}}
		if orders := m.Step(Event{Kind: EventEnded, Activation: second}); len(orders) == 0 || orders[len(orders)-1].Kind != OrderFinish {
			t.Errorf("%v: a second failure is answered by %+v", outcome, orders)
		}
	}
}

// A timeout that the user set, in which nothing was trained, is the user's to raise: starting takes as long with any number of
// workers. The platform's own maximum leaves only smaller shards.
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
		r := Decide(in)
		if r.Workers != c.workers || r.Retry != (c.workers > 0) || c.own > 0 && !strings.Contains(r.Why, "the timeout is at resources.timeout of 1s") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
