package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/service/lease"
)

// When a job that could not be taken over is tried again.
const (
	againAfter     = 5 * time.Second
	unreadAfter    = time.Hour // its record is unreadable: another version may have mended it
	elsewhereAfter = time.Hour // it may not run here, unless its record is changed
)

// session is this Service's lease.Session, and what the Service does when it looks at the leases: it follows requests
// to stop its own jobs, and takes over jobs of processes that are gone.
type session struct {
	*lease.Session
	s       *core
	history *history.Store // of all tenants

	looking sync.Mutex
	again   map[disdel.JobID]time.Time // guarded by looking: when to try again to take a job over
}

// present shows this Service to other processes until it is closed. It is called before the first lease is taken.
func (s *core) present(ctx context.Context) (*session, error) {
	return s.session.get(s.ctx, func() (*session, error) {
		h, err := s.historyOfAll(ctx)
		if err != nil {
			return nil, err
		}
		n := &session{s: s, history: h, again: map[disdel.JobID]time.Time{}}
		n.Session, err = lease.Begin(ctx, s.ctx, lease.Config{
			Home: s.cfg.Home, History: h, Token: s.token, Time: s.leaseFor, Log: s.log, Look: n.tryLook,
		})
		if err != nil {
			return nil, err
		}
		s.atEnd(n.Close)
		if s.cfg.TakeOver {
			s.deliverForOthers(h)
		}
		return n, nil
	})
}

// deliverForOthers delivers the ends of jobs that other processes of the home left, until the Service is closed.
func (s *core) deliverForOthers(h *history.Store) {
	ctx, stop := context.WithCancel(s.ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(deliverOthersEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.deliver(ctx, h)
			case <-ctx.Done():
				return
			}
		}
	})
	s.atEnd(func() error {
		stop()
		done.Wait()
		return nil
	})
}

// own takes the lease of a job that reads a data set, and reserves the disk room for its record. It returns Conflict if
// another process runs the job, and NoSpace.
func (s *Service) own(ctx context.Context, id disdel.JobID, data string) (*lease.Held, error) {
	n, err := s.present(ctx)
	if err != nil {
		return nil, err
	}
	address, _ := s.dataAddress(data)
	held, err := n.Take(ctx, id, address, s.addresses())
	if err != nil {
		return nil, err
	}
	release, err := s.reserve(id)
	held.AtEnd(release)
	if err != nil {
		held.End(ctx)
		return nil, err
	}
	return held, nil
}

// Attend has a Service that takes over begin with that before it has a job of its own.
func (s *Service) Attend(ctx context.Context) error {
	if _, err := s.Parts(ctx); err != nil {
		return err
	}
	n, err := s.present(ctx)
	if err != nil {
		return err
	}
	leases, err := n.history.Leases(ctx)
	if err != nil {
		return err
	}
	n.looking.Lock()
	defer n.looking.Unlock()
	return n.look(ctx, leases)
}

// tryLook looks at the leases unless Attend does so now. The session's renewals do not wait for Attend, which may take
// longer than a lease is valid.
func (n *session) tryLook(ctx context.Context, leases []history.Lease) error {
	if !n.looking.TryLock() {
		return nil
	}
	defer n.looking.Unlock()
	return n.look(ctx, leases)
}

