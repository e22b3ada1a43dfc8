package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/rehearse"
	"github.com/disdel/disdel/scheduler"
)

// TestALargeGangStartsAmongSmallOnes draws streams of small jobs that fill the platform. A gang needs all of its
// memory. It starts after at most the time of all earlier jobs one after another, and of the longest job once more.
// Small jobs come for 50 minutes, so a gang that waits for all of them fails the test.
func TestALargeGangStartsAmongSmallOnes(t *testing.T) {
	const second = disdel.Millis(time.Second)
	visit := func(id, tenant string, at, lasts disdel.Millis, slots int) rehearse.Visit {
		v := rehearse.Visit{Lasts: lasts}
		v.Job, v.Tenant, v.Arrived, v.Shares = disdel.JobID(id), tenant, at, true
		v.Takes = disdel.Interval[disdel.Millis]{Low: lasts, Likely: lasts, High: lasts}
		v.Gang = scheduler.Gang{{
			Task: disdel.TaskTrain, Count: slots, Each: scheduler.Capacity{Memory: disdel.MB, Millicores: 375},
		}}
		return v
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		visits := []rehearse.Visit{visit("large", "alice", 60*second, 30*second, 8)}
		bound := 90 * second // the longest small job
		for i := range 600 {
			lasts := disdel.Millis(10+rng.IntN(80)) * second
			if disdel.Millis(i)*5*second <= 60*second {
				bound += lasts
			}
			visits = append(visits, visit(fmt.Sprintf("s%03d", i), "carol", disdel.Millis(i)*5*second, lasts, 1+rng.IntN(2)))
		}
		whole := scheduler.Capacity{Memory: 8 * disdel.MB, Millicores: 3000}
		r := rehearse.Run(scheduler.Sharing{By: scheduler.Gangs{}}, whole, visits, nil)
		waited := r.Stays[0].Started - visits[0].Arrived
		if len(r.Stuck) > 0 || waited > bound {
			t.Errorf("seed %d: the large gang waited %v, more than %v; stuck: %v", seed, waited, bound, r.Stuck)
		}
	}
}
