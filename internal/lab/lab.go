// Package lab is what disdel lab does with job files: it asks a service, of this process or of a server, what each job
// would take under each policy, and, where that is wanted, runs it under each, one after another. It prints nothing and
// decides nothing.
package lab

import (
	"context"
	"errors"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/service"
)

// Lab and Trial are what a simulation has of the same names.
type (
	Lab   = simulate.Lab
	Trial = simulate.Trial
)

// Simulated is what jobs would take under the policies, by the law of their forecasts. It returns NotFound, with the
// job, where nothing is known of its speed.
func Simulated(ctx context.Context, at client.Jobs, jobs []service.Request, policies []string) (Lab, error) {
	var out Lab
	for _, req := range jobs {
		found, err := at.Estimate(ctx, req, service.Questions{Policies: policies})
		if err != nil {
			return out, err
		}
		if found.Policies == nil {
			return out, found.Refused
		}
		out.Add(*found.Policies)
	}
	return out, nil
}

// Run runs each job under each policy, one after another, static first: what the others are held against. Each is told
// of once it has ended. One that fails is a trial too; a job that cannot be submitted ends it.
func Run(ctx context.Context, at client.Jobs, jobs []service.Request, policies []string,
	ended func(Trial),
) ([]Trial, error) {
	var out []Trial
	for _, req := range jobs {
		for _, name := range inOrder(policies) {
			under := req
			under.Job.Distribution.Policy, under.Key = name, ""
			run, err := at.Submit(ctx, under)
			if err != nil {
				return out, err
			}
			stop := context.AfterFunc(ctx, func() { run.Cancel(context.Cause(ctx)) })
			rec, err := run.Wait(context.WithoutCancel(ctx))
			stop()
			if err != nil {
				return out, err
			}
			t := trial(&rec, name)
			ended(t)
			if out = append(out, t); ctx.Err() != nil {
				return out, errors.Join(context.Cause(ctx), ctx.Err())
			}
		}
	}
	return out, nil
}

// inOrder is the policies with static before the others.
func inOrder(policies []string) []string {
	out := []string{disdel.PolicyStatic}
	for _, name := range policies {
		if name != disdel.PolicyStatic {
			out = append(out, name)
		}
	}
	return out
}

// trial is a record as the lab has it.
func trial(r *disdel.Record, policy string) Trial {
	t := Trial{
		Job: disdel.JobID(r.Job.Metadata.Name), Policy: policy, Status: r.Status, Took: r.Phases.Total, CostGBs: r.ByUse(),
	}
	if r.Failure != nil {
		t.Why = r.Failure.Msg
	}
	var at disdel.Millis
	for _, round := range r.Rounds {
		stage := r.StageOf(&disdel.Invocation{Stage: round.Stage})
		if n := len(t.Course); n == 0 || t.Course[n-1].Workers != stage.Workers {
			t.Course = append(t.Course, simulate.WorkerChange{At: at, Epoch: r.EpochsAfter(round), Workers: stage.Workers})
		}
		at += round.Duration
		t.Loss = round.TrainLoss
	}
	return t
}
