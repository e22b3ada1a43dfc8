package main

import (
	"context"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/service"
)

// submit runs a job as the product does, in one of its variants.
func (r *testbed) submit(ctx context.Context, env string, t task, turn int, seed int64) (outcome, error) {
	if err := r.sources.add(ctx, r.parts.Data, t); err != nil {
		return outcome{}, err
	}
	sync, options := disdel.SyncEpoch, service.Options{}
	switch env {
	case envEnd, envEndSlots:
		sync = disdel.SyncEnd
	case envPaper:
		sync, options.Estimator = disdel.SyncEnd, estimator.MethodPaper
	}
	job, err := t.parse(seed, sync)
	if err != nil {
		return outcome{}, err
	}
	return r.submitJob(ctx, env, t, turn, service.Request{Job: job, Options: options})
}

// submitJob runs a job whose data is there.
func (r *testbed) submitJob(ctx context.Context, env string, t task, turn int, req service.Request) (outcome, error) {
	begun := time.Now()
	run, err := r.service.Submit(ctx, req)
	if err != nil {
		return refused(env, t, turn, err)
	}
	rec, err := run.Wait(ctx)
	if err != nil {
		return outcome{}, err
	}
	return ofRecord(env, t, turn, &rec, begun, time.Since(begun)), nil
}

// refused is a job that does not fit: an outcome, and no error of the bench.
func refused(env string, t task, turn int, err error) (outcome, error) {
	if disdel.KindOf(err) == disdel.OverLimit {
		o := t.outcome(env, turn, time.Now())
		o.Why = err.Error()
		return o, nil
	}
	return outcome{}, err
}
