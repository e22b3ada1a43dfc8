package platform

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// Range is a limit's bounds and its default.
type Range[T any] struct{ Min, Default, Max T }

// Limits are OpenWhisk's limits under its own names.
type Limits struct {
	Memory                Range[disdel.Bytes]
	Timeout               Range[time.Duration]
	LogsMB                Range[int]
	Concurrency           Range[int]
	Payload               disdel.Bytes // of an invocation's parameters and of a result
	Code                  disdel.Bytes
	Parameters            disdel.Bytes // of an action, a package or a trigger, and of its annotations
	InvocationsPerMinute  int
	ConcurrentInvocations int
	FiresPerMinute        int // of triggers
	SequenceLength        int
}

// Kind is how containers of an OpenWhisk kind are started. In Command "{listen}" stands for the address to serve on, as
// `disdel runtime --listen` takes it.
//
// With __OW_ALLOW_CONCURRENT=true in Env, a container runs as many activations at once as their action's limit
// "concurrency" allows. Its program serves that many /run requests together; /init has the number in value.concurrency.
// A line of output that starts with a zero byte, an activation's id and a zero byte belongs to that activation.
type Kind struct {
	Command []string
	Env     []string
	// SharedMains are the values of main whose actions may share a container, if Env allows sharing. Empty: all.
	SharedMains []string
	// Description is what runs, such as Python 3.11.7, if the name does not tell it. Clients read it in the place of an
	// image.
	Description string
	Default     bool // of its family, the part before the colon; without one, the last by name
	// Unlisted kinds only stand for images. Actions cannot name them, and no list shows them.
	Unlisted bool
	// OwnUser runs each container as its own user, who owns nothing, if the platform runs as root. It is for kinds that
	// run other people's code. If root cannot create such users, the platform refuses the kind unless Config.AllowRoot is
	// set.
	OwnUser bool
	// Forks lets the program ask for processes that are forked from a template which containers share. The variable
	// __DISDEL_FORKS has the descriptor of a socket for its requests.
	Forks bool
	// Reads are the folders and files that the program reads besides itself. If a folder above them is closed to other
	// users, containers with their own users see only the Reads in it.
	Reads []string
}

// OOMText chooses the text of an out-of-memory kill in a record. Clusters differ.
type OOMText uint8

// The two ways.
const (
	OOMAsDocker     OOMText = iota // "exhausted its memory", as OpenWhisk on Docker says
	OOMAsKubernetes                // the text of any death, as OpenWhisk on Kubernetes says
)

// Config is how a Platform runs. DefaultConfig has OpenWhisk's defaults.
type Config struct {
	Namespace  string
	AuthKey    string      // uuid:key; empty: OpenWhisk's well-known guest key
	Namespaces []Namespace // further ones
	Limits     Limits
	PoolMemory disdel.Bytes
	Kinds      map[string]Kind
	// Images maps container images to the kinds that run them. Actions of other images are refused.
	Images     map[string]string
	TempDir    string        // parent folder of sockets and working folders; empty: the system's
	PauseGrace time.Duration // after which an idle container is paused; 0: never
	Prewarm    []Prewarm
	FolderMB   int           // bound on a container's working folder; 0: none
	Idle       time.Duration // after which an idle container is removed
	CPU        CPUScaling    // processor quota of containers; zero: none
	OOM        OOMText
	Logger     logrus.FieldLogger

	DataDir        string // of the state, which survives restarts; empty: a temporary folder
	MaxActivations int    // kept of each namespace; the oldest are deleted first
	// ActivationBytes bounds the kept activations of a namespace with their logs and results. 0: no bound.
	ActivationBytes disdel.Bytes
	BlockingWait    time.Duration // after which a blocking invocation is answered with only its id

	// Origins are the web pages that may call, as http://HOST:PORT. Pages of other origins are refused, even with a key.
	Origins []string
	// Hosts are further host names of the platform, besides localhost and its address.
	Hosts []string

	// Hidden are files and folders that actions do not see if the platform runs as root. The data folder is always
	// hidden.
	Hidden []string
	// AllowRoot runs containers as root if their kind asks for own users and the machine cannot create them.
	AllowRoot bool

	Devices []Device // accelerators that actions share, by their annotation gpu-memory

	Emulation // weaknesses of a real OpenWhisk
}

// guestKey is the key of the namespace guest in OpenWhisk's standalone.conf and in its clients' documents.
const guestKey = "23bc46b1-71f6-4ed5-8c54-816aa4f8c502:123zO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP"

// DefaultConfig has OpenWhisk's defaults (application.conf, standalone.conf) and no kinds.
func DefaultConfig() Config {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return Config{
		Namespace: "guest", AuthKey: guestKey, PoolMemory: 2 * disdel.GB, Idle: 10 * time.Minute, Logger: quiet,
		MaxActivations: 10_000, ActivationBytes: 4 * disdel.GB, BlockingWait: time.Minute,
		Limits: Limits{
			Memory:      Range[disdel.Bytes]{128 * disdel.MB, 256 * disdel.MB, 512 * disdel.MB},
			Timeout:     Range[time.Duration]{100 * time.Millisecond, time.Minute, 5 * time.Minute},
			LogsMB:      Range[int]{0, 10, 10},
			Concurrency: Range[int]{1, 1, 1},
			Payload:     disdel.MB, Parameters: disdel.MB, Code: 48 * disdel.MB,
			InvocationsPerMinute: 60, ConcurrentInvocations: 30, FiresPerMinute: 60, SequenceLength: 50,
		},
		PauseGrace: 10 * time.Second, FolderMB: 1024,
	}
}

