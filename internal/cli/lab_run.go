package cli

import (
	"context"
	"errors"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/service"
)

// simulatePolicies asks the service what the jobs would take under each policy. It returns NotFound, with the job,
// if nothing is known of its speed.
func simulatePolicies(ctx context.Context, at client.Jobs, jobs []service.Request, policies []string) (simulate.Lab, error) {
	var out simulate.Lab
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

// runUnderPolicies runs each job under each policy, one after another, static first: what the others are held against. Each is told
// of once it has ended. One that fails is a trialOf too; a job that cannot be submitted ends it.
func runUnderPolicies(ctx context.Context, at client.Jobs, jobs []service.Request, policies []string,
	ended func(simulate.Trial),
) ([]simulate.Trial, error) {
	var out []simulate.Trial
	for _, req := range jobs {
		for _, name := range staticFirst(policies) {
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
			t := trialOf(&rec, name)
			ended(t)
			if out = append(out, t); ctx.Err() != nil {
				return out, errors.Join(context.Cause(ctx), ctx.Err())
			}
		}
	}
	return out, nil
}

// staticFirst returns the policies with static before the others.
func staticFirst(policies []string) []string {
	out := []string{disdel.PolicyStatic}
	for _, name := range policies {
		if name != disdel.PolicyStatic {
			out = append(out, name)
		}
	}
	return out
}

// trialOf is the trial that a record shows.
func trialOf(r *disdel.Record, policy string) simulate.Trial {
	t := simulate.Trial{
		Job: disdel.JobID(r.Job.Metadata.Name), Policy: policy, Status: r.Status, Took: r.Phases.Total, CostGBs: r.ByUse(),
	}
	if r.Failure != nil {
		t.Why = r.Failure.Msg
	}
	var at disdel.Millis
	for _, round := range r.Rounds {
		stage := r.StageOf(&disdel.Invocation{Stage: round.Stage})
		if n := len(t.Course); n == 0 || t.Course[n-1].Workers != stage.Workers {
			t.Course = append(t.Course, simulate.Crew{At: at, Epoch: r.EpochsAfter(round), Workers: stage.Workers})
		}
		at += round.Duration
		t.Loss = round.TrainLoss
	}
	return t
}
