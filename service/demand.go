package service

import (
	"context"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/scheduler"
)

// capacity is what a platform has for all jobs together: of processors somewhat more than there are, where they are
// known to be all that there are. What a cluster's hosts have together its API does not tell.
func (s *core) capacity(ctx context.Context, limits disdel.PlatformLimits) scheduler.Capacity {
	c := scheduler.CapacityOf(limits)
	c.Millicores = scheduler.Unbounded
	if n := s.ownProcessors(ctx); n > 0 {
		c.Millicores = int(scheduler.ProcessorShare * 1000 * float64(n))
	}
	return c
}

// demand is a job as admission knows it, and for how long it keeps its containers, in a sentence.
func (p *preparation) demand(ctx context.Context, rec disdel.Record, plan disdel.Plan,
) (d scheduler.Demand, why string) {
	d, why = scheduler.DemandOf(rec.ID, plan, p.capacity(ctx, plan.Platform))
	d.Shares = p.Beside == 0 // those of a batch are better off one after another
	d.Tenant, d.Priority, d.Arrived, d.Quota = rec.Tenant, rec.Priority, sinceEpoch(rec.Created), p.quota
	return d, why
}

// everFits returns OverLimit with the arithmetic for a job that would wait for ever, and says in the plan where its
// containers cannot be kept.
func (p *preparation) everFits(ctx context.Context, spec *controller.Spec) error {
	d, why := p.demand(ctx, disdel.Record{ID: spec.ID, Tenant: p.whose()}, spec.Plan)
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
	return scheduler.CheckFits(p.capacity(ctx, spec.Plan.Platform), d)
}
