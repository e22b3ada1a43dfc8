package service

import (
	"context"
	"errors"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/platform/local"
)

// Datasets is where data sets are. It lives as long as the Service.
func (s *Service) Datasets(ctx context.Context) (*dataset.Store, error) {
	return s.data.get(s.ctx, func() (*dataset.Store, error) {
		d, err := dataset.OpenStore(ctx, s.storage("datasets"))
		if err == nil {
			s.atEnd(d.Close)
		}
		return d, err
	})
}

// Models is where trained models are. It lives as long as the Service.
func (s *Service) Models(ctx context.Context) (*modelstore.Store, error) {
	return s.models.get(s.ctx, func() (*modelstore.Store, error) {
		m, err := modelstore.Open(ctx, s.storage("models"))
		if err == nil {
			s.atEnd(m.Close)
		}
		return m, err
	})
}

// History is where the records of jobs are. It lives as long as the Service. What it could not take before is delivered
// first.
func (s *Service) History(ctx context.Context) (*history.Store, error) {
	h, err := s.everything(ctx)
	if err == nil && s.tenant != nil {
		h = h.ForTenant(*s.tenant)
	}
	return h, err
}

// everything is the history of all tenants.
func (s *core) everything(ctx context.Context) (*history.Store, error) {
	return s.records.get(s.ctx, func() (*history.Store, error) {
		address, closeServer, err := s.historyAddress()
		if err != nil {
			return nil, err
		}
		h, err := history.Open(ctx, history.Config{URL: address, Logger: s.log})
		if err != nil { // the next try starts a server of its own
			return nil, errors.Join(err, closeServer())
		}
		s.atEnd(closeServer)
		s.atEnd(h.Close)
		s.deliver(ctx, h)
		return h, nil
	})
}

// historyAddress returns the address of the history: that of Config, or of a server that it starts for the home's own
// file. The caller closes that server with the function returned.
func (s *core) historyAddress() (address string, closeServer func() error, err error) {
	if s.cfg.CouchDB != "" {
		return s.cfg.CouchDB, func() error { return nil }, nil
	}
	server, err := couchlite.Open(local.HistoryFile(s.cfg.Home), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return "", nil, err
	}
	return server.URL(), server.Close, nil
}

// sharedStore is the address that actions share: the Redis of Config, one or several, or the embedded one.
func (s *core) sharedStore() (disdel.Store, error) {
	return s.store.get(s.ctx, func() (disdel.Store, error) {
		out := disdel.Store{Prefix: s.cfg.RedisPrefix, CA: s.cfg.RedisAuthority}
		if r := s.cfg.Redis; len(r) > 0 {
			out.URLs = r
			return out, nil
		}
		e, err := embedded.Start()
		if err != nil {
			return out, err
		}
		s.atEnd(e.Close)
		out.URLs = []string{e.URL()}
		return out, nil
	})
}

func (s *core) openBoard(ctx context.Context) (*aggregator.Store, error) {
	return s.board.get(s.ctx, func() (*aggregator.Store, error) {
		at, err := s.sharedStore()
		if err != nil {
			return nil, err
		}
		b, err := aggregator.Open(ctx, at)
		if err == nil {
			s.atEnd(b.Close)
		}
		return b, err
	})
}

// lookOften is the longest time between looks at an activation on a platform of this process, which cost little: what
// comes after it waits for that.
const lookOften = 100 * time.Millisecond

// openWhisk is the OpenWhisk of Config, or an embedded one.
func (s *core) openWhisk(ctx context.Context) (worksOn, error) {
	w, err := s.startedOpenWhisk()
	if err == nil && !s.embedded() {
		w.pool = s.poolOf(ctx) // a job may have contradicted what was known when it was opened
	}
	return w, err
}

func (s *core) startedOpenWhisk() (worksOn, error) {
	return s.invoker.get(s.ctx, func() (w worksOn, err error) {
		at := s.cfg.OpenWhisk
		cfg := executor.Config{
			APIHost: local.OwnAddress(s.cfg.Home, at.Host), AuthKey: at.Key, Image: at.Image, Logger: s.log,
			Heartbeats: s.beats, Seal: true,
		}
		if s.embedded() {
			cfg.PollEvery = lookOften
			p, err := s.startPlatform(&w.pool.memory)
			if err != nil {
				return w, err
			}
			cfg.APIHost, cfg.AuthKey, w.enforces = p.URL(), p.AuthKey(), p.Enforcement()
		} else if addresses.InTheClear(at.Host) {
			s.log.Warnf("%s is spoken to without TLS: its key, and the passwords in what actions are given, "+
				"can be read on the way", at.Host)
		}
		w.executor, err = executor.New(cfg)
		return w, err
	})
}

// startPlatform starts an OpenWhisk for as long as the Service lives, and tells the memory of its pool.
func (s *core) startPlatform(pool *disdel.Bytes) (*platform.Platform, error) {
	cfg, err := s.platformConfig()
	if err != nil {
		return nil, err
	}
	*pool = cfg.PoolMemory
	p, err := platform.New(cfg)
	if err != nil {
		return nil, err
	}
	s.atEnd(func() error { return local.End(p) })
	return p, p.Start()
}

// poolOf is the memory of another platform's pool: what Config says, what a platform of disdel reports, or what the
// doctor found by probing. It is 0 if nobody knows. A found pool that may be larger does not bound jobs.
func (s *core) poolOf(ctx context.Context) knownPool {
	if s.cfg.Pool > 0 {
		return knownPool{memory: s.cfg.Pool, from: disdel.PoolGiven}
	}
	if told := s.told(ctx); told != nil {
		return knownPool{memory: told.Pool.Bytes, from: disdel.PoolTold}
	}
	f := s.facts().Trusted()
	if f.AtLeast || f.Pool == 0 {
		return knownPool{}
	}
	return knownPool{f.Pool, disdel.PoolFound, f.PoolFoundAt()}
}

// told is what the platform of Config tells of itself, nil where it is none of disdel's.
func (s *core) told(ctx context.Context) *local.Status {
	live, _ := s.live.get(s.ctx, func() (*local.Status, error) {
		state := local.State{Address: addresses.WithScheme(s.cfg.OpenWhisk.Host)}
		if live, err := local.Ask(ctx, state); err == nil && live.Pool.Bytes > 0 {
			return live, nil
		}
		return nil, nil
	})
	return live
}

// beatsWait bounds the look for the heartbeats of an action that has failed: they are evidence, and the job can do
// without.
const beatsWait = 2 * time.Second

// beats gives what is known of an invocation that has failed: the last heartbeat of each action is on the board that
// they share.
func (s *core) beats(ctx context.Context, inv disdel.Invocation) (out []disdel.Progress) {
	if inv.Job == "" {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, beatsWait)
	defer stop()
	tenant := ""
	if r, ok := s.has(inv.Job); ok {
		tenant = r.tenant
	}
	own, err := s.of(tenant).ownPlace(ctx)
	if err != nil {
		return nil
	}
	all, err := own.board.Progress(ctx, inv.Job)
	if err != nil {
		return nil
	}
	for _, p := range all {
		if p.Task == inv.Task && p.Round == inv.Round && p.Level == inv.Level && p.Member == inv.Member {
			out = append(out, p)
		}
	}
	return out
}
