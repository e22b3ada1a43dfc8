// Package race tells tests whether the race detector watches them.
package race

import (
	"runtime/debug"
	"slices"
	"testing"
)

// SkipMemory leaves out a test that measures memory, which the race detector multiplies. scripts/test.sh runs such tests
// without it.
func SkipMemory(t *testing.T) {
	t.Helper()
	if detected() {
		t.Skip("the race detector multiplies a process's memory")
	}
}

// SkipSequential leaves out a long test that does one thing after the other: the race detector makes it ten times
// slower and finds nothing in it. scripts/test.sh runs such tests without it.
func SkipSequential(t *testing.T) {
	t.Helper()
	if detected() {
		t.Skip("the race detector would find nothing in one thing after the other")
	}
}

// detected tells whether the test program has the race detector.
func detected() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
