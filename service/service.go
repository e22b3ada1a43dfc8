package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/runtime/engine/gpu"
)

// Service runs jobs. It is safe for concurrent use. Everything that it opened ends with Close.
type Service struct {
	*core
	tenant *string // whose jobs, models and data sets are seen; nil: everybody's jobs, and the home's own data

	data   part[*dataset.Store]
	models part[*modelstore.Store]
	place  part[place]

	large    sync.Mutex    // held by whoever reads a large picture
	sweeping sync.Mutex    // held by whoever takes away what killed processes left beside the models
	reading  chan struct{} // holds a token while the history is read for a plan
}

// serviceOf returns a Service of a tenant, or of the home itself if tenant is nil.
func serviceOf(c *core, tenant *string) *Service {
	return &Service{core: c, tenant: tenant, reading: make(chan struct{}, 1)}
}

// core is what a Service and its tenants have in common.
type core struct {
	cfg      Config
	log      logrus.FieldLogger
	token    string        // of this Service, see history.Owner
	leaseFor time.Duration // how long a session is to be believed
	queue    *queue
	tally    *tally
	load     load
	crowd    crowd
	pasts    pasts
	unread   sync.Once // of the file with what is known of clusters: told once
	gpus     func() ([]gpu.Device, error)
	// whether the engine for GPUs computes a network; nil: the program has none
	gpuEngine func(g *model.Graph) error
	planners  chan struct{}   // whoever plans a job that was taken over puts something in meanwhile
	open      context.Context // ends when Close begins
	closing   context.CancelFunc
	ctx       context.Context // ends once all jobs have
	stop      context.CancelCauseFunc

	records part[*history.Store]
	store   part[disdel.Store]
	board   part[*aggregator.Store]
	invoker part[worksOn]
	live    part[*local.Status]
	session part[*session]

	mu      sync.Mutex
	closed  bool                  // guarded by mu
	ends    []func() error        // guarded by mu: of what was opened, the newest last
	runs    map[disdel.JobID]*Run // guarded by mu: those that have not ended
	tenants map[string]*Service   // guarded by mu
	// guarded by mu: how many of runs are each tenant's
	unfinished map[string]int
	claims     map[string]*diskClaims // guarded by mu: of the disk quotas, by tenant
	// guarded by mu: ends of jobs that wait for the history
	undelivered undelivered
	tidied      time.Time       // guarded by mu: when what others left behind was looked for last
	asking      map[string]bool // guarded by mu: questions, by name, that something lies beside the models for
	flying      sync.WaitGroup  // of runs, and of what is done beside them
}

// errClosed is the cause of the end of jobs whose Service was closed.
var errClosed = errors.New("the service was closed")

// Close stops the jobs that it has, waits until they have ended, and ends everything that the Service opened, the
// newest first. Jobs are canceled; those of a Service that takes over go back to the queue, where the next one finds
// them. It may be called again.
func (s *core) Close() error {
	s.closing()
	s.mu.Lock()
	s.closed = true
	for _, r := range s.runs {
		if s.cfg.TakeOver {
			r.end(disdel.StatusQueued, errClosed)
		} else {
			r.Cancel(errClosed)
		}
	}
	s.mu.Unlock()
	s.flying.Wait()
	s.mu.Lock()
	s.stop(errClosed)
	ends := s.ends
	s.ends = nil
	s.mu.Unlock()
	var err error
	for _, end := range slices.Backward(ends) {
		err = errors.Join(err, end())
	}
	return err
}

// beside runs f for as long as it may take to look something up. A Service that is being closed waits for it, and
// begins no other.
func (s *core) beside(f func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.flying.Go(func() {
		ctx, stop := context.WithTimeout(s.ctx, releaseWithin)
		defer stop()
		f(ctx)
	})
}

