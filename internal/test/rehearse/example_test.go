package rehearse_test

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/rehearse"
	"github.com/disdel/disdel/scheduler"
)

// Two jobs of two containers each, and room for two: containers that are given one by one may stop both for ever,
// whole gangs run one after the other.
func ExampleRun() {
	each := scheduler.Capacity{Memory: 256 * disdel.MB}
	var jobs []rehearse.Visit
	for i := range 2 {
		v := rehearse.Visit{Lasts: disdel.Millis(time.Minute)}
		v.Job = disdel.JobID(fmt.Sprintf("job-%d", i))
		v.Gang = scheduler.Gang{{Task: disdel.TaskTrain, Count: 2, Each: each}}
		jobs = append(jobs, v)
	}
	for name, by := range map[string]scheduler.Allocator{"greedy": scheduler.Greedy{}, "gang": scheduler.Gangs{}} {
		r := rehearse.Run(by, each.Times(2), jobs, nil)
		fmt.Println(name, "stuck:", r.Stuck, "makespan:", r.Makespan.Text())
	}
	// Unordered output:
	// greedy stuck: [job-0 job-1] makespan: 0.00 s
	// gang stuck: [] makespan: 2m0s
}
