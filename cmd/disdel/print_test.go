package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

func activation(task disdel.Task, member, attempt, leg int, o disdel.Outcome) disdel.Activation {
	a := disdel.Activation{Outcome: o}
	a.Task, a.Member, a.Attempt, a.Leg = task, member, attempt, leg
	a.Limits = disdel.Limits{Memory: 58 * disdel.MB, Timeout: disdel.Millis(3 * time.Second)}
	return a
}

// A failure shows before a success, whatever the outcomes' numbers are, and no member is lost for one that is not there.
func TestTheTableShowsTheWorst(t *testing.T) {
	got := map[string]string{}
	var order []string
	for _, u := range byAction([]disdel.Activation{
		activation(disdel.TaskEvaluate, 0, 1, 0, disdel.OutcomeSuccess),
		activation(disdel.TaskTrain, 3, 1, 0, disdel.OutcomePaused),
		activation(disdel.TaskTrain, 3, 1, 1, disdel.OutcomeSuccess),
		activation(disdel.TaskTrain, 0, 1, 0, disdel.OutcomeOutOfMemory),
		activation(disdel.TaskTrain, 0, 2, 0, disdel.OutcomePaused),
		activation(disdel.TaskTrain, 0, 2, 1, disdel.OutcomeSuccess),
	}) {
		got[u.name] = u.outcome.String()
		order = append(order, u.name)
	}
	if diff := cmp.Diff(map[string]string{"train 0": "outOfMemory", "train 3": "success", "evaluate": "success"}, got); diff != "" {
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
		printRecord(&out, &r)
		return out.String()
	}
	plain := text(disdel.Record{Activations: []disdel.Activation{activation(disdel.TaskTrain, 0, 1, 0, disdel.OutcomeSuccess)}})
	for _, word := range []string{"ATTEMPTS", "LEGS", "losses", "forecast"} {
		if strings.Contains(plain, word) {
			t.Errorf("%s in\n%s", word, plain)
		}
	}
	r := disdel.Record{Losses: disdel.Losses{Attempts: 2, Duration: disdel.Millis(3 * time.Second), Cost: 1.5}, Activations: []disdel.Activation{
		activation(disdel.TaskTrain, 0, 3, 2, disdel.OutcomeSuccess),
	}}
	r.Plan.Forecast = &disdel.Forecast{Duration: disdel.Interval[disdel.Millis]{Low: disdel.Millis(time.Second), Likely: disdel.Millis(2 * time.Second), High: disdel.Millis(4 * time.Second)}}
	got := text(r)
	for _, want := range []string{"losses    2 failed attempts: 3.00 s, 1.50 GB-s", "forecast  1.0 to 4.0 s, likely 2.0 s", "ACTION   RUNS  ATTEMPTS  LEGS", "train 0  1     3         3 "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// One line tells of a failure and of what is done about it.
func TestTheFollowerTellsOfTrouble(t *testing.T) {
	failed := func(o disdel.Outcome) controller.Notice {
		a := activation(disdel.TaskTrain, 1, 1, 0, o)
		return controller.Notice{Ended: &a}
	}
	invoked := func(member, attempt, leg int) controller.Notice {
		i := activation(disdel.TaskTrain, member, attempt, leg, 0).Invocation
		return controller.Notice{Invoked: &i}
	}
	adjusted := func(field, from, to string) controller.Notice {
		return controller.Notice{Adjusted: &disdel.Adjustment{Field: field, From: from, To: to}}
	}
	success := activation(disdel.TaskTrain, 0, 1, 0, disdel.OutcomeSuccess)
	for want, notices := range map[string][]controller.Notice{
		"train 1 needed more than 58 MB: 73 MB now, attempt 2":         {failed(disdel.OutcomeOutOfMemory), adjusted("memory", "58MB", "73MB"), invoked(1, 2, 0)},
		"train 1 needed more than 3s: 6s now, attempt 2":               {failed(disdel.OutcomeTimeout), adjusted("timeout", "3s", "6s"), invoked(1, 2, 0)},
		"train 1 needed more than 58 MB: batches of 32 now, not 64":    {failed(disdel.OutcomeOutOfMemory), adjusted("batchSize", "64", "32"), invoked(0, 2, 0)},
		"train 1 needed more than 58 MB: 3 workers now, not 2":         {failed(disdel.OutcomeOutOfMemory), adjusted("workers", "2", "3"), invoked(0, 2, 0)},
		"train 1 paused before its timeout of 3s, goes on in leg 2":    {failed(disdel.OutcomePaused), invoked(1, 1, 1)},
		"train 1 crashed after 0.0 s, attempt 2":                       {failed(disdel.OutcomeDeveloperError), invoked(1, 2, 0)},
		"train 1 was lost by the platform|train 1 ended as diverged":   {failed(disdel.OutcomeLost), failed(disdel.OutcomeDiverged)},
		"train 1 was refused for now: the platform's quota is used up": {failed(disdel.OutcomeThrottled), {Ended: &success}},
		"": {failed(disdel.OutcomeCanceled), {Ended: &success}, invoked(0, 1, 0)},
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

// Every address has the password of the environment but those with one of their own.
func TestThePasswordGoesToAddressesWithoutOne(t *testing.T) {
	t.Setenv("DISDEL_REDIS_PASSWORD", "a/b")
	for address, want := range map[string]string{
		"": "", "redis://h:1/0": "redis://:a%2Fb@h:1/0", "rediss://user@h:1/0": "rediss://user:a%2Fb@h:1/0", "redis://:own@h:1/0": "redis://:own@h:1/0",
	} {
		if got, err := withPassword(address, "DISDEL_REDIS_PASSWORD"); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", address, got, err, want)
		}
	}
}
