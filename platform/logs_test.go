package platform

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// texts are a log's lines without their times and streams.
func (j *activationLog) texts() string {
	var out []string
	for _, line := range j.lines {
		_, text, _ := strings.Cut(line, ": ")
		out = append(out, text)
	}
	return strings.Join(out, "|")
}

// What a dying action still prints does not reach into the record that was made of its log.
func TestALogThatWasTakenDoesNotChange(t *testing.T) {
	l := newLogs()
	out := l.writer("stdout")
	j := l.begin("a", 1)
	for range 5 { // leaves room behind the lines
		fmt.Fprintln(out, "said")
	}
	l.finish(j, 0)
	record := append(j.lines, "the platform's own line")
	fmt.Fprintln(out, "too late")
	if got := record[len(record)-1]; got != "the platform's own line" {
		t.Errorf("the record says %q", got)
	}
}

// Where several activations run at once, a line is its own activation's, and, where it does not say whose it is,
// everybody's, which is said.
func TestSharedContainersLogsAreToldApart(t *testing.T) {
	l := newLogs()
	out := l.writer("stdout")
	l.expectTags()
	a, b := l.begin("a", 1), l.begin("b", 1)
	io.WriteString(out, "\x00a\x00one\n\x00b\x00two\n\x00gone\x00nobody's\n\x00a\x00"+sentinel+"\n")
	if a.texts() != "one" || b.texts() != "two" || a.shared || b.shared || a.sentinels != 1 || b.sentinels != 0 {
		t.Errorf("a %+v, b %+v", a, b)
	}
	io.WriteString(out, "of whom?\n")
	if a.texts() != "one|of whom?" || b.texts() != "two|of whom?" || !a.shared || !b.shared {
		t.Errorf("a %+v, b %+v", a, b)
	}
	l.finish(a, 0)
	io.WriteString(out, "\x00a\x00late\nof b alone\n")
	if a.texts() != "one|of whom?" || b.texts() != "two|of whom?|of b alone" {
		t.Errorf("a %+v, b %+v", a, b)
	}
	long := strings.Repeat("x", maxLine)
	c := l.begin("c", 1)
	io.WriteString(out, "\x00c\x00"+long)
	io.WriteString(out, "rest\n")
	if got := c.texts(); got != long+"|rest" {
		t.Errorf("a line that is too long: %d characters, %.20s", len(got), got[max(0, len(got)-20):])
	}
}

// Without ids, an activation's log ends with two sentinels of its own, or of whoever ran beside it.
func TestSentinelsOfSharedContainersAreCounted(t *testing.T) {
	l := newLogs()
	out := l.writer("stdout")
	a, b := l.begin("a", 1), l.begin("b", 1)
	fmt.Fprintln(out, sentinel)
	if l.ended(a) {
		t.Error("one of four sentinels ends a log")
	}
	fmt.Fprintln(out, sentinel)
	if !l.finish(a, sentinelWait) || l.ended(b) {
		t.Error("two of four sentinels end one log, not two")
	}
	fmt.Fprintln(out, "of b")
	fmt.Fprintln(out, sentinel)
	fmt.Fprintln(out, sentinel)
	if !l.finish(b, sentinelWait) || b.texts() != "of b" {
		t.Errorf("%+v", b)
	}
	c := l.begin("c", 1)
	if l.ended(c) {
		t.Error("a sentinel was counted twice")
	}
}