func (c *Config) validate() error {
	bad := func(msg string) error { return &disdel.Error{Kind: disdel.Invalid, Op: "configure platform", Msg: msg} }
	switch {
	case len(c.Kinds) == 0:
		return bad("no kind of container is configured")
	case c.Namespace == "" || c.AuthKey == "":
		return bad("namespace and key must be set")
	case c.PoolMemory < c.Limits.Memory.Min:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "configure platform",
			Msg:  fmt.Sprintf("the pool has %v, but the smallest action needs %v", c.PoolMemory, c.Limits.Memory.Min),
			Hint: fmt.Sprintf("--pool-memory %dMB or more", c.Limits.Memory.Min.MB()),
		}
	case !c.imagesHaveKinds():
		return bad("an image stands for a kind that is not configured")
	case c.Limits.Memory.Min > c.Limits.Memory.Max || c.Limits.Timeout.Min > c.Limits.Timeout.Max:
		return bad("a limit has a minimum above its maximum")
	case c.MaxActivations <= 0 || c.BlockingWait <= 0:
		return bad("the bound on activations and the wait of blocking invocations must be positive")
	case c.LateRecords < 0 || c.LateSlots < 0:
		return bad("LateRecords and LateSlots cannot be negative")
	default:
		if err := c.validateGate(); err != nil {
			return err
		}
		return validateNamespaces(c.Namespaces, Namespace{Name: c.Namespace, Key: c.AuthKey})
	}
}

func (c *Config) imagesHaveKinds() bool {
	for _, kind := range c.Images {
		if _, ok := c.Kinds[kind]; !ok {
			return false
		}
	}
	return true
}

func listenLoopback() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Unavailable, Op: "start platform", Err: err}
	}
	return l, nil
}

// CPUScaling is a container's quota of processors, like kubernetes.cpu-scaling of OpenWhisk: Millicpus thousandths of a
// processor for each whole Memory of its limit, at least Millicpus and at most Max. A container gets no more even if
// processors are idle. Without a quota, which is the zero value, containers share the processors in proportion to their
// memory.
type CPUScaling struct {
	Millicpus int          // of one unit of memory; OpenWhisk's example: 300
	Memory    disdel.Bytes // the unit; its example: 256 MB
	Max       int          // its example: 4000
}

// period is the period of a quota in microseconds: the kernel's default.
const period = 100_000

// leastMillicpus is the smallest quota that the kernel accepts: 1000 microseconds of each period.
const leastMillicpus = 10

// millicores is the quota for a memory limit in thousandths of a processor; 0: none.
func (s CPUScaling) millicores(memory disdel.Bytes) int {
	if s == (CPUScaling{}) {
		return 0
	}
	return min(max(int(memory/disdel.MB/(s.Memory/disdel.MB))*s.Millicpus, s.Millicpus), s.Max)
}

func (s CPUScaling) check() error {
	if s == (CPUScaling{}) || s.Millicpus >= leastMillicpus && s.Memory >= disdel.MB && s.Max >= s.Millicpus {
		return nil
	}
	return fmt.Errorf("a quota of %d thousandths of a processor (%d or more) for each %v, at most %d, is not possible",
		s.Millicpus, leastMillicpus, s.Memory, s.Max)
}

// ParseCPUScaling reads MILLICPUS/MEMORY or MILLICPUS/MEMORY:MAX, such as "300/256MB:4000". The default of MAX is 4000,
// or MILLICPUS if that is more. It returns Invalid.
func ParseCPUScaling(text string) (s CPUScaling, err error) {
	bad := func() (CPUScaling, error) {
		return s, &disdel.Error{
			Kind: disdel.Invalid, Op: "read quota of processors", Msg: fmt.Sprintf("%q is not a quota", text),
			Hint: "write THOUSANDTHS/MEMORY:MAX, such as 300/256MB:4000",
		}
	}
	each, maximum, bounded := strings.Cut(text, ":")
	millis, memory, ok := strings.Cut(each, "/")
	if !ok {
		return bad()
	}
	if s.Millicpus, err = strconv.Atoi(millis); err != nil {
		return bad()
	}
	if s.Memory, err = disdel.ParseBytes(memory); err != nil {
		return bad()
	}
	const example = 4000
	if s.Max = max(example, s.Millicpus); bounded {
		if s.Max, err = strconv.Atoi(maximum); err != nil {
			return bad()
		}
	}
	if s.check() != nil {
		return bad()
	}
	return s, nil
}

// cpuLimit is a container's share of the processors.
type cpuLimit struct {
	share int // like Docker's --cpu-shares
	quota int // thousandths of a processor; 0: none
}

func (c *Config) cpuLimitOf(memory disdel.Bytes) cpuLimit {
	return cpuLimit{share: cpuShares(memory, c.PoolMemory), quota: c.CPU.millicores(memory)}
}

// quotas are the files and contents that set a quota.
func (g cgroups) quotas(millis int) [][2]string {
	maximum := strconv.Itoa(millis * period / 1000)
	if g.version == 2 {
		return [][2]string{{"cpu.max", maximum + " " + strconv.Itoa(period)}}
	}
	return [][2]string{{"cpu.cfs_period_us", strconv.Itoa(period)}, {"cpu.cfs_quota_us", maximum}}
}

// quotasWork tells whether the kernel accepts a quota of processors.
func quotasWork(f limiter) bool {
	g, ok := f.(cgroups)
	if !ok {
		return false
	}
	probe, ok := g.newLimit("probe", disdel.GB, cpuLimit{share: cpuShares(1, 1), quota: leastMillicpus}).(cgroup)
	if !ok {
		return false
	}
	defer probe.remove()
	for _, q := range g.quotas(leastMillicpus) {
		if !probe.write(q[0], q[1]) {
			return false
		}
	}
	return true
}
