// Package wait waits in tests for the state of another process or server, which cannot send a signal.
package wait

import (
	"testing"
	"time"
)

// longest is how long a state may take to come, however slow the machine.
const longest = time.Minute

// Until returns when holds is true. It fails the test if that takes longer than a minute.
func Until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(longest); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}
