package history

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

var filterNow = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// filteredJob is a job that filters are tried on.
func filteredJob() disdel.Record {
	r := disdel.Record{
		ID: "job-01m80104rj3cabn3tetc26z8w3", Status: disdel.StatusFailed, Tenant: "ann", CostGBs: 12.5,
		Created: filterNow.Add(-50 * time.Hour), Ended: filterNow.Add(-48 * time.Hour),
		Data:   disdel.DataInfo{Name: "digits"},
		Model:  &disdel.ModelRef{Name: "lenet", Version: 3},
		Rounds: []disdel.Round{{Accuracy: new(0.95), Loss: new(0.2)}, {Round: 1, Accuracy: new(0.93), Loss: new(0.1)}},
		Activations: []disdel.Activation{
			{Invocation: disdel.Invocation{Task: disdel.TaskTrain}, Peak: 200 * disdel.MB},
		},
	}
	r.Job.Metadata.Name, r.Job.Metadata.Labels = "sweep-2", map[string]string{"team": "vision", "size": "10"}
	r.Job.Model.Name, r.Job.Training.BatchSize = "lenet5", 64
	return r
}

// Every row is a filter and whether it selects the job above.
func TestFilters(t *testing.T) {
	r := filteredJob()
	facts, tags := FactsOf(&r), []string{"lenet", "paper=1"}
	for text, want := range map[string]bool{
		"": true, "  ": true, "accuracy > 0.9 and tag:lenet and state:failed and finished < 7d": true,
		"accuracy>0.93": false, "accuracy >= 93%": true, "best > 0.94": true, "loss<0.15": true, "rmse < 5": false,
		"rmse != 5": true, "not rmse < 5": true, "state:FAILED": true, "status = failed": true, "state != failed": false,
		"name:sweep-*": true, "name ~ EEP": true, "name:sweep": false, "name:*p*2": true, "name:*p*2*x": false,
		"network=lenet5 data:digits": true, "network=lenet5 or data:mnist": true, "model:lenet:v3": true,
		"tenant:ann and not (state:succeeded or state:running)": true, "not not state:failed": true,
		"tag:len*": true, "tag != lenet": false, `tag:"paper=1"`: true, "tag:paper": false, "label.team=vision": true,
		"label.team != vision": false, "label.color != red": true, "label.size > 9": true, "label.size = 10.0": true,
		"training.batchSize > 32": true, "training.batchSize:64": true, "training.batchSize < 64": false,
		"memory > 199MB and memory<0.2GB": true, "time > 1h": true, "time < 2h": false, "time = 2h": true, "cost<=12.5": true,
		"finished > 1d": true, "created < 2d": false, "finished = 2026-11-26": true, "finished < 2026-11-26": false,
		"finished <= 2026-11-26": true, "finished > 2026-11-26": false, "finished >= 2026-11-26": true,
		"created > 2026-11-26T09:59": true, "finished = yesterday": false, "created < today": true,
		"sweep vision": true, `"sweep-2" or mnist`: true, "pape": true, "mnist": false,
		"state:failed state:running or data:digits": true, "state:running and (state:failed or data:digits)": false,
	} {
		f, err := ParseFilter(text)
		if err != nil || f.Matches(&facts, tags, filterNow) != want || f.String() != strings.TrimSpace(text) {
			t.Errorf("%q does not give %v: %v", text, want, err)
		}
	}
	if f, _ := ParseFilter("tag:x"); !f.tags {
		t.Error("a filter by tag needs no tags")
	}
	if f, _ := ParseFilter("accuracy > 0.5"); f.tags {
		t.Error("a filter by accuracy needs tags")
	}
}

// An error says at which character what is wrong, for every condition that is wrong.
func TestFaultsOfFilters(t *testing.T) {
	for text, want := range map[string][]string{
		"acuracy > 0.9":                     {`character 1: there is no field "acuracy"; did you mean accuracy?`},
		"tag:x and acuracy > 1 or cost ~ 2": {`character 11: there is no field`, "character 26: cost is a number"},
		"accuracy > high":                   {`character 12: accuracy needs a number, and "high" is none`},
		"finished < soon":                   {`character 12: "soon" is not an age`},
		"name > 5":                          {"character 1: name is a text"},
		"study=lenet":                       {"a label is label.study"},
		"(state:failed":                     {"character 1: the parenthesis is never closed"},
		"state:failed)":                     {"character 13: the parenthesis closes nothing"},
		"accuracy >":                        {`character 10: a value is missing after ">"`},
		"state:failed and":                  {"character 17: a condition is missing"},
		"and x":                             {`character 1: a condition is missing before "and"`},
		"()":                                {"character 2: a condition is missing"},
		"> 5":                               {`character 1: a field is missing before ">"`},
		`name:"x`:                           {"character 6: the quotation mark is never closed"},
		strings.Repeat("(", 60) + "x":       {"more than 50 parentheses"},
		strings.Repeat("x", 1001):           {"1001 characters"},
	} {
		_, err := ParseFilter(text)
		if disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%q is taken: %v", text, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%.40q: %v, want %s", text, err, part)
			}
		}
	}
}

