package actions

import (
	"fmt"
	"os"
	"path/filepath"
)

// processorTime is how long the threads of this process ran, and how long they waited for a processor, both in ns.
type processorTime struct{ ran, waited float64 }

// ownThreads has a folder for each thread of this process.
const ownThreads = "/proc/self/task"

// readProcessorTime reads the schedstat files of the process's threads below a folder like /proc/self/task. The kernel
// documents them in Documentation/scheduler/sched-stats. It is zero where the kernel keeps none.
func readProcessorTime(folder string) (sum processorTime) {
	files, _ := filepath.Glob(filepath.Join(folder, "*", "schedstat"))
	for _, file := range files {
		var t processorTime
		text, err := os.ReadFile(file)
		if err != nil { // the thread has ended
			continue
		}
		if _, err := fmt.Sscan(string(text), &t.ran, &t.waited); err == nil {
			sum.ran, sum.waited = sum.ran+t.ran, sum.waited+t.waited
		}
	}
	return sum
}

// slowdownSince is by which factor waiting for processors slowed the threads down; 0: unknown.
func (t processorTime) slowdownSince(then processorTime) float64 {
	ran, waited := t.ran-then.ran, t.waited-then.waited
	if ran <= 0 || waited < 0 {
		return 0
	}
	return 1 + waited/ran
}
