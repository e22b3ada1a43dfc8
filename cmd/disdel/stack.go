package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/sirupsen/logrus"
	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/platform"
)

// defaultActionTimeout is OpenWhisk's own maximum.
const defaultActionTimeout = 5 * time.Minute

// stack is what a command works with: the servers of the user, or embedded ones that speak the same protocols and live as
// long as the command. Parts are started when they are asked for; close ends them in reverse order.
type stack struct {
	cli   *cli.Context
	log   *logrus.Logger
	home  string
	notes []string // what is to be said when the job is shown
	close func() error

	asked bool
	told  *liveStatus // see live
}

// withStack runs f with a stack and ends what f started, whatever came of it.
func withStack(c *cli.Context, u *ui, f func(ctx context.Context, s *stack) error) (err error) {
	dir, err := home(c)
	if err != nil {
		return err
	}
	s := &stack{cli: c, log: newLog(c, u.err), home: dir, close: func() error { return nil }}
	defer func() { err = errors.Join(err, s.close()) }()
	return f(c.Context, s)
}

// atEnd has f called when the stack ends.
func (s *stack) atEnd(f func() error) {
	before := s.close
	s.close = func() error { return errors.Join(f(), before()) }
}

// storage is the blob URL of a kind of data: data sets or models.
func (s *stack) storage(folder string) string {
	base := s.cli.String("storage")
	if base == "" {
		return (&url.URL{Scheme: "file", Path: filepath.Join(s.home, folder)}).String()
	}
	u, err := url.Parse(base)
	if err != nil {
		return base // opening it will say what is wrong
	}
	if u.Scheme == "file" {
		u.Path = filepath.Join(u.Path, folder)
		return u.String()
	}
	q := u.Query()
	q.Set("prefix", folder+"/")
	u.RawQuery = q.Encode()
	return u.String()
}

func (s *stack) datasets(ctx context.Context) (*dataset.Store, error) {
	if err := checkStorage(s.cli.String("storage")); err != nil {
		return nil, err
	}
	d, err := dataset.OpenStore(ctx, s.storage("datasets"))
	if err == nil {
		s.atEnd(d.Close)
	}
	return d, err
}

func (s *stack) models(ctx context.Context) (*modelstore.Store, error) {
	if err := checkStorage(s.cli.String("storage")); err != nil {
		return nil, err
	}
	m, err := modelstore.Open(ctx, s.storage("models"))
	if err == nil {
		s.atEnd(m.Close)
	}
	return m, err
}

// historyFile is where the embedded history is.
func historyFile(home string) string { return filepath.Join(home, "history.db") }

// history opens the user's CouchDB, or the embedded store on the file in the home folder.
func (s *stack) history(ctx context.Context) (*history.Store, error) {
	address, err := withPassword(s.cli.String("couchdb"), "DISDEL_COUCHDB_PASSWORD")
	if err != nil {
		return nil, err
	}
	if address == "" {
		server, err := couchlite.Open(historyFile(s.home), couchlite.Config{})
		if err != nil {
			return nil, err
		}
		s.atEnd(server.Close)
		if err := server.Start(); err != nil {
			return nil, err
		}
		address = server.URL()
	}
	h, err := history.Open(ctx, history.Config{URL: address, Logger: s.log})
	if err == nil {
		s.atEnd(h.Close)
		s.deliver(ctx, h)
	}
	return h, err
}

