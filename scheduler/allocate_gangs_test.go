package scheduler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// A decision about n jobs, of which half hold something, of n/20 tenants, takes at most a few times n log n steps,
// whether their ends are known or not. Steps are counted, so that no machine's speed matters.
func TestADecisionTakesNLogNSteps(t *testing.T) {
	for _, known := range []bool{true, false} {
		for _, n := range []int{1_000, 10_000, 100_000} {
			d := gangDecision{
				Gangs: Gangs{Reserve: defaultReserve, Look: defaultLook}, now: 1, free: Capacity{Memory: 3 * disdel.MB},
				jobs: crowd(n, known), accounts: map[string]*account{}, unused: defaultUnused,
			}
			d.total = d.free
			d.read()
			d.decide()
			per := float64(d.steps) / (float64(n) * math.Log2(float64(n)))
			t.Logf("%d jobs, ends known: %t: %d steps, %.2f of n log n, %d in the profile, %d decided", n, known, d.steps, per,
				len(d.profile.steps), len(d.grants))
			if per > 3 || d.steps < n/2 {
				t.Errorf("%d jobs take %d steps", n, d.steps)
			}
		}
	}
}

// crowd is n jobs, the first half of which hold something.
func crowd(n int, known bool) []Demand {
	lot := rand.New(rand.NewPCG(uint64(n), 3))
	out := make([]Demand, n)
	for i := range out {
		gang := Gang{{Task: disdel.TaskTrain, Count: 1 + lot.IntN(8), Each: Capacity{Memory: disdel.MB}}}
		out[i] = Demand{
			Job: disdel.JobID(fmt.Sprint(i)), Tenant: fmt.Sprint(lot.IntN(1 + n/20)), Arrived: disdel.Millis(lot.IntN(n)),
			Gang: gang,
		}
		takes := disdel.Millis(1+lot.IntN(100_000)) * disdel.Millis(time.Millisecond)
		if known {
			out[i].Takes.High = takes
		}
		if i < n/2 {
			g := granted(0, &out[i], gang, 0)
			out[i].Held = &g
		}
	}
	return out
}

// A profile says what will be free, and reservations take it away.
func TestProfilesSayWhatWillBeFree(t *testing.T) {
	room := func(n int) Capacity { return Capacity{Memory: disdel.Bytes(n)} }
	held := func(n int, until disdel.Millis) Demand {
		return Demand{Held: &Grant{Room: room(n), Until: until}, capacity: room(n), until: until}
	}
	var p profile
	p.build(10, room(1), []Demand{held(2, 30), held(3, 20), held(4, never), held(1, 30)}, nil)
	for _, c := range []struct {
		needs int
		takes disdel.Millis
		from  disdel.Millis
		ok    bool
	}{
		{1, 5, 10, true},
		{2, 0, 20, true},
		{4, 100, 20, true},
		{5, 1, 30, true},
		{7, 1, 30, true},
		{8, 1, 30, false}, // one of which nobody knows has the rest
	} {
		if from, ok, _ := p.earliest(room(c.needs), c.takes); ok != c.ok || ok && from != c.from {
			t.Errorf("%d for %v: from %v (%t), want %v (%t)", c.needs, c.takes, from, ok, c.from, c.ok)
		}
	}
	p.take(25, 35, room(4)) // 1 from 10 on, 4 from 20, 0 from 25, 3 from 30, 7 from 35
	for _, c := range []struct {
		needs int
		takes disdel.Millis
		from  disdel.Millis
	}{{1, 15, 10}, {1, 16, 30}, {4, 5, 20}, {4, 6, 35}, {3, 100, 30}, {1, 0, 30}} {
		if from, ok, _ := p.earliest(room(c.needs), c.takes); !ok || from != c.from {
			t.Errorf("with a reservation, %d for %v: from %v (%t), want %v", c.needs, c.takes, from, ok, c.from)
		}
	}
	if ok, _ := p.holds(10, 25, room(1)); !ok {
		t.Error("1 is free from 10 to 25")
	}
	if ok, _ := p.holds(10, 26, room(1)); ok {
		t.Error("nothing is free at 25")
	}
}

// A job keeps its containers for its life where the platform holds them all, for a round where it holds those of a
// round, and one wave's where it holds no more. Its plan says so.
func TestDemandsArePlansContainers(t *testing.T) {
	in := planInput(t)
	in.Job.Distribution.Workers = 4
	plan, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	plan.Forecast = &disdel.Forecast{
		Duration: disdel.Interval[disdel.Millis]{Low: 50, Likely: 60, High: 101}, Cost: disdel.Interval[float64]{Likely: 7},
	}
	train, _ := plan.Action(disdel.TaskTrain)
	aggregate, _ := plan.Action(disdel.TaskAggregate)
	evaluate, _ := plan.Action(disdel.TaskEvaluate)
	round := 4*train.Limits.Memory + aggregate.Limits.Memory
	for _, c := range []struct {
		pool  disdel.Bytes
		needs disdel.Bytes
		keep  Keep
		takes disdel.Millis
		says  string
	}{
		{round + evaluate.Limits.Memory, round + evaluate.Limits.Memory, KeepLife, 101, "are kept for the job's life"},
		{round + evaluate.Limits.Memory - 1, round, KeepRound, 21, "are granted round by round: the job's life would take"},
		{round - 1, 4 * train.Limits.Memory, KeepRound, 21, "shared by its tasks, which start cold"},
	} {
		whole := CapacityOf(disdel.PlatformLimits{Pool: c.pool})
		d, why := DemandOf("job-1", plan, whole)
		if d.Gang.Room().Memory != c.needs || d.Keep != c.keep || d.Takes.High != c.takes || d.Cost != 7 ||
			!containsAll(why, "containers: 4 train of", c.says) {
			t.Errorf("a pool of %v: %v, keep %v, %v: %s", c.pool, d.Gang, d.Keep, d.Takes, why)
		}
		if err := CheckFits(whole, d); err != nil {
			t.Error(err)
		}
	}
}

func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// Whatever is planned for a platform fits it, however many train actions run at once, threads and all.
func TestPlansFitTheirPlatform(t *testing.T) {
	for workers := 1; workers <= 12; workers++ {
		for _, pool := range []disdel.Bytes{512 * disdel.MB, disdel.GB, 4 * disdel.GB} {
			for _, processors := range []int{0, 1, 2, 8} {
				in := planInput(t)
				in.Job.Distribution.Workers, in.Processors = workers, processors
				in.Platform.Pool, in.Platform.Concurrent = pool, 1+workers%5
				in.Threads = func(parallel int) int { return max(1, processors/parallel) }
				plan, err := NewPlan(in)
				if err != nil {
					t.Fatal(err)
				}
				limits := in.Platform
				limits.Processors = processors
				whole := CapacityOf(limits)
				d, _ := DemandOf("job-1", plan, whole)
				if err := CheckFits(whole, d); err != nil {
					t.Errorf("%d workers, pool %v, %d processors: %v", workers, pool, processors, err)
				}
			}
		}
	}
}
