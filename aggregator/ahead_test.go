package aggregator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

var errLost = errors.New("the claim is lost")

// speeds of reading and using, in the bubble's time: whoever is slower is waited for.
var speeds = []struct{ fetch, use time.Duration }{
	{0, 0},
	{time.Millisecond, 0},
	{0, time.Millisecond},
	{time.Millisecond, time.Millisecond},
	{5, 7},
}

// However far reading got, and whoever is the slower side, it ends when its context does, and says why.
func TestReadingAheadEndsWithItsContext(t *testing.T) {
	const n = 10
	for _, pace := range speeds {
		for width := 1; width <= n; width++ {
			for at := range width {
				synctest.Test(t, func(t *testing.T) {
					ctx, end := context.WithCancelCause(t.Context())
					defer end(nil)
					fetch := func(ctx context.Context, i int, buf []byte) ([]byte, error) {
						if pace.fetch == 0 { // the race detector does not bear many timers of a bubble that end at once
							return buf, ctx.Err()
						}
						select {
						case <-time.After(pace.fetch):
							return buf, nil
						case <-ctx.Done():
							return nil, ctx.Err()
						}
					}
					err := readAhead(ctx, width, alike(1), fetch, func(i int, _ []byte) error {
						if i == at {
							end(errLost)
						}
						time.Sleep(pace.use)
						return nil
					})
					if !errors.Is(err, errLost) && at < width-1 || err != nil && at == width-1 {
						t.Errorf("%d items at %v, ended at %d: %v", width, pace, at, err)
					}
				})
			}
		}
	}
}

// The same where it ends from outside, at any moment.
func TestReadingAheadEndsAtAnyMoment(t *testing.T) {
	for _, pace := range speeds[1:] {
		for after := range 20 {
			synctest.Test(t, func(t *testing.T) {
				moment := time.Duration(after) * (pace.fetch + pace.use) / 4
				ctx, end := context.WithTimeoutCause(t.Context(), moment+1, errLost)
				defer end()
				fetch := func(_ context.Context, _ int, buf []byte) ([]byte, error) {
					time.Sleep(pace.fetch)
					return buf, nil
				}
				err := readAhead(ctx, 100, alike(1), fetch, func(int, []byte) error {
					time.Sleep(pace.use)
					return nil
				})
				if !errors.Is(err, errLost) {
					t.Errorf("at %v, ended after %v: %v", pace, moment, err)
				}
			})
		}
	}
}

// A panic of a goroutine that works for somebody is raised again where that one is: in a goroutine of its own it would
// end the process.
func TestAPanicBesideIsTheCallers(t *testing.T) {
	boom := func(i int) {
		if i == 4 {
			panic("boom")
		}
	}
	for name, do := range map[string]func(){
		"reading ahead": func() {
			fetch := func(_ context.Context, i int, buf []byte) ([]byte, error) {
				boom(i)
				return buf, nil
			}
			_ = readAhead(t.Context(), 10, alike(1), fetch, func(int, []byte) error { return nil }) // it panics
		},
		"several at once": func() {
			forEach(t.Context(), 10, func(_ context.Context, _, i int) error { //nolint:errcheck // it panics
				boom(i)
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				e, ok := recover().(*goroutinePanic)
				if !ok || e.String() != "boom" || !strings.Contains(string(e.Stack()), "TestAPanicBesideIsTheCallers") {
					t.Errorf("raised %v", e)
				}
			}()
			do()
		})
	}
}

// deadLine stands before a server. Once armed it lets so many bytes more come back, and then nothing.
type deadLine struct {
	sync.Mutex
	address string
	armed   bool
	left    int
	stalled chan struct{} // closed when something was held back
}

func newDeadLine(t *testing.T, server string) *deadLine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &deadLine{address: l.Addr().String(), stalled: make(chan struct{})}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", server)
			if err != nil {
				c.Close()
				continue
			}
			all.Go(func() { d.pump(c, s, d.dead) })
			all.Go(func() { d.pump(s, c, func(int) bool { return false }) })
		}
	})
	return d
}

func (d *deadLine) arm(after int) {
	d.Lock()
	defer d.Unlock()
	d.armed, d.left = true, after
}

func (d *deadLine) dead(n int) bool {
	d.Lock()
	defer d.Unlock()
	if !d.armed {
		return false
	}
	if d.left > 0 && d.left <= n {
		close(d.stalled)
	}
	d.left -= n
	return d.left <= 0
}

func (d *deadLine) pump(to, from net.Conn, dead func(n int) bool) {
	defer to.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if dead(n) {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// A line that goes dead is waited for by minutes, since columns may take as long; but not beyond the claim that they
// are for.
func TestDeadLinesDoNotOutlastTheClaim(t *testing.T) {
	const columns, rows = 8, 1000
	id := update(1, 1).ID
	weights := disdel.Weights{{Name: "w", Shape: []int{columns * rows}, Data: make([]float32, columns*rows)}}
	for name, do := range map[string]func(context.Context, *Store) error{
		"reduce": func(ctx context.Context, s *Store) error {
			_, err := s.Reduce(ctx, Claim{ID: disdel.UpdateID{Job: id.Job, Round: id.Round, Level: 1}},
				Reduction{Members: []disdel.UpdateID{id}, Like: weights})
			return err
		},
		"state": func(ctx context.Context, s *Store) error {
			return s.ReadState(ctx, id, func(map[string]string) (func(disdel.Tensor) error, error) {
				return func(disdel.Tensor) error { return nil }, nil
			})
		},
		"reference": func(ctx context.Context, s *Store) error {
			_, err := s.Reference(ctx, id.Job, id.Round, weights)
			return err
		},
		"blocks": func(ctx context.Context, s *Store) error {
			return s.StreamReference(ctx, id.Job, id.Round, weights, func([]float32) error { return nil })
		},
		"head": func(ctx context.Context, s *Store) error {
			_, err := s.UpdateMeta(ctx, id)
			return err
		},
		"push": func(ctx context.Context, s *Store) error {
			return s.PushUpdate(ctx,
				disdel.Update{ID: disdel.UpdateID{Job: "job-1", Round: id.Round, Member: 9}, Samples: 1, Weights: weights})
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := embedded(t)
			whole := enter(t, at, "dead")
			whole.column = rows
			u := update(1, 1)
			u.ID, u.Weights = id, weights
			push(t, whole, u)
			if err := whole.PutReference(ctx, id.Job, id.Round, weights); err != nil {
				t.Fatal(err)
			}
			if err := whole.PutState(ctx, id,
				claim(t, whole, disdel.UpdateID{Job: id.Job, Round: id.Round, Member: 3}, "a", 1, Claimed), nil,
				weights); err != nil {
				t.Fatal(err)
			}
			opt, err := redis.ParseURL(at.store.URLs[0])
			if err != nil {
				t.Fatal(err)
			}
			line := newDeadLine(t, opt.Addr)
			at.store.URLs = []string{fmt.Sprintf("redis://:%s@%s?max_retries=1", opt.Password, line.address)}
			s := enter(t, at, "dead")
			s.column = rows
			after := 8000 // in the second column, or the third
			if name == "head" || name == "push" {
				after = 1
			}
			line.arm(after)
			held, lose := context.WithCancelCause(ctx)
			defer lose(nil)
			go func() {
				<-line.stalled
				lose(errLost)
			}()
			if err := do(held, s.Store); err == nil || held.Err() == nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
