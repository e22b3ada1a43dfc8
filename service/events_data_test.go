package service

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/scheduler"
)

// Every kind of event can be read again from what it is written as.
func TestEventsAreReadAsTheyWere(t *testing.T) {
	at := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	loss := 0.25
	unread := maps.Clone(kinds)
	inv := disdel.Invocation{
		ID: "train/0", Task: disdel.TaskTrain, Member: 1, Round: 2, Limits: disdel.Limits{Memory: disdel.GB},
	}
	one, two := disdel.Quantity{Count: 1}, disdel.Quantity{Count: 2}
	rec := disdel.Record{
		ID: "job-x", Status: disdel.StatusRunning, Created: at, Plan: disdel.Plan{Workers: 2, Rounds: 3},
		Transitions: []disdel.Transition{{To: disdel.StatusQueued, At: at, Cause: "submitted"}},
	}
	for _, what := range []EventData{
		Noted{"text"},
		Probed{estimator.Rate{RowsPerSecond: 5}},
		Resumed{Round: 1, Rounds: 2},
		Planned{rec},
		Queued{Ahead: 3, Why: "why"},
		Admitted{Room: scheduler.Capacity{Memory: disdel.GB}, Waited: time.Second},
		Invoked{inv},
		Ended{disdel.Activation{ID: "a", Invocation: inv, Outcome: disdel.OutcomeTimeout, Start: at, End: at}},
		Progress{Actions: []disdel.Progress{{Task: disdel.TaskTrain, Member: 1, UnixMs: 5}}},
		StageBegan{disdel.Stage{First: 2, Rounds: 3}},
		RoundEnded{disdel.Round{Round: 1, TrainLoss: 0.5, Loss: &loss, Accuracy: &loss}},
		Adjusted{disdel.Adjustment{Field: "memory", Task: disdel.TaskTrain, From: one, To: two}},
		Forecast{disdel.Forecast{Samples: 2}},
		Outage{controller.Outage{For: time.Second, Over: true}},
		Throttled{controller.QuotaWait{Invocations: []disdel.Invocation{inv}, PerMinute: 10, Until: at}},
		Throttled{controller.QuotaWait{
			Invocations: []disdel.Invocation{inv}, Crowded: true, Concurrent: 2, For: time.Second,
		}},
		Waiting{controller.Waiting{Invocations: []disdel.Invocation{inv}, For: time.Minute}},
		Pruned{Models: []string{"m:v1"}, Keep: 2},
		Finished{rec},
	} {
		text, err := json.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadEventData(EventKind(what), text)
		if diff := cmp.Diff(what, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-was +read):\n%s", text, err, diff)
		}
		delete(unread, EventKind(what))
	}
	for name := range unread {
		t.Errorf("%s is not tried", name)
	}
	if _, err := ReadEventData("later", nil); disdel.KindOf(err) != disdel.Invalid {
		t.Errorf("an unknown kind: %v", err)
	}
}

// The two quotas of a namespace make actions wait for different things.
func TestAThrottledEventNamesWhatActionsWaitFor(t *testing.T) {
	two := make([]disdel.Invocation, 2)
	for want, w := range map[string]controller.QuotaWait{
		"2 actions wait for the next minute's quota":                 {Invocations: two, PerMinute: 10},
		"2 actions wait until one of the invocations in flight ends": {Invocations: two, Crowded: true, Concurrent: 2},
	} {
		if got := (Throttled{w}).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
