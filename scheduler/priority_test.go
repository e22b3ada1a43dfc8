package scheduler_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// TestPriorityTakesNoShareOfOthers draws tenants, priorities (the extremes of an int among them) and arrivals within a
// second. However high a tenant's priorities are, each tenant gets its share of the platform within a fifth, and within
// a tenant no job goes before one of a higher priority.
func TestPriorityTakesNoShareOfOthers(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		tenants, slots := 2+rng.IntN(4), 20+rng.IntN(60)
		one := scheduler.Capacity{Memory: disdel.MB}
		var jobs []scheduler.Demand
		of := map[disdel.JobID]scheduler.Demand{}
		for tenant := range tenants {
			draw := []func() int{
				func() int { return 0 }, func() int { return rng.IntN(2_000_001) - 1_000_000 },
				func() int { return math.MaxInt - rng.IntN(3) }, func() int { return math.MinInt + rng.IntN(3) },
			}[rng.IntN(4)]
			for i := range slots {
				d := scheduler.Demand{
					Job: disdel.JobID(fmt.Sprintf("t%d-%03d", tenant, i)), Tenant: fmt.Sprint(tenant), Priority: draw(),
					Arrived: disdel.Millis(1e18) + disdel.Millis(rng.Int64N(int64(time.Second))),
					Gang:    scheduler.Gang{{Task: disdel.TaskTrain, Count: 1, Each: one}},
				}
				jobs, of[d.Job] = append(jobs, d), d
			}
		}
		rng.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
		got, last := map[string]int{}, map[string]scheduler.Demand{}
		for _, g := range (scheduler.Gangs{}).Allocate(2e18, one.Times(slots), slices.Clone(jobs)) {
			d := of[g.Job]
			if g.Reserved {
				continue
			}
			if before, any := last[d.Tenant]; any && bounded(d.Priority) > bounded(before.Priority) {
				t.Errorf("seed %d: %s with priority %d goes before %s with %d",
					seed, before.Job, before.Priority, d.Job, d.Priority)
			}
			got[d.Tenant]++
			last[d.Tenant] = d
		}
		least, most := slots, 0
		for tenant := range tenants {
			n := got[fmt.Sprint(tenant)]
			least, most = min(least, n), max(most, n)
		}
		if most-least > slots/5+1 {
			t.Errorf("seed %d: of %d slots %d tenants have from %d to %d", seed, slots, tenants, least, most)
		}
	}
}

// bounded is a priority as far as it counts.
func bounded(p int) int { return min(max(p, -1_000_000), 1_000_000) }

// TestPriorityIsNoTicketPastOthers has one tenant submit jobs of the highest priority for ever, under each admission.
// Another tenant's job still goes before all jobs that come a good while after it.
func TestPriorityIsNoTicketPastOthers(t *testing.T) {
	one := scheduler.Capacity{Memory: disdel.MB}
	for _, by := range []scheduler.Allocator{
		scheduler.Gangs{}, scheduler.FIFO{}, scheduler.Sharing{By: scheduler.Gangs{}},
	} {
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(seed, 4))
			victim := scheduler.Demand{
				Job: "victim", Tenant: "alice", Arrived: disdel.Millis(time.Hour),
				Gang: scheduler.Gang{{Task: disdel.TaskTrain, Count: 1, Each: one}},
			}
			jobs := []scheduler.Demand{victim}
			for i := range 100 {
				d := victim
				d.Job, d.Tenant = disdel.JobID(fmt.Sprintf("c%d", i)), "carol"
				d.Priority = []int{math.MaxInt, math.MinInt, 1_000_000, 20_000_000, -13_000_000}[rng.IntN(5)]
				d.Arrived += scheduler.PriorityAcross + disdel.Millis(1+rng.Int64N(int64(time.Hour)))
				jobs = append(jobs, d)
			}
			rng.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
			grants := by.Allocate(disdel.Millis(10*time.Hour), one, jobs)
			if len(grants) == 0 || grants[0].Job != "victim" {
				t.Fatalf("%T, seed %d: the job that came first waits: %+v", by, seed, grants)
			}
		}
	}
}
