package python

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/disdel/disdel"
)

// maxAnswer is the longest line that a worker may answer, in bytes. Tracebacks are the longest.
const maxAnswer = 4 << 20

// answer is what a worker answers to a request. Which fields it has depends on the request.
type answer struct {
	ID       int               `json:"id"`
	Hello    int               `json:"hello"`
	Versions map[string]string `json:"versions"`
	Loss     *float64          `json:"loss"`
	Correct  *int              `json:"correct"`
	Lost     bool              `json:"lost"`
	Error    *complaint        `json:"error"`
}

// complaint is what a worker says of a request that failed.
type complaint struct {
	Kind    string       `json:"kind"`
	Message string       `json:"message"`
	Place   string       `json:"place"`  // "net.py:31 in loss"
	Source  string       `json:"source"` // text of that line
	Trace   string       `json:"trace"`
	Module  string       `json:"module"` // that an import did not find
	Bytes   disdel.Bytes `json:"bytes"`  // that could not be had
}

// control sends requests to a worker and reads its answers. It is for one goroutine.
type control struct {
	process *process
	lines   *bufio.Reader
	id      int
	ctx     context.Context // bounds every request
	release context.CancelFunc
	last    answer // the newest one
}

func newControl(p *process) *control {
	c := &control{process: p, lines: bufio.NewReader(p.conn), release: func() {}}
	c.until(context.Background())
	return c
}

// warning is how long before the deadline of an activation a request is given up: the stack is asked for, and the
// answer has to leave.
const warning = 1200 * time.Millisecond

// errHung is the cause of a request's end at the deadline.
var errHung = errors.New("the action's deadline has come")

// until bounds the requests from now on.
func (c *control) until(ctx context.Context) {
	c.release()
	deadline, limited := ctx.Deadline()
	if !limited {
		c.ctx, c.release = context.WithCancel(ctx)
		return
	}
	early := min(warning, time.Until(deadline)/4)
	c.ctx, c.release = context.WithDeadlineCause(ctx, deadline.Add(-early), errHung)
}

// ask sends a request and returns the answer. Fields are a struct or a map. It returns the error that the answer tells
// of, or why there is none.
func (c *control) ask(op string, fields any) (answer, error) {
	if err := c.send(op, fields); err != nil {
		return answer{}, err
	}
	return c.receive()
}

// send sends a request, whose answer is then to be received.
func (c *control) send(op string, fields any) error {
	c.id++
	line, err := json.Marshal(fields)
	if err == nil {
		line, err = withHead(c.id, op, line)
	}
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "ask program", Msg: op, Err: err}
	}
	stop := c.guard()
	_, err = c.process.conn.Write(append(line, '\n'))
	stop()
	if err != nil {
		return c.why(err)
	}
	return nil
}

// withHead puts the number and the name of a request before its fields.
func withHead(id int, op string, fields []byte) ([]byte, error) {
	head, err := json.Marshal(struct {
		ID int    `json:"id"`
		Op string `json:"op"`
	}{id, op})
	if err != nil || len(fields) <= len("{}") {
		return head, err
	}
	return append(append(head[:len(head)-1], ','), fields[1:]...), nil
}

// guard interrupts the connection when the context ends, until stop is called.
func (c *control) guard() (stop func()) {
	past := time.Unix(1, 0)
	end := context.AfterFunc(c.ctx, func() {
		c.process.conn.SetDeadline(past) //nolint:errcheck // a closed one is interrupted
	})
	return func() { end() }
}

// receive reads the answer to the newest request.
func (c *control) receive() (answer, error) {
	stop := c.guard()
	defer stop()
	var a answer
	line, err := c.line()
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err == nil && a.ID != c.id {
		err = errors.New("an answer to another request")
	}
	if err != nil {
		return answer{}, c.why(err)
	}
	c.last = a
	if a.Error != nil {
		return a, c.complained(a.Error)
	}
	return a, nil
}

var errLong = errors.New("the answer is too long")

// line reads a line of bounded length.
func (c *control) line() (line []byte, err error) {
	for {
		part, err := c.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxAnswer:
			return nil, errLong
		}
	}
}

// stopWait is how long a program may take to end when it is asked to.
const stopWait = time.Second

// stackWait is how long a hung program has to print its stack.
const stackWait = 300 * time.Millisecond

// deathWait is how long a program whose socket has closed may take to end by itself.
const deathWait = 2 * time.Second

// why ends the process and tells why there was no answer.
func (c *control) why(err error) error {
	p := c.process
	ended := c.ctx.Err() != nil
	cause := context.Cause(c.ctx)
	hung := ended && (errors.Is(cause, errHung) || errors.Is(cause, context.DeadlineExceeded))
	if ended {
		if hung {
			p.signal(syscall.SIGUSR1)
			waitFor(p.ended, stackWait)
		}
		killed := p.alive()
		p.kill()
		p.wait()
		switch {
		case hung && killed:
			return c.hung()
		case !hung:
			return cause
		}
		return c.died()
	}
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	byItself := closed && waitFor(p.ended, deathWait)
	if !byItself {
		p.kill()
	}
	p.wait()
	if !byItself {
		return c.nonsense(err)
	}
	return c.died()
}

// waitFor tells whether a channel was closed in time.
func waitFor(closed <-chan struct{}, limit time.Duration) bool {
	select {
	case <-closed:
		return true
	case <-time.After(limit):
		return false
	}
}
