package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
)

var dawn = time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC)

// trained is a train action that began so many seconds after dawn.
func trained(worker, round, second int) disdel.Activation {
	start := dawn.Add(time.Duration(second) * time.Second)
	return disdel.Activation{
		Invocation: disdel.Invocation{
			Task: disdel.TaskTrain, Member: worker, Round: round, Attempt: 1,
			Limits: disdel.Limits{Memory: 128 * disdel.MB, Timeout: disdel.Millis(30 * time.Second)},
		},
		Outcome: disdel.OutcomeSuccess, Start: start, End: start.Add(2 * time.Second),
		Duration: disdel.Millis(2 * time.Second),
		WaitTime: disdel.Millis(time.Second), Peak: 60 * disdel.MB,
		Beats: []disdel.Beat{
			{At: disdel.Millis(1500 * time.Millisecond), Resident: 50 * disdel.MB, Epoch: 1, Batch: 3, Batches: 9, Loss: 0.5},
			{At: disdel.Millis(2500 * time.Millisecond), Resident: 60 * disdel.MB, Epoch: 1, Batch: 9, Batches: 9, Loss: 0.25},
		},
	}
}

// texts are lines without their times.
func texts(lines []LogLine) (out []string) {
	for _, l := range lines {
		out = append(out, fmt.Sprintf("%s %d %s", l.Action, l.Round, l.Text))
	}
	return out
}

// A job's log has its activations' lines in the order of their times, those of them that are wanted, and says what is
// missing.
func TestTheLogOfAJob(t *testing.T) {
	first, second, failed := trained(0, 0, 0), trained(1, 0, 1), trained(0, 1, 4)
	second.Logs, second.LogLines = []string{"2026-11-01T06:00:01.500000000Z stdout: hello \x1b[2Jworld", "no time"}, 7
	failed.Outcome, failed.Failure = disdel.OutcomeTimeout, &disdel.Error{Kind: disdel.Timeout, Msg: "too slow"}
	failed.Beats, failed.Attempt = nil, 2
	r := &disdel.Record{Activations: []disdel.Activation{first, second, failed}, Omitted: 3}
	begins := "begins: limit 128 MB and 30s, waited 1.0 s"
	want := []string{
		"train 0 1 " + begins,
		"train 0 1 epoch 1  loss 0.5000  batch 3 of 9  memory 50 MB",
		"train 1 1 " + begins,
		"train 1 1 printed 5 lines before these",
		"train 0 1 epoch 1  loss 0.2500  batch 9 of 9  memory 60 MB",
		"train 1 1 epoch 1  loss 0.5000  batch 3 of 9  memory 50 MB",
		"train 1 1 stdout: hello \x1b[2Jworld",
		"train 0 1 done in 2.0 s, peak 60 MB",
		"train 1 1 epoch 1  loss 0.2500  batch 9 of 9  memory 60 MB",
		"train 1 1 no time",
		"train 1 1 done in 2.0 s, peak 60 MB",
		"train 0 2 begins, attempt 2: limit 128 MB and 30s, waited 1.0 s",
		"train 0 2 needed more than 30s, peak 60 MB: too slow",
	}
	if got := texts(LogLines(r, LogFilter{})); !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	one := 1
	for name, c := range map[string]struct {
		wanted LogFilter
		lines  int
	}{
		"a worker": {LogFilter{Worker: &one}, 7}, "a round": {LogFilter{Round: 2}, 2}, "the last": {LogFilter{Tail: 3}, 3},
		"a task": {LogFilter{Task: disdel.TaskEvaluate}, 0},
	} {
		if got := LogLines(r, c.wanted); len(got) != c.lines {
			t.Errorf("%s: %d lines", name, len(got))
		}
	}
	var out bytes.Buffer
	PrintLogLines(&out, r, LogLines(r, LogFilter{Worker: &one}))
	if text := out.String(); strings.Contains(text, "\x1b") ||
		!strings.Contains(text, "left out 3 activations that passed") {
		t.Errorf("%q", text)
	}
}

// Who follows is told each heartbeat once, whether it comes by itself or with the end, and again of another attempt.
func TestALogIsFollowed(t *testing.T) {
	f := NewLogFollower(LogFilter{})
	f.now = func() time.Time { return dawn }
	beat := disdel.Progress{
		Task: disdel.TaskTrain, Epoch: 1, Batch: 3, Batches: 9, Loss: 0.5, Resident: 50 * disdel.MB, UnixMs: 1,
	}
	passed, failed := trained(0, 0, 0), trained(0, 0, 5)
	failed.Outcome, failed.Beats = disdel.OutcomeTimeout, failed.Beats[:1]
	var got []string
	for _, what := range []service.EventData{
		service.Progress{Actions: []disdel.Progress{beat}},
		service.Progress{Actions: []disdel.Progress{beat}},
		service.Ended{Activation: failed},
		service.Progress{Actions: []disdel.Progress{beat}},
		service.Ended{Activation: passed},
		service.RoundEnded{Round: disdel.Round{TrainLoss: 0.25, Duration: disdel.Millis(time.Second)}},
	} {
		got = append(got, texts(f.Follow(service.Event{What: what}))...)
	}
	half, whole := "train 0 1 epoch 1  loss 0.5000  batch 3 of 9  memory 50 MB",
		"train 0 1 epoch 1  loss 0.2500  batch 9 of 9  memory 60 MB"
	want := []string{
		half, "train 0 1 stopped answering: its heartbeats stopped after 0.5 s, at 33 % of its work, peak 60 MB",
		half, whole, "train 0 1 done in 2.0 s, peak 60 MB",
		" 1 over: train loss 0.2500  1.0 s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}