// look compares all leases with the jobs of this Service; the caller holds looking.
func (n *session) look(ctx context.Context, leases []history.Lease) error {
	for _, l := range leases {
		r, mine := n.s.findRun(l.Job)
		switch {
		case mine && l.Owner.Token == n.s.token:
			r.follow(l.StopRequest)
		case mine:
			if err := n.lost(ctx, r, l.Job); err != nil {
				return err
			}
		case n.s.cfg.TakeOver:
			if err := n.takeOver(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// lost cancels a job if another process has its lease. It reads the lease again: the one that was read may be older
// than this Service's.
func (n *session) lost(ctx context.Context, r *Run, id disdel.JobID) error {
	l, err := n.history.Lease(ctx, id)
	if disdel.KindOf(err) == disdel.NotFound || err == nil && l.Owner.Token == n.s.token {
		return nil
	}
	if err == nil && r.own != nil {
		r.Cancel(r.own.Lose(l.Owner))
	}
	return err
}

// findRun finds a job of this Service, of any tenant.
func (s *core) findRun(id disdel.JobID) (*Run, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.runs[id]
	return r, ok
}

// takeOver continues the job of a lease whose owner is gone. If that fails it is logged, and a later look tries again.
func (n *session) takeOver(ctx context.Context, l history.Lease) error {
	if n.s.ctx.Err() != nil || time.Now().Before(n.again[l.Job]) {
		return nil
	}
	lives, err := lease.Alive(ctx, n.history, l)
	if err != nil || lives {
		return err
	}
	delete(n.again, l.Job)
	if err := n.adopt(ctx, l); err != nil {
		if _, set := n.again[l.Job]; !set {
			n.again[l.Job] = time.Now().Add(againAfter)
		}
		if e := disdel.AsError(err); e.Kind != disdel.Conflict || e.Code == disdel.CodeElsewhere { // another one was faster
			n.s.log.WithError(err).WithField("job", l.Job).Warn("a job that nobody runs could not be taken over")
		}
	}
	return nil
}

// adopt begins to run the job of a lease.
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
		n.again[l.Job] = time.Now().Add(unreadAfter)
		return err
	case err != nil:
		return err
	case !rec.Status.Unfinished():
		n.s.discardLate(ctx, &rec)
		return n.history.Release(ctx, l)
	case rec.Job.Model.Custom != "" && n.s.cfg.Program == "":
		n.again[l.Job] = time.Now().Add(elsewhereAfter)
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "take job over", Job: l.Job, Msg: "its actions are a program that is not here",
		}
	}
	if err := n.s.samePlace(&rec, l); err != nil {
		n.again[l.Job] = time.Now().Add(elsewhereAfter)
		return err
	}
	view := n.s.view(rec.Tenant)
	p, err := view.newPlanner(ctx, rec.ID, optionsOf(rec.Planning), nil)
	if err != nil {
		return err
	}
	p.adopted = true
	own, err := view.own(ctx, rec.ID, rec.Data.Name)
	if err != nil {
		return err
	}
	cause := fmt.Sprintf("%s is no more", lease.OwnerText(l.Owner))
	if l.Owner.Token == lease.Nobody {
		cause = "its server has given it back"
	}
	known := knowsPlace(&rec, l)
	r, err := view.begin(ctx, p, own, rec, cause, func(ctx context.Context) (readyJob, error) {
		return p.planAgain(ctx, rec, known)
	})
	if err == nil {
		r.follow(l.StopRequest)
	}
	return err
}

// view returns the Service as a tenant sees it, or for "" the Service of all.
func (s *core) view(tenant string) *Service {
	all := serviceOf(s, nil)
	if tenant == "" {
		return all
	}
	return all.Tenant(tenant)
}

// planAgain plans a job that this Service took over. The job continues at its newest checkpoint, or begins anew if it
// never began. With fromStart it also begins anew if its checkpoints are missing, since nobody can be asked.
func (p *planner) planAgain(ctx context.Context, rec disdel.Record, fromStart bool) (readyJob, error) {
	p.planSlots <- struct{}{} // many may come together
	defer func() { <-p.planSlots }()
	if began := len(rec.Rounds) > 0 || len(rec.Activations) > 0 || len(rec.Stages) > 0; !began {
		r, err := p.resolve(ctx, rec.Job, Source{Name: string(rec.ID)})
		if err != nil {
			return readyJob{}, err
		}
		spec, err := p.planThatFits(ctx, r)
		if err == nil {
			spec.From, err = p.initialCheckpoint(ctx, r)
		}
		if err != nil {
			return readyJob{}, err
		}
		spec.Origin, spec.Continued = rec.Origin, rec.Continued
		p.claimAcknowledged(spec, r)
		return p.startNew(spec, r), nil
	}
	rec, r, err := p.resolveAgain(ctx, rec, ResumeRequest{Job: string(rec.ID), Description: rec.Job.Model.Description})
	if err != nil {
		return readyJob{}, err
	}
	spec, err := p.planResume(ctx, rec, r, fromStart)
	if err != nil {
		return readyJob{}, err
	}
	spec.Origin = rec.Origin
	p.claimAcknowledged(spec, r)
	return p.continueOld(spec, rec), nil
}

// claimAcknowledged claims the room of an acknowledged job, even if the quotas have too little: others must not take
// it.
func (p *planner) claimAcknowledged(spec controller.Spec, r controller.Resolved) {
	_, disk := p.disk.Add(diskNeed(spec, r.Graph))
	_, redis := p.redis.Add(storeNeed(spec.Job, spec.Plan, r.Graph).Bytes())
	p.release = func() { disk(); redis() }
}
