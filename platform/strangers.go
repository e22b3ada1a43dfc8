package platform

import (
	"container/list"
	"net"
	"sync"
	"time"
)

// Bounds on connections that showed no key yet. One with a key shows it in its first milliseconds, so that what has
// been silent for longer may go when the places are taken.
const (
	maxStrangers   = 1024
	strangerMinAge = time.Second
)

// strangers is a listener that bounds the connections without a valid key: they cost descriptors and memory, and
// anybody who reaches the port can make them. When all places are taken, the oldest goes for a new one; one that is too
// young to tell is given its time first. So a flood is closed as it comes, and clients with keys get through.
type strangers struct {
	net.Listener
	most   int
	minAge time.Duration

	mu    sync.Mutex
	byAge *list.List    // of *stranger, the oldest first
	left  chan struct{} // signals that one went or became known
	ended *once
}

// stranger is a connection that may become known.
type stranger struct {
	net.Conn
	of    *strangers
	since time.Time
	place *list.Element // nil once it is known or closed
}

type strangerKey struct{}

func newStrangers(l net.Listener, most int, minAge time.Duration) *strangers {
	return &strangers{
		Listener: l, most: most, minAge: minAge, byAge: list.New(), left: make(chan struct{}, 1),
		ended: newOnce(),
	}
}

func (s *strangers) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for wait := s.room(); wait > 0; wait = s.room() {
		select {
		case <-time.After(wait):
		case <-s.left:
		case <-s.ended.c:
			c.Close()
			return nil, net.ErrClosed
		}
	}
	return s.add(c), nil
}

func (s *strangers) Close() error {
	s.ended.close()
	return s.Listener.Close()
}

// room closes the oldest if there is no place, or returns for how long that one may still stay.
func (s *strangers) room() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byAge.Len() < s.most {
		return 0
	}
	oldest := s.byAge.Front().Value.(*stranger)
	if young := s.minAge - time.Since(oldest.since); young > 0 {
		return young
	}
	s.forget(oldest)
	go oldest.Conn.Close() // not under the lock
	return 0
}

func (s *strangers) add(c net.Conn) *stranger {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &stranger{Conn: c, of: s, since: time.Now()}
	out.place = s.byAge.PushBack(out)
	return out
}

// forget takes one out; the caller holds the lock.
func (s *strangers) forget(c *stranger) {
	if c.place == nil {
		return
	}
	s.byAge.Remove(c.place)
	c.place = nil
	select {
	case s.left <- struct{}{}:
	default:
	}
}

// known is called when the connection showed a valid key.
func (c *stranger) known() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.forget(c)
}

func (c *stranger) Close() error {
	c.known()
	return c.Conn.Close()
}

// CloseWrite lets the server send an answer and then its end, as it does for what is a plain connection.
func (c *stranger) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
