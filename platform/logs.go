package platform

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// sentinel ends an activation's output on each stream.
const sentinel = "XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX"

// sentinelWait is how long the end of the log is waited for after the answer has come, as the invoker does.
const sentinelWait = 2 * time.Second

// logs collects what a container prints, activation by activation.
type logs struct {
	mu        sync.Mutex
	lines     []string
	size, max int
	cut       bool
	ends      int // sentinels seen in this activation
	changed   chan struct{}
	tail      []string // the last lines of all, to find a reason for a death
	streams   []*lineWriter
}

func newLogs() *logs { return &logs{changed: make(chan struct{}, 1)} }

// logLine is OpenWhisk's form (DockerToActivationLogStore).
func logLine(at time.Time, stream, text string) string {
	return fmt.Sprintf("%-30s %s: %s", at.UTC().Format("2006-01-02T15:04:05.000000000Z"), stream, text)
}

func (l *logs) begin(limitMB int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.size, l.max, l.cut, l.ends = nil, 0, limitMB<<20, false, 0
}

// finish returns the activation's lines, and whether they are all: where the activation went well, it first waits for
// both sentinels.
func (l *logs) finish(wait bool) (lines []string, complete bool) {
	timeout := time.NewTimer(sentinelWait)
	defer timeout.Stop()
	for wait {
		l.mu.Lock()
		complete = l.ends >= 2
		l.mu.Unlock()
		if complete {
			break
		}
		select {
		case <-l.changed:
		case <-timeout.C:
			wait = false
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.streams { // what a dying process left unended
		w.flush()
	}
	// a dying process may still print: what it adds shall not be where the caller adds
	return slices.Clip(l.lines), complete
}

// blackbox is the kind of images that others made: nothing waits for their sentinels (ExecManifest.scala,
// sentinelledLogs).
const blackbox = "blackbox"

// collect is an activation's log, with what OpenWhisk appends to it. An action with a log limit of 0 has none.
func (c *container) collect(end *ending) []string {
	managed := c.kind != blackbox
	lines, complete := c.logs.finish(end.keep() && managed)
	switch {
	case c.action.Limits.Logs == 0:
		return nil
	case !end.keep():
		return append(lines, logLine(time.Now(), "stderr", textLogsIncomplete))
	case managed && !complete:
		return append(lines, logLine(time.Now(), "stderr", textLogsMissing))
	default:
		return lines
	}
}

// add takes a line; the caller holds the lock. An activation may print without ending its last line: the sentinel then
// follows on it.
func (l *logs) add(stream, text string) {
	text, ended := strings.CutSuffix(text, sentinel)
	if text != "" || !ended {
		l.keep(stream, text)
	}
	if ended {
		l.ends++
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
}

// keep files a line, up to the limit.
func (l *logs) keep(stream, text string) {
	const most = 50
	if l.tail = append(l.tail, text); len(l.tail) > most {
		l.tail = l.tail[1:]
	}
	line := logLine(time.Now(), stream, text)
	if l.size += len(line); l.size <= l.max {
		l.lines = append(l.lines, line)
	} else if !l.cut {
		l.cut = true
		l.lines = append(l.lines, logLine(time.Now(), "stderr", textLogsTruncated(l.max)))
	}
}

// saw tells whether one of the last lines holds one of the texts.
func (l *logs) saw(texts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.tail {
		for _, t := range texts {
			if strings.Contains(line, t) {
				return true
			}
		}
	}
	return false
}

// stream is the writer of one of the two streams.
func (l *logs) stream(name string) io.Writer {
	w := &lineWriter{logs: l, name: name}
	l.streams = append(l.streams, w)
	return w
}

// lineWriter cuts a stream into lines; one that is too long is cut as well.
type lineWriter struct {
	logs *logs
	name string
	part []byte
}

const maxLine = 64 << 10

func (w *lineWriter) Write(p []byte) (int, error) {
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		w.part, p = append(w.part, line...), rest
		if ended {
			w.logs.add(w.name, string(w.part))
			w.part = w.part[:0]
		} else if len(w.part) >= maxLine {
			w.flush()
		}
	}
	return n, nil
}

func (w *lineWriter) flush() {
	if len(w.part) > 0 {
		w.logs.add(w.name, string(w.part))
		w.part = w.part[:0]
	}
}
