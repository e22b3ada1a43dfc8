package controller

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/scheduler"
)

func (r *run) invoke(work context.Context, inv disdel.Invocation, after time.Duration) {
	r.pending++
	if r.phaseOpen[inv.Task]++; r.phaseOpen[inv.Task] == 1 {
		r.phaseStart[inv.Task] = r.c.cfg.Now()
	}
	work, stop := context.WithCancelCause(work)
	r.watchInvocation(inv, r.c.cfg.Now().Add(after), stop)
	r.running.Go(func() {
		defer stop(nil)
		e := r.runInvocation(work, inv, after)
		r.events <- e
	})
	r.observe(Notice{Invoked: &inv})
}

// alarm sends an AlarmEvent after the time, unless the job ends or another alarm is set before.
func (r *run) alarm(o AlarmOrder) {
	r.stopAlarm()
	ctx, stop := context.WithCancel(r.delays)
	r.stopAlarm = stop
	r.running.Go(func() {
		defer stop()
		if !wait(ctx, o.After) {
			return
		}
		select {
		case r.events <- AlarmEvent{Number: o.Number}:
		case <-ctx.Done():
		}
	})
}

// wait waits for d; it returns false if ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// runInvocation makes one invocation and waits for its end.
func (r *run) runInvocation(work context.Context, inv disdel.Invocation, after time.Duration) Event {
	if !wait(r.delays, after) {
		return refused(inv, context.Canceled)
	}
	if err := r.prepare(work, inv); err != nil {
		return refused(inv, err)
	}
	id, err := r.c.cfg.Invoker.Invoke(work, inv)
	if disdel.KindOf(err) == disdel.NotFound { // the platform has restarted without its actions
		if err = r.prepareAnew(work, inv); err == nil {
			id, err = r.c.cfg.Invoker.Invoke(work, inv)
		}
	}
	if err != nil {
		return refused(inv, err)
	}
	r.log.WithFields(logrus.Fields{"action": inv.Action, "activation": id, "round": inv.Round}).Debug("invoked")
	select {
	case r.accepted <- inv:
	case <-r.delays.Done():
	}
	began := r.c.cfg.Now()
	a, err := r.c.cfg.Invoker.Wait(work, inv, id)
	if err != nil && errors.Is(context.Cause(work), errDelivered) {
		a, err = r.withoutRecord(context.WithoutCancel(work), inv, id, began), nil
	}
	if err != nil {
		e := refused(inv, err)
		e.Activation.ID = id
		return e
	}
	// the search for the update has a time limit of its own, since a search for a missing record may end this wait
	return EndedEvent{Activation: r.rescued(context.WithoutCancel(work), a)}
}

// preparedAction is an action that the run has created on the platform. Its lock is held while the platform creates
// it: only invocations of this action wait for that.
type preparedAction struct {
	mu     sync.Mutex
	limits disdel.Limits // guarded by mu; zero: it does not exist
	remade time.Time     // guarded by mu: when it was missing and created again
}

// action is what the run knows of an action.
func (r *run) action(name disdel.ActionName) *preparedAction {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.prepared[name]
	if a == nil {
		a = &preparedAction{}
		r.prepared[name] = a
	}
	return a
}

// prepare creates the action of an invocation if no action with its limits exists.
func (r *run) prepare(ctx context.Context, inv disdel.Invocation) error {
	a := r.action(inv.Action)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limits == inv.Limits {
		return nil
	}
	return r.make(ctx, a, inv)
}

// make creates an action. The caller holds the action's lock.
func (r *run) make(ctx context.Context, a *preparedAction, inv disdel.Invocation) error {
	err := r.c.cfg.Invoker.Prepare(ctx, scheduler.Package(r.spec.ID),
		[]disdel.ActionPlan{{Task: inv.Task, Name: inv.Action, Limits: inv.Limits}})
	if err == nil {
		a.limits = inv.Limits
	}
	return err
}

// remadeFor is how long an action that was created again is assumed to exist: all its invocations find out at the
// same time.
const remadeFor = 5 * time.Second

// prepareAnew creates an action that has disappeared.
func (r *run) prepareAnew(ctx context.Context, inv disdel.Invocation) error {
	a := r.action(inv.Action)
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.c.cfg.Now().Sub(a.remade) < remadeFor {
		return nil
	}
	a.remade = r.c.cfg.Now()
	return r.make(ctx, a, inv)
}

func refused(inv disdel.Invocation, err error) RefusedEvent {
	why := disdel.AsError(err)
	outcome := scheduler.Refused(why)
	if errors.Is(err, context.Canceled) {
		outcome = disdel.OutcomeCanceled
	}
	return RefusedEvent{Activation: disdel.Activation{Invocation: inv, Outcome: outcome, Failure: why}}
}

const (
	// lookUpWithin limits one search for an update: the job can do without it.
	lookUpWithin = 2 * time.Second
	// recordAfter is how long the job waits for OpenWhisk's record once the update is in the store. Only the record has
	// the action's peak and usage. It comes when a healthy action ends.
	recordAfter = 3 * time.Second
)

// errDelivered ends the wait for the record of an activation whose update is in the store.
var errDelivered = errors.New("its update is in the store")

// lookUp searches for the update of an action whose heartbeats are missing, without blocking the loop. Once the
// update has been there for recordAfter, the wait for OpenWhisk's record ends.
func (r *run) lookUp(w *runningInvocation) {
	inv, stop, ctx := w.inv, w.stop, r.delays
	r.running.Go(func() {
		if _, there := r.delivered(ctx, inv); there && wait(ctx, recordAfter) {
			stop(errDelivered) // of no effect once the record has come
		}
	})
}

// delivered returns the result of an invocation's action if its update is complete in the store. The top aggregation
// does more than deliver an update, so it counts as not delivered; its retry finds out what is left to do.
func (r *run) delivered(ctx context.Context, inv disdel.Invocation) (result json.RawMessage, there bool) {
	id := disdel.UpdateID{Job: r.spec.ID, Round: inv.Round, Level: inv.Level, Member: inv.Member}
	if inv.Task != disdel.TaskTrain && (inv.Task != disdel.TaskAggregate || r.isTop(inv)) {
		return nil, false
	}
	ctx, stop := context.WithTimeout(ctx, lookUpWithin)
	defer stop()
	result, there, err := r.c.cfg.Store.Delivered(ctx, id)
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
// whole. Any other activation is unchanged.
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

// withoutRecord returns an activation whose update is in the store while OpenWhisk has no record of it.
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

// Probe measures how fast one worker of a planned job trains, and what it needs: it runs the worker's first batches
// for a few seconds on the platform, under the plan's limits, and discards the result. It returns the failure of a
// failed activation.
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
	_, sweep := c.cfg.Store.Sweep(quiet, spec.ID)
	remove := c.cfg.Invoker.Remove(quiet, pkg) // also one whose creation was interrupted
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
