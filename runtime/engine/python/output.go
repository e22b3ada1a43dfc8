package python

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Bounds of what a program may print.
const (
	maxOutput = 1 << 20  // bytes of an activation that go to its log
	maxLine   = 4 << 10  // bytes of a line
	tailSize  = 32 << 10 // bytes of a stream that are kept to tell why a program died
)

// output copies a stream of the program to the action's log, line by line with a label, up to a bound. It always reads
// on: a program that prints more must not wait for ever.
type output struct {
	from *os.File
	to   io.Writer
	done chan struct{} // closed at the end of the stream

	mu      sync.Mutex
	label   string
	line    []byte
	tail    []byte
	written int
	dropped int
}

func newOutput(from *os.File, to io.Writer) *output {
	o := &output{from: from, to: to, done: make(chan struct{})}
	go o.read()
	return o
}

func (o *output) read() {
	defer close(o.done)
	buffer := make([]byte, 32<<10)
	for {
		n, err := o.from.Read(buffer)
		o.take(buffer[:n])
		if err != nil {
			o.flush()
			return
		}
	}
}

func (o *output) take(data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, data...)
	if n := len(o.tail); n > tailSize {
		o.tail = append(o.tail[:0], o.tail[n-tailSize:]...)
	}
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		rest := data
		if end >= 0 {
			rest = data[:end]
		}
		take := min(len(rest), maxLine-len(o.line))
		o.line = append(o.line, rest[:take]...)
		o.dropped += len(rest) - take
		if end < 0 {
			return
		}
		o.print()
		data = data[end+1:]
	}
}

// print writes the line. The caller holds mu.
func (o *output) print() {
	if o.written+len(o.line) > maxOutput {
		o.dropped += len(o.line) + 1
		o.line = o.line[:0]
		return
	}
	n, _ := fmt.Fprintf(o.to, "[%s] %s\n", o.label, o.line)
	o.written += n
	o.line = o.line[:0]
}

// flush writes a line without an end.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		o.print()
	}
}

// say writes a line that is not the program's own.
func (o *output) say(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range bytes.Lines([]byte(text)) {
		fmt.Fprintf(o.to, "[%s] %s\n", o.label, bytes.TrimRight(line, "\n"))
	}
}

// begin starts the bound anew, for another activation.
func (o *output) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.written, o.dropped = 0, 0
}

// labelled sets what stands before the lines from now on.
func (o *output) labelled(label string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.label = label
}

// end says how much was left out of the activation's log.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dropped > 0 {
		fmt.Fprintf(o.to, "[%s] %d more bytes of output were left out: the log of an action has at most %d\n", o.label,
			o.dropped, maxOutput)
		o.dropped = 0
	}
}

// drainFor is the longest wait for output that the program has written already.
const drainFor = 200 * time.Millisecond

// drain waits until everything that the program has written so far was read.
func (o *output) drain() {
	for end := time.Now().Add(drainFor); time.Now().Before(end); time.Sleep(time.Millisecond) {
		remaining, err := 0, error(nil)
		raw, failed := o.from.SyscallConn()
		if failed != nil {
			return
		}
		failed = raw.Control(func(fd uintptr) { remaining, err = unreadBytes(int(fd)) })
		if failed != nil || err != nil || remaining == 0 {
			break
		}
	}
	o.last() // waits until what was read is written, too
}

// last is the end of what was printed.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.tail)
}
