package scheduler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/rehearse"
	"github.com/disdel/disdel/scheduler"
)

// Greedy and Coach's rule hold what they get, and stop each other; whole gangs never do.
func TestSingleContainersDeadlock(t *testing.T) {
	two := []rehearse.Visit{{Lasts: second}, {Lasts: second}}
	for i := range two {
		two[i].Job, two[i].Gang = disdel.JobID(fmt.Sprintf("job-%d", i)), gang(2, 2)
		two[i].Gang = append(two[i].Gang, scheduler.Member{
			Task: "evaluate", Count: 1, Each: scheduler.Capacity{Memory: disdel.MB},
		})
	}
	stuck := map[string]int{}
	for seed := range uint64(20) {
		for name, by := range map[string]scheduler.Allocator{
			"greedy": scheduler.Greedy{Seed: seed}, "ganglike": scheduler.GangLike{}, "gang": scheduler.Gangs{},
			"fifo": scheduler.FIFO{},
		} {
			stuck[name] += len(rehearse.Run(by, slots(5), two, nil).Stuck)
		}
	}
	if stuck["greedy"] == 0 || stuck["ganglike"] == 0 || stuck["gang"]+stuck["fifo"] > 0 {
		t.Errorf("jobs that wait for ever: %v", stuck)
	}
}

func TestWhatNeverFitsIsRefusedWithTheArithmetic(t *testing.T) {
	whole := slots(4)
	whole.Concurrent = 2
	for _, c := range []struct {
		demand scheduler.Demand
		says   string
	}{
		{scheduler.Demand{Gang: gang(4, 1)}, "5.00 MB of memory, and there are 4.00 MB"},
		{scheduler.Demand{Gang: gang(4, 1)}, "4 train of 1.00 MB and 1 aggregate of 1.00 MB, 5.00 MB in all"},
		{
			scheduler.Demand{Gang: scheduler.Gang{{Task: "train", Count: 3, Each: scheduler.Capacity{Concurrent: 1}}}},
			"3 concurrent invocations, and there are 2",
		},
		{
			scheduler.Demand{Tenant: "a", Gang: gang(3, 0), Quota: scheduler.Quota{Memory: 2 * disdel.MB}},
			"the gang (3 train of 1.00 MB and 0 aggregate of 1.00 MB, 3.00 MB in all) needs 3.00 MB of memory, " +
				"and the quota of tenant a is 2.00 MB",
		},
		{
			scheduler.Demand{Gang: gang(1, 0), Cost: 3, Quota: scheduler.Quota{Cost: 10, Spent: 8}},
			"likely to cost 3 GB-s, and of the quota of those without a tenant, 10 GB-s, 2 are left",
		},
		{scheduler.Demand{}, "no container"},
	} {
		err := scheduler.NewAdmission(scheduler.Gangs{}, whole).Enqueue(c.demand)
		if !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v\nlacks %q", err, c.says)
		}
	}
	if err := scheduler.CheckFits(whole, scheduler.Demand{Gang: gang(3, 1)}); err != nil {
		t.Error(err)
	}
}
