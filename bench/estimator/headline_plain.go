package main

import (
	"context"
	"fmt"

	"github.com/disdel/disdel"
	shared "github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// plain is an executor without legs: an action that stops before its timeout with its state stored counts as out of
// time. It ends up to a tenth earlier than it would have been killed, in favour of the limits that are compared.
type plain struct{ *executor.Executor }

func (p plain) Wait(ctx context.Context, inv disdel.Invocation, id disdel.ActivationID) (disdel.Activation, error) {
	a, err := p.Executor.Wait(ctx, inv, id)
	return cutOff(a), err
}

func cutOff(a disdel.Activation) disdel.Activation {
	if a.Outcome == disdel.OutcomePaused {
		a.Outcome = disdel.OutcomeTimeout
		a.Failure = &disdel.Error{
			Kind: disdel.Timeout, Op: a.Invocation.ID, Activation: a.ID,
			Msg: fmt.Sprintf("it did not end within its timeout of %v", a.Limits.Timeout),
		}
	}
	return a
}

// plainly runs a job once with the same limits on all its actions. It is the same code on the same engine, data and
// workers, without what disdel knows: no estimate and no retries.
func (r *rig) plainly(ctx context.Context, t trial, l disdel.Limits) (*disdel.Record, error) {
	job, plan, err := r.plan(ctx, t, estimator.Planned(backends.Standard(nil)))
	if err != nil {
		return nil, err
	}
	job.Job = withoutRemedies(job.Job)
	return r.execute(ctx, plain{r.run}, r.spec(t, job, atLimits(plan, l)), job.Data)
}

// withoutRemedies is the job such that its first failure is its end.
func withoutRemedies(job disdel.Job) disdel.Job {
	job.Reliability.Retries.Limit, job.Reliability.Retries.PerWorker = 0, 0
	return job
}

// atLimits is the plan with the same limits for all actions and with no estimates to keep to.
func atLimits(plan disdel.Plan, l disdel.Limits) disdel.Plan {
	plan.Legs, plan.Forecast = 1, nil
	actions := make([]disdel.ActionPlan, len(plan.Actions))
	for i, a := range plan.Actions {
		actions[i] = disdel.ActionPlan{Task: a.Task, Name: a.Name, Limits: l}
	}
	plan.Actions = actions
	return plan
}

// tally is what became of one job in one way.
type tally struct {
	passed      bool
	attempts    int // that failed: runs of the job, or tries again within one
	activations int // that failed
	wall        float64
	gbs         float64
	limits      disdel.Limits // of the last run's train action, as planned
	lost        float64       // GB-s of failed attempts
	why         []string      // of each failure
}

// tallyOf counts the runs of one job, the last of which decides. All that a failed run held is lost; of a run that
// passed, what its failed activations held.
func tallyOf(runs ...disdel.Record) tally {
	var t tally
	for _, r := range runs {
		losses, spent := estimator.LossesOf(r.Activations), shared.Spent(r.Activations)
		t.passed = r.Status == disdel.StatusSucceeded
		t.activations += losses.Attempts
		train, _ := r.Plan.Action(disdel.TaskTrain)
		t.limits = train.Limits
		t.wall += wall(&r)
		t.gbs += spent
		switch {
		case t.passed:
			t.attempts += losses.Attempts
			t.lost += losses.Cost
		default:
			t.attempts++
			t.lost += spent
		}
		for _, a := range r.Activations {
			if a.Outcome.Failed() && a.Failure != nil {
				t.why = append(t.why, fmt.Sprintf("%v at %v, %v: %v, %s", a.Invocation.ID, a.Limits.Memory, a.Limits.Timeout,
					a.Outcome, a.Failure.Error()))
			}
		}
	}
	return t
}
