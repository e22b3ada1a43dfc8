package fullscreen

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// record is a job of two rounds.
func record(number int, name string) disdel.Record {
	loss, accuracy := 0.5, 0.75
	r := disdel.Record{
		ID: disdel.JobID(fmt.Sprintf("job-%026d", number)), Status: disdel.StatusRunning, Created: noon.Add(-time.Minute),
	}
	r.Job.Metadata.Name, r.Job.Model.Name, r.Data.Name, r.Plan.Rounds, r.Plan.Workers = name, "digits-cnn", "digits", 4, 2
	r.Rounds = []disdel.Round{{TrainLoss: 1}, {Round: 1, TrainLoss: 0.25, Loss: &loss, Accuracy: &accuracy}}
	return r
}

// The head of the results is the metric of all listed jobs.
func TestTheListNamesTheMetric(t *testing.T) {
	s, numbers := NewScreen(), record(1, "prices")
	numbers.Rounds[1].Accuracy, numbers.Rounds[1].RMSE = nil, 41.27
	s.Listed([]disdel.Record{numbers}, nil)
	if got := strings.Join(s.Lines(140, 20, noon), "\n"); !strings.Contains(got, "RMSE") || strings.Contains(got, "ACCURACY") {
		t.Errorf("%s", got)
	}
	s.Listed([]disdel.Record{numbers, record(2, "alpha")}, nil)
	if got := strings.Join(s.Lines(140, 20, noon), "\n"); !strings.Contains(got, "METRIC") || !strings.Contains(got, "accuracy 0.7500") {
		t.Errorf("%s", got)
	}
}

func press(s *Screen, keys ...string) (last Wish) {
	for _, key := range keys {
		last = s.Key(key)
	}
	return last
}

func text(s *Screen) string { return strings.Join(s.Lines(100, 20, noon), "\n") }

// A job is chosen from the list, which is filtered by words; it is asked before anything is done to a job.
func TestTheList(t *testing.T) {
	s := NewScreen()
	list := []disdel.Record{record(3, "gamma"), record(2, "beta"), record(1, "alpha")}
	s.Listed(list, nil)
	if got := text(s); !strings.Contains(got, "> gamma") || !strings.Contains(got, "1m0s") ||
		!strings.Contains(got, "2/4") {
		t.Errorf("%s", got)
	}
	press(s, keyDown, "j", "j", "k") // not beyond the last
	s.Listed(append([]disdel.Record{record(4, "delta")}, list...), nil)
	if got := text(s); !strings.Contains(got, "> beta") {
		t.Errorf("another job is marked:\n%s", got)
	}
	if w := press(s, "c", "n"); w.Kind != Nothing {
		t.Errorf("%+v without a yes", w)
	}
	if w := press(s, "p", "y"); w != (Wish{Ask, list[1].ID, disdel.StatusPaused}) {
		t.Errorf("%+v", w)
	}
	press(s, "/", "a", "l", "x", keyBack, "p", keyEnter)
	if got := text(s); !strings.Contains(got, "> alpha") || strings.Contains(got, "beta") ||
		!strings.Contains(got, "1 job") {
		t.Errorf("filtered:\n%s", got)
	}
	if w := press(s, keyEnter); w != (Wish{Kind: Open, Job: list[2].ID}) || s.job == nil {
		t.Errorf("%+v", w)
	}
	if w := press(s, "q"); w.Kind != Close || s.job != nil {
		t.Errorf("%+v", w)
	}
	press(s, "/", keyEscape)
	s.Listed(nil, errors.New("it does not answer"))
	if got := text(s); !strings.Contains(got, "gamma") || !strings.Contains(got, "not up to date: it does not answer") {
		t.Errorf("%s", got)
	}
	if w := press(s, "q"); w.Kind != Quit {
		t.Errorf("%+v", w)
	}
	s.Listed([]disdel.Record{}, nil)
	if w := press(s, keyEnter, "c"); w.Kind != Nothing || s.asked != disdel.StatusUnknown {
		t.Error("there is no job to ask about")
	}
}

