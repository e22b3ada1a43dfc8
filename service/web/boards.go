package web

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/service"
)

// How often the list of jobs is looked at, and which part of the time that takes at most.
const (
	lookEvery = 100 * time.Millisecond
	lookShare = 20
)

// boards are what tells lists of jobs that they have changed, one for each tenant whose list somebody looks at.
type boards struct {
	rows *history.RecordCache[row]

	mu  sync.Mutex
	all map[*service.Service]*board // guarded by mu
}

// board looks at the jobs of a tenant for all of his pages at once.
type board struct {
	readers int // guarded by the boards' mu
	stop    context.CancelFunc
	over    chan struct{}

	mu      sync.Mutex
	changed chan struct{} // guarded by mu: closed with the next change
}

// join begins to look, unless somebody does.
func (b *boards) join(s *service.Service) *board {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[s]
	if one == nil {
		ctx, stop := context.WithCancel(context.Background())
		one = &board{stop: stop, over: make(chan struct{}), changed: make(chan struct{})}
		b.all[s] = one
		go one.look(ctx, s, b.rows)
	}
	one.readers++
	return one
}

// leave ends the look with its last reader.
func (b *boards) leave(s *service.Service, one *board) {
	b.mu.Lock()
	one.readers--
	last := one.readers == 0
	if last {
		delete(b.all, s)
	}
	b.mu.Unlock()
	if last {
		one.stop()
		<-one.over
	}
}

// seen is what a list would show otherwise if it changed.
type seen struct {
	id     disdel.JobID
	status disdel.Status
	rounds int
	model  bool
}

func (b *board) look(ctx context.Context, s *service.Service, rows *history.RecordCache[row]) {
	defer close(b.over)
	again := time.NewTimer(0)
	defer again.Stop()
	<-again.C
	var before []seen
	for first := true; ; first = false {
		began := time.Now()
		if now, err := newest(ctx, s, rows); err == nil {
			if !first && !slices.Equal(before, now) {
				b.wake()
			}
			before = now
		}
		again.Reset(max(lookEvery, lookShare*time.Since(began)))
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// mostWatched is how many jobs are looked at: those that run are among the newest.
const mostWatched = 50

func newest(ctx context.Context, s *service.Service, rows *history.RecordCache[row]) ([]seen, error) {
	list, err := listRows(ctx, s, rows, history.Query{Limit: mostWatched})
	out := make([]seen, len(list))
	for i := range list {
		out[i] = seen{list[i].ID, list[i].Status, list[i].Rounds, list[i].Model != ""}
	}
	return out, err
}

func (b *board) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *board) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// liveJobs tells a list of jobs that it has changed.
func liveJobs(v *visit) error {
	ctx, stop := v.lasting()
	defer stop()
	b := v.site.boards.join(v.s)
	defer v.site.boards.leave(v.s, b)
	out := v.stream()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	next := b.next()
	if out.line(": here\n\n") != nil {
		return nil
	}
	for {
		select {
		case <-next:
			next = b.next()
			if out.send("changed", "jobs") != nil {
				return nil
			}
		case <-beat.C:
			if out.line(": still here\n\n") != nil {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}