// executor opens the user's OpenWhisk, or the embedded one. The second value is the memory of its pool, 0 if unknown.
func (s *stack) executor(beats heartbeats) (*executor.Executor, disdel.Bytes, error) {
	pool, err := s.pool()
	if err != nil {
		return nil, 0, err
	}
	if address := s.cli.String("apihost"); address != "" {
		if err := checkAPIHost(address); err != nil {
			return nil, 0, err
		}
		if inTheClear(address) {
			s.log.Warnf("%s is spoken to without TLS: its key, and the passwords in what actions are given, can be read on the way", clean(address))
		}
	}
	cfg := executor.Config{APIHost: ownPlatform(s.home, s.cli.String("apihost")), Image: s.cli.String("image"), Logger: s.log, Beats: beats}
	if cfg.APIHost == "" {
		p, err := s.platform(pool)
		if err != nil {
			return nil, 0, err
		}
		cfg.APIHost, cfg.AuthKey = p.URL(), p.AuthKey()
	} else if cfg.AuthKey, err = authKey(s.home, cfg.APIHost); err != nil {
		return nil, 0, err
	}
	e, err := executor.New(cfg)
	return e, pool, err
}

// platform starts an OpenWhisk for the length of the command.
func (s *stack) platform(pool disdel.Bytes) (*platform.Platform, error) {
	cfg, err := s.platformConfig(pool)
	if err != nil {
		return nil, err
	}
	p, err := s.newPlatform(cfg)
	if err != nil {
		return nil, err
	}
	return p, p.Start()
}

// platformConfig is an OpenWhisk whose containers of the kind disdel are this program, or that of --action.
func (s *stack) platformConfig(pool disdel.Bytes) (platform.Config, error) {
	cfg := platform.DefaultConfig()
	self, err := os.Executable()
	if err != nil {
		return cfg, &disdel.Error{Kind: disdel.Internal, Op: "find this program", Err: err}
	}
	runner, err := actionPath(s.cli.String("action"))
	if err != nil {
		return cfg, err
	}
	memory, err := disdel.ParseBytes(s.cli.String("action-memory"))
	if err != nil {
		return cfg, err
	}
	cfg.PoolMemory, cfg.Logger, cfg.AuthKey = pool, s.log, randomKey()
	cfg.Limits.Memory.Max, cfg.Limits.Timeout.Max = memory, s.cli.Duration("action-timeout")
	cfg.Limits.InvocationsPerMinute, cfg.Limits.ConcurrentInvocations = embeddedPerMinute, embeddedConcurrent
	cfg.Hidden = s.secrets()
	cfg.Kinds = map[string]platform.Kind{
		disdel.RuntimeKind: {Command: []string{cmp.Or(runner, self), "runtime", "--listen", "{listen}"}},
	}
	return cfg, nil
}

// secrets are what no action needs to see: the keys of OpenWhisks, the history of jobs, and the platform's own data and log.
func (s *stack) secrets() []string {
	out := []string{propertiesFile(s.home), filepath.Join(s.home, "history.db"), filepath.Join(s.home, "platform"), platformLog(s.home)}
	if dir, err := os.UserHomeDir(); err == nil {
		out = append(out, filepath.Join(dir, ".wskprops"))
	}
	return out
}

// newPlatform makes a platform that ends with the stack.
func (s *stack) newPlatform(cfg platform.Config) (*platform.Platform, error) {
	p, err := platform.New(cfg)
	if err != nil {
		return nil, err
	}
	s.atEnd(func() error {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		return p.Close(ctx)
	})
	return p, nil
}

// OpenWhisk's defaults protect a shared cluster; the embedded platform has one user, and a job of many short rounds would
// wait for the minute to turn.
const (
	embeddedPerMinute  = 6000
	embeddedConcurrent = 300
)

// pool is the memory of the container pool: what the user says, or for an embedded one what it gets.
func (s *stack) pool() (disdel.Bytes, error) {
	if s.cli.String("pool-memory") == "" && s.cli.String("apihost") != "" {
		if live := s.live(); live != nil {
			return live.Pool.Bytes, nil
		}
		return 0, nil
	}
	return s.embeddedPool()
}

// embeddedPool is what the user says, or three quarters of what the machine has free.
func (s *stack) embeddedPool() (disdel.Bytes, error) {
	if text := s.cli.String("pool-memory"); text != "" {
		return disdel.ParseBytes(text)
	}
	return max(512*disdel.MB, freeMemory()/4*3), nil
}

