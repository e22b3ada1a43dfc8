package report

import (
	"slices"
	"testing"

	"github.com/disdel/disdel"
)

// What a policy was not granted is told once for as long as it wanted it, with what was missing last.
func TestWhatWasNotGrantedIsTold(t *testing.T) {
	decided := func(round, workers int, why string) disdel.Decision {
		return disdel.Decision{Round: round, NotGranted: []disdel.Refusal{{Workers: workers, Why: why}}}
	}
	r := &Report{record: &disdel.Record{
		Stages: []disdel.Stage{{}},
		Decisions: []disdel.Decision{
			decided(1, 4, "others are there"), decided(2, 4, "they still are"),
			{Round: 3},
			decided(5, 4, "they are again"),
			decided(5, 1, "so they are"),
		},
	}}
	want := []string{
		r.record.Stages[0].Text(),
		"rounds 2 to 3: 4 workers were not granted: they still are",
		"round 6: 4 workers were not granted: they are again",
		"round 6: 1 worker was not granted: so they are",
	}
	if got := r.stages(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	r.record.Decisions = nil
	if got := r.stages(); got != nil {
		t.Errorf("of a job that stayed as it was planned: %q", got)
	}
}
