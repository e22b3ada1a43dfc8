// Package race tells tests whether the race detector watches them.
package race

import (
	"runtime/debug"
	"slices"
	"testing"
)

// SkipMemory leaves out a test that measures memory, which the race detector multiplies. scripts/test.sh runs such tests
// of platform, service and dataset without it.
func SkipMemory(t *testing.T) {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector multiplies a process's memory")
	}
}
