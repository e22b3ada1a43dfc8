package scheduler

import (
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// RoundedUp is a cost as a job file says it, with two digits that are not below it.
func RoundedUp(cost float64) string {
	if cost <= 0 || math.IsInf(cost, 0) || math.IsNaN(cost) {
		return "1"
	}
	step := math.Pow(10, math.Floor(math.Log10(cost))-1)
	return fmt.Sprintf("%.4g", math.Ceil(cost/step)*step)
}

// CheckBudget returns OverLimit for a plan that costs more than the job may: by use on a quiet machine, or at least. A
// plan of unknown cost passes: the budget is kept while the job runs.
func CheckBudget(id disdel.JobID, job disdel.Job, plan disdel.Plan) error {
	most, field := job.Budget()
	if most <= 0 {
		return nil
	}
	text, enough := "", 0.0
	least := leastCost(plan)
	switch f := plan.Forecast; {
	case f != nil && f.LeastCost(job.Training.Goal != nil) > most:
		c := f.ByUse()
		text = fmt.Sprintf("the job is likely to cost %.4g GB-s (%.4g to %.4g, by %s)", c.Likely, c.Low, c.High, f.Source)
		enough = c.High
	case least > most:
		text = fmt.Sprintf("the job costs %.4g GB-s at the least: no activation takes less than a millisecond", least)
		enough = 10 * least
	default:
		return nil
	}
	raised := fmt.Sprintf("%s=%sGB-s", field, RoundedUp(enough))
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "plan job", Job: id,
		Msg:     fmt.Sprintf("%s, and %s is %.4g GB-s", text, field, most),
		Hint:    fmt.Sprintf("--set %s, or fewer training.epochs", raised),
		Changes: [][]string{{raised}},
	}
}

// leastCost is the cost by use with every activation as short as OpenWhisk counts: what no job can be below.
func leastCost(plan disdel.Plan) float64 {
	const shortest = 0.001 // s
	var memory disdel.Bytes
	for _, a := range plan.Actions {
		memory += disdel.Bytes(actionsOf(plan, a.Task)) * a.Limits.Memory
	}
	return shortest * float64(max(1, plan.Rounds)) * memory.Gigabytes()
}

// actionsOf is how many actions of a task train and aggregate in a round.
func actionsOf(plan disdel.Plan, task disdel.Task) (n int) {
	switch task {
	case disdel.TaskTrain:
		return plan.Workers
	case disdel.TaskAggregate:
		for _, l := range plan.Levels {
			n += len(l.Clusters)
		}
	}
	return n
}
