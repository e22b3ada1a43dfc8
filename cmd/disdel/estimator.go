package main

import (
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// estimatorFlags choose how memory is estimated.
var estimatorFlags = []cli.Flag{
	&cli.StringFlag{Name: "estimator", Usage: "`METHOD` that estimates memory: planned, learned (planned, corrected by earlier jobs' peaks) or paper (its Eq. 1-5, to compare)", Value: estimator.MethodPlanned},
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
	return estimator.New(backends.Standard(nil), j.cli.String("estimator"), risk, past)
}

// processors is what the job's actions share: those of this machine for an embedded platform; those that a platform of disdel
// tells of, or that containers of the newest job there have found, for another. 0 where neither is known.
func (j *jobStack) processors(past []disdel.Record) int {
	host := j.cli.String("apihost")
	if host == "" {
		return min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	}
	if live := j.live(); live != nil && live.Processors > 0 {
		return live.Processors
	}
	for i := range past {
		if p := past[i].Plan.Platform; p.Host == host && p.Found > 0 {
			return p.Found
		}
	}
	return 0
}

// unknown says what is taken for granted of a platform that does not tell of itself, a sentence each.
func (j *jobStack) unknown(processors int) (threads string, notes []string) {
	if j.cli.String("apihost") == "" {
		return "", nil
	}
	if processors == 0 {
		threads = "how many processors the platform has is not known before a first job has run there; --set resources.threads=N"
		notes = append(notes, "note   one thread a train action: "+threads)
	}
	if j.pool == 0 {
		notes = append(notes, "note   the memory of the platform's pool is not known: an action larger than that would wait for ever; --pool-memory SIZE")
	}
	return threads, notes
}
