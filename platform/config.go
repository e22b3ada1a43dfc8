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

// Range is the bounds of a limit and what an action gets that names none.
type Range[T any] struct{ Min, Std, Max T }

// Limits are OpenWhisk's limits under its own names; each may be set.
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

// Kind is how containers of an OpenWhisk kind are started. In an argument "{listen}" becomes the address to serve on,
// as `disdel runtime --listen` takes it.
//
// With __OW_ALLOW_CONCURRENT=true in Env a container runs as many activations at once as their action's limit
// "concurrency" allows: its program serves that many /run together, and /init tells it how many as value.concurrency. A
// line that it prints may begin with a zero byte, the activation's id and a zero byte: then it is that activation's
// alone.
type Kind struct {
	Command []string
	Env     []string
	// Together are the mains of actions whose activations may share a container, where Env allows that at all. Empty: all.
	Together []string
	// Says is what runs, such as Python 3.11.7, where the name does not tell it: clients read it in the place of an image.
	Says    string
	Default bool // of its family, the part before the colon; where none is, the last by name
	// Unlisted kinds are for images alone: no action names them, and nobody is told of them.
	Unlisted bool
	// OwnUser runs each container as a user of its own, who owns nothing on the machine, if the platform runs as root.
	// It is for kinds that run other people's code. If root cannot give containers such users, the platform refuses the
	// kind, unless Config.AllowRoot is set.
	OwnUser bool
	// Reads are the folders and files that the program reads, besides itself. A folder above them may be closed to other
	// users: containers with users of their own then see the Reads, and nothing else of that folder.
	Reads []string
}

// OOMText chooses how an out-of-memory kill reads in an activation: clusters differ.
type OOMText uint8

// The two ways.
const (
	OOMAsDocker     OOMText = iota // OpenWhisk on Docker says that memory was exhausted
	OOMAsKubernetes                // OpenWhisk on Kubernetes cannot tell it from any other death
)

// Config is how a Platform runs. DefaultConfig has OpenWhisk's defaults.
type Config struct {
	Namespace  string
	AuthKey    string      // uuid:key; empty: OpenWhisk's well-known guest key
	Namespaces []Namespace // further ones
	Limits     Limits
	PoolMemory disdel.Bytes
	Kinds      map[string]Kind
	// the kinds that run actions of these container images; those of others fail as where they cannot be pulled
	Images     map[string]string
	TempDir    string        // of sockets and working folders; empty: the system's
	PauseGrace time.Duration // after which an unused container is stopped until its next activation; 0: never
	Prewarm    []Prewarm
	FolderMB   int           // bound on a container's working folder; 0: none
	Idle       time.Duration // after which an unused container is removed
	CPU        CPUScaling    // quota of processors of containers; zero: none, they share by their memory
	OOM        OOMText
	Logger     logrus.FieldLogger

	DataDir        string // of the state, which then survives a restart; empty: a temporary file
	MaxActivations int    // kept of each namespace; the oldest go first
	// ActivationBytes bounds what the kept ones of a namespace take, with their logs and results. 0: nothing does.
	ActivationBytes disdel.Bytes
	BlockingWait    time.Duration // after which a blocking invocation is answered with its id alone

	// Origins are the web pages that may call, as http://HOST:PORT. Empty: none. Pages of any other origin are refused,
	// whatever key they have.
	Origins []string
	// Hosts are further names that requests may call the platform by, beside localhost and its address.
	Hosts []string

	// Hidden are files and folders that actions do not see, where the platform runs as root: keys, and its own data. The
	// data folder is one of them unasked.
	Hidden []string
	// AllowRoot runs containers as root if their kind asks for users of their own and the machine cannot give them.
	AllowRoot bool

	Devices []Device // accelerators that actions are given parts of, by their annotation gpu-memory

	Likeness // to an OpenWhisk as people run it
}

// guestKey is the key of the namespace guest in OpenWhisk's standalone.conf and its clients' documents.
const guestKey = "23bc46b1-71f6-4ed5-8c54-816aa4f8c502:123zO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP"

