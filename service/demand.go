package service

import (
	"context"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
)

// capacity is what a platform has for all jobs together. Processors bound nothing: a platform shares them out.
func capacity(limits disdel.PlatformLimits) scheduler.Capacity {
	c := scheduler.CapacityOf(limits)
	c.Millicores = scheduler.Unbounded
	return c
}

// demand is a job as admission knows it, and for how long it keeps its containers, in a sentence.
func (p *preparation) demand(rec disdel.Record, plan disdel.Plan) (d scheduler.Demand, why string) {
	d, why = scheduler.DemandOf(rec.ID, plan, capacity(plan.Platform))
	d.Tenant, d.Priority, d.Arrived, d.Quota = rec.Tenant, rec.Priority, sinceEpoch(rec.Created), p.quota
	return d, why
}

// everFits returns OverLimit with the arithmetic for a job that would wait for ever, and says in the plan where its
// containers cannot be kept.
func (p *preparation) everFits(ctx context.Context, spec *controller.Spec) error {
	d, why := p.demand(disdel.Record{ID: spec.ID, Tenant: p.whose()}, spec.Plan)
	if d.Keep == scheduler.KeepRound {
		spec.Plan.Reasons = append(spec.Plan.Reasons, why)
	}
	if d.Quota.Cost > 0 {
		spent, err := p.queue.spent(ctx, d.Tenant)
		if err != nil {
			return err
		}
		d.Quota.Spent += spent
	}
	return scheduler.Fits(capacity(spec.Plan.Platform), d)
}
