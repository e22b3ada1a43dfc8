package platform

import (
	"fmt"
	"testing"
)

// What a dying action still prints does not reach into the record that was made of its log.
func TestALogThatWasTakenDoesNotChange(t *testing.T) {
	l := newLogs()
	out := l.stream("stdout")
	l.begin(1)
	for range 5 { // leaves room behind the lines
		fmt.Fprintln(out, "said")
	}
	lines, _ := l.finish(false)
	record := append(lines, "the platform's own line")
	fmt.Fprintln(out, "too late")
	if got := record[len(record)-1]; got != "the platform's own line" {
		t.Errorf("the record says %q", got)
	}
}