// drawn is a filter with what it means by itself.
type drawn struct {
	text string
	is   func(r *disdel.Record, tags []string) bool
}

// drawFilter draws a filter, and how a naive reader evaluates it.
func drawFilter(t *rapid.T, depth int) drawn {
	if depth > 0 && rapid.Bool().Draw(t, "nested") {
		a, b := drawFilter(t, depth-1), drawFilter(t, depth-1)
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			return drawn{"(" + a.text + ") or (" + b.text + ")", func(r *disdel.Record, tags []string) bool {
				return a.is(r, tags) || b.is(r, tags)
			}}
		case 1:
			return drawn{"not (" + a.text + ")", func(r *disdel.Record, tags []string) bool { return !a.is(r, tags) }}
		case 2:
			return drawn{"(" + a.text + ") (" + b.text + ")", func(r *disdel.Record, tags []string) bool {
				return a.is(r, tags) && b.is(r, tags)
			}}
		default:
			return drawn{"(" + a.text + ") AND (" + b.text + ")", func(r *disdel.Record, tags []string) bool {
				return a.is(r, tags) && b.is(r, tags)
			}}
		}
	}
	number := func(r *disdel.Record) float64 {
		if len(r.Rounds) == 0 || r.Rounds[0].Accuracy == nil {
			return math.NaN()
		}
		return *r.Rounds[0].Accuracy
	}
	v := float64(rapid.IntRange(0, 3).Draw(t, "value")) / 4
	state := rapid.SampledFrom([]disdel.Status{disdel.StatusFailed, disdel.StatusRunning}).Draw(t, "state")
	days := rapid.IntRange(1, 4).Draw(t, "days")
	return rapid.SampledFrom([]drawn{
		{fmt.Sprintf("accuracy < %g", v), func(r *disdel.Record, _ []string) bool { return number(r) < v }},
		{fmt.Sprintf("accuracy>=%g%%", 100*v), func(r *disdel.Record, _ []string) bool { return number(r) >= v }},
		{fmt.Sprintf("accuracy = %g", v), func(r *disdel.Record, _ []string) bool { return number(r) == v }},
		{fmt.Sprintf("accuracy != %g", v), func(r *disdel.Record, _ []string) bool { return number(r) != v }},
		{"state:" + state.String(), func(r *disdel.Record, _ []string) bool { return r.Status == state }},
		{"tag:a", func(_ *disdel.Record, tags []string) bool { return len(tags) > 0 }},
		{fmt.Sprintf("created <= %dd", days), func(r *disdel.Record, _ []string) bool {
			return filterNow.Sub(r.Created) <= time.Duration(days)*24*time.Hour
		}},
		{fmt.Sprintf("training.batchSize > %d", days), func(r *disdel.Record, _ []string) bool {
			return r.Job.Training.BatchSize > days
		}},
	}).Draw(t, "condition")
}

// A filter selects what a naive reader of the same words selects.
func TestFiltersMeanWhatTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawFilter(t, 4)
		f, err := ParseFilter(want.text)
		if err != nil {
			if len(want.text) > maxFilter {
				return
			}
			t.Fatalf("%s: %v", want.text, err)
		}
		r := filteredJob()
		r.Rounds = nil
		if rapid.Bool().Draw(t, "evaluated") {
			r.Rounds = []disdel.Round{{Accuracy: new(float64(rapid.IntRange(0, 3).Draw(t, "accuracy")) / 4)}}
		}
		r.Status = rapid.SampledFrom([]disdel.Status{disdel.StatusFailed, disdel.StatusRunning}).Draw(t, "has")
		r.Created = filterNow.Add(-time.Duration(rapid.IntRange(1, 4).Draw(t, "age")) * 24 * time.Hour)
		r.Job.Training.BatchSize = rapid.IntRange(1, 4).Draw(t, "batch")
		tags := [][]string{nil, {"a"}}[rapid.IntRange(0, 1).Draw(t, "tags")]
		facts := FactsOf(&r)
		if f.Matches(&facts, tags, filterNow) != want.is(&r, tags) {
			t.Fatalf("%s of %v in %v: not %v", want.text, tags, r.Status, want.is(&r, tags))
		}
	})
}

// Whatever somebody types is a filter or an error with a position, and an error selects nothing.
func FuzzParseFilter(f *testing.F) {
	for _, text := range []string{
		"accuracy > 0.9 and tag:lenet", "not (a or b)", `name:"x y"`, "created<2026-11-20", "((", "label.a!=b", "x:*",
		"é ~ 1",
	} {
		f.Add(text)
	}
	r := filteredJob()
	facts := FactsOf(&r)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseFilter(text)
		if err != nil {
			if disdel.KindOf(err) != disdel.Invalid || !strings.Contains(err.Error(), "character ") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseFilter(parsed.String())
		if err != nil || again.Matches(&facts, nil, filterNow) != parsed.Matches(&facts, nil, filterNow) {
			t.Fatalf("%q is read differently again: %v", text, err)
		}
	})
}
