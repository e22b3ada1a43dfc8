package controller

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/scheduler"
)

// Probe measures how fast one worker of a planned job trains, and what it needs: it runs the worker's first batches for
// a few seconds on the platform, under the plan's limits, and keeps nothing of them. It returns the failure of an
// activation that failed.
func (c *Controller) Probe(ctx context.Context, spec Spec) (estimator.Rate, error) {
	pkg := scheduler.Package(spec.ID)
	action, ok := spec.Plan.Action(disdel.TaskTrain)
	if !ok {
		return estimator.Rate{},
			&disdel.Error{Kind: disdel.Internal, Op: "probe job", Job: spec.ID, Msg: "the plan has no train action"}
	}
	rate, err := c.prepareAndProbe(ctx, spec, action)
	quiet, stop := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer stop()
	_, sweep := c.cfg.Board.Sweep(quiet, spec.ID)
	remove := c.cfg.Invoker.Remove(quiet, pkg) // one that was interrupted while it was made, too
	if disdel.KindOf(remove) == disdel.NotFound {
		remove = nil
	}
	return rate, errors.Join(err, remove, sweep)
}

func (c *Controller) prepareAndProbe(ctx context.Context, spec Spec, action disdel.ActionPlan) (estimator.Rate, error) {
	if err := c.cfg.Invoker.Prepare(ctx, scheduler.Package(spec.ID), []disdel.ActionPlan{action}); err != nil {
		return estimator.Rate{}, err
	}
	return c.probe(ctx, spec)
}

func (c *Controller) probe(ctx context.Context, spec Spec) (rate estimator.Rate, err error) {
	w := work{attempt: 1}
	req := spec.trainRequest(w, 0, "")
	req.Probe = true
	inv := spec.invocation(disdel.Slot{Task: disdel.TaskTrain}, w, req)
	id, err := c.cfg.Invoker.Invoke(ctx, inv)
	if err != nil {
		return rate, err
	}
	a, err := c.cfg.Invoker.Wait(ctx, inv, id)
	if err != nil {
		return rate, err
	}
	var r disdel.TrainResult
	if a.Failure != nil {
		return rate, a.Failure
	}
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return rate, badResult(a, err)
	}
	seconds := time.Duration(r.Usage.Phases["compute"]).Seconds()
	if r.Rows == 0 || seconds <= 0 {
		return rate, &disdel.Error{Kind: disdel.Internal, Op: "probe job", Job: spec.ID, Msg: "the probe trained nothing"}
	}
	return estimator.Rate{
		RowsPerSecond: float64(r.Rows) / seconds, Peak: a.Peak,
		StartUp: a.InitTime + r.Usage.Phases["load"] + r.Usage.Phases["fetch"],
	}, nil
}
