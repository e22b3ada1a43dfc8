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
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/runtime/engine/gpu"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/lease"
	"github.com/disdel/disdel/service/queue"
	"github.com/disdel/disdel/service/tenant"
)

// Service runs jobs, and asks trained models with the methods of its Predictor. It is safe for concurrent use. Close
// ends everything that it opened.
type Service struct {
	*core
	*infer.Predictor
	tenant *string // the owner of the jobs, models and data sets that it shows; nil: all jobs, and the home's own data

	data   lazy[*dataset.Store]
	models lazy[*modelstore.Store]
	board  lazy[sharedStore]
	disk   tenant.Claims // of bytes that will be written
	redis  tenant.Claims // of memory in Redis
	sizes  history.SizeCache

	reading chan struct{} // has an element while the history is read for a plan
}

// serviceOf returns the Service of a tenant, or of the home if owner is nil.
func serviceOf(c *core, owner *string) *Service {
	s := &Service{core: c, tenant: owner, reading: make(chan struct{}, 1)}
	s.Predictor = infer.New(infer.Config{
		Tenant: s.whose(), ModelsURL: s.storage("models"), Log: c.log,
		Owner: lease.OwnerOf(c.token), Queue: c.queue, UnderWay: &c.underWay,
		FindDataset: s.FindDataset, FindModel: s.FindModel,
		Models: s.Models, History: s.History, Executor: s.Executor, Quota: s.quota,
		Session: func(ctx context.Context) (string, error) {
			n, err := s.present(ctx)
			if err != nil {
				return "", err
			}
			return n.Identity(), nil
		},
		Count: func() func() { return c.counters.inferring(s.whose()) },
	})
	return s
}

// core is what the views of all tenants share.
type core struct {
	cfg         Config
	log         logrus.FieldLogger
	token       string        // identifies this Service, see history.Owner
	leaseFor    time.Duration // validity of a lease
	queue       *queue.Queue
	registry    *tenant.Registry
	audit       *tenant.Audit
	underWay    infer.UnderWay
	counters    *counters
	load        machineLoad
	poolLoad    poolLoad
	recordCache recordCache
	unread      sync.Once // warns once that the file with facts about clusters is unreadable
	gpus        func() ([]gpu.Device, error)
	// reports why the engine for GPUs cannot compute a network; nil: the program has no such engine
	gpuEngine func(g *model.Graph) error
	planSlots chan struct{}   // has an element for each job that was taken over and is planned now
	open      context.Context // ends when Close begins
	closing   context.CancelFunc
	ctx       context.Context // ends once all jobs have
	stop      context.CancelCauseFunc

	records  lazy[*history.Store]
	store    lazy[disdel.Store]
	allBoard lazy[*aggregator.Store] // of all tenants
	invoker  lazy[whisk]
	live     lazy[*local.Status]
	session  lazy[*session]

	mu     sync.Mutex
	closed bool                  // guarded by mu
	ends   []func() error        // guarded by mu: close what was opened, the newest last
	runs   map[disdel.JobID]*Run // guarded by mu: unfinished jobs
	views  map[string]*Service   // guarded by mu: by tenant
	// guarded by mu: number of runs of each tenant
	unfinished map[string]int
	// guarded by mu: ends of jobs that the history did not take yet
	undelivered undelivered
	tidied      time.Time      // guarded by mu: time of the last search for files of killed processes
	running     sync.WaitGroup // counts runs and background work
}

// errClosed is the cause of the end of a job whose Service was closed.
var errClosed = errors.New("the service was closed")

// Close stops the jobs of the Service, waits until they have ended, and closes everything that the Service opened, the
// newest first. The jobs are canceled; those of a Service that takes over go back to the queue for the next Service. A
// second call changes nothing.
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
	s.running.Wait()
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

// background runs f in the background, for at most releaseWithin. Close waits for it; after Close has begun, background
// runs nothing.
func (s *core) background(f func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.running.Go(func() {
		ctx, stop := context.WithTimeout(s.ctx, releaseWithin)
		defer stop()
		f(ctx)
	})
}

// atEnd has f called when the Service ends, or now if it has ended.
func (s *core) atEnd(f func() error) {
	s.mu.Lock()
	ended := s.ctx.Err() != nil
	if !ended {
		s.ends = append(s.ends, f)
	}
	s.mu.Unlock()
	if ended {
		f() //nolint:errcheck // nobody uses it
	}
}

// usualUnfinished is the default of Config.MostUnfinished.
const usualUnfinished = 1000

// mayRun returns OverLimit, with CodeTooManyJobs, if a tenant may have no more unfinished jobs; the caller holds the
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

// Run finds an unfinished job that this Service runs for the tenant.
func (s *Service) Run(id disdel.JobID) (*Run, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.runs[id]
	if !ok || s.tenant != nil && r.tenant != *s.tenant {
		return nil, false
	}
	return r, true
}

// Tenants returns the list of the tenants that may use this Service.
func (s *core) Tenants() *tenant.Registry { return s.registry }

// Audit returns the home's log of who did what.
func (s *core) Audit() *tenant.Audit { return s.audit }

// AuditLines returns lines of the audit log, the newest first. A tenant gets only its own, whatever q says.
func (s *Service) AuditLines(ctx context.Context, q tenant.AuditQuery) ([]tenant.AuditLine, error) {
	if s.tenant != nil {
		q.Tenant = s.tenant
	}
	return s.audit.Read(ctx, q)
}

// Settings returns what the program was started with, see Config. Tenants get nothing.
func (s *Service) Settings() []Setting {
	if s.tenant != nil {
		return nil
	}
	return s.cfg.Settings
}

// Tenant returns the view that one tenant has of the Service: only its own jobs, records, models and data sets. All
// tenants share the platform, the queue and the pool. The view ends with the Service.
func (s *Service) Tenant(name string) *Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.views[name]
	if t == nil {
		t = serviceOf(s.core, &name)
		s.views[name] = t
	}
	return t
}

// whose is the tenant of what this Service submits, "" for none.
func (s *Service) whose() string {
	if s.tenant == nil {
		return ""
	}
	return *s.tenant
}

// quota is what the jobs of this Service's tenant may use together.
func (s *Service) quota(ctx context.Context) (scheduler.Quota, error) {
	return s.registry.Quota(ctx, s.whose())
}
