package report

import (
	"fmt"

	"github.com/disdel/disdel"
)

// Costs are the two costs of a job, and what the job got for the second.
type Costs struct {
	UsedGBs float64  `json:"usedGBs"`         // by use: what activations held, evaluations and failures too
	Money   *float64 `json:"money,omitempty"` // of that, at resources.price; nil: no price is known
	// Perf is Perf/$ of MLLess, Eq. 4: one over the job's seconds times what it cost, money where a price is known,
	// else GB-s; 0 for a job that has not succeeded.
	Perf float64 `json:"perfPerCost,omitempty"`
}

// costs are those of a record whose job took so long.
func costs(r *disdel.Record, took disdel.Millis) *Costs {
	c := Costs{UsedGBs: r.MeteredCost()}
	if c.UsedGBs <= 0 {
		return nil
	}
	paid := c.UsedGBs
	if money, ok := r.Job.Resources.Money(paid); ok {
		c.Money, paid = &money, money
	}
	if r.Status == disdel.StatusSucceeded && took > 0 {
		c.Perf = 1 / (took.Seconds() * paid)
	}
	return &c
}

// byUse is the cost by use as text: "by use 1.25 GB-s, 0.0000209 at 0.0000167 a GB-s".
func (r *Report) byUse() []string {
	c := r.Use
	if c == nil {
		return nil
	}
	text, unit := fmt.Sprintf("by use %.2f GB-s: what activations held", c.UsedGBs), "1/(s GB-s)"
	if c.Money != nil {
		text += fmt.Sprintf("; %.3g at %.3g a GB-s", *c.Money, r.Job.Resources.Price)
		unit = "1/(s money)"
	}
	if c.Perf > 0 {
		text += fmt.Sprintf("; Perf/$ %.3g %s", c.Perf, unit)
	}
	out := []string{text}
	if s := r.Static; s != nil {
		out = append(out, staticText(s, r.Duration, c.UsedGBs))
	}
	return out
}

// staticText compares the job with its first number of workers kept all the time.
func staticText(s *disdel.CostWithoutPolicy, took disdel.Millis, used float64) string {
	return fmt.Sprintf("with %s throughout training would have taken about %s for %.2f GB-s by use, as its first %s; the "+
		"job took %s for %.2f in all", disdel.Counted(s.Workers, "worker"), span(s.Took), s.UsedGBs,
		disdel.Counted(s.Epochs, "epoch"), span(took), used)
}

// ample is how far a limit must be above the measurement to be worth a line.
const ample = 1.25

// savings says which limits could be smaller next time, and what lowers them. Automatic timeouts follow measurements by
// themselves; memory does so only if it is estimated from earlier peaks.
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

// memoryNext says how the memory limit can become smaller.
func memoryNext(r *disdel.Record, task disdel.Task) string {
	if task == disdel.TaskTrain && r.Job.Resources.Memory > 0 {
		return " (--set resources.memory=auto)"
	}
	if a, _ := r.Plan.Action(task); a.Estimate.Method == "learned" || a.Estimate.Method == disdel.MemoryGiven {
		return "; the next job's limit learns from this peak"
	}
	return " (--estimator learned goes by peaks)"
}
