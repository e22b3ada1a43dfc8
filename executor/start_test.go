package executor

import (
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// The failure of an image that dies at its start says so, with what the image printed, for every way in which OpenWhisk
// reports it. disdel tries the image three times, with more memory if memory may have been the cause.
func TestAnImageThatDiesAtStartIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		text, words string
		notMemory   bool
		code        disdel.Code
		raised      bool
	}{
		"told at the timeout": {
			text: "The action exceeded its time limits of 5000 milliseconds during initialization.", words: "broken start",
			code: disdel.CodeInitTimeout,
		},
		"told at once": {text: textInitDied, words: "broken start", notMemory: true, code: disdel.CodeInitDied},
		"a warning, then killed for memory": {
			text: textInitDied, words: "lib: warning: slow path", code: disdel.CodeInitDied, raised: true,
		},
	} {
		inv := disdel.Invocation{Task: disdel.TaskTrain, Limits: disdel.Limits{
			Memory: 256 * disdel.MB, Timeout: disdel.Millis(5 * time.Second),
		}}
		tries := 1
		for at := (scheduler.Attempts{}); ; tries++ {
			a := Classify(inv, Record{
				Status: statusDeveloper, Result: []byte(`{"error":"` + c.text + `"}`), NotMemory: c.notMemory,
				Logs: []string{"2026-11-23T10:00:00.000Z stdout: " + c.words, ""},
			}, nil)
			if (a.Outcome == disdel.OutcomeStartFailure) == c.raised || a.Failure.Code != c.code ||
				!strings.Contains(a.Failure.Msg, c.words) || !strings.Contains(a.Failure.Hint, "image") ||
				strings.Contains(a.Failure.Hint, "timeout") {
				t.Errorf("%s: %v, %v, hint %q", name, a.Outcome, a.Failure, a.Failure.Hint)
			}
			r := scheduler.FindRemedy(scheduler.RemedyInput{
				Activation: a, Attempts: at, Plan: disdel.Plan{Platform: disdel.PlatformLimits{MaxMemory: disdel.GB}},
			})
			if !r.Retry {
				break
			}
			if raised := r.Limits.Memory > inv.Limits.Memory; raised != c.raised || tries > 5 {
				t.Fatalf("%s: try %d with %+v", name, tries, r.Limits)
			}
			inv.Limits = r.Limits
			if scheduler.CrashedItself(a) {
				at.Crashes++
			} else {
				at.Platform++
			}
		}
		want := 3 // a try that ends only at its timeout, or with more memory, costs much
		if c.notMemory {
			want = 5
		}
		if tries != want {
			t.Errorf("%s: %d tries, want %d", name, tries, want)
		}
	}
}
