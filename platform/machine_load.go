package platform

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The load is sampled over 60 ms, so that short bursts do not dominate it.
const (
	loadSamples = 15
	loadEvery   = 4 * time.Millisecond
)

// MachineLoad is the number of threads of other processes that ran or waited for a processor over the next 60 ms: the
// load that a job's containers have to share the processors with. It is 0 if the kernel does not tell or ctx ends. Call
// it before the job's own actions run.
func MachineLoad(ctx context.Context) float64 {
	return machineLoad(ctx, func() (string, error) {
		text, err := os.ReadFile("/proc/loadavg")
		return string(text), err
	}, ownThreads)
}

func machineLoad(ctx context.Context, read func() (string, error), own func() int) float64 {
	var seen []float64
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	for range loadSamples {
		text, err := read()
		n, ok := runnable(text)
		if err != nil || !ok {
			return 0
		}
		seen = append(seen, max(0, float64(n-own())))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0
		}
	}
	slices.Sort(seen)
	// the mean of the middle half, which one burst does not change
	middle := seen[len(seen)/4 : len(seen)-len(seen)/4]
	sum := 0.0
	for _, v := range middle {
		sum += v
	}
	return sum / float64(len(middle))
}

// runnable reads the number of running threads from the fourth field of /proc/loadavg, "3/456" (proc(5)).
func runnable(text string) (int, bool) {
	fields := strings.Fields(text)
	if len(fields) < 4 {
		return 0, false
	}
	running, _, ok := strings.Cut(fields[3], "/")
	n, err := strconv.Atoi(running)
	return n, ok && err == nil
}

// ownThreads is the number of this process's running threads, at least 1.
func ownThreads() int {
	files, _ := filepath.Glob("/proc/self/task/*/stat") // the pattern is well-formed
	n := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		// the state follows the name in brackets, which may have brackets itself (proc(5))
		stat := string(text)
		if strings.HasPrefix(stat[strings.LastIndex(stat, ")")+1:], " R") {
			n++
		}
	}
	return max(1, n)
}
