package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// ran is a job without a policy that has ended, whose rounds took so long with so many workers, s, beside an evaluation
// of one second. The first round's containers started cold.
func ran(in PlanInput, workers int, seconds ...float64) disdel.Record {
	r := disdel.Record{
		ID: disdel.JobID(fmt.Sprintf("job-of-%d", workers)), Status: disdel.StatusSucceeded, Job: in.Job, Data: in.Data,
		Plan: disdel.Plan{Workers: workers, Rounds: len(seconds), Epochs: 1},
	}
	r.Job.Distribution.Workers = workers
	for n, s := range seconds {
		took := disdel.Millis(s * 1e9)
		r.Rounds = append(r.Rounds, disdel.Round{Round: n, Duration: took + disdel.Millis(time.Second)})
		for w := range workers {
			r.Activations = append(r.Activations, disdel.Activation{
				Invocation: disdel.Invocation{Task: disdel.TaskTrain, Round: n, Member: w}, Outcome: disdel.OutcomeSuccess,
				Duration: took, Cold: n == 0, InitTime: 1,
			})
		}
		r.Activations = append(r.Activations, disdel.Activation{
			Invocation: disdel.Invocation{Task: disdel.TaskEvaluate, Round: n}, Outcome: disdel.OutcomeSuccess,
			WaitTime: disdel.Millis(200 * time.Millisecond), Duration: disdel.Millis(800 * time.Millisecond),
		})
	}
	return r
}

// A job that says neither workers nor a policy begins with the fewest that earlier jobs were as fast with, whatever
// their policy was, and stays there; what is said goes before what is known.
func TestTheDefaultGoesByWhatEarlierJobsTook(t *testing.T) {
	base := planInput(t)
	base.Job.Training.Epochs = 3
	one, two, four := ran(base, 1, 99, 60, 60), ran(base, 2, 99, 31, 31), ran(base, 4, 99, 30, 30)
	cases := map[string]struct {
		past []disdel.Record
		set  func(in *PlanInput)
		want int
		why  string
	}{
		"nothing is known":            {nil, nil, 2, ""},
		"one number":                  {[]disdel.Record{four}, nil, 2, ""},
		"two, of which both are fast": {[]disdel.Record{four, two}, nil, 2, "1,000 rows take 0.52 s with 2, 0.50 s with 4"},
		"two, of which one is":        {[]disdel.Record{one, four}, nil, 4, "in earlier jobs: 4 workers"},
		"all":                         {[]disdel.Record{one, two, four}, nil, 2, "in earlier jobs"},
		"the job file says": {
			[]disdel.Record{one, four}, func(in *PlanInput) { in.Job.Distribution.Workers = 3 }, 3, "job file",
		},
		"a bound": {
			[]disdel.Record{one, four}, func(in *PlanInput) { in.Job.Distribution.MaxWorkers = 3 }, 3, "by their law",
		},
		"it did not succeed": {
			[]disdel.Record{one, four},
			func(in *PlanInput) { in.History[1].Status = disdel.StatusFailed }, 2, "",
		},
		"another batch": {
			[]disdel.Record{one, four}, func(in *PlanInput) { in.Job.Training.BatchSize = 32 }, 2, "",
		},
		"of a batch of jobs": {
			[]disdel.Record{one, four},
			func(in *PlanInput) { in.History[0].Planning = &disdel.Planning{Siblings: 3} }, 2, "",
		},
		"one of a batch of jobs": {[]disdel.Record{one, four}, func(in *PlanInput) { in.Siblings = 3 }, 2, ""},
		"there is time": {
			[]disdel.Record{one, four},
			func(in *PlanInput) { in.Job.Reliability.Deadline = disdel.Duration(time.Hour) }, 1, "in earlier jobs: 1 worker",
		},
	}
	for name, c := range cases {
		in := base
		in.History = append([]disdel.Record(nil), c.past...)
		if c.set != nil {
			c.set(&in)
		}
		p, err := NewPlan(in)
		if err != nil || p.Workers != c.want || !strings.Contains(strings.Join(p.Reasons, "\n"), c.why) {
			t.Errorf("%s: %d workers, want %d; %v: %q", name, p.Workers, c.want, err, p.Reasons)
		}
	}
}
