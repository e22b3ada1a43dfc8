package service

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/runtime/engine/gpu"
)

// Config says which servers a Service works with. Only Home is required; each field left out means the embedded part.
type Config struct {
	// Home is the folder of everything that stays on this machine: data sets, models, the embedded history, and records
	// that a history could not take. It is made if it is missing. Services of several processes may share one.
	Home string

	// Storage is the blob URL of data sets and models, file:///folder or s3://bucket?region=REGION. "": folders of Home.
	Storage string

	// Redis is the addresses of the servers that updates go over, with their passwords: redis:// or rediss://, one or
	// several, over which updates are spread. None: an embedded one, which other machines cannot reach.
	Redis          []string
	RedisPrefix    string // of every key, for servers that others use too; "": disdel
	RedisAuthority string // in PEM, that rediss:// servers are checked against; "": the system's

	// CouchDB is the address of the history, with user and password. "": an embedded one in Home.
	CouchDB string

	// OpenWhisk is where actions run. The zero value: an embedded platform on this machine.
	OpenWhisk OpenWhisk

	// Pool is the memory of the container pool, on which depends how many actions run at once. 0: three quarters of
	// what this machine has free for the embedded platform; what a platform of disdel tells, or nothing known, for
	// another.
	Pool disdel.Bytes

	// GPUs is what actions may use of GPUs. The zero value: those that the program's engine sees on this machine for the
	// embedded platform; what a platform of disdel tells, or none, for another.
	GPUs GPUs

	// Program is what the embedded platform starts as containers: it has to serve actions when it is called with
	// `runtime --listen ADDRESS`. "": this very program, whose main then begins with ServeActions.
	Program string

	// ActionMemory and ActionTimeout are the most that an action of the embedded platform may be given. 0: 512 MB, five
	// minutes.
	ActionMemory  disdel.Bytes
	ActionTimeout time.Duration

	// ActionMillicores is the most thousandths of a processor that the platform lets an action use, as OpenWhisk's
	// kubernetes.cpu-scaling does: jobs of a batch begin with more workers where each has little. 0: nobody knows of a
	// bound.
	ActionMillicores int

	// Tune changes the settings of the embedded platform before it starts. nil: they stay.
	Tune func(*platform.Config)

	// Admission is how jobs come to run: "gang" (whole gangs, later ones beside earlier ones where that delays nobody),
	// "fifo" (strictly one after another), or "greedy" (each at once, and the platform makes them wait). "": gang.
	Admission string

	// MostUnfinished is how many jobs of a tenant may wait and run in this process at once. 0: 1,000. Jobs without a
	// tenant have no bound.
	MostUnfinished int

	// Place is the flags of the command line that name where this Service's jobs run, without passwords. Records of jobs
	// keep it, except those of tenants. nil: unknown.
	Place []disdel.Option

	// TakeOver has the Service continue with jobs whose process is no more, or has given them back, for as long as it is
	// open; its own jobs go back to the queue with Close. Without it a Service runs what it was asked to run.
	TakeOver bool

	// Log is told what an operator would want to know. nil: nobody is.
	Log logrus.FieldLogger
}

// OpenWhisk is an OpenWhisk of the user's.
type OpenWhisk struct {
	Host  string // http(s)://host:port; that of `disdel platform up` in the same Home by any name of this machine
	Key   string // user:key
	Image string // container image of the action runtime; "": the platform knows the kind disdel:1
}

// GPUs are those that a platform's actions share.
type GPUs struct {
	Count  int
	Memory disdel.Bytes // of each that actions may take
}

// plannersAtOnce is how many jobs that were taken over are planned at once.
const plannersAtOnce = 2

// Open makes a Service. Its parts are opened when they are first needed, so that listing data sets waits for no Redis;
// what is wrong with an address is told then. It returns Invalid for a Home that cannot be.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Home == "" {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "open service", Msg: "no home folder is named",
			Hint: "set Config.Home",
		}
	}
	home, err := filepath.Abs(cfg.Home)
	if err == nil {
		err = os.MkdirAll(home, 0o700)
	}
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "make the home folder", Err: err,
			Hint: "name a folder you can write to with --home",
		}
	}
	cfg.Home = home
	if cfg.Log == nil {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		cfg.Log = quiet
	}
	by, err := admission(cfg.Admission)
	if err != nil {
		return nil, err
	}
	aggregator.SilenceRedis()
	c := &core{
		cfg: cfg, log: cfg.Log, token: strings.ToLower(ulid.Make().String()), leaseFor: leaseFor,
		runs: map[disdel.JobID]*Run{}, unfinished: map[string]int{}, tenants: map[string]*Service{},
		asking: map[string]bool{}, claims: map[string]*diskClaims{}, planners: make(chan struct{}, plannersAtOnce),
		tally: newTally(), gpus: sync.OnceValues(gpu.Devices), gpuEngine: supportsGPUs(),
	}
	c.ctx, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	c.open, c.closing = context.WithCancel(c.ctx)
	c.queue = newQueue(c, by)
	return serviceOf(c, nil), nil
}

// storage is the blob URL of a kind of data: data sets or models.
func (s *Service) storage(folder string) string {
	if s.tenant != nil && *s.tenant != "" {
		folder = path.Join("tenants", *s.tenant, folder)
	}
	base := s.cfg.Storage
	if base == "" {
		return (&url.URL{Scheme: "file", Path: filepath.Join(s.cfg.Home, folder)}).String()
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

// embedded tells whether actions run on a platform of this process.
func (s *core) embedded() bool { return s.cfg.OpenWhisk.Host == "" }

// platformConfig is the embedded platform's.
func (s *core) platformConfig() (platform.Config, error) {
	cfg, err := local.Config(local.Settings{
		Home: s.cfg.Home, Program: s.cfg.Program, Pool: cmp.Or(s.cfg.Pool, local.DefaultPool()),
		ActionMemory: s.cfg.ActionMemory, ActionTimeout: s.cfg.ActionTimeout, Log: s.log, Devices: s.devices(),
	})
	if err == nil && s.cfg.Tune != nil {
		s.cfg.Tune(&cfg)
	}
	return cfg, err
}
