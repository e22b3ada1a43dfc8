package disdel_test

import (
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// A timeout is a stall only where heartbeats say so: they ended with work left, and the timeout was long enough for it.
func TestStalled(t *testing.T) {
	beats := func(every, until time.Duration, batches int) (out []disdel.Beat) {
		for n := 1; time.Duration(n)*every <= until; n++ {
			out = append(out, disdel.Beat{At: disdel.Millis(time.Duration(n) * every), Batch: n, Batches: batches, Epoch: 1})
		}
		return out
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		task    disdel.Task
		outcome disdel.Outcome
		timeout time.Duration
		wait    time.Duration
		beats   []disdel.Beat
		want    string // "": no stall
	}{
		"frozen early": {
			timeout: 20 * time.Second, beats: beats(20*ms, 200*ms, 100),
			want: "its heartbeats stopped after 0.2 s, at 10 % of its work",
		},
		"frozen after a wait in the queue": {
			timeout: 20 * time.Second, wait: 10 * time.Second,
			beats: []disdel.Beat{{At: disdel.Millis(10500 * ms), Batch: 50, Batches: 100, Epoch: 1}},
			want:  "its heartbeats stopped after 0.5 s, at 50 % of its work",
		},
		"slow to the end":        {timeout: 20 * time.Second, beats: beats(300*ms, 20*time.Second, 100)},
		"too slow, and frozen":   {timeout: 20 * time.Second, beats: beats(300*ms, 5*time.Second, 100)},
		"slow batches":           {timeout: 20 * time.Second, beats: beats(6*time.Second, 18*time.Second, 3000)},
		"its work done":          {timeout: 20 * time.Second, beats: beats(20*ms, 2*time.Second, 100)},
		"before its first batch": {timeout: 20 * time.Second},
		"a silence of a moment":  {timeout: 2 * time.Second, beats: beats(300*ms, 1200*ms, 6)},
		"no timeout": {
			outcome: disdel.OutcomeOutOfMemory, timeout: 20 * time.Second, beats: beats(20*ms, 200*ms, 100),
		},
		"an aggregation that hung": {
			task: disdel.TaskAggregate, timeout: 20 * time.Second, beats: []disdel.Beat{{At: disdel.Millis(300 * ms)}},
			want: "its heartbeats stopped after 0.3 s",
		},
	} {
		a := disdel.Activation{
			Outcome: disdel.OutcomeTimeout, Duration: disdel.Millis(c.timeout), WaitTime: disdel.Millis(c.wait), Beats: c.beats,
		}
		a.Task, a.Limits.Timeout = disdel.TaskTrain, disdel.Millis(c.timeout)
		if c.task != "" {
			a.Task = c.task
		}
		if c.outcome != 0 {
			a.Outcome = c.outcome
		}
		got, stalled := a.Stalled()
		if stalled != (c.want != "") || stalled && got.Text() != c.want {
			t.Errorf("%s: %v %q, want %q", name, stalled, got.Text(), c.want)
		}
	}
}
