package cli

import (
	"runtime/debug"
	"testing"
)

// TestServeCollectsGarbageEarly checks that a server collects garbage before one tenant's requests double its memory.
// The operator's own setting of GOGC stays.
func TestServeCollectsGarbageEarly(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "1GiB")
	limitGarbage()
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("the operator set a limit, and %d %% of garbage is allowed", got)
	}
	t.Setenv("GOMEMLIMIT", "")
	limitGarbage()
	if got := debug.SetGCPercent(100); got != serverGarbage {
		t.Errorf("%d %% of garbage is allowed", got)
	}
}
