package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

// jobList is a list of jobs without a history.
func jobList(list ...disdel.Record) *render.JobList {
	return &render.JobList{
		Records: list, Status: func(r *disdel.Record) string { return r.Status.String() }, Now: time.Now(),
		Tags: func(disdel.JobID) []string { return nil },
	}
}

// What nobody measured is not listed as if it had been.
func TestTheListSaysWhatNobodyMeasured(t *testing.T) {
	var out bytes.Buffer
	render.PrintJobs(&out, jobList(disdel.Record{Status: disdel.StatusSucceeded, Learned: new(false)}))
	if text := out.String(); !strings.Contains(text, "succeeded, did not learn") || strings.Contains(text, "0.0000") {
		t.Errorf("%s", text)
	}
}

// Tables fit the terminal: at 80 columns with whole cells; a wide terminal, a pipe and -o wide show every column.
func TestTablesFitTheTerminal(t *testing.T) {
	r := disdel.Record{
		ID: "job-01m7zad0m380x2jdd8fp2bnb2n", Created: time.Now(), Status: disdel.StatusSucceeded,
		Accuracy: 0.9, Loss: 0.1,
	}
	r.Job.Metadata.Name = "digits-cnn"
	other := r
	other.ID = "job-01m7zad1m380x2jdd8fp2bnb2n"
	passed := disdel.Activation{Outcome: disdel.OutcomeSuccess}
	passed.Task, passed.Attempt = disdel.TaskTrain, 1
	passed.Limits = disdel.Limits{Memory: 58 * disdel.MB, Timeout: disdel.Millis(3 * time.Second)}
	for range 12 {
		r.Activations = append(r.Activations, passed)
	}
	for _, columns := range []int{40, 60, 80, 200, 0} {
		p := &terminal.Page{Buffer: &bytes.Buffer{}, Columns: columns}
		render.PrintJobs(p, jobList(r, other))
		render.PrintRecord(p, &r)
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
		if whole := columns == 0 ||
			columns == 200; whole != (strings.Contains(text, string(r.ID)+"  digits") && strings.Contains(text, "GB-S") &&
			strings.Contains(text, "COLD")) {
			t.Errorf("%d columns:\n%s", columns, text)
		}
		if columns == 80 && strings.Contains(text, "…") {
			t.Errorf("cut at 80 columns:\n%s", text)
		}
	}
}

func TestDaysAndWeeksAreTimes(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"7d": 168 * time.Hour, "1.5d": 36 * time.Hour, "2w": 336 * time.Hour,
		"90m": 90 * time.Minute,
	} {
		if got, err := parseAgo(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "nand", "-1d", "0h", "7"} {
		if got, err := parseAgo(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
