package report

import (
	"fmt"

	"github.com/disdel/disdel"
)

// ample is how far a limit may be above what was measured before a smaller one is worth a line.
const ample = 1.25

// savings says what could be smaller the next time, and what makes it so. Timeouts that are auto follow what was
// measured by themselves; memory does so only where it is estimated by earlier jobs' peaks.
func savings(r *disdel.Record) []string {
	if r.Status != disdel.StatusSucceeded {
		return nil
	}
	var out []string
	for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate, disdel.TaskInfer} {
		u := together(r.Activations, task)
		smaller := max(r.Plan.Platform.MinMemory, disdel.Bytes(ample*float64(u.peak)))
		if u.peak > 0 && u.limit > smaller {
			out = append(out, fmt.Sprintf("%s memory: limit %v, peak %v; at %d MB it would hold %.2f GB-s less%s", task, u.limit,
				u.peak,
				smaller.MB(), u.seconds*float64(u.limit-smaller)/float64(disdel.GB), memoryNext(r, task)))
		}
		if task == disdel.TaskTrain && u.longest > 0 && u.timeout > 4*u.longest && r.Job.Resources.Timeout > 0 {
			out = append(out, fmt.Sprintf("%s timeout: %v for actions of at most %v (--set resources.timeout=auto)", task,
				span(u.timeout), span(u.longest)))
		}
	}
	return out
}

type taskUse struct {
	limit, peak      disdel.Bytes
	timeout, longest disdel.Millis
	seconds          float64 // of all activations together
}

func together(list []disdel.Activation, task disdel.Task) taskUse {
	var u taskUse
	for i := range list {
		a := &list[i]
		if a.Task != task || a.Outcome != disdel.OutcomeSuccess {
			continue
		}
		u.limit, u.timeout = max(u.limit, a.Limits.Memory), max(u.timeout, a.Limits.Timeout)
		u.peak, u.longest = max(u.peak, a.Peak), max(u.longest, a.Duration)
		u.seconds += float64(a.Duration) / 1e9
	}
	return u
}

// memoryNext says who may lower the limit.
func memoryNext(r *disdel.Record, task disdel.Task) string {
	if task == disdel.TaskTrain && r.Job.Resources.Memory > 0 {
		return " (--set resources.memory=auto)"
	}
	if a, _ := r.Plan.Action(task); a.Estimate.Method == "learned" {
		return "; the next job's limit learns from this peak"
	}
	return " (--estimator learned goes by peaks)"
}
