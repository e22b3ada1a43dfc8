package cli

import (
	"strings"
	"testing"
)

// A command that changes something says in which context; one that looks does not.
func TestWhatChangesSomething(t *testing.T) {
	for line, want := range map[string]bool{
		"submit job.yaml": true, "quickstart": true, "deploy up": true, "deploy down": true, "deploy preview": false,
		"deploy": false, "dataset add digits": true, "dataset list": false, "history": false, "report @last": false,
		"job cancel @last": true, "job follow @last": false, "": false, "estimate submit": false,
	} {
		if got := changesSomething(strings.Fields(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
