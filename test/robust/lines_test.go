package robust

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// line is a TCP connection to a server that is not as it should be.
type line struct {
	delay  time.Duration // before each piece is passed on
	piece  int           // bytes passed on at once; 0: whatever comes
	rate   int           // bytes a second; 0: any
	resets time.Duration // connections are cut after at most so long; 0: never

	target   string
	listener net.Listener
	mu       sync.Mutex
	rng      *rand.Rand // guarded by mu
	open     map[net.Conn]bool
	wait     sync.WaitGroup
}

// lineTo is an address behind which the target is, over the line.
func lineTo(t *testing.T, target string, rng *rand.Rand, l *line) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.listener, l.target, l.rng, l.open = listener, target, rng, map[net.Conn]bool{}
	l.wait.Go(l.serve)
	t.Cleanup(l.close)
	return listener.Addr().String()
}

func (l *line) serve() {
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
		l.wait.Go(func() { l.pass(c, s) })
		l.wait.Go(func() { l.pass(s, c) })
		if l.resets > 0 {
			l.cut(c, s)
		}
	}
}

func (l *line) track(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.open[c] = true
	}
}

// cut ends a connection with a reset, at a random moment.
func (l *line) cut(c, s net.Conn) {
	l.mu.Lock()
	after := time.Duration(l.rng.Int64N(int64(l.resets)))
	l.mu.Unlock()
	time.AfterFunc(after, func() {
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0) //nolint:errcheck // it may have ended
		}
		c.Close()
		s.Close()
	})
}

func (l *line) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	size := 64 << 10
	if l.piece > 0 {
		size = l.piece
	}
	buffer := make([]byte, size)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			time.Sleep(l.delay)
			if l.rate > 0 {
				time.Sleep(time.Duration(n) * time.Second / time.Duration(l.rate))
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// close ends the listener and every connection.
func (l *line) close() {
	l.listener.Close()
	l.mu.Lock()
	for c := range l.open {
		c.Close()
	}
	l.mu.Unlock()
	l.wait.Wait()
}
