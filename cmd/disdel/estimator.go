package main

import (
	"context"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
)

// estimatorFlags choose how memory is estimated.
var estimatorFlags = []cli.Flag{
	&cli.StringFlag{Name: "estimator", Usage: "`METHOD` that estimates memory: planned, learned (planned, corrected by earlier jobs' peaks) or paper (Eq. 1-5 as printed)", Value: estimator.MethodPlanned},
	&cli.Float64Flag{Name: "risk", Usage: "accepted `CHANCE` that an action is ended for memory, at most 0.05 (0.001 where the job file says nothing)"},
}

// recentJobs bounds how many records learned looks at.
const recentJobs = 500

// estimator is what the command line asks for, else what the job file accepts.
func (j *jobStack) estimator(ctx context.Context, job disdel.Job) (estimator.Estimator, error) {
	risk := job.Resources.Risk
	if j.cli.IsSet("risk") {
		risk = j.cli.Float64("risk")
	}
	method := j.cli.String("estimator")
	var past []disdel.Record
	if method == estimator.MethodLearned {
		var err error
		if past, err = j.records.Recent(ctx, recentJobs); err != nil {
			return estimator.Estimator{}, err
		}
	}
	return estimator.New(method, risk, past)
}

// processors is what the actions of an embedded platform share, 0 of any other: there every action has one thread.
func (j *jobStack) processors() int {
	if j.cli.String("apihost") != "" {
		return 0
	}
	return min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
}
