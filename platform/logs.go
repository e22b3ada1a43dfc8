package platform

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// sentinel ends an activation's output on each stream.
const sentinel = "XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX"

// sentinelWait is how long the end of the log is waited for after the answer has come.
const sentinelWait = 500 * time.Millisecond

// logs collects what a container prints, activation by activation.
type logs struct {
	mu        sync.Mutex
	lines     []string
	size, max int
	cut       bool
	ends      int // sentinels seen in this activation
	changed   chan struct{}
	tail      []string // the last lines of all, to find a reason for a death
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

// finish returns the activation's lines; where the activation went well it first waits for both sentinels.
func (l *logs) finish(wait bool) []string {
	timeout := time.NewTimer(sentinelWait)
	defer timeout.Stop()
	for wait {
		l.mu.Lock()
		ends := l.ends
		l.mu.Unlock()
		if ends >= 2 {
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
	return l.lines
}

// add takes a line. An activation may print without ending its last line: the sentinel then follows on it.
func (l *logs) add(stream, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// keep files a line, up to the limit; the caller holds the lock.
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
func (l *logs) stream(name string) io.Writer { return &lineWriter{logs: l, name: name} }

// lineWriter cuts a stream into lines; one that is too long is cut as well.
type lineWriter struct {
	logs *logs
	name string
	part []byte
}

const maxLine = 64 << 10

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		end := i
		if i < 0 {
			end = len(p)
		}
		w.part = append(w.part, p[:end]...)
		if i < 0 && len(w.part) < maxLine {
			break
		}
		w.logs.add(w.name, string(w.part))
		w.part = w.part[:0]
		if i < 0 {
			break
		}
		p = p[i+1:]
	}
	return n, nil
}
