package service

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/lease"
	"github.com/disdel/disdel/service/queue"
	"github.com/disdel/disdel/service/tenant"
)

// newQueue returns the queue of the platform's pool.
func (s *core) newQueue() (*queue.Queue, error) {
	name := s.cfg.OpenWhisk.Host
	if name == "" {
		name = "embedded." + lease.OwnerOf(s.token).Host
	}
	return queue.New(queue.Config{
		Admission: s.cfg.Admission, Pool: noteNameOf(name), Token: s.token, Log: s.log,
		History: s.historyOfAll, Capacity: s.poolCapacity, Busy: s.busyMemory,
		Open: s.open, Life: s.ctx, Running: &s.running,
	})
}

// noteNameOf makes the name of a note from a text: a dash replaces every character that no name may have.
func noteNameOf(text string) string {
	out := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' {
			return c
		}
		return '-'
	}, strings.ToLower(text))
	return "p" + out[:min(len(out), 100)]
}

// Pool lists the jobs in the queue of the platform's pool. A tenant sees only its own jobs.
func (s *Service) Pool(ctx context.Context) (queue.Pool, error) { return s.queue.List(ctx, s.tenant) }

// poolCapacity is what the platform's pool has for all jobs together.
func (s *core) poolCapacity(ctx context.Context) (scheduler.Capacity, error) {
	w, err := s.openWhisk(ctx)
	if err != nil {
		return scheduler.Capacity{}, err
	}
	limits, err := w.executor.Limits(ctx)
	limits.Pool = w.pool.memory
	return s.capacity(ctx, s.withGPUs(ctx, limits)), err
}

// capacity is what a platform with these limits has for all jobs together. It has somewhat more processor time than
// processors. The processors of a cluster are unbounded: no API tells them.
func (s *core) capacity(ctx context.Context, limits disdel.PlatformLimits) scheduler.Capacity {
	c := scheduler.CapacityOf(limits)
	c.Millicores = scheduler.Unbounded
	if n := s.ownProcessors(ctx); n > 0 {
		c.Millicores = int(scheduler.ProcessorShare * 1000 * float64(n))
	}
	return c
}

// demand is what a job asks the pool for. why says in a sentence how long it keeps its containers.
func (p *planner) demand(ctx context.Context, rec disdel.Record, plan disdel.Plan,
) (d scheduler.Demand, why string) {
	d, why = scheduler.DemandOf(rec.ID, plan, p.capacity(ctx, plan.Platform))
	d.Shares = p.Siblings == 0 // jobs of a batch end sooner one after another
	d.Tenant, d.Priority, d.Arrived, d.Quota = rec.Tenant, rec.Priority, queue.SinceEpoch(rec.Created), p.quota
	return d, why
}

// fitsPool returns OverLimit with the arithmetic for a job that would wait for ever. If the job cannot keep its
// containers between rounds, it adds that to the reasons of the plan.
func (p *planner) fitsPool(ctx context.Context, spec *controller.Spec) error {
	d, why := p.demand(ctx, disdel.Record{ID: spec.ID, Tenant: p.whose()}, spec.Plan)
	if d.Keep == scheduler.KeepRound {
		spec.Plan.Reasons = append(spec.Plan.Reasons, why)
	}
	if d.Quota.Cost > 0 {
		spent, err := p.queue.Spent(ctx, d.Tenant)
		if err != nil {
			return err
		}
		d.Quota.Spent += spent
	}
	return scheduler.CheckFits(p.capacity(ctx, spec.Plan.Platform), d)
}

// TenantUse is what a tenant uses of its quota now, and what it shares.
type TenantUse struct {
	tenant.Info
	Running int          // jobs with room in the pool
	Waiting int          // jobs in the queue
	Memory  disdel.Bytes // that running jobs hold
	Disk    disdel.Bytes // that it stores
	Redis   disdel.Bytes // that its unfinished jobs of this process may keep in Redis
	Spent   float64      // GB-s of ended jobs
	Shares  []tenant.Share
}

// TenantUses lists the tenants of the home by name, at most so many, with what they use. A tenant gets only itself.
// more is the number of tenants that are left out.
func (s *Service) TenantUses(ctx context.Context, most int) (list []TenantUse, more int, err error) {
	all, err := s.registry.List(ctx)
	if err != nil {
		return nil, 0, err
	}
	if s.tenant != nil {
		all = slices.DeleteFunc(all, func(t tenant.Info) bool { return t.Name != *s.tenant })
	}
	more = max(0, len(all)-most)
	pool, err := s.Pool(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, info := range all[:len(all)-more] {
		use, err := s.Tenant(info.Name).use(ctx, info, pool)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, use)
	}
	return list, more, nil
}

// use is what the tenant of this Service uses.
func (s *Service) use(ctx context.Context, info tenant.Info, pool queue.Pool) (out TenantUse, err error) {
	out.Info = info
	for _, j := range pool.Holding {
		if j.Tenant == info.Name {
			out.Running, out.Memory = out.Running+1, out.Memory+j.Room.Memory
		}
	}
	for _, j := range pool.Waiting {
		if j.Tenant == info.Name {
			out.Waiting++
		}
	}
	claimed, release := s.redis.Add(0)
	release()
	out.Redis = claimed
	if out.Disk, err = s.stored(ctx); err != nil {
		return out, err
	}
	if out.Spent, err = s.queue.Spent(ctx, info.Name); err != nil {
		return out, err
	}
	out.Spent += info.Quota.Spent
	out.Shares, err = s.Shares(ctx)
	return out, err
}

// stage is what a stage of a job asks the pool for.
func (p *planner) stage(ctx context.Context, rec disdel.Record, o controller.GrantOrder) scheduler.Demand {
	d, _ := p.demand(ctx, rec, o.Plan)
	if d.Keep == scheduler.KeepLife && o.Plan.Rounds > 0 {
		remaining := float64(max(1, o.Plan.Rounds-o.Round)) / float64(o.Plan.Rounds)
		for _, t := range []*disdel.Millis{&d.Takes.Low, &d.Takes.Likely, &d.Takes.High} {
			*t = disdel.Millis(remaining * float64(*t))
		}
	}
	return d
}

// poolLoad is how much memory of the platform's pool is in use, by anybody. Only a platform of disdel that others use
// too reports it: an embedded one is this Service's alone, and OpenWhisk's own API does not report it.
type poolLoad struct {
	mu   sync.Mutex
	at   time.Time    // guarded by mu: time of the newest request
	busy disdel.Bytes // guarded by mu
}

// busyMemory asks the platform for its load, unless it was asked just before. If the platform does not answer, the load
// is taken to be as it was.
func (s *core) busyMemory(ctx context.Context) disdel.Bytes {
	if s.embedded() || s.platformStatus(ctx) == nil {
		return 0
	}
	c := &s.poolLoad
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) >= queue.LookEvery {
		c.at = time.Now()
		state := local.State{Address: addresses.WithScheme(s.cfg.OpenWhisk.Host)}
		if live, err := local.Ask(ctx, state); err == nil {
			c.busy = live.Pool.BusyBytes
		}
	}
	return c.busy
}
