package platform

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sentinel ends an activation's output on each stream.
const sentinel = "XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX"

// sentinelWait is how long the end of the log is awaited after the answer, like OpenWhisk's invoker does.
const sentinelWait = 2 * time.Second

// failureWait is sentinelWait for a failed activation. Runtimes end their log before they answer, so the log only has
// to be read; a runtime that prints no sentinel costs little.
const failureWait = 250 * time.Millisecond

// logs collects a container's output by activation. If several activations run at once, a tagged line belongs to one of
// them, and an untagged line to all.
type logs struct {
	mu          sync.Mutex
	open        []*activationLog // logs of running activations
	tagged      bool             // lines may have the tag of an activation
	sentinels   int              // sentinels without a tag that no activation has counted yet
	tail        []string         // the last lines, to find the cause of a death
	streams     []*lineWriter
	noSentinels bool            // the program prints no sentinels; its log ends with its answer
	readers     []*streamReader // of the two streams
}

func newLogs() *logs { return &logs{} }

// activationLog is the log of one activation.
type activationLog struct {
	id        string
	lines     []string
	size, max int
	truncated bool
	sentinels int  // its own sentinels
	shared    bool // some lines may belong to another activation
	changed   chan struct{}
}

// tagByte starts a tagged line of a shared container: tagByte, the activation's id, tagByte, the text.
const tagByte = "\x00"

// logLine formats a line as OpenWhisk does (DockerToActivationLogStore): times without trailing zeros, in columns of
// 30.
func logLine(at time.Time, stream, text string) string {
	return fmt.Sprintf("%-30s %s: %s", at.UTC().Format("2006-01-02T15:04:05.999999999Z"), stream, text)
}

// expectTags is called if lines may have tags.
func (l *logs) expectTags() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tagged = true
}

// expectNoSentinels is called if the program prints no sentinels.
func (l *logs) expectNoSentinels() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noSentinels = true
}

// begin opens an activation's log.
func (l *logs) begin(id string, limitMB int) *activationLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		l.sentinels = 0
	}
	j := &activationLog{id: id, max: limitMB << 20, changed: make(chan struct{}, 1)}
	l.open = append(l.open, j)
	return j
}

// finish closes an activation's log and tells whether it is complete. It reads the output so far, and then waits up to
// wait for both sentinels.
func (l *logs) finish(j *activationLog, wait time.Duration) (complete bool) {
	l.drain()
	if wait > 0 {
		complete = l.ended(j) || l.awaitEnd(j, wait)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 1 {
		for _, w := range l.streams { // the last line of a killed process may have no newline
			w.flush()
		}
	}
	l.open = slices.DeleteFunc(l.open, func(other *activationLog) bool { return other == j })
	return complete
}

// awaitEnd waits for an activation's sentinels and tells whether they came.
func (l *logs) awaitEnd(j *activationLog, wait time.Duration) bool {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		select {
		case <-j.changed:
			if l.ended(j) {
				return true
			}
		case <-timeout.C:
			return l.ended(j)
		}
	}
}

// ended tells whether both of an activation's sentinels came. A sentinel without a tag counts for the activation that
// asks first, because an activation prints its own before it answers.
func (l *logs) ended(j *activationLog) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noSentinels {
		return true
	}
	missing := sentinelsPerRun - j.sentinels
	if missing > l.sentinels {
		return false
	}
	l.sentinels -= max(0, missing)
	return true
}

// sentinelsPerRun is one for each stream.
const sentinelsPerRun = 2

// blackbox is the kind of images. Their sentinels are not awaited (ExecManifest.scala, sentinelledLogs).
const blackbox = "blackbox"

// collect is an activation's log with the lines that OpenWhisk appends. An action with a log limit of 0 has none.
func (c *container) collect(j *activationLog, end *activationEnd) []string {
	managed := c.kind != blackbox
	complete := c.logs.finish(j, end.logWait(managed))
	if c.action.Limits.Logs == 0 {
		return nil
	}
	lines := j.lines // no line is added from now on
	if j.shared {
		lines = append(lines, logLine(time.Now(), "stderr", textLogsMixed))
	}
	switch {
	case !end.keep():
		return append(lines, logLine(time.Now(), "stderr", textLogsIncomplete))
	case managed && !complete:
		return append(lines, logLine(time.Now(), "stderr", textLogsMissing))
	default:
		return lines
	}
}

// logWait is how long the rest of a log is awaited. A dead or timed-out process prints nothing more.
func (e *activationEnd) logWait(managed bool) time.Duration {
	switch {
	case !managed:
		return 0
	case e.keep():
		return sentinelWait
	case e.size > 0 && !e.timedOut && !e.died:
		return failureWait
	default:
		return 0
	}
}

// add takes a line; owner is "" without a tag. The caller holds the lock. If the last line of an activation has no
// newline, the sentinel follows on the same line.
func (l *logs) add(stream, owner, text string) {
	text, ended := strings.CutSuffix(text, sentinel)
	if text != "" || !ended {
		l.appendLine(stream, owner, text)
	}
	if ended {
		l.addSentinel(owner)
	}
}

// addSentinel counts a sentinel.
func (l *logs) addSentinel(owner string) {
	own := l.logsOf(owner)
	switch {
	case len(own) == 1:
		own[0].sentinels++
	case owner == "" && len(own) > 1:
		l.sentinels++
	}
	for _, j := range own {
		select {
		case j.changed <- struct{}{}:
		default:
		}
	}
}