// A job's screen shows how far it is, its curves, its actions and its log, and nothing that steers the terminal.
func TestAJob(t *testing.T) {
	s := NewScreen()
	r := record(1, "evil\x1b[2J\nname")
	s.Opened(r.ID, true)
	for _, what := range []service.EventData{
		service.Planned{Record: r},
		service.Queued{Ahead: 2},
		service.Invoked{
			Invocation: disdel.Invocation{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: 128 * disdel.MB}},
		},
		service.Progress{Actions: []disdel.Progress{{
			Task: disdel.TaskTrain, Member: 1, Round: 2, Epoch: 3, Batch: 5, Batches: 10, Loss: 0.125, Resident: 64 * disdel.MB,
		}}},
		service.Forecast{Forecast: disdel.Forecast{
			Duration: disdel.Interval[disdel.Millis]{Likely: disdel.Millis(8 * time.Second)},
		}},
	} {
		s.job.Happened(service.Event{What: what})
	}
	got := text(s)
	for _, want := range []string{
		"digits-cnn on digits, 2 workers", "round 2/4 [##########..........]", "about 8s left", "queued behind 2",
		"train loss   0.2500  █▁", "accuracy     0.7500", "train 1       [##########..........]  epoch 3  loss 0.1250",
		"64/128 MB", "round 2/4  train loss 0.2500",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Error("a name steers the terminal")
	}
	press(s, "l")
	if got := text(s); !strings.Contains(got, "epoch 3  loss 0.1250  batch 5 of 10") || strings.Contains(got, "█") {
		t.Errorf("the log:\n%s", got)
	}
	s.job.Happened(service.Event{What: service.RoundEnded{Round: disdel.Round{Round: 2, TrainLoss: 0.125}}})
	press(s, "d")
	if got := text(s); !strings.Contains(got, "round 3/4") || strings.Contains(got, "queued") {
		t.Errorf("%s", got)
	}
	r.Status, r.Failure = disdel.StatusFailed, &disdel.Error{Kind: disdel.OOM, Msg: "too little memory"}
	s.job.Happened(service.Event{What: service.Finished{Record: r}})
	if got := text(s); !strings.Contains(got, "failed") || !strings.Contains(got, "too little memory") ||
		strings.Contains(got, "train 1") {
		t.Errorf("%s", got)
	}
	if w := press(s, "q"); w.Kind != Quit {
		t.Errorf("%+v", w)
	}
}

// The screen has as many lines as there are rows, none too long, whatever its size.
func TestTheScreenFits(t *testing.T) {
	s := NewScreen()
	var list []disdel.Record
	for i := range 60 {
		list = append(list, record(100-i, strings.Repeat("name", i)))
	}
	s.Listed(list, nil)
	for range 40 {
		press(s, keyDown)
	}
	for _, size := range [][2]int{{80, 24}, {20, 5}, {1, 1}, {300, 80}} {
		for range 2 { // of the list, then of a job
			lines := s.Lines(size[0], size[1], noon)
			if len(lines) != size[1] {
				t.Errorf("%v: %d lines", size, len(lines))
			}
			for _, l := range lines {
				if utf8.RuneCountInString(l) > size[0] {
					t.Errorf("%v: %q", size, l)
				}
			}
			s.Opened(list[0].ID, false)
			s.job.Happened(service.Event{What: service.Planned{Record: list[0]}})
		}
		s.leave()
	}
	if got := text(s); !strings.Contains(got, "> ") {
		t.Errorf("the marked job is not there:\n%s", got)
	}
}

// What a terminal sends is keys, however much of it comes at once.
func TestKeys(t *testing.T) {
	for sent, want := range map[string]string{
		"q": "q", "\x1b[A\x1bOB": "up down", "\x1b": "escape", "a\r\x7f\x03": "a enter backspace interrupt", "ü/": "ü /",
		"\x1b[5~": "", "\x01x": "x",
	} {
		if got := strings.Join(keysOf(sent), " "); got != want {
			t.Errorf("%q: %q", sent, got)
		}
	}
}
