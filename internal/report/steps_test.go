package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// A report says where the time of steps with exchange went, in words and as a plot; one of a job without such steps has
// nothing of it.
func TestStepsAreTold(t *testing.T) {
	r := load(t, "succeeded")
	if s := text(t, r) + html(t, r); strings.Contains(s, "a step takes") || strings.Contains(s, "Time of a step") {
		t.Error("it tells of steps that nobody made")
	}
	for i := range r.Rounds {
		at := time.Unix(int64(i), 0)
		r.Rounds[i].Steps = &disdel.StepCourse{Median: 2, High: 4, Stretches: []disdel.StepStretch{
			{Last: 1, Steps: 1, End: at, Bytes: 3000, StepTimes: disdel.StepTimes{Compute: 1, Wait: 2, Read: 1}},
			{Last: 4, Steps: 3, End: at, Bytes: 1000, StepTimes: disdel.StepTimes{Compute: 1, Wait: 2, Read: 1}},
		}}
	}
	said := strings.Join(strings.Fields(text(t, r)), " ")
	for _, want := range []string{
		"steps a step takes 2.00 ms in the middle of them, 19 of 20 less than 4.00",
		"in the mean 4.00 ms: fetch 0.00, compute 1.00, select 0.00, write 0.00, wait 2.00, read 1.00, apply 0.00",
		"75 % of it is exchange; a worker sends 1.46 KB a step",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	if page := html(t, r); !strings.Contains(page, "Time of a step") ||
		!strings.Contains(page, "Updates after every step") {
		t.Error("the page has no plot of steps, or no words")
	}
	if !strings.Contains(markdown(t, r), "a step takes 2.00 ms") {
		t.Error("the page in Markdown says nothing of steps")
	}
}
