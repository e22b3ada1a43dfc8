package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/scheduler"
)

var probeFlag = &cli.BoolFlag{Name: "probe", Usage: "where no earlier job tells how long it takes, train for two seconds to find out"}

// planned is a job ready to run.
type planned struct {
	spec controller.Spec
	data disdel.DataInfo
}

// pastRecords bounds how many earlier jobs a plan looks at.
const pastRecords = 200

// planInput is what a resolved job's plan is made of on the platform at hand.
func (j *jobStack) planInput(ctx context.Context, id disdel.JobID, r controller.Resolved) (in scheduler.PlanInput, err error) {
	limits, err := j.limits(ctx)
	if err != nil {
		return in, err
	}
	if err := controller.CheckPlatform(r.Job, limits); err != nil {
		return in, err
	}
	similar, err := j.records.Similar(ctx, r.Job)
	if err != nil {
		return in, err
	}
	past, err := j.records.Recent(ctx, pastRecords)
	if err != nil {
		return in, err
	}
	past = together(past, similar)
	if len(past) > 0 && j.cli.String("apihost") == "" { // without a past there is no forecast to correct
		limits.Busy = platform.Busy(ctx)
	}
	by, err := j.estimator(r.Job, past)
	processors := j.processors(past)
	unknown, _ := j.unknown(processors)
	return scheduler.PlanInput{
		ID: id, Job: r.Job, Graph: r.Graph, Data: r.Data, Platform: limits, History: similar, Past: past,
		Estimator: by, Processors: processors, Unknown: unknown,
		Threads: func(parallel int) int { return threads(processors, parallel) },
	}, err
}

// planned makes the plan of a resolved job, and all that a controller needs to run it.
func (j *jobStack) planned(r controller.Resolved, in scheduler.PlanInput) (planned, error) {
	p, err := scheduler.NewPlan(in)
	if err != nil {
		return planned{}, err
	}
	return planned{data: r.Data, spec: controller.Spec{
		ID: in.ID, Job: r.Job, Network: r.Network, Plan: p, Store: j.shared, Threads: p.Threads,
		Data:   disdel.DataRef{URL: j.storage("datasets"), Name: r.Data.Name, Checksum: r.Data.Checksum, Split: r.Job.Data.Split},
		Models: j.storage("models"), Output: modelstore.WeightsPath(r.Job.Output.Model, in.ID),
		Replan: func(job disdel.Job) (disdel.Plan, error) {
			in.Job, in.Decided = job, true
			return scheduler.NewPlan(in)
		},
	}}, nil
}

// input is planInput after a look at how fast the job trains, if the user allows one and no earlier job tells.
func (j *jobStack) input(ctx context.Context, u *ui, c *controller.Controller, id disdel.JobID, r controller.Resolved) (scheduler.PlanInput, error) {
	in, err := j.planInput(ctx, id, r)
	if err != nil {
		return in, err
	}
	_, notes := j.unknown(in.Processors)
	for _, note := range notes {
		u.say("%s", note)
	}
	if !j.cli.Bool("probe") {
		return in, nil
	}
	p, err := j.planned(r, in)
	if err != nil || p.spec.Plan.Timeouts == "history" {
		return in, err
	}
	rate, err := c.Probe(ctx, p.spec)
	if err != nil {
		return in, err
	}
	u.say("probe  %.0f rows a second, ready after %v, peak %v", rate.RowsPerSecond, rate.StartUp, rate.Peak)
	in.Rate = &rate
	return in, nil
}

// together is the records of both lists, newest first, each once: those of the same kind may be older than the newest of any.
func together(recent, similar []disdel.Record) []disdel.Record {
	out := slices.Concat(recent, similar)
	slices.SortStableFunc(out, func(a, b disdel.Record) int { return cmp.Compare(b.ID, a.ID) })
	return slices.CompactFunc(out, func(a, b disdel.Record) bool { return a.ID == b.ID })
}
