package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
)

// screen is a terminal of some columns that understands what a follower writes: lines, and taking rows back.
type screen struct {
	columns int
	rows    []string
}

func (s *screen) Write(data []byte) (int, error) {
	text := string(data)
	if up, rest, ok := strings.Cut(text, "A\x1b[J"); ok {
		var n int
		fmt.Sscanf(up, "\x1b[%d", &n)
		s.rows = s.rows[:max(0, len(s.rows)-n)]
		text = rest
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for utf8.RuneCountInString(line) > s.columns {
			s.rows, line = append(s.rows, string([]rune(line)[:s.columns])), string([]rune(line)[s.columns:])
		}
		s.rows = append(s.rows, line)
	}
	return len(data), nil
}

func progressOf(workers, batch int) controller.Notice {
	var list []disdel.Progress
	for i := range workers {
		list = append(list, disdel.Progress{Task: disdel.TaskTrain, Member: i, Epoch: 1, Batch: batch, Batches: 100, Loss: 0.1234, Resident: 40 * disdel.MB})
	}
	return controller.Notice{Progress: list}
}

// However narrow or low the terminal is, progress takes its own lines back and leaves none behind.
func TestProgressLeavesNoStaleLines(t *testing.T) {
	for _, columns := range []int{20, 40, 60, 80, 200} {
		s := &screen{columns: columns}
		u := newUI(nil, nil, s)
		u.live, u.size = true, func() (int, int) { return columns, 10 }
		f := newFollower(u)
		for batch := range 5 {
			f.notice(progressOf(12, batch))
			if len(s.rows) > 9 {
				t.Errorf("%d columns: %d rows of 10", columns, len(s.rows))
			}
		}
		f.done()
		if len(s.rows) > 0 {
			t.Errorf("%d columns: left behind:\n%s", columns, strings.Join(s.rows, "\n"))
		}
	}
}

// A terminal that is made narrower while a job runs has wrapped the lines that are taken back.
func TestProgressCountsTheRowsOfANarrowerTerminal(t *testing.T) {
	var out bytes.Buffer
	u := newUI(nil, nil, &out)
	columns := 200
	u.live, u.size = true, func() (int, int) { return columns, 50 }
	f := newFollower(u)
	f.notice(progressOf(2, 1))
	width := f.shown[0]
	columns = width/2 + 1
	out.Reset()
	f.erase()
	if got := out.String(); got != "\x1b[4A\x1b[J" {
		t.Errorf("%q", got)
	}
}

// Without a terminal an action that has nothing new to say is not repeated.
func TestFinishedWorkersAreNotRepeated(t *testing.T) {
	var out bytes.Buffer
	f := newFollower(newUI(nil, nil, &out))
	for range 3 {
		f.last = time.Time{}
		f.notice(progressOf(2, 100))
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

// Tables fit the terminal: at 80 columns with whole cells; a wide terminal, a pipe and -o wide show every column.
func TestTablesFitTheTerminal(t *testing.T) {
	r := disdel.Record{ID: "job-01m7zad0m380x2jdd8fp2bnb2n", Created: time.Now(), Status: disdel.StatusSucceeded, Accuracy: 0.9, Loss: 0.1}
	r.Job.Metadata.Name = "digits-cnn"
	other := r
	other.ID = "job-01m7zad1m380x2jdd8fp2bnb2n"
	for range 12 {
		r.Activations = append(r.Activations, activation(disdel.TaskTrain, 0, 1, 0, disdel.OutcomeSuccess))
	}
	for _, columns := range []int{40, 60, 80, 200, 0} {
		p := &page{Buffer: &bytes.Buffer{}, columns: columns}
		printHistory(p, []disdel.Record{r, other}, func(r *disdel.Record) string { return r.Status.String() })
		printRecord(p, &r)
		text := p.String()
		for line := range strings.Lines(text[:strings.Index(text, "\njob ")]) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); columns > 0 && n > columns {
				t.Errorf("%d columns: %d: %s", columns, n, line)
			}
		}
		for _, name := range []string{"JOB", "NAME", "ACCURACY", "ACTION", "PEAK", "OUTCOME"} {
			if columns >= 80 && !strings.Contains(text, name) {
				t.Errorf("%d columns: no %s\n%s", columns, name, text)
			}
		}
		if whole := columns == 0 || columns == 200; whole != (strings.Contains(text, string(r.ID)+"  digits") && strings.Contains(text, "GB-S") && strings.Contains(text, "COLD")) {
			t.Errorf("%d columns:\n%s", columns, text)
		}
		if columns == 80 && strings.Contains(text, "…") {
			t.Errorf("cut at 80 columns:\n%s", text)
		}
	}
}
