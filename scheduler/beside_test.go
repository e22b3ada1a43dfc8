package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// besideInput is a job on two processors that is submitted with so many others.
func besideInput(t testing.TB, others int) PlanInput {
	t.Helper()
	in := planInput(t)
	in.Processors, in.Siblings = 2, others
	return in
}

// A job of a batch gets no worker and no thread that would take turns with those of others; what others of the batch
// want of the processors is in its forecast. Alone, or where few such jobs run at once, it is planned as ever.
func TestJobsOfABatchShareProcessors(t *testing.T) {
	for _, c := range []struct {
		name             string
		change           func(*PlanInput)
		workers, threads int
		busy             float64
	}{
		{"alone", func(in *PlanInput) { in.Siblings = 0 }, 2, 1, 0},
		{"one of eight, of which the pool holds five", func(*PlanInput) {}, 1, 1, 4},
		{"one of two", func(in *PlanInput) { in.Siblings = 1 }, 2, 1, 2},
		{"one of two, eight processors", func(in *PlanInput) { in.Siblings, in.Processors = 1, 8 }, 2, 2, 2},
		{"containers of a quarter of a processor", func(in *PlanInput) { in.Platform.Millicores = 250 }, 2, 1, 1.5},
		{"a pool for one at a time", func(in *PlanInput) { in.Platform.Pool = 700 * disdel.MB }, 2, 1, 0},
		{"nobody knows how many processors", func(in *PlanInput) { in.Processors = 0 }, 2, 1, 6},
		{"the file says how many workers", func(in *PlanInput) { in.Job.Distribution.Workers = 3 }, 3, 1, 6},
		{"other programs are busier", func(in *PlanInput) { in.Platform.Busy = 9 }, 1, 1, 9},
	} {
		in := besideInput(t, 7)
		c.change(&in)
		in.Threads = func(parallel int) int { return max(1, in.Processors/max(1, parallel)) }
		p, err := NewPlan(in)
		if err != nil || p.Workers != c.workers || p.Threads != c.threads || p.Platform.Busy != c.busy {
			t.Errorf("%s: %d workers of %d threads, %v busy, %v", c.name, p.Workers, p.Threads, p.Platform.Busy, err)
		}
		told := strings.Contains(strings.Join(p.Reasons, "\n"), "jobs of a batch share 2 processors")
		if told != (c.workers == 1) {
			t.Errorf("%s: %q", c.name, p.Reasons)
		}
	}
}

// Workers that the memory of an action asks for stay, however many jobs share the processors.
func TestAFairShareStillFitsItsMemory(t *testing.T) {
	in := besideInput(t, 0)
	in.Platform.MinMemory = disdel.MB
	free, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	train, _ := free.Action(disdel.TaskTrain)
	in.Job.Resources.MaxMemory = train.Estimate.Total - 8*disdel.MB
	rule, err := NewPlan(in)
	in.Siblings = 7
	shared, bad := NewPlan(in)
	if err != nil || bad != nil || rule.Workers <= 2 || shared.Workers < 2 || shared.Workers > rule.Workers {
		t.Errorf("%d workers, and in a batch %d; %v, %v", rule.Workers, shared.Workers, err, bad)
	}
	if a, _ := shared.Action(disdel.TaskTrain); a.Estimate.Total > in.Job.Resources.MaxMemory {
		t.Errorf("%v of at most %v", a.Estimate.Total, in.Job.Resources.MaxMemory)
	}
}

// A job that ran in a batch is no example for one that runs alone.
func TestABatchIsNoExampleForAJobAlone(t *testing.T) {
	in := besideInput(t, 0)
	in.History = []disdel.Record{{
		ID: "job-0", Status: disdel.StatusSucceeded, Data: in.Data, Plan: disdel.Plan{Workers: 1},
		Planning: &disdel.Planning{Siblings: 7},
	}}
	if p, err := NewPlan(in); err != nil || p.Workers != 2 {
		t.Errorf("alone: %d workers, %v", p.Workers, err)
	}
	in.Siblings = 7
	if p, err := NewPlan(in); err != nil || p.Workers != 1 || !strings.Contains(strings.Join(p.Reasons, "\n"), "job-0") {
		t.Errorf("in another batch like it: %d workers, %v", p.Workers, err)
	}
}

// A job without a forecast takes at most what its timeouts allow, and is back-filled by that.
func TestAJobWithoutAForecastTakesItsTimeouts(t *testing.T) {
	p, err := NewPlan(planInput(t))
	if err != nil {
		t.Fatal(err)
	}
	whole := CapacityOf(p.Platform)
	if d, _ := DemandOf("job-1", p, whole); d.Takes.High != disdel.Millis(15*time.Minute) {
		t.Errorf("five rounds of three tasks of a minute each: %v", d.Takes.High.Text())
	}
	p.Legs, p.Parallel = 3, 1
	if d, _ := DemandOf("job-1", p, whole); d.Takes.High != disdel.Millis(40*time.Minute) {
		t.Errorf("with three legs in two waves: %v", d.Takes.High.Text())
	}
	whole.Memory = 300 * disdel.MB
	if d, _ := DemandOf("job-1", p, whole); d.Keep != KeepRound || d.Takes.High != disdel.Millis(8*time.Minute) {
		t.Errorf("round by round: %v", d.Takes.High.Text())
	}
	p.Forecast = &disdel.Forecast{}
	p.Forecast.Duration.High = disdel.Millis(10 * time.Second)
	if d, _ := DemandOf("job-1", p, whole); d.Takes.High != disdel.Millis(2*time.Second) {
		t.Errorf("with a forecast: %v", d.Takes.High.Text())
	}
}