// logsOf are the logs that a line belongs to: that of its owner if it still runs, or all of running activations.
func (l *logs) logsOf(owner string) []*activationLog {
	if owner == "" {
		return l.open
	}
	for i, j := range l.open {
		if j.id == owner {
			return l.open[i : i+1]
		}
	}
	return nil
}

// appendLine adds a line to its logs.
func (l *logs) appendLine(stream, owner, text string) {
	const maximum = 50
	if l.tail = append(l.tail, text); len(l.tail) > maximum {
		l.tail = l.tail[1:]
	}
	own := l.logsOf(owner)
	for _, j := range own {
		j.shared = j.shared || len(own) > 1
		j.appendLine(stream, text)
	}
}

// appendLine adds a line, up to the limit.
func (j *activationLog) appendLine(stream, text string) {
	line := logLine(time.Now(), stream, text)
	if j.size += len(line); j.size <= j.max {
		j.lines = append(j.lines, line)
	} else if !j.truncated {
		j.truncated = true
		j.lines = append(j.lines, logLine(time.Now(), "stderr", textLogsTruncated(j.max)))
	}
}

// contains tells whether one of the last lines contains one of the texts.
func (l *logs) contains(texts ...string) bool {
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

// writer returns the writer of one of the two streams.
func (l *logs) writer(name string) *lineWriter {
	w := &lineWriter{logs: l, name: name}
	l.streams = append(l.streams, w)
	return w
}

// lineWriter splits a stream into lines. It also splits lines that are too long.
type lineWriter struct {
	logs    *logs
	name    string
	part    []byte
	owner   string // of the current line
	started bool   // part of the current line was taken already
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
			w.take()
			w.started = false
		} else if len(w.part) >= maxLine {
			w.take()
		}
	}
	return n, nil
}

// take passes on the current part of a line.
func (w *lineWriter) take() {
	text := string(w.part)
	w.part = w.part[:0]
	if !w.started {
		w.owner = ""
		if w.logs.tagged {
			w.owner, text = ownerOf(text)
		}
	}
	w.started = true
	w.logs.add(w.name, w.owner, text)
}

func (w *lineWriter) flush() {
	if len(w.part) > 0 {
		w.take()
	}
	w.started = false
}

// ownerOf reads the tag of a line.
func ownerOf(line string) (id, text string) {
	if rest, ok := strings.CutPrefix(line, tagByte); ok {
		if id, text, ok := strings.Cut(rest, tagByte); ok {
			return id, text
		}
	}
	return "", line
}

// streamReader reads one of a container's two streams in a goroutine. Whoever needs the whole log reads the rest
// directly, because waiting for the goroutine's turn takes longer.
type streamReader struct {
	in   *os.File // the process writes to it; closed here once the process has started
	out  *os.File // the platform reads from it
	raw  syscall.RawConn
	to   *lineWriter
	done chan struct{}

	mu     sync.Mutex // held from a read until its lines are added, to keep their order
	buffer []byte
}

// readSize is how many bytes are read at once.
const readSize = 16 << 10

// attach gives a command its two streams before it starts.
func (l *logs) attach(cmd *exec.Cmd) error {
	for _, stream := range []struct {
		name   string
		reader func(*os.File)
	}{
		{"stdout", func(f *os.File) { cmd.Stdout = f }},
		{"stderr", func(f *os.File) { cmd.Stderr = f }},
	} {
		out, in, err := os.Pipe()
		if err != nil {
			return err
		}
		p := &streamReader{
			in: in, out: out, to: l.writer(stream.name), done: make(chan struct{}), buffer: make([]byte, readSize),
		}
		l.readers = append(l.readers, p)
		if p.raw, err = out.SyscallConn(); err != nil {
			return err
		}
		stream.reader(in)
	}
	return nil
}

// detach closes the streams of a command that was not started.
func (l *logs) detach() {
	for _, p := range l.readers {
		p.in.Close()
		p.out.Close()
	}
}

// read starts reading the streams of a started command.
func (l *logs) read() {
	for _, p := range l.readers {
		p.in.Close()
		go p.run()
	}
}

// close stops reading when the streams end, or after wait if other processes hold them.
func (l *logs) close(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for _, p := range l.readers {
		select {
		case <-p.done:
		case <-timer.C:
			timer.Reset(0) // the other stream is not awaited either
		}
		p.raw.Control(func(fd uintptr) { p.take(fd, true) }) //nolint:errcheck // as in drain
		p.out.Close()
		<-p.done
	}
}

// drain reads what was printed so far.
func (l *logs) drain() {
	for _, p := range l.readers {
		p.raw.Control(func(fd uintptr) { p.take(fd, false) }) //nolint:errcheck // closed: it was read to its end
	}
}

// run reads until the stream ends.
func (p *streamReader) run() {
	defer close(p.done)
	p.raw.Read(func(fd uintptr) bool { return p.take(fd, true) }) //nolint:errcheck // closed: nobody reads on
}

// take reads what is there and tells whether the stream has ended. With all it reads until nothing is left, which the
// caller must do before it waits for more.
func (p *streamReader) take(fd uintptr, all bool) (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		n, err := unix.Read(int(fd), p.buffer)
		switch {
		case n > 0:
			p.to.Write(p.buffer[:n]) //nolint:errcheck // it takes everything
			if !all && n < len(p.buffer) {
				return false
			}
		case err == unix.EINTR:
		default:
			return err != unix.EAGAIN
		}
	}
}
