package service

import (
	"context"
	"errors"
	"slices"
	"sync"
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
	"github.com/disdel/disdel/service/tenant"
)

// lazy is a value that is opened when it is first needed. After a failure, the next use tries again.
type lazy[T any] struct {
	mu    sync.Mutex
	there bool // guarded by mu
	value T    // guarded by mu
}

// get opens the value if it is not open yet. It returns Canceled if life, the Service's context, has ended: nobody
// would close the value.
func (p *lazy[T]) get(life context.Context, open func() (T, error)) (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.there {
		return p.value, nil
	}
	if life.Err() != nil {
		var none T
		return none, &disdel.Error{Kind: disdel.Canceled, Op: "open", Err: errClosed}
	}
	value, err := open()
	if err == nil {
		p.value, p.there = value, true
	}
	return value, err
}

// whisk is the open connection to OpenWhisk.
type whisk struct {
	executor *executor.Executor
	pool     knownPool
	enforces string // how the embedded platform enforces memory limits
}

// knownPool is the memory of a platform's pool.
type knownPool struct {
	memory disdel.Bytes      // 0: unknown
	from   disdel.PoolSource // "": the embedded platform, or unknown
	at     time.Time         // when the doctor measured it; zero for other sources
}

// Parts are the open servers and stores that a job needs.
type Parts struct {
	Data     *dataset.Store
	Models   *modelstore.Store
	History  *history.Store
	Store    disdel.Store // the address that actions share
	Board    *aggregator.Store
	Executor *executor.Executor
	Pool     disdel.Bytes // memory of the platform's pool; 0: unknown
	PoolFrom disdel.PoolSource
	PoolAt   time.Time // when the doctor measured Pool; zero for other sources

	// Enforcement is how the embedded platform enforces memory limits; "": it is another platform.
	Enforcement string
}

