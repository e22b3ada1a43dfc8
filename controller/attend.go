package controller

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

func (r *run) invoke(work context.Context, inv disdel.Invocation, after time.Duration) {
	r.pending++
	if r.phaseOpen[inv.Task]++; r.phaseOpen[inv.Task] == 1 {
		r.phaseStart[inv.Task] = r.c.cfg.Now()
	}
	work, stop := context.WithCancelCause(work)
	r.invoked(inv, r.c.cfg.Now().Add(after), stop)
	r.running.Go(func() {
		defer stop(nil)
		e := r.attend(work, inv, after)
		r.events <- e
	})
	r.observe(Notice{Invoked: &inv})
}

// alarm has the manager told when time has passed, unless the job ends or another alarm is set before.
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

// wait returns false if ctx ends before d has passed.
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

// attend makes one invocation and waits for its end.
func (r *run) attend(work context.Context, inv disdel.Invocation, after time.Duration) Event {
	if !wait(r.delays, after) {
		return refused(inv, context.Canceled)
	}
	if err := r.prepare(work, inv); err != nil {
		return refused(inv, err)
	}
	id, err := r.c.cfg.Invoker.Invoke(work, inv)
	if disdel.KindOf(err) == disdel.NotFound { // the platform was started again without what it had
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
	// the look has a bound of its own: a look for a missing record may end the wait at the same time
	return EndedEvent{Activation: r.rescued(context.WithoutCancel(work), a)}
}

// prepare creates the action of an invocation whose limits no action has yet.
func (r *run) prepare(ctx context.Context, inv disdel.Invocation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.prepared[inv.Action] == inv.Limits {
		return nil
	}
	return r.make(ctx, inv)
}

// make creates an action; the caller holds the lock.
func (r *run) make(ctx context.Context, inv disdel.Invocation) error {
	err := r.c.cfg.Invoker.Prepare(ctx, scheduler.Package(r.spec.ID),
		[]disdel.ActionPlan{{Task: inv.Task, Name: inv.Action, Limits: inv.Limits}})
	if err == nil {
		r.prepared[inv.Action] = inv.Limits
	}
	return err
}

// remadeFor is for how long an action that was created again is taken to be there: all its invocations find out
// together.
const remadeFor = 5 * time.Second

// prepareAnew creates an action that is gone.
func (r *run) prepareAnew(ctx context.Context, inv disdel.Invocation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.remade[inv.Action]; ok && r.c.cfg.Now().Sub(at) < remadeFor {
		return nil
	}
	r.remade[inv.Action] = r.c.cfg.Now()
	return r.make(ctx, inv)
}

func refused(inv disdel.Invocation, err error) RefusedEvent {
	why := disdel.AsError(err)
	outcome := scheduler.Refused(why)
	if errors.Is(err, context.Canceled) {
		outcome = disdel.OutcomeCanceled
	}
	return RefusedEvent{Activation: disdel.Activation{Invocation: inv, Outcome: outcome, Failure: why}}
}
