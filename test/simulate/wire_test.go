package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// process is a program that may die: then its connections break, and it reaches nothing any more.
type process struct {
	name  string
	world *world
	lasts bool            // no call kills it
	ctx   context.Context // ends with the process
	end   context.CancelCauseFunc

	mu    sync.Mutex
	dead  bool
	death *death // nil: no call is its last
	conns []*conn
}

func (w *world) process(name string) *process {
	p := &process{name: name, world: w}
	p.ctx, p.end = context.WithCancelCause(context.Background())
	return p
}

func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.dead
}

// kill ends the process. Its goroutines go on until they notice, and reach nothing.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	conns := p.conns
	p.mu.Unlock()
	for _, c := range conns {
		c.reset(syscall.ECONNRESET)
	}
	p.end(errKilled)
}

// dial connects to Redis.
func (p *process) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	w := p.world.weather
	if !p.alive() || w.strikes(dialRefused, p.name) {
		return nil, refused
	}
	if w.strikes(clockJumps, p.name) {
		p.world.jump(w.between(time.Second, time.Hour, "jump "+p.name))
	}
	there, back := newPipe(), newPipe()
	p.mu.Lock()
	defer p.mu.Unlock()
	name := fmt.Sprintf("%s, connection %d", p.name, len(p.conns)+1)
	client := &conn{in: back, out: there, of: p, name: name, faulty: true}
	if p.dead {
		return nil, refused
	}
	p.conns = append(p.conns, client)
	p.world.redis.Server().ServeConn(&conn{in: there, out: back, of: p, name: name + ", answers"})
	return client, ctx.Err()
}

// longestJumps is how far the clock of Redis jumps in all. Keys live for 24 hours after their last write: what a round
// takes from the one before may then be gone, and the job goes on without it (seed 603659).
const longestJumps = 20 * time.Hour

// jump moves the clock of Redis, unless it has jumped too far already.
func (w *world) jump(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jumped+d <= longestJumps {
		w.jumped += d
		w.redis.FastForward(d)
	}
}

// packet is what one write sent.
type packet struct {
	at   time.Time // when it arrives
	data []byte
}

// pipe is one direction of a connection. Writes never block.
type pipe struct {
	mu       sync.Mutex
	packets  []packet
	last     time.Time // arrival of the newest packet: none overtakes another
	end      error     // nil: open
	deadline time.Time
	changed  chan struct{}
}

func newPipe() *pipe { return &pipe{changed: make(chan struct{}, 1)} }

func (q *pipe) wake() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

func (q *pipe) send(data []byte, delay time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.end != nil {
		return syscall.EPIPE
	}
	at := time.Now().Add(delay)
	if at.Before(q.last) {
		at = q.last
	}
	q.last = at
	q.packets = append(q.packets, packet{at, append([]byte(nil), data...)})
	q.wake()
	return nil
}

// close ends the pipe behind what was sent, or at once where that is lost.
func (q *pipe) close(err error, lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if lost {
		q.packets = nil
	}
	if q.end == nil || lost {
		q.end = err
	}
	q.wake()
}

func (q *pipe) setDeadline(t time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deadline = t
	q.wake()
}

func (q *pipe) read(b []byte) (int, error) {
	for {
		n, until, err := q.take(b)
		if n > 0 || err != nil {
			return n, err
		}
		if until.IsZero() {
			<-q.changed
			continue
		}
		t := time.NewTimer(time.Until(until))
		select {
		case <-q.changed:
		case <-t.C:
		}
		t.Stop()
	}
}

// take returns what has arrived, or when to look again; zero: when something changes.
func (q *pipe) take(b []byte) (n int, until time.Time, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if !q.deadline.IsZero() && !q.deadline.After(now) {
		return 0, until, os.ErrDeadlineExceeded
	}
	if len(q.packets) == 0 {
		return 0, q.deadline, q.end
	}
	head := &q.packets[0]
	if head.at.After(now) {
		if until = q.deadline; until.IsZero() || head.at.Before(until) {
			until = head.at
		}
		return 0, until, nil
	}
	n = copy(b, head.data)
	if head.data = head.data[n:]; len(head.data) == 0 {
		q.packets = q.packets[1:]
	}
	return n, until, nil
}

// conn is one end of a connection to Redis. The client's end is the one with faults.
type conn struct {
	in, out *pipe
	of      *process
	name    string
	faulty  bool
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) { return c.in.read(b) }

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	w, name := c.of.world.weather, c.name
	delay := w.between(50*time.Microsecond, 500*time.Microsecond, name)
	if w.strikes(storeLate, name) {
		delay = w.between(10*time.Millisecond, 8*time.Second, "late "+name)
	}
	if !c.faulty {
		return len(b), c.out.send(b, delay)
	}
	if w.strikes(storeCut, name) {
		c.reset(syscall.ECONNRESET)
		return 0, syscall.ECONNRESET
	}
	if w.strikes(storeHalf, name) {
		err := c.out.send(b[:len(b)/2], delay)
		c.reset(syscall.ECONNRESET)
		return len(b) / 2, errors.Join(err, syscall.ECONNRESET)
	}
	err := c.out.send(b, delay)
	if err == nil && w.strikes(storeMute, name) {
		c.reset(syscall.ECONNRESET)
	}
	return len(b), err
}

// broke remembers when the last command arrives on a connection that broke, or that its client closed: the client may
// have waited too long for the answer (seed 609366).
func (w *world) broke(out *pipe) {
	out.mu.Lock()
	last := out.last
	out.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if last.After(time.Now()) && last.After(w.onTheWay) {
		w.onTheWay = last
	}
}

// reset breaks the client's end. What was sent arrives.
func (c *conn) reset(err error) {
	c.of.world.broke(c.out)
	c.in.close(err, true)
	c.out.close(io.EOF, false)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.world.broke(c.out)
	c.in.close(net.ErrClosed, true)
	c.out.close(io.EOF, false)
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline implements net.Conn. Writes need none.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { c.in.setDeadline(t); return nil }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
