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

// sentinelWait is how long the end of the log is waited for after the answer has come, as the invoker does.
const sentinelWait = 2 * time.Second

// failureWait is that of an activation whose container answered with a failure: runtimes end their log before they
// answer, so that it is only a matter of reading; a runtime that prints no end then costs little.
const failureWait = 250 * time.Millisecond

// logs collects what a container prints, activation by activation. Where several run in it at once, a line that says
// whose it is goes to that one alone, and any other to all of them: nobody can tell.
type logs struct {
	mu      sync.Mutex
	open    []*journal // of the activations that run in it
	marked  bool       // lines may begin with whose they are
	ends    int        // sentinels that were printed while several ran, and that none of them has claimed
	tail    []string   // the last lines of all, to find a reason for a death
	streams []*lineWriter
	silent  bool    // the program prints no sentinels: what it has printed before its answer is an activation's log
	pumps   []*pump // that read the streams
}

func newLogs() *logs { return &logs{} }

// journal is one activation's log.
type journal struct {
	id        string
	lines     []string
	size, max int
	cut       bool
	ends      int  // sentinels that are its own
	mixed     bool // has lines that may be another activation's
	changed   chan struct{}
}

// ofActivation begins a line of a container that several activations may share: the activation's id follows, and the
// same byte again.
const ofActivation = "\x00"

// logLine is OpenWhisk's form (DockerToActivationLogStore): times without zeros at their end, in columns of 30.
func logLine(at time.Time, stream, text string) string {
	return fmt.Sprintf("%-30s %s: %s", at.UTC().Format("2006-01-02T15:04:05.999999999Z"), stream, text)
}

// share tells that lines say whose they are.
func (l *logs) share() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marked = true
}

// hush tells that the program prints no sentinels.
func (l *logs) hush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = true
}

// begin opens an activation's log.
func (l *logs) begin(id string, limitMB int) *journal {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 0 {
		l.ends = 0
	}
	j := &journal{id: id, max: limitMB << 20, changed: make(chan struct{}, 1)}
	l.open = append(l.open, j)
	return j
}

// finish closes an activation's log and tells whether it is whole: it takes in what was printed until now, and then
// waits for both sentinels, 0 meaning that it does not.
func (l *logs) finish(j *journal, wait time.Duration) (complete bool) {
	l.drain()
	if wait > 0 {
		complete = l.ended(j) || l.awaitEnd(j, wait)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) == 1 {
		for _, w := range l.streams { // what a dying process left unended
			w.flush()
		}
	}
	l.open = slices.DeleteFunc(l.open, func(other *journal) bool { return other == j })
	return complete
}

// awaitEnd waits for an activation's sentinels and tells whether they came.
func (l *logs) awaitEnd(j *journal, wait time.Duration) bool {
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

// ended tells whether both of an activation's sentinels were seen, where there are any. Those that do not say whose
// they are count for whoever asks: an activation is asked for once its answer is there, before which it has printed its
// own.
func (l *logs) ended(j *journal) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent {
		return true
	}
	missing := sentinels - j.ends
	if missing > l.ends {
		return false
	}
	l.ends -= max(0, missing)
	return true
}

// sentinels of an activation: one on each stream.
const sentinels = 2

// blackbox is the kind of images that others made: nothing waits for their sentinels (ExecManifest.scala,
// sentinelledLogs).
const blackbox = "blackbox"

