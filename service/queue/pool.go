package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
)

// Pool lists the jobs that have room in the pool, and those that wait for it.
type Pool struct {
	Capacity scheduler.Capacity // of the whole pool
	Holding  []PoolJob          // oldest first
	Waiting  []PoolJob          // in the order of their priority and arrival
}

// PoolJob is a job, or an inference over a data set, in the queue of a pool.
type PoolJob struct {
	Job      disdel.JobID
	Tenant   string
	Priority int
	Room     scheduler.Capacity // that it has, or waits for
	Since    time.Time          // when it was submitted
}

// List lists the jobs in the queue: those of one tenant, or all if tenant is nil.
func (q *Queue) List(ctx context.Context, tenant *string) (p Pool, err error) {
	h, err := q.History(ctx)
	if err != nil {
		return p, err
	}
	note, err := h.Note(ctx, history.NotePool, q.Pool)
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return p, err
	}
	if p.Capacity, err = q.Capacity(ctx); err != nil {
		return p, err
	}
	for _, d := range readState(note).Books.Jobs {
		if tenant != nil && d.Tenant != *tenant {
			continue
		}
		one := PoolJob{
			Job: d.Job, Tenant: d.Tenant, Priority: d.Priority, Room: d.Gang.Room(),
			Since: time.UnixMilli(int64(time.Duration(d.Arrived) / time.Millisecond)).UTC(),
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

// inferencePrefix begins the ids of inferences over data sets, which have no record.
const inferencePrefix = "infer-"

// NewInferenceID returns the id of an inference over a data set in the queue.
func NewInferenceID() disdel.JobID {
	return disdel.JobID(inferencePrefix + strings.ToLower(ulid.Make().String()))
}

// IsInference reports whether it is an inference over a data set, and not a job.
func (j PoolJob) IsInference() bool { return strings.HasPrefix(string(j.Job), inferencePrefix) }
