package actions

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// Threads that ran for 3 s and waited for 1.5 s took 1.5 times as long as on processors of their own.
func TestWaitingForAProcessorIsMeasured(t *testing.T) {
	folder := t.TempDir()
	for thread, text := range map[string]string{"1": "1000000000 500000000 7\n", "2": "2000000000 1000000000 9\n"} {
		if err := os.Mkdir(filepath.Join(folder, thread), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, thread, "schedstat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := readProcessorTime(folder)
	if got := now.slowdownSince(processorTime{}); math.Abs(got-1.5) > 1e-9 {
		t.Errorf("slowdown %g, want 1.5", got)
	}
	if got := now.slowdownSince(now); got != 0 {
		t.Errorf("slowdown of no time is %g, want 0: unknown", got)
	}
	if got := readProcessorTime(filepath.Join(folder, "none")).slowdownSince(processorTime{}); got != 0 {
		t.Errorf("slowdown %g where the kernel counts nothing, want 0", got)
	}
}
