package service

import (
	"context"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// inferencePrefix begins the names that the pool's books have for inferences over data sets, which have no record.
const inferencePrefix = "infer-"

// IsInference tells whether what holds a part of the pool, or waits for one, is an inference and no job.
func (j PoolJob) IsInference() bool { return strings.HasPrefix(string(j.Job), inferencePrefix) }

// demand is what a question of so many parts asks the pool for: as many infer actions side by side as the pool can ever
// hold, and as its tenant may have. They are its gang, as the train actions of a round are a job's. It returns
// OverLimit where there can never be room for one.
func (s *Service) demand(ctx context.Context, q *question, parts int) (d scheduler.Demand, err error) {
	if s.queue.by == nil {
		return d, nil
	}
	d = scheduler.Demand{
		Job: disdel.JobID(inferencePrefix + strings.ToLower(ulid.Make().String())), Tenant: s.whose(),
		Arrived: sinceEpoch(time.Now()), Shares: true,
	}
	if d.Quota, err = s.quota(ctx); err != nil {
		return d, err
	}
	d.Quota.Cost = 0 // what it comes to is not looked at
	whole, err := s.queue.capacity(ctx)
	if err != nil {
		return d, err
	}
	q.atOnce = min(q.atOnce, parts)
	for ; ; q.atOnce-- {
		d.Gang = q.gang()
		err := scheduler.CheckFits(whole, d)
		if err == nil {
			break
		}
		if q.atOnce <= 1 {
			return d, neverFits(err)
		}
	}
	waves := disdel.Millis((parts + q.atOnce - 1) / q.atOnce)
	d.Takes.Likely = waves * q.plan.Limits.Timeout
	d.Takes.High = d.Takes.Likely
	return d, nil
}

// neverFits is why there is never room for an action of a question, which has no job whose file could be changed.
func neverFits(err error) error {
	e := *disdel.AsError(err)
	e.Op, e.Job, e.Hint = "infer", "", "a larger pool (--pool-memory), or a larger quota"
	return &e
}

// room waits until the pool has room for what a question asks for, which it keeps until leave is called.
func (s *Service) room(ctx context.Context, d scheduler.Demand) (leave func(), err error) {
	if s.queue.by == nil {
		return func() {}, nil
	}
	r := &Run{id: d.Job, tenant: d.Tenant, journal: newJournal(d.Job, nil), story: &story{}}
	if err := s.queue.enter(ctx, r, d); err != nil {
		if ctx.Err() != nil {
			err = &disdel.Error{
				Kind: disdel.Canceled, Op: "infer", Msg: "it was stopped while it waited for room", Err: context.Cause(ctx),
			}
		}
		return nil, err
	}
	return func() { s.queue.leave(d.Job, 0) }, nil
}

// gang is the actions of a question that run side by side. More threads than there are processors share them.
func (q *question) gang() scheduler.Gang {
	each := scheduler.Capacity{Memory: q.plan.Limits.Memory, Millicores: 1000, Concurrent: 1}
	if n := q.platform.Processors; n > 0 {
		each.Millicores = min(each.Millicores, 1000*n/q.atOnce)
	}
	return scheduler.Gang{{Task: disdel.TaskInfer, Count: q.atOnce, Each: each}}
}
