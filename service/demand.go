package service

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
)

// gangOf is what a plan's job needs at once: the train actions of a round that run side by side, the widest level of
// its tree, and an evaluation. With all of it a round finds the containers of the one before warm.
func gangOf(plan *disdel.Plan) (gang scheduler.Gang) {
	member := func(task disdel.Task, count int, each scheduler.Capacity) {
		a, ok := plan.Action(task)
		if !ok || count == 0 {
			return
		}
		each.Memory = a.Limits.Memory
		gang = append(gang, scheduler.Member{Task: task, Count: count, Each: each})
	}
	// Train actions run while nothing else of the job does: the throttles count them alone.
	member(disdel.TaskTrain, min(plan.Workers, max(plan.Parallel, 1)),
		scheduler.Capacity{Millicores: 1000 * max(plan.Threads, 1), Concurrent: 1})
	member(disdel.TaskAggregate, widest(plan.Levels), scheduler.Capacity{})
	member(disdel.TaskEvaluate, min(plan.HeldOut, 1), scheduler.Capacity{})
	return gang
}

func widest(levels []disdel.Level) (n int) {
	for _, l := range levels {
		n = max(n, len(l.Clusters))
	}
	return n
}

// within is the gang of a plan that a platform has room for: where it cannot keep all of a job's containers at once, as
// much as the largest of its phases takes, and the reason why rounds begin cold then.
func within(plan *disdel.Plan, whole scheduler.Capacity) (gang scheduler.Gang, cold string) {
	gang = gangOf(plan)
	room := gang.Room()
	if whole.Holds(room) || len(gang) < 2 {
		return gang, ""
	}
	largest := gang[:1]
	for i := range gang {
		if one := gang[i : i+1]; one.Room().Memory > largest.Room().Memory {
			largest = one
		}
	}
	return largest, fmt.Sprintf("the pool of %v cannot keep all of the job's containers at once, %v: "+
		"what a round needs next starts cold", whole.Memory, gangText(gang))
}

// gangText is the arithmetic of a gang's memory: "2 x 128 MB for train + 1 x 128 MB for aggregate = 384 MB".
func gangText(gang scheduler.Gang) string {
	parts := make([]string, len(gang))
	for i, m := range gang {
		parts[i] = fmt.Sprintf("%d x %d MB for %s", m.Count, m.Each.Memory.MB(), m.Task)
	}
	return fmt.Sprintf("%s = %d MB", strings.Join(parts, " + "), gang.Room().Memory.MB())
}

// capacity is what a platform has for all jobs together. Processors bound nothing: a platform shares them out.
func capacity(limits disdel.PlatformLimits) scheduler.Capacity {
	return scheduler.Capacity{
		Memory: cmp.Or(limits.Pool, scheduler.Unbounded), Device: scheduler.Unbounded, Millicores: scheduler.Unbounded,
		Devices: scheduler.Unbounded, Concurrent: cmp.Or(limits.Concurrent, scheduler.Unbounded),
		PerMinute: scheduler.Unbounded,
	}
}

// everFits returns OverLimit with the arithmetic for a job that would wait for ever, and says in the plan where its
// containers cannot be kept.
func (p *preparation) everFits(spec *controller.Spec) error {
	whole := capacity(spec.Plan.Platform)
	gang, cold := within(&spec.Plan, whole)
	if cold != "" {
		spec.Plan.Reasons = append(spec.Plan.Reasons, cold)
	}
	room := gang.Room()
	refuse := func(what, hint string) error {
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "run job", Job: spec.ID, Msg: "the job would wait for ever: " + what, Hint: hint,
		}
	}
	switch {
	case !whole.Holds(room):
		return refuse(fmt.Sprintf("it needs at once %s, which is %s", gangText(gang), whole.Lacks(room)),
			"fewer workers with --set distribution.workers=N, or less memory with --set training.batchSize=N")
	case p.quota.Memory > 0 && room.Memory > p.quota.Memory:
		return refuse(fmt.Sprintf("it needs at once %s, and the jobs of %s may have %v together", gangText(gang), p.whose(),
			p.quota.Memory), "fewer workers with --set distribution.workers=N")
	}
	return nil
}

// demand is a job as the Allocator knows it.
func (p *preparation) demand(r *Run, plan disdel.Plan) scheduler.Demand {
	rec := r.story.queued()
	gang, _ := within(&plan, capacity(plan.Platform))
	d := scheduler.Demand{
		Job: r.id, Tenant: rec.Tenant, Priority: rec.Priority, Arrived: sinceEpoch(rec.Created), Gang: gang,
		Quota: p.quota,
	}
	if f := plan.Forecast; f != nil {
		d.Takes, d.Cost = f.Duration, f.Cost.Likely
	}
	return d
}
