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
	"github.com/disdel/disdel/service/lease"
	"github.com/disdel/disdel/service/tenant"
)

// Config names the servers of a Service. Only Home is required; a missing server is embedded.
type Config struct {
	// Home is the folder of all files on this machine: data sets, models, the embedded history, and records that a history
	// did not take. It is made if it is missing. Services of several processes may share it.
	Home string

	// Storage is the blob URL of data sets and models, file:///folder or s3://bucket?region=REGION. "": folders of Home.
	Storage string

	// Redis is the addresses of the Redis servers for updates, with their passwords: redis:// or rediss://. Updates are
	// spread over several servers. None: an embedded one, which other machines cannot reach.
	Redis          []string
	RedisPrefix    string // of every key, for shared servers; "": disdel
	RedisAuthority string // certificates in PEM to check rediss:// servers with; "": those of the system

	// CouchDB is the address of the history, with user and password. "": an embedded one in Home.
	CouchDB string

	// OpenWhisk is where actions run. The zero value: an embedded platform on this machine.
	OpenWhisk OpenWhisk

	// Pool is the memory of the container pool, which bounds how many actions run at once. 0: for the embedded platform
	// three quarters of the machine's free memory; for another one what a platform of disdel reports, or unknown.
	Pool disdel.Bytes

	// GPUs is what actions may use of GPUs. The zero value: for the embedded platform the GPUs of this machine that the
	// program's engine sees; for another one what a platform of disdel reports, or none.
	GPUs GPUs

	// Program is what the embedded platform starts as containers. It serves actions when it is called with
	// `runtime --listen ADDRESS`. "": this program, whose main then begins with ServeActions.
	Program string

	// ActionMemory and ActionTimeout are the largest limits of an action of the embedded platform. 0: 512 MB, five
	// minutes.
	ActionMemory  disdel.Bytes
	ActionTimeout time.Duration

	// ActionMillicores bounds the thousandths of a processor that an action may use, as OpenWhisk's kubernetes.cpu-scaling
	// does. Jobs of a batch begin with more workers if each has little. 0: no known bound.
	ActionMillicores int

	// PackageIndex is where the packages come from that Python programs of this Service's tenants require: the URL of an
	// index, such as https://pypi.org/simple, or a folder of wheels. "": none are installed.
	PackageIndex string

	// Tune changes the settings of the embedded platform before it starts. nil: no change.
	Tune func(*platform.Config)

	// Admission is the queueing order: "gang" (all actions of a job start together; a later job may go first if that
	// delays no other), "fifo" (in order), or "greedy" (all at once; actions wait on the platform). "": gang.
	Admission string

	// MostUnfinished bounds the jobs of a tenant that wait or run in this process. 0: 1,000. Jobs without a tenant have no
	// bound.
	MostUnfinished int

	// Place is the flags of the command line that name this Service's servers, without passwords. Records of jobs keep it,
	// except those of tenants. nil: unknown.
	Place []disdel.Option

	// Settings is what the program was started with, without passwords, for the page of admins. nil: unknown.
	Settings []Setting

	// TakeOver has the Service continue jobs whose process is gone or has given them back. Close gives its own jobs
	// back to the queue. Without it a Service runs only the jobs that were submitted to it or resumed by it.
	TakeOver bool

	// Log is for the operator. nil: nothing is logged.
	Log logrus.FieldLogger
}

// OpenWhisk is an OpenWhisk that is not embedded.
type OpenWhisk struct {
	Host  string // http(s)://host:port; `disdel platform up` in the same Home may have any name of this machine
	Key   string // user:key
	Image string // container image of the action runtime; "": the platform has the kind disdel:1
}

// Setting is a setting of the program that runs a Service.
type Setting struct {
	Name    string // of its flag
	Value   string // without passwords; "": not set
	Source  string // where the value comes from, such as "default"
	Meaning string // the flag's help
}

// GPUs are the GPUs that the actions of a platform share.
type GPUs struct {
	Count  int
	Memory disdel.Bytes // of each GPU
}

// plannersAtOnce bounds the jobs that are planned at once after they were taken over.
const plannersAtOnce = 2

// Open makes a Service. A server is opened when it is first needed, so that listing data sets needs no Redis; a wrong
// address is reported then. Open returns Invalid for a Home that cannot be made.
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
	if err := cfg.checkPackageIndex(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		cfg.Log = quiet
	}
	aggregator.SilenceRedis()
	c := &core{
		cfg: cfg, log: cfg.Log, token: strings.ToLower(ulid.Make().String()), leaseFor: lease.DefaultTime,
		runs: map[disdel.JobID]*Run{}, unfinished: map[string]int{}, views: map[string]*Service{},
		planSlots: make(chan struct{}, plannersAtOnce),
		counters:  newCounters(), gpus: sync.OnceValues(gpu.Devices), gpuEngine: supportsGPUs(),
	}
	c.ctx, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	c.open, c.closing = context.WithCancel(c.ctx)
	if c.queue, err = c.newQueue(); err != nil {
		c.stop(err)
		return nil, err
	}
	c.audit = tenant.NewAudit(home)
	c.registry = tenant.NewRegistry(c.historyOfAll, c.log, c.audit)
	return serviceOf(c, nil), nil
}

// storage is the blob URL of a folder of the tenant: "datasets" or "models".
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

// embedded reports whether actions run on a platform of this process.
func (s *core) embedded() bool { return s.cfg.OpenWhisk.Host == "" }

// keptActivations is how many ended activations the embedded platform keeps. Jobs read them within seconds. Each takes
// memory: bbolt has a map of the pages that a process has written.
const keptActivations = 2000

// platformConfig is the configuration of the embedded platform.
func (s *core) platformConfig() (platform.Config, error) {
	cfg, err := local.Config(local.Settings{
		Home: s.cfg.Home, Program: s.cfg.Program, Pool: cmp.Or(s.cfg.Pool, local.DefaultPool()),
		ActionMemory: s.cfg.ActionMemory, ActionTimeout: s.cfg.ActionTimeout, Log: s.log, Devices: s.devices(),
	})
	cfg.MaxActivations = keptActivations
	if err == nil && s.cfg.Tune != nil {
		s.cfg.Tune(&cfg)
	}
	return cfg, err
}
