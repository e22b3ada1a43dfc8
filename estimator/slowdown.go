package estimator

import (
	"math"

	"github.com/disdel/disdel"
)

// leastBusy is the load, in threads, of a quiet machine's own housekeeping: below it, no other programs count.
const leastBusy = 0.3

// slowdown is how many times as long a plan's actions take because of other programs, if the kernel shares the
// processors fairly. It is 1 on a quiet machine, and if processors or load are unknown. The kernel treats all action
// containers as one group with the weight of one thread on each processor: more actions do not get a larger share.
func slowdown(p disdel.Plan, task disdel.Task) float64 {
	processors, others := float64(p.Platform.Processors), p.Platform.Busy
	if processors <= 0 || others < leastBusy {
		return 1
	}
	return max(1, (others+min(processors, wanted(p, task)))/processors)
}

// wanted is the number of processors that the actions of a task use at once if they are free.
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

// alone is the slowdowns of a plan without other programs.
func alone(p disdel.Plan) slowdowns {
	all := slowdowns{}
	for _, a := range p.Actions {
		all[a.Task] = 1
	}
	return all
}

// measuredSlowdown is how many times as long an activation took because of other programs. It excludes waits for other
// activations of the same job. It is the slowdown of the plan if the activation did not measure it.
func measuredSlowdown(p disdel.Plan, a *disdel.Activation) float64 {
	if a.Slowdown <= 0 {
		return slowdown(p, a.Task)
	}
	own := 1.0
	if n := float64(p.Platform.Processors); n > 0 {
		own = max(1, wanted(p, a.Task)/n)
	}
	return max(1, a.Slowdown/own)
}

// slowdowns are the slowdowns by other programs, by task.
type slowdowns map[disdel.Task]float64

// slowdown is the slowdown of a task: measured or learned, otherwise the plan's.
func (in TimingInput) slowdown(task disdel.Task) float64 {
	if s, ok := in.slow[task]; ok {
		return s
	}
	return slowdown(in.Plan, task)
}

// slowdownsOf are the slowdowns that a job's activations measured. measured is false if none did.
func slowdownsOf(r *disdel.Record) (all slowdowns, measured bool) {
	took, alone := map[disdel.Task]float64{}, map[disdel.Task]float64{}
	for i := range r.Activations {
		a := &r.Activations[i]
		if a.Duration <= 0 || a.Outcome != disdel.OutcomeSuccess && a.Outcome != disdel.OutcomePaused {
			continue
		}
		measured = measured || a.Slowdown > 0
		took[a.Task] += a.Duration.Seconds()
		alone[a.Task] += a.Duration.Seconds() / measuredSlowdown(r.Plan, a)
	}
	all = slowdowns{}
	for task, seconds := range took {
		all[task] = seconds / alone[task]
	}
	return all, measured
}

// recordSlowdown is the slowdown of a task in an earlier job.
func recordSlowdown(r *disdel.Record, task disdel.Task) float64 {
	all, _ := slowdownsOf(r)
	if s, ok := all[task]; ok {
		return s
	}
	return slowdown(r.Plan, task)
}

// loadForecast is the expected slowdown of a coming job by other programs.
type loadForecast struct {
	factor float64 // slowdown that is likely, over that of the load when the job is planned
	// deviations of the logarithm of the slowdown, towards longer and shorter times
	more, less float64
}

// What a forecast of the load goes by. Load comes and goes: these are the deviations before anything is measured.
const (
	loadPrior  = 2.0  // earlier jobs that they count for
	quietMore  = 0.15 // of a machine that is quiet
	quietLess  = 0.03
	busyMore   = 0.1 // in addition, for each unit of the logarithm of the slowdown
	busyLess   = 0.25
	unmeasured = 0.15 // of it where no earlier job measured its slowdown
	loadAlike  = 0.25 // of the logarithm of the slowdown: jobs planned under loads as near as that count alike
	loadJobs   = 48   // earlier jobs that are looked at
	loadWorsen = 2.0  // most that the likely slowdown is above that of the plan by what earlier jobs measured
)

// loadOf forecasts the slowdown of a plan. It compares the slowdowns that earlier jobs measured with those of their
// plans. Jobs that were planned under a similar load count more, and so do newer jobs.
func loadOf(in TimingInput) loadForecast {
	at := math.Log(slowdown(in.Plan, disdel.TaskTrain))
	var logs, weights []float64
	for i := range in.Past {
		r := &in.Past[i]
		all, measured := slowdownsOf(r)
		if s, ok := all[disdel.TaskTrain]; ok && measured && len(logs) < loadJobs {
			planned := math.Log(slowdown(r.Plan, disdel.TaskTrain))
			apart := (planned - at) / loadAlike
			logs = append(logs, math.Log(s)-planned)
			weights = append(weights, math.Exp2(-float64(len(logs))/fadedAfter)/(1+apart*apart))
		}
	}
	if len(logs) == 0 { // the spread of earlier jobs' times includes their load
		return loadForecast{factor: 1, more: unmeasured * at, less: unmeasured * at}
	}
	more, less := quietMore+busyMore*at, quietLess+busyLess*at
	sum, mean := 0.0, 0.0
	for i, l := range logs {
		sum, mean = sum+weights[i], mean+weights[i]*l
	}
	mean = min(math.Log(loadWorsen), max(-at, mean/(sum+loadPrior)))
	up, down := loadPrior*more*more, loadPrior*less*less
	for i, l := range logs { // a half of a distribution has half of its squares
		up += 2 * weights[i] * max(0, l-mean) * max(0, l-mean)
		down += 2 * weights[i] * min(0, l-mean) * min(0, l-mean)
	}
	return loadForecast{
		factor: math.Exp(mean), more: math.Sqrt(up / (sum + loadPrior)), less: math.Sqrt(down / (sum + loadPrior)),
	}
}

// slowdowns are the likely slowdowns of a plan's tasks.
func (l loadForecast) slowdowns(p disdel.Plan) slowdowns {
	all := slowdowns{}
	for _, a := range p.Actions {
		all[a.Task] = max(1, slowdown(p, a.Task)*l.factor)
	}
	return all
}
