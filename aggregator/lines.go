package aggregator

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// lines are a store's open connections. go-redis looks at a context before a command and at its deadline when the
// command starts, and not again: a read on a line that has gone dead would outlast the claim that it was for by
// minutes.
type lines struct {
	sync.Mutex
	open map[net.Conn]struct{}
}

// dialer has connections enter and leave the list.
func (l *lines) dialer(opt *redis.Options) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := redis.NewDialer(opt)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l.Lock()
		defer l.Unlock()
		l.open[c] = struct{}{}
		plain := line{c, l}
		if s, ok := c.(syscall.Conn); ok { // go-redis asks the socket whether an idle connection still stands
			return socketLine{plain, s}, nil
		}
		return plain, nil
	}
}

type line struct {
	net.Conn
	all *lines
}

// Close implements net.Conn.
func (l line) Close() error {
	l.all.Lock()
	delete(l.all.open, l.Conn)
	l.all.Unlock()
	return l.Conn.Close()
}

type socketLine struct {
	line
	syscall.Conn
}

// cut ends the reads and writes that are under way on all lines. Commands of another context among them are tried
// again, as after any failure of a connection; a line that was idle is as good as before.
func (l *lines) cut() {
	l.Lock()
	defer l.Unlock()
	for c := range l.open {
		c.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // it is closed already
	}
}

// cutEvery is the time between cuts: a command may have started just after one.
const cutEvery = 50 * time.Millisecond

// with ends commands that carry columns when the context does. done is to be called when they have returned.
func (l *lines) with(ctx context.Context) (done func()) {
	returned, quiet := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(quiet)
		again := time.NewTicker(cutEvery)
		defer again.Stop()
		for {
			l.cut()
			select {
			case <-returned:
				return
			case <-again.C:
			}
		}
	})
	return func() {
		close(returned)
		if !stop() {
			<-quiet
		}
	}
}
