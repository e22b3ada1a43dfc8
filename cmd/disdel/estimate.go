package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/scheduler"
)

func estimateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "estimate", Usage: "show memory, plan and limits of a job without running it", ArgsUsage: "FILE",
		Description: "   disdel estimate examples/lenet-fashion.yaml\n" +
			"   disdel estimate job.yaml --explain --set training.batchSize=256\n" +
			"   disdel estimate job.yaml --max-memory 256MB\n" +
			"   disdel estimate job.yaml --what-if workers=1..8,batch=32,64,128 --plot job.svg",
		Flags: slices.Concat([]cli.Flag{setFlag, actionFlag, backendFlag, probeFlag}, estimatorFlags, questionFlags),
		Action: func(c *cli.Context) error {
			q, err := readQuestions(c)
			if err != nil {
				return err
			}
			return withJob(c, u, func(ctx context.Context, s *stack, src source, faults []disdel.Fault) error {
				run, j, err := s.controller(ctx, nil)
				if err != nil {
					return err
				}
				r, err := src.resolve(ctx, u, j.data, faults)
				if err != nil {
					return err
				}
				in, err := j.input(ctx, u, run, newJobID(), r)
				if err != nil {
					return err
				}
				return estimate(u, in, src.name, q)
			})
		},
	}
}

// estimateDocument is what estimate says, as JSON. A job that cannot be planned has no plan; why is in Refused.
type estimateDocument struct {
	APIVersion string           `json:"apiVersion"`
	Job        disdel.Job       `json:"job"`
	Data       disdel.DataInfo  `json:"data"`
	Plan       *disdel.Plan     `json:"plan,omitempty"`
	Refused    *disdel.Error    `json:"refused,omitempty"`
	Paper      *disdel.Estimate `json:"paper,omitempty"` // of a train action by Eq. 1 to 5, to compare
	Explain    *explanation     `json:"explain,omitempty"`
	Fit        *scheduler.Fit   `json:"fit,omitempty"`
	WhatIf     *whatIf          `json:"whatIf,omitempty"`
}

// estimate answers the questions about a job. A job that cannot be planned can be asked about all the same; that it
// cannot is the error then, unless what was asked for are other batches and workers.
func estimate(u *ui, in scheduler.PlanInput, name string, q questions) error {
	out := estimateDocument{APIVersion: disdel.APIVersion, Job: in.Job, Data: in.Data}
	p, refused := scheduler.NewPlan(in)
	switch {
	case refused == nil:
		out.Plan, out.Paper = &p, paperEstimate(in, p)
	case !q.any() || !errors.Is(refused, disdel.OverLimit):
		return refused
	default:
		out.Refused = disdel.AsError(refused)
	}
	var err error
	if q.explain {
		if out.Explain, err = explain(in, out.Plan); err != nil {
			return err
		}
	}
	if q.maxMemory > 0 {
		f := scheduler.FitMemory(in, q.maxMemory, cmp.Or(p.Workers, in.Job.Distribution.Workers))
		out.Fit = &f
	}
	if q.grid != nil {
		ceiling, whose := scheduler.Ceiling(in)
		out.WhatIf = &whatIf{Against: q.against, Ceiling: ceiling, Whose: whose, Cells: scheduler.WhatIf(in, *q.grid, q.against)}
	}
	if err := u.show(out, func(w io.Writer) { printAnswers(w, out, name, q) }); err != nil {
		return err
	}
	if q.plot != "" {
		if err := writePlot(q, out); err != nil {
			return err
		}
		u.say("wrote %s", clean(q.plot))
	}
	switch {
	case out.Fit != nil && !out.Fit.Fits():
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "fit job", Msg: fmt.Sprintf("nothing of this job fits %v: %s takes %v even with one row a batch", q.maxMemory, out.Fit.LeastTask, out.Fit.Least),
			Hint: fmt.Sprintf("--max-memory %dMB, or a smaller network", out.Fit.Least.MB()),
		}
	case out.Explain != nil:
		return refused
	default:
		return nil
	}
}

// paperEstimate is what the paper's own equations say of a train action of the plan.
func paperEstimate(in scheduler.PlanInput, p disdel.Plan) *disdel.Estimate {
	e := estimator.Paper(estimator.Input{
		Graph: in.Graph, Batch: in.Job.Training.BatchSize, Rows: p.Shards[0].Len(), SampleBytes: in.Data.SampleSize,
		Epochs: in.Job.Training.Epochs, Optimizer: in.Job.Training.Optimizer,
	})
	return &e
}