// Parts opens everything that a job needs. It returns Unavailable and Denied for servers, Invalid for addresses.
func (s *Service) Parts(ctx context.Context) (p Parts, err error) {
	steps := []func() error{
		func() (err error) { p.Data, err = s.Datasets(ctx); return err },
		func() (err error) { p.Models, err = s.Models(ctx); return err },
		func() (err error) { p.History, err = s.History(ctx); return err },
		func() error {
			own, err := s.ownStore(ctx)
			p.Store, p.Board = own.store, own.board
			return err
		},
		func() error {
			w, err := s.openWhisk(ctx)
			p.Executor, p.Pool, p.Enforcement = w.executor, w.pool.memory, w.enforces
			p.PoolFrom, p.PoolAt = w.pool.from, w.pool.at
			return err
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// readyWithin bounds Ready.
const readyWithin = 5 * time.Second

// Ready returns nil if everything that a job needs answers.
func (s *Service) Ready(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, readyWithin)
	defer stop()
	p, err := s.Parts(ctx)
	if err != nil {
		return err
	}
	if _, err = p.History.List(ctx, history.Query{Limit: 1}); err != nil {
		return err
	}
	if _, err = p.Board.Progress(ctx, newJobID()); err != nil {
		return err
	}
	_, err = p.Executor.Limits(ctx)
	return err
}

// Datasets opens the store of data sets. It lives as long as the Service. The store returns Conflict instead of replacing
// a data set that a job reads.
func (s *Service) Datasets(ctx context.Context) (*dataset.Store, error) {
	return s.data.get(s.ctx, func() (*dataset.Store, error) {
		d, err := dataset.OpenStore(ctx, s.storage("datasets"))
		if err == nil {
			d.Guard(func(ctx context.Context, name string) error { return s.errIfRead(ctx, "replace data set", name) })
			s.atEnd(d.Close)
		}
		return d, err
	})
}

// Models opens the store of trained models. It lives as long as the Service.
func (s *Service) Models(ctx context.Context) (*modelstore.Store, error) {
	return s.models.get(s.ctx, func() (*modelstore.Store, error) {
		m, err := modelstore.Open(ctx, s.storage("models"))
		if err == nil {
			s.atEnd(m.Close)
		}
		return m, err
	})
}

// History opens the history, and gives it the records that it did not take before. It lives as long as the Service.
func (s *Service) History(ctx context.Context) (*history.Store, error) {
	h, err := s.historyOfAll(ctx)
	if err == nil && s.tenant != nil {
		h = h.ForTenant(*s.tenant)
	}
	return h, err
}

// historyOfAll opens the history of all tenants.
func (s *core) historyOfAll(ctx context.Context) (*history.Store, error) {
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
	if !s.hasHistory() && s.hasFilesOfJobs() {
		s.log.Warnf("%s is missing, but the home has models or checkpoints of jobs: the records of these jobs are not "+
			"shown. Put a copy of the file back, or name the history's server (--couchdb); disdel du lists the rest",
			local.HistoryFile(s.cfg.Home))
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

// storeOfAll is the store of all tenants: the Redis of Config, one server or several, or the embedded one.
func (s *core) storeOfAll() (disdel.Store, error) {
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
	return s.allBoard.get(s.ctx, func() (*aggregator.Store, error) {
		at, err := s.storeOfAll()
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

// sharedStore is the store that the actions of a tenant's jobs share.
type sharedStore struct {
	store disdel.Store // its address, as actions are given it
	board *aggregator.Store
}

// ownStore opens the store of the Service's tenant, or the store of all for jobs without a tenant.
func (s *Service) ownStore(ctx context.Context) (sharedStore, error) {
	store, err := s.storeOfAll()
	if err != nil {
		return sharedStore{}, err
	}
	board, err := s.openBoard(ctx)
	if err != nil || s.whose() == "" {
		return sharedStore{store, board}, err
	}
	return s.board.get(s.ctx, func() (sharedStore, error) {
		own, err := tenant.SharedStore(s.whose(), store), error(nil)
		if len(s.cfg.Redis) > 0 { // nobody else reaches an embedded one
			own, err = tenant.OwnStore(ctx, s.whose(), store, board, s.log)
		}
		if err != nil {
			return sharedStore{}, err
		}
		b, err := aggregator.Open(ctx, own)
		if err == nil {
			s.atEnd(b.Close)
		}
		return sharedStore{own, b}, err
	})
}

// Isolation says what keeps the keys of tenants in Redis apart, for the operator. It returns what the servers answer.
func (s *core) Isolation(ctx context.Context) (string, error) {
	if len(s.cfg.Redis) == 0 {
		return "key prefixes in the embedded Redis, which only this server and its actions reach", nil
	}
	all, err := s.storeOfAll()
	if err != nil {
		return "", err
	}
	board, err := s.openBoard(ctx)
	if err != nil {
		return "", err
	}
	own, err := tenant.OwnStore(ctx, tenant.HomeOwner, all, board, s.log)
	if err != nil {
		return "", err
	}
	if !slices.Equal(own.URLs, all.URLs) {
		return "a Redis user for each tenant (ACL), which reaches only the keys of that tenant", nil
	}
	return "key prefixes only, so an action of one tenant could read the keys of another. To have a user for each " +
		"tenant, give Redis a password, and its user the right +acl|setuser", nil
}

// lookOften bounds the time between looks at an activation on an embedded platform. They cost little, and the job waits
// for them.
const lookOften = 100 * time.Millisecond

// openWhisk opens the OpenWhisk of Config, or an embedded one.
func (s *core) openWhisk(ctx context.Context) (whisk, error) {
	w, err := s.startedOpenWhisk()
	if err == nil && !s.embedded() {
		w.pool = s.poolOf(ctx) // a job may have contradicted what was known before
	}
	return w, err
}

func (s *core) startedOpenWhisk() (whisk, error) {
	return s.invoker.get(s.ctx, func() (w whisk, err error) {
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

// startPlatform starts an embedded platform for the life of the Service, and sets pool to the memory of its pool.
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

// poolOf is the memory of the pool of a platform that is not embedded: of Config, as a platform of disdel reports it,
// or as the doctor measured it. It is 0 if it is unknown, or if the doctor found only that it has at least so much.
func (s *core) poolOf(ctx context.Context) knownPool {
	if s.cfg.Pool > 0 {
		return knownPool{memory: s.cfg.Pool, from: disdel.PoolGiven}
	}
	if status := s.platformStatus(ctx); status != nil {
		return knownPool{memory: status.Pool.Bytes, from: disdel.PoolTold}
	}
	f := s.facts().Trusted()
	if f.AtLeast || f.Pool == 0 {
		return knownPool{}
	}
	return knownPool{f.Pool, disdel.PoolFound, f.PoolFoundAt()}
}

// platformStatus is the status of a platform of disdel; nil for any other platform.
func (s *core) platformStatus(ctx context.Context) *local.Status {
	live, _ := s.live.get(s.ctx, func() (*local.Status, error) {
		state := local.State{Address: addresses.WithScheme(s.cfg.OpenWhisk.Host)}
		if live, err := local.Ask(ctx, state); err == nil && live.Pool.Bytes > 0 {
			return live, nil
		}
		return nil, nil
	})
	return live
}

// beatsWait bounds the search for the heartbeats of a failed action: the job can do without them.
const beatsWait = 2 * time.Second

// beats returns the last heartbeats of a failed invocation from the store that actions share.
func (s *core) beats(ctx context.Context, inv disdel.Invocation) (out []disdel.Progress) {
	if inv.Job == "" {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, beatsWait)
	defer stop()
	owner := ""
	if r, ok := s.findRun(inv.Job); ok {
		owner = r.tenant
	}
	own, err := s.view(owner).ownStore(ctx)
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

// Executor is the client of OpenWhisk, for checks of a cluster part by part. It lives as long as the Service. It makes
// no request when it is opened.
func (s *Service) Executor(ctx context.Context) (*executor.Executor, error) {
	w, err := s.openWhisk(ctx)
	return w.executor, err
}

// Board opens the store that actions share, and returns its address as actions are given it. It lives as long as the
// Service. It returns what the servers answer: Denied, Unavailable.
func (s *Service) Board(ctx context.Context) (*aggregator.Store, disdel.Store, error) {
	own, err := s.ownStore(ctx)
	return own.board, own.store, err
}

// ModelsURL is the address of trained models and checkpoints, as actions are given it.
func (s *Service) ModelsURL() string { return s.storage("models") }
