package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// earlier is a record of a job of planInput's kind whose train actions ended so, at so much memory, one after another.
func earlier(in PlanInput, ends ...disdel.Activation) disdel.Record {
	r := disdel.Record{ID: "job-0", Status: disdel.StatusFailed, Job: in.Job, Data: in.Data}
	r.Plan.Workers = 2
	for _, a := range ends {
		a.Task = disdel.TaskTrain
		r.Activations = append(r.Activations, a)
	}
	return r
}

func end(o disdel.Outcome, mb int, timeout time.Duration) disdel.Activation {
	a := disdel.Activation{Outcome: o}
	a.Limits = disdel.Limits{Memory: disdel.Bytes(mb) * disdel.MB, Timeout: disdel.Millis(timeout)}
	return a
}

// What an earlier job of the same kind failed for want of, the next one has from the start (DiSDeL III-B.2c: what was
// learned is saved for the next job of this kind), and no more than passed.
func TestAPlanStartsFromTheLimitsThatPassed(t *testing.T) {
	const (
		killed = disdel.OutcomeOutOfMemory
		late   = disdel.OutcomeTimeout
		passed = disdel.OutcomeSuccess
	)
	in := planInput(t)
	in.Job.Distribution.Workers = 2
	own, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := own.Action(disdel.TaskTrain)
	m := train.Limits.Memory.MB()
	for name, c := range map[string]struct {
		ends   []disdel.Activation
		other  func(*disdel.Record)
		change func(*PlanInput)
		want   disdel.Limits
	}{
		"nothing went wrong": {[]disdel.Activation{end(passed, m+100, time.Minute)}, nil, nil, train.Limits},
		"killed, then passed": {
			[]disdel.Activation{
				end(killed, m, time.Minute), end(passed, m+40, time.Minute),
				end(passed, m+90, time.Minute),
			},
			nil, nil,
			disdel.Limits{Memory: train.Limits.Memory + 40*disdel.MB, Timeout: train.Limits.Timeout},
		},
		"killed, never passed": {
			[]disdel.Activation{end(killed, 200, time.Minute)},
			nil, nil,
			disdel.Limits{Memory: 300 * disdel.MB, Timeout: train.Limits.Timeout},
		},
		"killed at the ceiling": {
			[]disdel.Activation{end(killed, 512, time.Minute)},
			nil, nil,
			disdel.Limits{Memory: 512 * disdel.MB, Timeout: train.Limits.Timeout},
		},
		"late, then passed": {
			[]disdel.Activation{end(late, m, time.Minute), end(passed, m, 100*time.Second)},
			nil, nil,
			disdel.Limits{Memory: train.Limits.Memory, Timeout: disdel.Millis(100 * time.Second)},
		},
		"late, never passed": {
			[]disdel.Activation{end(late, m, time.Minute)},
			nil, nil,
			disdel.Limits{Memory: train.Limits.Memory, Timeout: disdel.Millis(2 * time.Minute)},
		},
		"of another number": {
			[]disdel.Activation{end(killed, 200, time.Minute)},
			func(r *disdel.Record) { r.Plan.Workers = 1 }, nil, train.Limits,
		},
		"of another batch": {
			[]disdel.Activation{end(killed, 200, time.Minute)},
			func(r *disdel.Record) { r.Job.Training.BatchSize *= 2 }, nil, train.Limits,
		},
		"of other data": {
			[]disdel.Activation{end(killed, 200, time.Minute)},
			func(r *disdel.Record) { r.Data.Checksum = "d" }, nil, train.Limits,
		},
		"what the user says is done": {
			[]disdel.Activation{end(killed, 200, 2*time.Minute), end(late, 200, 2*time.Minute)},
			nil, func(in *PlanInput) {
				in.Job.Resources.Memory, in.Job.Resources.Timeout = 180*disdel.MB, disdel.Duration(time.Minute)
			},
			disdel.Limits{Memory: 180 * disdel.MB, Timeout: disdel.Millis(time.Minute)},
		},
	} {
		now, r := in, earlier(in, c.ends...)
		if c.other != nil {
			c.other(&r)
		}
		if c.change != nil {
			c.change(&now)
		}
		now.History = []disdel.Record{r}
		p, err := NewPlan(now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, _ := p.Action(disdel.TaskTrain)
		if got.Limits != c.want {
			t.Errorf("%s: %v, want %v", name, got.Limits, c.want)
		}
		raised := c.change == nil && c.want != train.Limits
		if why := strings.Join(p.Reasons, "\n"); strings.Contains(why, "too little for job-0") != raised {
			t.Errorf("%s: reasons are\n%s", name, why)
		}
		if a, _ := p.Action(disdel.TaskAggregate); a.Limits.Memory != 128*disdel.MB {
			t.Errorf("%s: the aggregate action has %v", name, a.Limits)
		}
	}
}
