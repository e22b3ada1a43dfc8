package render_test

import (
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/render"
)

// Where no fixed number of workers ends a job, the table has no figures: a sentence says why.
func TestAJobThatNothingEndsIsSaidInWords(t *testing.T) {
	lab := simulate.Lab{Trials: []simulate.Trial{
		{Job: "a", Policy: simulate.Fixed, Status: disdel.StatusFailed, Why: "the budget is used up"},
		{Job: "b", Policy: simulate.Fixed, Status: disdel.StatusSucceeded},
	}}
	var out strings.Builder
	render.PrintLab(&out, lab)
	want := "1 of 2 jobs end with no fixed number of workers, so that no policy is compared there. " +
		"The first reason: the budget is used up"
	if !strings.Contains(out.String(), want) {
		t.Errorf("printed:\n%s\nwant %q", out.String(), want)
	}
	out.Reset()
	render.PrintLab(&out, simulate.Lab{Trials: lab.Trials[1:]})
	if strings.Contains(out.String(), "no fixed number") {
		t.Errorf("every job ended:\n%s", out.String())
	}
}