// atEnd has f called when the Service ends, at once where it has ended.
func (s *core) atEnd(f func() error) {
	s.mu.Lock()
	ended := s.ctx.Err() != nil
	if !ended {
		s.ends = append(s.ends, f)
	}
	s.mu.Unlock()
	if ended {
		f() //nolint:errcheck // nobody works with it
	}
}

// usualUnfinished is Config.MostUnfinished where it is 0.
const usualUnfinished = 1000

// mayRun returns OverLimit, with CodeTooManyJobs, if a tenant may have no more unfinished jobs. The caller holds the
// lock.
func (s *core) mayRun(tenant string) error {
	if tenant == "" || s.unfinished[tenant] < cmp.Or(s.cfg.MostUnfinished, usualUnfinished) {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.OverLimit, Code: disdel.CodeTooManyJobs, Op: "submit job",
		Msg: fmt.Sprintf("%d jobs of %s have not ended, and %d are the most", s.unfinished[tenant], tenant,
			cmp.Or(s.cfg.MostUnfinished, usualUnfinished)),
		Hint: "wait until some have ended, or cancel some",
	}
}

// mayRunMore is mayRun for this Service's tenant.
func (s *Service) mayRunMore() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mayRun(s.whose())
}

// Run finds a job that this Service runs, false where it has ended or is another's.
func (s *Service) Run(id disdel.JobID) (*Run, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.runs[id]
	if !ok || s.tenant != nil && r.tenant != *s.tenant {
		return nil, false
	}
	return r, true
}

// Tenant is the Service as one tenant has it: with jobs, records, models and data sets of its own, and nothing of
// others; the platform, the queue and the pool are those of all. It ends with the Service that it is of.
func (s *Service) Tenant(name string) *Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[name]
	if t == nil {
		t = serviceOf(s.core, &name)
		s.tenants[name] = t
	}
	return t
}

// whose is the tenant that what this Service submits belongs to.
func (s *Service) whose() string {
	if s.tenant == nil {
		return ""
	}
	return *s.tenant
}

// part is something that a Service opens when it first needs it. After a failure, the next use tries again.
type part[T any] struct {
	mu    sync.Mutex
	there bool // guarded by mu
	value T    // guarded by mu
}

// get opens the part if it is not open yet. It returns Canceled if life, the Service's context, has ended before:
// nobody would close the part then.
func (p *part[T]) get(life context.Context, open func() (T, error)) (T, error) {
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

// worksOn is the side of OpenWhisk.
type worksOn struct {
	executor *executor.Executor
	pool     knownPool
	enforces string // how the embedded platform keeps limits of memory
}

// knownPool is what is known of the memory of a platform's pool.
type knownPool struct {
	memory disdel.Bytes      // 0: not known
	from   disdel.PoolSource // who says so; "": the embedded platform, or nobody
	at     time.Time         // when the doctor found it out; zero for other sources
}

// Parts is everything that a job needs, open.
type Parts struct {
	Data     *dataset.Store
	Models   *modelstore.Store
	History  *history.Store
	Store    disdel.Store // the address that actions share
	Board    *aggregator.Store
	Executor *executor.Executor
	Pool     disdel.Bytes // memory of the platform's pool; 0: not known
	PoolFrom disdel.PoolSource
	PoolAt   time.Time // when the doctor found Pool out; zero for other sources

	// Enforcement is by what the embedded platform keeps limits of memory, "" of another platform.
	Enforcement string
}

// Parts opens everything that a job needs. It returns Unavailable and Denied for servers, Invalid for addresses.
func (s *Service) Parts(ctx context.Context) (p Parts, err error) {
	steps := []func() error{
		func() (err error) { p.Data, err = s.Datasets(ctx); return err },
		func() (err error) { p.Models, err = s.Models(ctx); return err },
		func() (err error) { p.History, err = s.History(ctx); return err },
		func() error {
			own, err := s.ownPlace(ctx)
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

// readyWithin bounds the look at what a Service works with.
const readyWithin = 5 * time.Second

// Ready returns nil where everything that a job needs answers.
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