// DefaultConfig has OpenWhisk's defaults (core's application.conf, standalone.conf) and no kinds.
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
			Msg:  fmt.Sprintf("the pool has %v, and the smallest action takes %v", c.PoolMemory, c.Limits.Memory.Min),
			Hint: fmt.Sprintf("--pool-memory %dMB or more", c.Limits.Memory.Min.MB()),
		}
	case !c.imagesHaveKinds():
		return bad("an image is to be run by a kind that is not configured")
	case c.Limits.Memory.Min > c.Limits.Memory.Max || c.Limits.Timeout.Min > c.Limits.Timeout.Max:
		return bad("a limit's minimum is above its maximum")
	case c.MaxActivations <= 0 || c.BlockingWait <= 0:
		return bad("the bound on activations and the wait of blocking invocations must be positive")
	case c.LateRecords < 0 || c.LateSlots < 0:
		return bad("what is late cannot be early")
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

// CPUScaling is how many thousandths of a processor a container may use at most, as OpenWhisk's Kubernetes factory has
// it (kubernetes.cpu-scaling): Millicpus for each whole Memory of its limit, no less than Millicpus and no more than
// Most.
// It is a quota: a container gets no more even where processors are idle. The zero value sets none, and containers
// share the processors in proportion to their memory.
type CPUScaling struct {
	Millicpus int          // of one unit of memory; OpenWhisk's example: 300
	Memory    disdel.Bytes // the unit; its example: 256 MB
	Most      int          // its example: 4000
}

// period is what a quota is of, in microseconds: the kernel's own default.
const period = 100_000

// leastMillicpus is the smallest quota that the kernel takes: a thousand microseconds of each period.
const leastMillicpus = 10

// of is the quota of a container with so much memory, in thousandths of a processor; 0: it has none.
func (s CPUScaling) of(memory disdel.Bytes) int {
	if s == (CPUScaling{}) {
		return 0
	}
	return min(max(int(memory/disdel.MB/(s.Memory/disdel.MB))*s.Millicpus, s.Millicpus), s.Most)
}

func (s CPUScaling) check() error {
	if s == (CPUScaling{}) || s.Millicpus >= leastMillicpus && s.Memory >= disdel.MB && s.Most >= s.Millicpus {
		return nil
	}
	return fmt.Errorf("%d thousandths of a processor, of which %d are the least, for each %v and at most %d are no quota",
		s.Millicpus, leastMillicpus, s.Memory, s.Most)
}

// ParseCPUScaling reads MILLICPUS/MEMORY and, after a colon, the most: "300/256MB:4000". Without it the most is that of
// OpenWhisk's example, or MILLICPUS where that is more. It returns Invalid.
func ParseCPUScaling(text string) (s CPUScaling, err error) {
	bad := func() (CPUScaling, error) {
		return s, &disdel.Error{
			Kind: disdel.Invalid, Op: "read quota of processors", Msg: fmt.Sprintf("%q is none", text),
			Hint: "write thousandths of a processor for so much memory, and the most: 300/256MB:4000",
		}
	}
	each, most, bounded := strings.Cut(text, ":")
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
	if s.Most = max(example, s.Millicpus); bounded {
		if s.Most, err = strconv.Atoi(most); err != nil {
			return bad()
		}
	}
	if s.check() != nil {
		return bad()
	}
	return s, nil
}

// processing is a container's part of the processors.
type processing struct {
	share int // as Docker's --cpu-shares
	quota int // thousandths of a processor; 0: none
}

func (c *Config) processingOf(memory disdel.Bytes) processing {
	return processing{share: sharesOfPool(memory, c.PoolMemory), quota: c.CPU.of(memory)}
}

// quotas are the files and texts that set a quota of so many thousandths of a processor.
func (g groups) quotas(millis int) [][2]string {
	most := strconv.Itoa(millis * period / 1000)
	if g.version == 2 {
		return [][2]string{{"cpu.max", most + " " + strconv.Itoa(period)}}
	}
	return [][2]string{{"cpu.cfs_period_us", strconv.Itoa(period)}, {"cpu.cfs_quota_us", most}}
}

// keepsQuotas tells whether the kernel keeps quotas of processors here, by setting one.
func keepsQuotas(f fencer) bool {
	g, ok := f.(groups)
	if !ok {
		return false
	}
	probe, ok := g.fence("probe", disdel.GB, processing{share: sharesOfPool(1, 1), quota: leastMillicpus}).(group)
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