// freeMemory reads MemAvailable, 0 where there is none.
func freeMemory() disdel.Bytes {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "MemAvailable:" {
			kb, _ := strconv.ParseInt(fields[1], 10, 64)
			return disdel.Bytes(kb) * disdel.KB
		}
	}
	return 0
}

// randomKey is a uuid:key pair as OpenWhisk's, known to this process only.
func randomKey() string {
	b := make([]byte, 48)
	rand.Read(b)
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:32] + ":" + h[32:]
}

// ownPlatform is an address as `disdel platform up` of the same home told it, where it means that one by another name of this
// machine: the key is for that process, and under another name another process may listen.
func ownPlatform(home, apihost string) string {
	if own := readProperties(propertiesFile(home))["APIHOST"]; own != "" && sameAddress(own, apihost) {
		return own
	}
	return apihost
}

// controller joins everything that runs a job.
func (s *stack) controller(ctx context.Context, observe func(controller.Notice)) (*controller.Controller, *jobStack, error) {
	j := &jobStack{stack: s}
	steps := []func() error{
		func() (err error) { j.data, err = s.datasets(ctx); return err },
		func() (err error) { j.shelf, err = s.models(ctx); return err },
		func() (err error) { j.records, err = s.history(ctx); return err },
		func() (err error) { j.shared, err = s.store(); return err },
		func() (err error) { j.board, err = s.board(ctx, j.shared); return err },
		func() (err error) { j.invoker, j.pool, err = s.executor(beatsOn(j.board)); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	return controller.New(controller.Config{
		Invoker: j.invoker, Recorder: j.records, Board: j.board, Shelf: &shelf{stack: s, store: j.shelf, data: j.data}, Log: s.log, Observe: observe,
	}), j, nil
}

// jobStack is the parts of a stack that a job needs.
type jobStack struct {
	*stack
	data    *dataset.Store
	shelf   *modelstore.Store
	records *history.Store
	shared  disdel.Store
	invoker *executor.Executor
	board   *aggregator.Store
	pool    disdel.Bytes
}

// limits are the platform's, with the pool that its API does not tell.
func (j *jobStack) limits(ctx context.Context) (disdel.PlatformLimits, error) {
	p, err := j.invoker.Limits(ctx)
	p.Pool, p.Host = j.pool, j.cli.String("apihost")
	return p, err
}

// live is what the platform of --apihost tells of itself, nil where it is none of disdel's.
func (s *stack) live() *liveStatus {
	if !s.asked {
		s.asked = true
		if live, err := askPlatform(s.cli.Context, platformState{Address: address(s.cli.String("apihost"))}); err == nil && live.Pool.Bytes > 0 {
			s.told = live
		}
	}
	return s.told
}

// address is an API host with its scheme.
func address(host string) string {
	host = strings.TrimSuffix(host, "/")
	if !strings.Contains(host, "://") {
		return "https://" + host
	}
	return host
}

// threads shares processors among the train actions that run at once; one where nobody knows how many there are.
func threads(processors, parallel int) int {
	return max(1, processors/max(parallel, 1))
}

func newJobID() disdel.JobID {
	return disdel.JobID("job-" + strings.ToLower(ulid.Make().String()))
}

// epochs is how many epochs a job has trained, begun ones included. Rounds before a resume may be missing in the record.
func epochs(r *disdel.Record) int {
	if len(r.Rounds) == 0 {
		return 0
	}
	rounds := r.Rounds[len(r.Rounds)-1].Round + 1
	if r.Best != nil {
		rounds = r.Best.Round + 1
	}
	if stages, _ := r.InForce(); len(stages) > 1 {
		span := stages[disdel.StageAt(stages, rounds-1)].Span(rounds - 1)
		return span.Epoch + span.Epochs
	}
	if r.Plan.Batches == 0 {
		return r.Plan.Epochs * rounds
	}
	all := max(1, r.Plan.Rounds)
	return (r.Job.Training.Epochs*rounds + all - 1) / all
}
