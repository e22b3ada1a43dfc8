package estimator

import "github.com/disdel/disdel"

// leastBusy is what a quiet machine's own housekeeping comes to, threads: below it nothing is said of other programs.
const leastBusy = 0.3

// slowdown is how many times as long a plan's actions take because other programs want the processors, if the kernel
// shares these fairly; 1 on a quiet machine, and where processors or load are unknown. Action containers are one group
// to the kernel, which has the weight of one thread on each processor: more actions get no larger part.
func slowdown(p disdel.Plan, task disdel.Task) float64 {
	processors, others := float64(p.Platform.Processors), p.Platform.Busy
	if processors <= 0 || others < leastBusy {
		return 1
	}
	return max(1, (others+min(processors, wanted(p, task)))/processors)
}

// wanted is how many processors the actions of a task use at once if they can have them.
func wanted(p disdel.Plan, task disdel.Task) float64 {
	threads := float64(max(1, p.Threads))
	if task != disdel.TaskTrain {
		return threads
	}
	side := max(1, p.Workers)
	if p.Parallel > 0 {
		side = min(side, p.Parallel)
	}
	return threads * float64(side)
}
