package faults

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Line is the TCP connections to one server, with faults.
type Line struct {
	Delay  time.Duration // before each piece is passed on
	Piece  int           // bytes passed on at once; 0: whatever comes
	Rate   int           // bytes a second in each direction, over all connections together; 0: any
	Resets time.Duration // connections are cut after at most so long; 0: never

	target   string
	listener net.Listener
	turns    [2]sync.Mutex // of each direction, where there is a rate
	wait     sync.WaitGroup

	mu   sync.Mutex
	rng  *rand.Rand        // guarded by mu
	open map[net.Conn]bool // guarded by mu
	held [2]chan struct{}  // guarded by mu: closed when the direction passes on again; nil: it does
}

// The directions of a line.
const (
	toServer = iota
	toClient
	directions
)

// To returns an address behind which the target is, over the line. The line ends with the test.
func (l *Line) To(t *testing.T, target string, rng *rand.Rand) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.listener, l.target, l.rng, l.open = listener, target, rng, map[net.Conn]bool{}
	l.wait.Go(l.serve)
	t.Cleanup(l.Close)
	return listener.Addr().String()
}

func (l *Line) serve() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", l.target)
		if err != nil {
			c.Close()
			continue
		}
		l.track(c, s)
		l.wait.Go(func() { l.pass(c, s, toServer) })
		l.wait.Go(func() { l.pass(s, c, toClient) })
		if l.Resets > 0 {
			l.cut(c, s)
		}
	}
}

func (l *Line) track(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.open[c] = true
	}
}

// random is a duration below maximum.
func (l *Line) random(maximum time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.rng.Int64N(int64(maximum)))
}

// cut ends a connection with a reset, at a random moment.
func (l *Line) cut(c, s net.Conn) {
	time.AfterFunc(l.random(l.Resets), func() {
		reset(c)
		s.Close()
	})
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0) //nolint:errcheck // it may have ended
	}
	c.Close()
}

// Partition holds one direction or both now and then, each time for at most the longest time, until stop is called.
// What is held arrives late, or every second time gets lost with its connection. It arrives although its sender has
// given up.
func (l *Line) Partition(longest time.Duration) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	sleep := func() bool {
		select {
		case <-end:
			return false
		case <-time.After(l.random(longest)):
			return true
		}
	}
	go func() {
		defer close(ended)
		for sleep() {
			release := l.hold()
			sleep()
			release()
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// hold holds the directions that it draws until release is called.
func (l *Line) hold() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	which, lossy, passes := 1+l.rng.IntN(1<<directions-1), l.rng.IntN(2) == 0, make(chan struct{})
	for d := range directions {
		if which&(1<<d) != 0 {
			l.held[d] = passes
		}
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if lossy {
			for c := range l.open {
				reset(c)
			}
		}
		l.held = [directions]chan struct{}{}
		close(passes)
	}
}

// await waits until a direction passes on.
func (l *Line) await(direction int) {
	l.mu.Lock()
	held := l.held[direction]
	l.mu.Unlock()
	if held != nil {
		<-held
	}
}

func (l *Line) pass(from, to net.Conn, direction int) {
	defer func() {
		l.await(direction) // what an end says arrives no earlier than what it said before
		from.Close()
		to.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, from)
	}()
	size := 64 << 10
	if l.Piece > 0 {
		size = l.Piece
	}
	buffer := make([]byte, size)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			time.Sleep(l.Delay)
			if l.Rate > 0 {
				l.turns[direction].Lock()
				time.Sleep(time.Duration(n) * time.Second / time.Duration(l.Rate))
				l.turns[direction].Unlock()
			}
			l.await(direction)
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Close ends the listener and every connection. Partitions must have been stopped.
func (l *Line) Close() {
	l.listener.Close()
	l.mu.Lock()
	for c := range l.open {
		c.Close()
	}
	l.mu.Unlock()
	l.wait.Wait()
}
