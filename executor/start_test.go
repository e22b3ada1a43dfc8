package executor

import (
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// An image that dies at start is named as that, with what it printed, whichever way OpenWhisk tells of it; it is tried
// again a few times at the same limits.
func TestAnImageThatDiesAtStartIsNamed(t *testing.T) {
	for name, text := range map[string]string{
		"told at the timeout": "The action exceeded its time limits of 5000 milliseconds during initialization.",
		"told at once":        textInitDied,
	} {
		inv := disdel.Invocation{Task: disdel.TaskTrain, Limits: disdel.Limits{
			Memory: 256 * disdel.MB, Timeout: disdel.Millis(5 * time.Second),
		}}
		a := Classify(inv, Record{
			Status: statusDeveloper, Result: []byte(`{"error":"` + text + `"}`),
			Logs: []string{"2026-11-23T10:00:00.000Z stdout: broken start", ""},
		}, nil)
		if a.Outcome != disdel.OutcomeStartFailure || !strings.Contains(a.Failure.Msg, `"broken start"`) ||
			!strings.Contains(a.Failure.Hint, "image") || strings.Contains(a.Failure.Hint, "timeout") {
			t.Errorf("%s: %v, %v, hint %q", name, a.Outcome, a.Failure, a.Failure.Hint)
		}
		tries := 1
		for at := (scheduler.Attempts{}); ; at.Platform++ {
			r := scheduler.Decide(scheduler.RemedyInput{Activation: a, Attempts: at})
			if !r.Retry {
				break
			}
			if tries++; r.Limits != a.Limits || tries > 5 {
				t.Fatalf("%s: try %d with %+v", name, tries, r.Limits)
			}
		}
		if tries != 3 {
			t.Errorf("%s: %d tries", name, tries)
		}
	}
}
