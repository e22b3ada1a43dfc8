package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
)

// Pool is what the jobs hold of the platform's pool, and those that wait for it.
type Pool struct {
	Capacity scheduler.Capacity // of the whole pool
	Holding  []PoolJob          // oldest first
	Waiting  []PoolJob          // in the order of their priority and arrival
}

// PoolJob is a job in the pool's books.
type PoolJob struct {
	Job      disdel.JobID
	Tenant   string
	Priority int
	Room     scheduler.Capacity // what it holds, or waits for
	Since    time.Time          // it was submitted
}

// Pool reads the books of the pool. A tenant sees his own jobs alone.
func (s *Service) Pool(ctx context.Context) (p Pool, err error) {
	h, err := s.everything(ctx)
	if err != nil {
		return p, err
	}
	note, err := h.Note(ctx, history.NotePool, s.pool())
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return p, err
	}
	if p.Capacity, err = s.queue.capacity(ctx); err != nil {
		return p, err
	}
	for _, d := range readLedger(note).Books.Jobs {
		if s.tenant != nil && d.Tenant != *s.tenant {
			continue
		}
		one := PoolJob{
			Job: d.Job, Tenant: d.Tenant, Priority: d.Priority, Room: d.Gang.Room(),
			Since: time.UnixMilli(int64(time.Duration(d.Arrived) / time.Millisecond)),
		}
		if d.Held == nil {
			p.Waiting = append(p.Waiting, one)
			continue
		}
		one.Room = d.Held.Room
		p.Holding = append(p.Holding, one)
	}
	byArrival := func(a, b PoolJob) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Job, b.Job)) }
	slices.SortFunc(p.Holding, byArrival)
	slices.SortFunc(p.Waiting,
		func(a, b PoolJob) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), byArrival(a, b)) })
	return p, nil
}
