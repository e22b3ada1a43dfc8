package service

import (
	"context"
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/history"
)

// againAfter is when a job that could not be taken over is tried again.
const againAfter = 5 * time.Second

// unreadAfter is when a job whose record cannot be read is looked at again: another version may have mended it.
const unreadAfter = time.Hour

// elsewhereAfter is when a job that this Service may not run is looked at again: somebody may have moved it.
const elsewhereAfter = time.Hour

// Attend has a Service that takes over begin with that, before it has a job of its own.
func (s *Service) Attend(ctx context.Context) error {
	if _, err := s.Parts(ctx); err != nil {
		return err
	}
	n, err := s.present(ctx)
	if err != nil {
		return err
	}
	return n.look(ctx)
}

// takeOver continues the job of a lease whose owner has died. If that fails, it writes to the log, and a later look tries
// again.
func (n *session) takeOver(ctx context.Context, l history.Lease) error {
	if time.Now().Before(n.later[l.Job]) {
		return nil
	}
	lives, err := n.s.alive(ctx, n.history, l)
	if err != nil || lives {
		return err
	}
	delete(n.later, l.Job)
	if err := n.adopt(ctx, l); err != nil {
		if _, said := n.later[l.Job]; !said {
			n.later[l.Job] = time.Now().Add(againAfter)
		}
		if e := disdel.AsError(err); e.Kind != disdel.Conflict || e.Code == disdel.CodeElsewhere { // another one was faster
			n.s.log.WithError(err).WithField("job", l.Job).Warn("a job that nobody runs could not be taken over")
		}
	}
	return nil
}

// adopt begins to run somebody else's job.
func (n *session) adopt(ctx context.Context, l history.Lease) error {
	// The job may have ended here while the history did not take its end. Then it must not be trained again.
	if err := n.s.deliverOne(ctx, n.history, n.s.unsavedFile(l.Job)); err != nil {
		return err
	}
	rec, err := n.history.Get(ctx, l.Job)
	switch {
	case disdel.KindOf(err) == disdel.NotFound: // it was never acknowledged
		return n.history.Release(ctx, l)
	case err != nil && disdel.AsError(err).Code == disdel.CodeUnreadable:
		n.later[l.Job] = time.Now().Add(unreadAfter)
		return err
	case err != nil:
		return err
	case !rec.Status.Unfinished():
		return n.history.Release(ctx, l)
	case rec.Job.Model.Custom != "" && n.s.cfg.Program == "":
		n.later[l.Job] = time.Now().Add(elsewhereAfter)
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "take job over", Job: l.Job, Msg: "its actions are a program that is not here",
		}
	}
	if err := n.s.samePlace(&rec, l); err != nil {
		n.later[l.Job] = time.Now().Add(elsewhereAfter)
		return err
	}
	view := n.s.of(rec.Tenant)
	p, err := view.preparing(ctx, rec.ID, optionsOf(rec.Planning), nil)
	if err != nil {
		return err
	}
	p.adopted = true
	own, err := view.own(ctx, p.parts.History, rec.ID)
	if err != nil {
		return err
	}
	cause := fmt.Sprintf("%s is no more", ownerText(l.Owner))
	if l.Owner.Token == nobody {
		cause = "its server has given it back"
	}
	known := knowsPlace(&rec, l)
	r, err := view.begin(ctx, p, own, rec, cause, func(ctx context.Context) (work, error) {
		return p.again(ctx, rec, known)
	})
	if err == nil {
		r.obey(l.StopRequest)
	}
	return err
}

// of is the Service of a tenant, the whole one for jobs without a tenant.
func (s *core) of(tenant string) *Service {
	whole := serviceOf(s, nil)
	if tenant == "" {
		return whole
	}
	return whole.Tenant(tenant)
}

// again prepares a job that this Service took over. The job begins at its newest checkpoint, or anew if it never began.
// With fromStart it also begins anew if its checkpoints are missing, since there is nobody to ask.
func (p *preparation) again(ctx context.Context, rec disdel.Record, fromStart bool) (work, error) {
	p.planners <- struct{}{} // many may come together
	defer func() { <-p.planners }()
	if began := len(rec.Rounds) > 0 || len(rec.Activations) > 0 || len(rec.Stages) > 0; !began {
		r, err := p.resolve(ctx, rec.Job, Source{Name: string(rec.ID)})
		if err != nil {
			return work{}, err
		}
		spec, err := p.fitting(ctx, r)
		if err == nil {
			spec.From, err = p.beginning(ctx, r)
		}
		if err != nil {
			return work{}, err
		}
		spec.Origin = rec.Origin
		p.claimAcknowledged(spec, r)
		return p.anew(spec, r), nil
	}
	rec, r, err := p.unfinishedOf(ctx, rec, ResumeRequest{Job: string(rec.ID), Description: rec.Job.Model.Description})
	if err != nil {
		return work{}, err
	}
	spec, err := p.takenUp(ctx, rec, r, fromStart)
	if err != nil {
		return work{}, err
	}
	spec.Origin = rec.Origin
	p.claimAcknowledged(spec, r)
	return p.goesOn(spec, rec), nil
}

// claimAcknowledged claims what a job will write, whether the quota has room or not: the job was acknowledged, and
// others must not take its room.
func (p *preparation) claimAcknowledged(spec controller.Spec, r controller.Resolved) {
	_, p.release = p.claim(diskNeed(spec, r.Graph))
}
