package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Shield says why a plan that a policy's decision led to must not be carried out; nil: it may. Every decision that
// begins a stage comes through here, whoever made it: Ask keeps what was said within bounds that are known beforehand,
// and Shield looks at what it came to. It returns OverLimit, with the arithmetic, for an action that gets less than its
// estimate or more than the platform gives, for more memory at once than the pool has, for waves where all workers ran
// at once, and for an epoch that the budget does not hold. After a failure, which a job has to get over, waves and the
// budget are not its business: the remedy may need the first, and the job stops where the second is used up.
func Shield(in Input, now, next disdel.Plan) error {
	for _, a := range next.Actions {
		if err := shieldAction(a, next.Platform); err != nil {
			return err
		}
	}
	train, _ := next.Action(disdel.TaskTrain)
	if atOnce := min(next.Parallel, next.Workers); next.Platform.Pool > 0 {
		if all := disdel.Bytes(atOnce) * train.Limits.Memory; all > next.Platform.Pool {
			return shielded("fewer distribution.maxWorkers",
				"%d train actions at once of %v are %v, and the pool has %v", atOnce, train.Limits.Memory,
				all.Beside(next.Platform.Pool), next.Platform.Pool.Beside(all))
		}
	}
	if in.Boundary == disdel.BoundaryFailure {
		return nil
	}
	if now.Parallel >= now.Workers && next.Parallel < next.Workers {
		return shielded("fewer distribution.maxWorkers",
			"%d train actions would run %d at a time, and now all %d run at once",
			next.Workers, next.Parallel, now.Workers)
	}
	return shieldBudget(in, now, next)
}

func shielded(hint, format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "change setting", Msg: fmt.Sprintf(format, args...), Hint: hint,
	}
}

// shieldAction holds an action's memory against what it is expected to need, and against what there is.
func shieldAction(a disdel.ActionPlan, p disdel.PlatformLimits) error {
	limit, needs := a.Limits.Memory, a.Estimate.Total
	switch {
	case limit < needs:
		return shielded("more distribution.minWorkers, or a larger resources.memory",
			"a %s action would get %v, and its estimate is %v", a.Task, limit.Beside(needs), needs.Beside(limit))
	case p.MaxMemory > 0 && limit > p.MaxMemory:
		return shielded("more distribution.minWorkers", "a %s action would get %v, and the platform's maximum is %v", a.Task,
			limit.Beside(p.MaxMemory), p.MaxMemory.Beside(limit))
	default:
		return nil
	}
}

// shieldBudget holds the next epoch's cost, as high as it may be, against what is left: more workers are no faster than
// now at the worst, and fewer no slower than if all of an epoch were work that they share.
func shieldBudget(in Input, now, next disdel.Plan) error {
	left := in.Goal.Cost
	all := epochs(in.Seen)
	if left <= 0 || len(all) == 0 {
		return nil
	}
	was, _ := now.Action(disdel.TaskTrain)
	will, _ := next.Action(disdel.TaskTrain)
	if was.Limits.Memory <= 0 || now.Workers <= 0 {
		return nil
	}
	newest := all[len(all)-1].cost
	most := newest * float64(will.Limits.Memory) / float64(was.Limits.Memory) *
		max(1, float64(next.Workers)/float64(now.Workers))
	if most <= left {
		return nil
	}
	return shielded("more resources.maxCost",
		"an epoch with %s may cost %.3g GB-s, as the last one with %d cost %.3g, and %.3g of the budget are left",
		crew(next.Workers), most, now.Workers, newest, left)
}