// collect is an activation's log, with what OpenWhisk appends to it. An action with a log limit of 0 has none.
func (c *container) collect(j *journal, end *ending) []string {
	managed := c.kind != blackbox
	complete := c.logs.finish(j, end.logWait(managed))
	if c.action.Limits.Logs == 0 {
		return nil
	}
	lines := j.lines // nothing is added any more
	if j.mixed {
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

// logWait is how long the rest of a log is waited for; a process that died, or is to be killed, prints nothing any
// more.
func (e *ending) logWait(managed bool) time.Duration {
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

// add takes a line of an activation, "" for one that does not say whose it is; the caller holds the lock. An activation
// may print without ending its last line: the sentinel then follows on it.
func (l *logs) add(stream, owner, text string) {
	text, ended := strings.CutSuffix(text, sentinel)
	if text != "" || !ended {
		l.keep(stream, owner, text)
	}
	if ended {
		l.end(owner)
	}
}

// end counts a sentinel.
func (l *logs) end(owner string) {
	own := l.of(owner)
	switch {
	case len(own) == 1:
		own[0].ends++
	case owner == "" && len(own) > 1:
		l.ends++
	}
	for _, j := range own {
		select {
		case j.changed <- struct{}{}:
		default:
		}
	}
}

// of are the logs that a line belongs into: its activation's if it still runs, or those of all that run.
func (l *logs) of(owner string) []*journal {
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

// keep files a line.
func (l *logs) keep(stream, owner, text string) {
	const most = 50
	if l.tail = append(l.tail, text); len(l.tail) > most {
		l.tail = l.tail[1:]
	}
	own := l.of(owner)
	for _, j := range own {
		j.mixed = j.mixed || len(own) > 1
		j.keep(stream, text)
	}
}

// keep adds a line, up to the limit.
func (j *journal) keep(stream, text string) {
	line := logLine(time.Now(), stream, text)
	if j.size += len(line); j.size <= j.max {
		j.lines = append(j.lines, line)
	} else if !j.cut {
		j.cut = true
		j.lines = append(j.lines, logLine(time.Now(), "stderr", textLogsTruncated(j.max)))
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

// writer is that of one of the two streams.
func (l *logs) writer(name string) *lineWriter {
	w := &lineWriter{logs: l, name: name}
	l.streams = append(l.streams, w)
	return w
}

// lineWriter cuts a stream into lines; one that is too long is cut as well.
type lineWriter struct {
	logs  *logs
	name  string
	part  []byte
	owner string // of a line of which a part was taken already
	begun bool   // as well
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
			w.begun = false
		} else if len(w.part) >= maxLine {
			w.take()
		}
	}
	return n, nil
}

// take hands on what there is of a line.
func (w *lineWriter) take() {
	text := string(w.part)
	w.part = w.part[:0]
	if !w.begun {
		w.owner = ""
		if w.logs.marked {
			w.owner, text = ownerOf(text)
		}
	}
	w.begun = true
	w.logs.add(w.name, w.owner, text)
}

func (w *lineWriter) flush() {
	if len(w.part) > 0 {
		w.take()
	}
	w.begun = false
}

// ownerOf reads whose a line is.
func ownerOf(line string) (id, text string) {
	if rest, ok := strings.CutPrefix(line, ofActivation); ok {
		if id, text, ok := strings.Cut(rest, ofActivation); ok {
			return id, text
		}
	}
	return "", line
}

// pump reads one of a container's two streams. A goroutine of its own waits for what is printed. Whoever needs the log
// whole, which an activation's end does, reads what is there by himself: he would else wait for that goroutine's turn.
type pump struct {
	in   *os.File // that the process writes to; the platform's own is closed once it has started
	out  *os.File // that is read
	raw  syscall.RawConn
	to   *lineWriter
	done chan struct{}

	mu   sync.Mutex // around a read and what becomes of it, so that lines stay in order
	room []byte
}

// pumpRoom is how much is read at once.
const pumpRoom = 16 << 10

// attach gives a command that is to be started its two streams.
func (l *logs) attach(cmd *exec.Cmd) error {
	for _, stream := range []struct {
		name string
		of   func(*os.File)
	}{
		{"stdout", func(f *os.File) { cmd.Stdout = f }},
		{"stderr", func(f *os.File) { cmd.Stderr = f }},
	} {
		out, in, err := os.Pipe()
		if err != nil {
			return err
		}
		p := &pump{in: in, out: out, to: l.writer(stream.name), done: make(chan struct{}), room: make([]byte, pumpRoom)}
		l.pumps = append(l.pumps, p)
		if p.raw, err = out.SyscallConn(); err != nil {
			return err
		}
		stream.of(in)
	}
	return nil
}

// detach closes the streams of a command that was not started.
func (l *logs) detach() {
	for _, p := range l.pumps {
		p.in.Close()
		p.out.Close()
	}
}

// read reads the streams of a command that was started, until close.
func (l *logs) read() {
	for _, p := range l.pumps {
		p.in.Close()
		go p.work()
	}
}

// close ends reading: once the streams have ended, or after a while, where others than the process hold them.
func (l *logs) close(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for _, p := range l.pumps {
		select {
		case <-p.done:
		case <-timer.C:
			timer.Reset(0) // nor are the others waited for
		}
		p.raw.Control(func(fd uintptr) { p.take(fd, true) }) //nolint:errcheck // as in drain
		p.out.Close()
		<-p.done
	}
}

// drain takes in what was printed until now.
func (l *logs) drain() {
	for _, p := range l.pumps {
		p.raw.Control(func(fd uintptr) { p.take(fd, false) }) //nolint:errcheck // closed: it was read to its end
	}
}

// work reads until the stream's end.
func (p *pump) work() {
	defer close(p.done)
	p.raw.Read(func(fd uintptr) bool { return p.take(fd, true) }) //nolint:errcheck // closed: nobody reads on
}

// take hands on what there is and tells whether the stream has ended. all looks again after the last of it: only who
// saw that there is nothing left may wait to be told of more.
func (p *pump) take(fd uintptr, all bool) (ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		n, err := unix.Read(int(fd), p.room)
		switch {
		case n > 0:
			p.to.Write(p.room[:n]) //nolint:errcheck // it takes everything
			if !all && n < len(p.room) {
				return false
			}
		case err == unix.EINTR:
		default:
			return err != unix.EAGAIN
		}
	}
}
