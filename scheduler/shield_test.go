package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

// planOfWorkers is a plan of so many workers of so much memory, of which so many run at once.
func planOfWorkers(workers, parallel int, memory disdel.Bytes) disdel.Plan {
	return disdel.Plan{
		Workers: workers, Parallel: parallel,
		Platform: disdel.PlatformLimits{MaxMemory: disdel.GB, Pool: 2 * disdel.GB},
		Actions: []disdel.ActionPlan{{
			Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: memory},
			Estimate: disdel.Estimate{Total: 200 * disdel.MB},
		}},
	}
}

// Each thing that a plan must not be is refused, with its figures, and all that a job has to get over after a failure
// is not.
func TestTheShieldRefuses(t *testing.T) {
	now := planOfWorkers(2, 2, 256*disdel.MB)
	seen := []disdel.Observation{{
		Setting: disdel.Setting{Workers: 2}, Rows: 1000, Epoch: 1, Duration: disdel.Millis(time.Second), Cost: 10,
	}}
	for name, c := range map[string]struct {
		next    disdel.Plan
		budget  float64
		failure bool // whether it is refused after one, too
		says    string
	}{
		"below its estimate":      {planOfWorkers(2, 2, 128*disdel.MB), 0, true, "its estimate is 200 MB"},
		"above the maximum":       {planOfWorkers(1, 1, 1100*disdel.MB), 0, true, "the platform's maximum is"},
		"more than the pool":      {planOfWorkers(9, 9, 256*disdel.MB), 0, true, "the pool has"},
		"waves":                   {planOfWorkers(9, 8, 256*disdel.MB), 0, false, "8 at a time"},
		"past the budget":         {planOfWorkers(8, 8, 256*disdel.MB), 39, false, "39 of the budget are left"},
		"more memory, past it":    {planOfWorkers(2, 2, 512*disdel.MB), 19, false, "19 of the budget are left"},
		"within the budget":       {planOfWorkers(8, 8, 256*disdel.MB), 41, false, ""},
		"fewer, within the rest":  {planOfWorkers(1, 1, 256*disdel.MB), 10.1, false, ""},
		"as large as it may be":   {planOfWorkers(8, 8, 256*disdel.MB), 0, false, ""},
		"as much as is estimated": {planOfWorkers(2, 2, 200*disdel.MB), 0, false, ""},
	} {
		for _, b := range []disdel.Boundary{disdel.BoundaryEpoch, disdel.BoundaryFailure} {
			err := ValidateReplan(Input{Boundary: b, Seen: seen, Goal: Goal{Cost: c.budget}}, now, c.next)
			if c.says == "" || b == disdel.BoundaryFailure && !c.failure {
				if err != nil {
					t.Errorf("%s, %s: %v", name, b, err)
				}
				continue
			}
			if !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v", name, b, err)
			}
		}
	}
}

// Whatever a policy without sense asks for: what passes Ask, the planner and the shield is an action with room for its
// estimate, within the platform's and the job's bounds, all at once if all were at once before, and an epoch that the
// budget holds even if more workers are no faster.
func TestNoPolicyGetsPastTheShield(t *testing.T) {
	base := planInput(t)
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		in := base
		in.Job.Training.BatchSize = 1 << number("batch", 3, 6)
		in.Platform.MaxMemory = disdel.Bytes(number("max", 1, 8)) * 128 * disdel.MB
		in.Platform.Pool = disdel.Bytes(number("pool", 1, 24)) * 128 * disdel.MB
		in.Platform.Concurrent = number("concurrent", 0, 12)
		in.Job.Distribution.MaxWorkers = number("most", 0, 12)
		in.Job.Distribution.Workers = number("workers", 1, 4)
		now, err := NewPlan(in)
		if err != nil {
			return // a job that does not fit has no policy
		}
		sees := Input{
			Boundary: disdel.BoundaryEpoch, Now: now.AsStage(in.Job).Setting, Bounds: BoundsOf(in.Job, now),
			Seen: []disdel.Observation{{
				Setting: disdel.Setting{Workers: now.Workers}, Rows: in.Data.Train, Epoch: 1,
				Duration: disdel.Millis(time.Minute), Cost: float64(number("cost", 1, 50)),
			}},
			Goal: Goal{Cost: float64(number("left", 0, 200))},
		}
		said := disdel.Decision{Next: disdel.Setting{
			Workers: number("next", -3, 40), Memory: disdel.Bytes(number("memory", 0, 2048)) * disdel.MB,
			FanIn: number("fanIn", -1, 5), AverageEvery: number("every", -1, 9),
		}}
		d := DecideInBounds(answer(said), sees)
		in.Job, in.Decided = ApplySetting(in.Job, d.Next, 0), true
		next, err := NewPlan(in)
		if err != nil || ValidateReplan(sees, now, next) != nil {
			return // the job stays as it was
		}
		checkShielded(t, sees, now, next)
	})
}

func checkShielded(t *rapid.T, sees Input, now, next disdel.Plan) {
	p := next.Platform
	for _, a := range next.Actions {
		if a.Limits.Memory < a.Estimate.Total || a.Limits.Memory > p.MaxMemory {
			t.Fatalf("%s: %v of at most %v, and %v are estimated", a.Task, a.Limits.Memory, p.MaxMemory, a.Estimate.Total)
		}
	}
	train, _ := next.Action(disdel.TaskTrain)
	if all := disdel.Bytes(next.Parallel) * train.Limits.Memory; all > p.Pool {
		t.Fatalf("%d of %v in a pool of %v", next.Parallel, train.Limits.Memory, p.Pool)
	}
	if now.Parallel >= now.Workers && next.Parallel < next.Workers {
		t.Fatalf("%d of %d at once", next.Parallel, next.Workers)
	}
	if b := sees.Bounds; next.Workers < b.Least || next.Workers > b.Most {
		t.Fatalf("%d workers of %d to %d", next.Workers, b.Least, b.Most)
	}
	was, _ := now.Action(disdel.TaskTrain)
	worst := sees.Seen[0].Cost * float64(train.Limits.Memory) / float64(was.Limits.Memory) *
		max(1, float64(next.Workers)/float64(now.Workers))
	if left := sees.Goal.Cost; left > 0 && worst > left {
		t.Fatalf("%.3g GB-s of %.3g", worst, left)
	}
}

func ExampleValidateReplan() {
	action := func(memory disdel.Bytes) []disdel.ActionPlan {
		return []disdel.ActionPlan{{
			Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: memory}, Estimate: disdel.Estimate{Total: 300 * disdel.MB},
		}}
	}
	now := disdel.Plan{Workers: 2, Parallel: 2, Actions: action(300 * disdel.MB)}
	next := disdel.Plan{Workers: 4, Parallel: 4, Actions: action(256 * disdel.MB)}
	fmt.Println(ValidateReplan(Input{Boundary: disdel.BoundaryEpoch}, now, next))
	// Output: change setting: a train action would get 256 MB, and its estimate is 300 MB
}
