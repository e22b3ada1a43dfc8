package scheduler

import (
	"fmt"

	"github.com/disdel/disdel"
)

// ApplySetting returns a job with a setting, and with so many rows per batch and worker; 0: unchanged.
func ApplySetting(job disdel.Job, s disdel.Setting, batch int) disdel.Job {
	d := &job.Distribution
	// a setting counts train actions
	d.Stages, d.Workers = max(1, s.Stages), s.Replicas()
	d.Aggregation.FanIn, job.Resources.Memory = s.FanIn, s.Memory
	switch {
	case s.AverageEvery > 0:
		d.Sync = disdel.SyncEvery(s.AverageEvery)
	case d.Sync.Every() > 0:
		d.Sync = disdel.SyncEpoch
	}
	if batch > 0 {
		job.Training = job.Training.WithWorkerBatch(batch, s.Replicas())
	}
	return job
}

// ContinuePlan returns the plan of a job at the start of a stage: it counts the earlier rounds too, and its forecast
// is scaled accordingly.
func ContinuePlan(plan disdel.Plan, stage disdel.Stage) disdel.Plan {
	rounds := stage.End()
	if f := plan.Forecast; f != nil && rounds != plan.Rounds && plan.Rounds > 0 {
		by := float64(rounds) / float64(plan.Rounds)
		scaled := *f
		d, c := f.Duration, f.Cost
		times := func(m disdel.Millis) disdel.Millis { return disdel.Millis(by * float64(m)) }
		scaled.Duration = disdel.Interval[disdel.Millis]{Low: times(d.Low), Likely: times(d.Likely), High: times(d.High)}
		scaled.Cost = disdel.Interval[float64]{Low: by * c.Low, Likely: by * c.Likely, High: by * c.High}
		u := f.Used
		scaled.Used = disdel.Interval[float64]{Low: by * u.Low, Likely: by * u.Likely, High: by * u.High}
		plan.Forecast = &scaled
	}
	plan.Rounds = rounds
	return plan
}

// LeavingReasons says what a change of workers loses: what a worker stores from round to round is its own.
func LeavingReasons(job disdel.Job, was, now int) []string {
	a := job.Distribution.Aggregation
	var out []string
	lossy := a.Wire != "" && a.Wire != disdel.WireFloat32
	own := a.OptimizerState == disdel.StateKeep || a.Statistics == disdel.StateKeep
	switch {
	case now < was && lossy:
		out = append(out, fmt.Sprintf("%d of %d workers leave: what %s had rounded away of their last updates is lost",
			was-now, was, a.Wire))
	case now < was && own:
		out = append(out, fmt.Sprintf("%d of %d workers leave, and what they kept of their own goes with them", was-now, was))
	case now > was && own:
		who := fmt.Sprintf("%d workers come, and begin with nothing of their own", now-was)
		if now-was == 1 {
			who = "1 worker comes, and begins with nothing of its own"
		}
		out = append(out, who+": moments are reset, statistics are the others' mean")
	}
	return out
}

// ValidateReplan returns why a plan from a policy's decision must not be carried out, nil if it may. Every decision
// that starts a stage passes this check. DecideInBounds checks bounds that are known beforehand; ValidateReplan checks
// the resulting plan. It returns OverLimit, with the figures, for an action that gets less than its estimate or more
// than the platform gives. It also returns OverLimit for more memory at once than the pool has, and for an epoch beyond
// the budget. Waves are refused if all workers ran at once before. After a failure it ignores waves and the budget: the
// remedy may need waves, and the job stops anyway when the budget is used up.
func ValidateReplan(in Input, now, next disdel.Plan) error {
	for _, a := range next.Actions {
		if err := validateAction(a, next.Platform); err != nil {
			return err
		}
	}
	train, _ := next.Action(disdel.TaskTrain)
	if atOnce := min(next.Parallel, next.Workers); next.Platform.Pool > 0 {
		if all := disdel.Bytes(atOnce) * train.Limits.Memory; all > next.Platform.Pool {
			return replanError("fewer distribution.maxWorkers",
				"%d train actions at once of %v are %v, and the pool has %v", atOnce, train.Limits.Memory,
				all.Beside(next.Platform.Pool), next.Platform.Pool.Beside(all))
		}
	}
	if in.Boundary == disdel.BoundaryFailure {
		return nil
	}
	if now.Parallel >= now.Workers && next.Parallel < next.Workers {
		return replanError("fewer distribution.maxWorkers",
			"%d train actions would run %d at a time, and now all %d run at once",
			next.Workers, next.Parallel, now.Workers)
	}
	return validateBudget(in, now, next)
}

func replanError(hint, format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "change setting", Msg: fmt.Sprintf(format, args...), Hint: hint,
	}
}

// validateAction compares an action's memory with its estimate and the platform's maximum.
func validateAction(a disdel.ActionPlan, p disdel.PlatformLimits) error {
	limit, needs := a.Limits.Memory, a.Estimate.Total
	switch {
	case limit < needs:
		return replanError("more distribution.minWorkers, or a larger resources.memory",
			"a %s action would get %v, and its estimate is %v", a.Task, limit.Beside(needs), needs.Beside(limit))
	case p.MaxMemory > 0 && limit > p.MaxMemory:
		return replanError("more distribution.minWorkers",
			"a %s action would get %v, and the platform's maximum is %v", a.Task,
			limit.Beside(p.MaxMemory), p.MaxMemory.Beside(limit))
	default:
		return nil
	}
}

// validateBudget compares the highest possible cost of the next epoch with the budget that is left. In the worst case
// more workers are no faster than now, and with fewer workers all of an epoch is shared work.
func validateBudget(in Input, now, next disdel.Plan) error {
	remaining := in.Goal.Cost
	all := epochs(in.Seen)
	if remaining <= 0 || len(all) == 0 {
		return nil
	}
	was, _ := now.Action(disdel.TaskTrain)
	will, _ := next.Action(disdel.TaskTrain)
	if was.Limits.Memory <= 0 || now.Workers <= 0 {
		return nil
	}
	newest := all[len(all)-1].cost
	maximum := newest * float64(will.Limits.Memory) / float64(was.Limits.Memory) *
		max(1, float64(next.Workers)/float64(now.Workers))
	if maximum <= remaining {
		return nil
	}
	return replanError("more resources.maxCost",
		"an epoch with %s may cost %.3g GB-s, as the last one with %d cost %.3g, and %.3g of the budget are left",
		workersText(next.Workers), maximum, now.Workers, newest, remaining)
}
