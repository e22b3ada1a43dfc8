package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
)

func estimateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "estimate", Usage: "show memory, plan and limits of a job without running it", ArgsUsage: "FILE",
		Description: "   disdel estimate examples/lenet-fashion.yaml\n" +
			"   disdel estimate job.yaml --layers --set training.batchSize=256",
		Flags: []cli.Flag{setFlag, actionFlag, backendFlag, &cli.BoolFlag{Name: "layers", Usage: "show every layer's share"}},
		Action: func(c *cli.Context) error {
			return withJob(c, u, func(ctx context.Context, s *stack, src source, faults []disdel.Fault) error {
				_, j, err := s.controller(ctx, nil)
				if err != nil {
					return err
				}
				r, err := src.resolve(ctx, u, j.data, faults)
				if err != nil {
					return err
				}
				p, err := j.plan(ctx, r)
				if err != nil {
					return err
				}
				out := estimateDocument{APIVersion: disdel.APIVersion, Job: r.Job, Data: r.Data, Plan: p.spec.Plan, Paper: paperEstimate(r, p.spec.Plan)}
				return u.show(out, func(w io.Writer) { printEstimate(w, out, c.Bool("layers")) })
			})
		},
	}
}

type estimateDocument struct {
	APIVersion string          `json:"apiVersion"`
	Job        disdel.Job      `json:"job"`
	Data       disdel.DataInfo `json:"data"`
	Plan       disdel.Plan     `json:"plan"`
	Paper      disdel.Estimate `json:"paper"` // of a train action by Eq. 1 to 5 as printed, to compare
}

// paperEstimate is what the paper's own equations say of a train action of the plan.
func paperEstimate(r controller.Resolved, p disdel.Plan) disdel.Estimate {
	return estimator.Paper(estimator.Input{
		Graph: r.Graph, Batch: r.Job.Training.BatchSize, Rows: p.Shards[0].Len(), SampleBytes: r.Data.SampleSize,
		Epochs: r.Job.Training.Epochs, Optimizer: r.Job.Training.Optimizer,
	})
}
