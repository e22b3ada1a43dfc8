package render

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

func activation(task disdel.Task, member, attempt, leg int, o disdel.Outcome) disdel.Activation {
	a := disdel.Activation{Outcome: o}
	a.Task, a.Member, a.Attempt, a.Leg = task, member, attempt, leg
	a.Limits = disdel.Limits{Memory: 58 * disdel.MB, Timeout: disdel.Millis(3 * time.Second)}
	return a
}

// The outcome of an action is the last, the failures before it are counted, and no member is lost for one that is not
// there.
func TestTheTableShowsHowItEnded(t *testing.T) {
	got := map[string]string{}
	var order []string
	for _, u := range actionRows([]disdel.Activation{
		activation(disdel.TaskEvaluate, 0, 1, 0, disdel.OutcomeSuccess),
		activation(disdel.TaskTrain, 3, 1, 0, disdel.OutcomePaused),
		activation(disdel.TaskTrain, 3, 1, 1, disdel.OutcomeSuccess),
		activation(disdel.TaskTrain, 0, 1, 0, disdel.OutcomeOutOfMemory),
		activation(disdel.TaskTrain, 0, 2, 0, disdel.OutcomePaused),
		activation(disdel.TaskTrain, 0, 2, 1, disdel.OutcomeSuccess),
	}) {
		got[u.Name] = fmt.Sprintf("%v after %d failed", u.Outcome, u.Failed)
		order = append(order, u.Name)
	}
	if diff := cmp.Diff(map[string]string{
		"train 0": "success after 1 failed", "train 3": "success after 0 failed",
		"evaluate": "success after 0 failed",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "train 0, train 3, evaluate"; strings.Join(order, ", ") != want {
		t.Errorf("%v, want %s", order, want)
	}
}

// Attempts, legs and losses are told where there were any, and nowhere else.
func TestAttemptsLegsAndLossesAreShownWhereThereWereAny(t *testing.T) {
	text := func(r disdel.Record) string {
		var out bytes.Buffer
		PrintRecord(&out, &r)
		return out.String()
	}
	plain := text(disdel.Record{Activations: []disdel.Activation{activation(disdel.TaskTrain, 0, 1, 0,
		disdel.OutcomeSuccess)}})
	for _, word := range []string{"FAILED", "ATTEMPTS", "LEGS", "losses", "forecast"} {
		if strings.Contains(plain, word) {
			t.Errorf("%s in\n%s", word, plain)
		}
	}
	r := disdel.Record{
		Losses: disdel.Losses{Attempts: 2, Duration: disdel.Millis(3 * time.Second), Cost: 1.5},
		Activations: []disdel.Activation{
			activation(disdel.TaskTrain, 0, 3, 2, disdel.OutcomeSuccess),
		},
	}
	r.Plan.Forecast = &disdel.Forecast{Duration: disdel.Interval[disdel.Millis]{
		Low:    disdel.Millis(time.Second),
		Likely: disdel.Millis(2 * time.Second), High: disdel.Millis(4 * time.Second),
	}}
	got := text(r)
	for _, want := range []string{
		"losses    2 failed attempts: 3.00 s, 1.50 GB-s", "forecast  1.0 to 4.0 s, likely 2.0 s",
		"ACTION   RUNS  ATTEMPTS  LEGS", "train 0  1     3         3 ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// One line tells of a failure and of what is done about it.
func TestTheFollowerTellsOfTrouble(t *testing.T) {
	failed := func(o disdel.Outcome) service.EventData {
		a := activation(disdel.TaskTrain, 1, 1, 0, o)
		return service.Ended{Activation: a}
	}
	held := func(o disdel.Outcome) service.Ended {
		e := failed(o).(service.Ended)
		e.Hold = disdel.Millis(time.Second)
		return e
	}
	invoked := func(member, attempt, leg int) service.EventData {
		i := activation(disdel.TaskTrain, member, attempt, leg, 0).Invocation
		return service.Invoked{Invocation: i}
	}
	adjusted := func(field disdel.Field, from, to string) service.EventData {
		a := disdel.Adjustment{Field: field}
		if err := errors.Join(a.From.UnmarshalText([]byte(from)), a.To.UnmarshalText([]byte(to))); err != nil {
			t.Fatal(err)
		}
		return service.Adjusted{Adjustment: a}
	}
	success := activation(disdel.TaskTrain, 0, 1, 0, disdel.OutcomeSuccess)
	frozen := failed(disdel.OutcomeTimeout).(service.Ended)
	frozen.Beats = []disdel.Beat{{At: disdel.Millis(200 * time.Millisecond), Batch: 10, Batches: 100}}
	frozen.Duration = disdel.Millis(20 * time.Second)
	for want, notices := range map[string][]service.EventData{
		"train 1 needed more than 58 MB: 73 MB now, attempt 2": {
			failed(disdel.OutcomeOutOfMemory),
			adjusted("memory", "58MB", "73MB"), invoked(1, 2, 0),
		},
		"train 1 needed more than 3s: 6s now, attempt 2": {
			failed(disdel.OutcomeTimeout),
			adjusted("timeout", "3s", "6s"), invoked(1, 2, 0),
		},
		"train 1 stopped answering: its heartbeats stopped after 0.2 s, at 10 % of its work, attempt 2": {
			frozen, invoked(1, 2, 0),
		},
		"train 1 needed more than 58 MB: batches of 32 now, not 64": {
			failed(disdel.OutcomeOutOfMemory),
			adjusted("batchSize", "64", "32"), invoked(0, 2, 0),
		},
		"train 1 needed more than 58 MB: 3 workers now, not 2": {
			failed(disdel.OutcomeOutOfMemory),
			adjusted("workers", "2", "3"), invoked(0, 2, 0),
		},
		"train 1 paused before its timeout of 3s, goes on in leg 2": {
			failed(disdel.OutcomePaused), invoked(1, 1, 1),
		},
		"train 1 paused: its part of the budget was used up, goes on in leg 2": {
			held(disdel.OutcomePaused), invoked(1, 1, 1),
		},
		"train 1 did not end within its part of the budget, attempt 2": {
			held(disdel.OutcomeTimeout), invoked(1, 2, 0),
		},
		"train 1 crashed after 0.0 s, attempt 2": {
			failed(disdel.OutcomeDeveloperError),
			invoked(1, 2, 0),
		},
		"train 1 was lost by the platform|train 1 ended as diverged": {
			failed(disdel.OutcomeLost),
			failed(disdel.OutcomeDiverged),
		},
		"train 1 was refused for now: the platform's quota is used up": {
			failed(disdel.OutcomeThrottled),
			service.Ended{Activation: success},
		},
		"": {failed(disdel.OutcomeCanceled), service.Ended{Activation: success}, invoked(0, 1, 0)},
	} {
		var tr trouble
		var lines []string
		for _, n := range notices {
			if line := tr.notice(n); line != "" {
				lines = append(lines, line)
			}
		}
		if line := tr.rest(); line != "" {
			lines = append(lines, line)
		}
		if got := strings.Join(lines, "|"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Where nothing was measured nothing is shown as if it had been.
func TestAnAccuracyThatNobodyMeasuredIsNone(t *testing.T) {
	round := disdel.Round{TrainLoss: 1}
	measured := disdel.Round{TrainLoss: 1, Loss: new(0.5), Accuracy: new(0.0)}
	for want, r := range map[string]disdel.Record{
		"accuracy  - no rows held out   1 round\n": {Rounds: []disdel.Round{round}},
		"accuracy  - not evaluated   2 rounds\n": {
			Rounds: []disdel.Round{round, round},
			Plan:   disdel.Plan{HeldOut: 9},
		},
		"accuracy  0.0000 held out   loss 0.5000   1 round\n": {
			Rounds: []disdel.Round{measured},
			Plan:   disdel.Plan{HeldOut: 9},
		},
		"loss 0.2500, the best, of round 3   1 round\n": {
			Rounds: []disdel.Round{measured},
			Best:   &disdel.Best{Round: 2, Loss: 0.25},
		},
		"warning   it did not learn\n":                     {Warnings: []string{"it did not learn"}},
		"cost      1.00 GB-s, and evaluations 0.50 GB-s\n": {CostGBs: 1, EvaluationGBs: 0.5},
		"losses    1 failed attempt: 0.00 s, 0.00 GB-s\n":  {Losses: disdel.Losses{Attempts: 1}},
	} {
		var out bytes.Buffer
		PrintRecord(&out, &r)
		if !strings.Contains(out.String(), want) || strings.HasPrefix(out.String(), "\n") {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// A round in many legs is told of once; which leg it is the progress says.
func TestLegsAreFolded(t *testing.T) {
	var tr trouble
	var lines []string
	for leg := range 9 {
		a := activation(disdel.TaskTrain, 1, 1, leg, disdel.OutcomePaused)
		i := activation(disdel.TaskTrain, 1, 1, leg+1, 0).Invocation
		for _, n := range []service.EventData{service.Ended{Activation: a}, service.Invoked{Invocation: i}} {
			if line := tr.notice(n); line != "" {
				lines = append(lines, line)
			}
		}
	}
	if want := "train 1 paused before its timeout of 3s, goes on in leg 2"; len(lines) != 1 || lines[0] != want {
		t.Errorf("%q, want %q alone", lines, want)
	}
	f := NewFollower(&terminal.UI{})
	f.plan.Legs = 72
	i := activation(disdel.TaskTrain, 1, 1, 6, 0).Invocation
	f.Follow(service.Event{What: service.Invoked{Invocation: i}})
	line := f.progressLine(disdel.Progress{Task: disdel.TaskTrain, Member: 1, Epoch: 2})
	if !strings.Contains(line, "leg 7 of about 72") || !strings.Contains(line, "epoch 2  loss -") {
		t.Errorf("%q", line)
	}
}

// A lack of a GPU's memory is told apart from one of the action's own, and so is what is done about it.
func TestALackOfAGPUsMemoryIsToldApart(t *testing.T) {
	a := activation(disdel.TaskTrain, 0, 1, 0, disdel.OutcomeOutOfMemory)
	a.Failure = &disdel.Error{Kind: disdel.OOM, Code: disdel.CodeDeviceMemory}
	a.Limits.Device = 700 * disdel.MB
	if got, want := ending(&a), "needed more than 700 MB of the GPU"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	to := disdel.Quantity{Memory: 875 * disdel.MB}
	told := (&trouble{ended: &a, adjusted: &disdel.Adjustment{Field: disdel.FieldDevice, To: to}}).line()
	if want := "needed more than 700 MB of the GPU: 875 MB now"; !strings.HasSuffix(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}

// The head of a list's results is the metric of all its jobs. In a list of several metrics each result names its own.
func TestListsNameTheMetricOfTheirJobs(t *testing.T) {
	priced := disdel.DataInfo{Targets: []disdel.Target{{Name: "price"}}}
	numbers := disdel.Record{Status: disdel.StatusSucceeded, Data: priced}
	numbers.Rounds = []disdel.Round{{Loss: new(0.5), Scores: disdel.Scores{RMSE: 41.27}}}
	numbers.Scores = numbers.Rounds[0].Scores
	classes := disdel.Record{Status: disdel.StatusSucceeded, Data: disdel.DataInfo{Classes: 2}}
	classes.Rounds = []disdel.Round{{Loss: new(0.5), Accuracy: new(0.75)}}
	for want, records := range map[string][]disdel.Record{
		"RMSE LOSS 41.27 0.5000":                               {numbers},
		"ACCURACY LOSS 0.7500 0.5000":                          {classes},
		"METRIC LOSS RMSE 41.27 0.5000 accuracy 0.7500 0.5000": {numbers, classes},
		"METRIC LOSS - -":                                      {{Status: disdel.StatusFailed}},
		"ACCURACY LOSS - - 0.7500 0.5000":                      {{Status: disdel.StatusFailed}, classes},
	} {
		var out bytes.Buffer
		PrintJobs(&out, &JobList{Records: records, Columns: []string{"accuracy", "loss"}})
		if got := strings.Join(strings.Fields(out.String()), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
