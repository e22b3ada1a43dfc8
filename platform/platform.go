package platform

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/disdel/disdel"
)

// Platform is one embedded OpenWhisk. It is safe for concurrent use.
type Platform struct {
	cfg      Config
	temp     *tempFolder // sockets and working folders
	limiter  limiter
	spawner  *spawner
	guard    *guard
	pool     *pool
	ownUsers bool          // containers of kinds with OwnUser run as their own users
	started  atomic.Uint32 // containers started; selects the next user id

	largeBodies chan struct{} // bounds the large bodies that are read at once
	store       *store
	accepted    *acceptedLog // nil without a data folder
	pending     pendingRecords
	actionCache actionCache
	counters    *counters
	tenants     sync.RWMutex
	users       []*user // the first is the platform's own; read by allUsers

	templates    templates
	containersMu sync.Mutex
	containers   map[*container]bool // started and not removed

	work     context.Context // context of activations
	stop     context.CancelFunc
	runs     sync.WaitGroup
	closing  sync.Once
	server   *http.Server
	listener net.Listener
	served   chan struct{}
}

// New makes a platform. Start serves it, or the caller serves its Handler. It returns Invalid for a bad configuration
// and on systems other than Linux, and Unavailable without a temporary folder.
func New(cfg Config) (*Platform, error) {
	if cfg.AuthKey == "" {
		cfg.AuthKey = guestKey
	}
	if err := supported(); err != nil {
		return nil, err
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := cfg.validateContainers(); err != nil {
		return nil, err
	}
	root, err := newTempFolder(cfg.TempDir)
	if err != nil {
		return nil, err
	}
	root.openToUsers()
	dir := cmp.Or(cfg.DataDir, root.dir)
	state, err := openStore(dir, cfg.DataDir != "", cfg.MaxActivations)
	if err != nil {
		root.remove() //nolint:errcheck // the first error is reported
		return nil, err
	}
	state.maxBytes, state.readWithin = cfg.ActivationBytes, 3*time.Minute
	var took *acceptedLog
	var remaining unfinished
	if cfg.DataDir != "" {
		if took, remaining, err = openAccepted(dir); err != nil {
			state.close() //nolint:errcheck // the first error is reported
			root.remove() //nolint:errcheck // as above
			return nil, &disdel.Error{
				Kind: disdel.Unavailable, Op: "open the platform's state", Err: err,
				Hint: "choose a data folder that can be written",
			}
		}
	}
	work, stop := context.WithCancel(context.Background())
	p := &Platform{
		largeBodies: make(chan struct{}, maxLargeBodies), containers: map[*container]bool{}, cfg: cfg,
		counters: newCounters(),
		temp:     root, store: state, accepted: took, pending: pendingRecords{full: make(chan struct{}, 1)},
		users: newUsers(&cfg), limiter: newLimiter(),
		spawner: newSpawner(cfg.hiddenPaths(), needsOf(cfg.Kinds, root.dir)), work: work, stop: stop,
	}
	if cfg.CPU != (CPUScaling{}) && !quotasWork(p.limiter) {
		p.limiter.close()
		p.spawner.close()
		stop()
		errors.Join(state.close(), took.close(), root.remove()) //nolint:errcheck // the first error is reported
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "start platform", Msg: "processor quotas need the kernel's control groups, and " +
				"none can be used here", Hint: "leave --cpu-scaling out, or run it as root",
		}
	}
	p.ownUsers = canSwitch() && p.spawner.confined.own.open[root.dir]
	p.guard = newGuard(p.limiter.folders())
	preload(cfg.Kinds)
	p.pool = newPool(&p.cfg, p.startContainer)
	p.pool.endTemplate = p.templates.drop
	if err := errors.Join(p.loadTenants(), p.recordUnfinished(remaining)); err != nil {
		p.Close(context.Background()) //nolint:errcheck // the first error is reported
		return nil, &disdel.Error{
			Kind: disdel.Unavailable, Op: "open the platform's state", Err: err,
			Hint: "free space in the data folder, or choose another",
		}
	}
	cfg.Logger.WithField("memory", p.limiter.String()).WithField("confined", p.Confinement()).Debug("platform made")
	return p, nil
}

// Start serves on a free loopback port.
func (p *Platform) Start() error {
	l, err := listenLoopback()
	if err == nil {
		p.Serve(l, p.Handler())
	}
	return err
}

// URL is the API host.
func (p *Platform) URL() string { return "http://" + p.listener.Addr().String() }

// AuthKey is the key of the platform's namespace.
func (p *Platform) AuthKey() string { return p.cfg.AuthKey }

// Enforcement says how memory limits are enforced on this machine.
func (p *Platform) Enforcement() string { return p.limiter.String() }

// Confinement describes how actions are confined on this machine, besides their memory limit.
func (p *Platform) Confinement() string {
	parts := slices.Clone(p.spawner.confined.done)
	kinds := p.Users()
	own := slices.ContainsFunc(kinds, func(u KindUser) bool { return u.Own })
	if own {
		parts = append(parts, "own users for "+familiesOf(kinds, func(u KindUser) bool { return u.Own }))
	}
	if _, ok := p.limiter.(cgroups); ok || own {
		parts = append(parts, fmt.Sprintf("at most %d processes", maxProcesses))
	}
	if len(parts) == 0 {
		return "none: this system offers nothing"
	}
	return strings.Join(parts, "; ")
}

// Close kills every container, waits for everything that the platform started, and removes its folders. Further calls
// do nothing.
func (p *Platform) Close(ctx context.Context) error {
	var err error
	p.closing.Do(func() { err = p.end(ctx) })
	return err
}

func (p *Platform) end(ctx context.Context) error {
	p.stop()
	if p.server != nil {
		if err := p.server.Shutdown(ctx); err != nil {
			p.server.Close()
		}
		<-p.served
	}
	p.pool.close()
	p.runs.Wait()
	p.pool.drain()
	p.templates.close()
	p.spawner.close() // before the guard, which kills what is in a container's group: the spawner's thread may be there
	p.guard.close()
	p.limiter.close()
	if err := errors.Join(p.store.close(), p.accepted.close()); err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "close platform", Err: err}
	}
	if err := p.temp.remove(); err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "close platform", Err: err}
	}
	return nil
}

// newID is 32 hex digits, as OpenWhisk's activation and transaction ids.
func newID() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// newActivationID is a new activation id. It starts with the time in milliseconds, so that records of one time are
// stored on few pages; the rest is random.
func newActivationID() string {
	b := make([]byte, 16)
	rand.Read(b)
	now := time.Now().UnixMilli()
	for i := range 6 {
		b[i] = byte(now >> (8 * (5 - i)))
	}
	return hex.EncodeToString(b)
}
