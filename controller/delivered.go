package controller

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/disdel/disdel"
)

const (
	// lookUpWithin bounds one look for an update: the job can do without.
	lookUpWithin = 2 * time.Second
	// recordAfter is how long the job waits for OpenWhisk's record once the update is in the store. Only the record has
	// the action's peak and usage. It comes when a healthy action ends.
	recordAfter = 3 * time.Second
)

// errDelivered ends the wait for the record of an activation whose update is in the store.
var errDelivered = errors.New("its update is in the store")

// lookUp looks for the update of an action whose heartbeats are missing, without blocking the loop. Once the update has
// been there for recordAfter, the wait for OpenWhisk's record ends.
func (r *run) lookUp(w *watched) {
	inv, stop, ctx := w.inv, w.stop, r.delays
	r.running.Go(func() {
		if _, there := r.delivered(ctx, inv); there && wait(ctx, recordAfter) {
			stop(errDelivered) // of no effect once the record has come
		}
	})
}

// delivered returns the result of an invocation's action, if its update is complete in the store. The top aggregation
// does more than deliver an update, so it counts as not delivered; its retry finds out what is left to do.
func (r *run) delivered(ctx context.Context, inv disdel.Invocation) (result json.RawMessage, there bool) {
	id := disdel.UpdateID{Job: r.spec.ID, Round: inv.Round, Level: inv.Level, Member: inv.Member}
	if inv.Task != disdel.TaskTrain && (inv.Task != disdel.TaskAggregate || r.isTop(inv)) {
		return nil, false
	}
	ctx, stop := context.WithTimeout(ctx, lookUpWithin)
	defer stop()
	result, there, err := r.c.cfg.Board.Delivered(ctx, id)
	if err != nil {
		r.log.WithError(err).WithField("round", inv.Round).Debug("no look for the update of an action that failed")
	}
	return result, there && err == nil
}

// isTop tells whether an aggregation makes the next round's reference.
func (r *run) isTop(inv disdel.Invocation) bool {
	var req disdel.AggregateRequest
	return json.Unmarshal(inv.Params, &req) != nil || req.Top
}

// rescued returns a failed activation as a success if its update is in the store: an update is committed once and is
// whole. Any other activation stays as OpenWhisk reports it.
func (r *run) rescued(ctx context.Context, a disdel.Activation) disdel.Activation {
	if !a.Outcome.Failed() || a.FailureKind() == disdel.Conflict { // another attempt has taken over: it reports
		return a
	}
	result, there := r.delivered(ctx, a.Invocation)
	if !there {
		return a
	}
	a.Recovered = a.Outcome.String()
	if a.Failure != nil {
		a.Recovered = a.Failure.Msg
	}
	a.Evidence = append(a.Evidence, "its update is complete in the store, and is taken")
	a.Outcome, a.Failure, a.Result, a.Suspected = disdel.OutcomeSuccess, nil, result, false
	return a
}

// withoutRecord is an activation whose update is in the store while OpenWhisk has no record of it.
func (r *run) withoutRecord(ctx context.Context, inv disdel.Invocation, id disdel.ActivationID,
	began time.Time,
) disdel.Activation {
	now := r.c.cfg.Now()
	a := r.rescued(ctx, disdel.Activation{
		ID: id, Invocation: inv, Outcome: disdel.OutcomeLost, Start: began, End: now,
		Duration: min(disdel.Millis(now.Sub(began)), inv.Limits.Timeout),
		Failure: &disdel.Error{
			Kind: disdel.Lost, Op: "wait for " + inv.Slot().Name(), Activation: id,
			Msg: "its heartbeats stopped, and OpenWhisk has no record of it yet",
		},
	})
	if a.Recovered != "" {
		a.Recovered = disdel.NoRecord
	}
	return a
}
