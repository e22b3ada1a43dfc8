package scheduler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

// No job fits in 256 MB if an action has at least 128 MB.
func ExampleCheckQuota() {
	fmt.Println(scheduler.LeastGang(128 * disdel.MB))
	err := scheduler.CheckQuota(scheduler.Quota{Memory: 256 * disdel.MB}, 128*disdel.MB)
	fmt.Println(disdel.AsError(err).Hint)
	// Output:
	// 1 train of 128 MB, 1 aggregate of 128 MB and 1 evaluate of 128 MB, 384 MB in all
	// use at least --memory 384MB
}

// A quota is refused exactly if not even the smallest gang is within it, with the least that would do.
func TestAQuotaForNoGangIsRefused(t *testing.T) {
	const action = 128 * disdel.MB
	least := scheduler.LeastGang(action)
	needs := least.Room().Memory
	if needs != 3*action {
		t.Errorf("the smallest gang needs %v", needs)
	}
	pool := scheduler.CapacityOf(disdel.PlatformLimits{Pool: disdel.GB})
	for _, memory := range []disdel.Bytes{0, 1, action, 256 * disdel.MB, needs - 1, needs, needs + 1, disdel.GB} {
		q := scheduler.Quota{Memory: memory}
		fits := scheduler.CheckFits(pool, scheduler.Demand{Gang: least, Quota: q})
		err := scheduler.CheckQuota(q, action)
		if (err == nil) != (fits == nil) {
			t.Errorf("%v: %v, and the gang: %v", memory, err, fits)
		}
		var refused *disdel.Error
		if errors.As(err, &refused) && !strings.Contains(refused.Hint, fmt.Sprintf("--memory %dMB", needs.MB())) {
			t.Errorf("%v: %s", memory, refused.Hint)
		}
	}
}

// What a job costs counts against its tenant's budget from its first round to its end, also while it waits for a round.
func TestAJobBetweenRoundsCountsAgainstTheBudget(t *testing.T) {
	free := scheduler.CapacityOf(disdel.PlatformLimits{Pool: disdel.GB})
	gang := scheduler.Gang{{Task: disdel.TaskTrain, Count: 1, Each: scheduler.Capacity{Memory: 128 * disdel.MB}}}
	between := scheduler.Demand{Job: "job-a", Tenant: "ann", Gang: gang, Keep: scheduler.KeepRound, Cost: 4, Began: true}
	next := scheduler.Demand{
		Job: "job-b", Tenant: "ann", Arrived: 1, Gang: gang, Cost: 4, Quota: scheduler.Quota{Cost: 6},
	}
	for name, by := range map[string]scheduler.Allocator{"gang": scheduler.Gangs{}, "fifo": scheduler.FIFO{}} {
		for _, priority := range []int{0, 1} { // the job over the budget may come first: then the other passes it
			next.Priority = priority
			got := by.Allocate(2, free, []scheduler.Demand{between, next})
			if len(got) != 1 || got[0].Job != between.Job || got[0].Reserved {
				t.Errorf("%s, priority %d: jobs of ann would cost 8 of 6: %+v", name, priority, got)
			}
		}
		next.Quota.Cost = 8
		if n := len(by.Allocate(2, free, []scheduler.Demand{between, next})); n != 2 {
			t.Errorf("%s: %d of 2 jobs are granted within the budget", name, n)
		}
		next.Quota.Cost = 6
	}
}
