package main

import (
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

// estimator is what the command line asks for, else what the job file accepts.
func (j *jobStack) estimator(job disdel.Job, past []disdel.Record) (estimator.Estimator, error) {
	risk := job.Resources.Risk
	if j.cli.IsSet("risk") {
		if risk = j.cli.Float64("risk"); risk == 0 {
			risk = -1 // no limit is without risk: it is refused as one, and not taken for the default
		}
	}
	return estimator.New(j.cli.String("estimator"), risk, past)
}

// processors is what the actions of an embedded platform share, 0 of any other: there every action has one thread.
func (j *jobStack) processors() int {
	if j.cli.String("apihost") != "" {
		return 0
	}
	return min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
}
