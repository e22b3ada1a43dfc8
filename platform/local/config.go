package local

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// OpenWhisk's defaults protect a shared cluster; a platform on this machine has one user, and a job of many short
// rounds would wait for the minute to turn.
const (
	PerMinute  = 6000
	Concurrent = 300
)

// The largest limits of an action where nobody says otherwise: memory, and OpenWhisk's own maximum of time.
const (
	DefaultActionMemory  = 512 * disdel.MB
	DefaultActionTimeout = 5 * time.Minute
)

// Settings are those of an OpenWhisk on this machine.
type Settings struct {
	Home          string // whose secrets no action needs to see
	Program       string // that is a container with `runtime --listen ADDRESS`; "": this one
	Pool          disdel.Bytes
	ActionMemory  disdel.Bytes  // the most that an action may be given; 0: DefaultActionMemory
	ActionTimeout time.Duration // 0: DefaultActionTimeout
	CPUScaling    string        // a quota of processors, as platform.ParseCPUScaling reads it; "": none
	Log           logrus.FieldLogger
	Devices       []platform.Device // accelerators that containers are given
}

// Config configures an OpenWhisk whose disdel actions run this program or another one. Its key is random.
func Config(s Settings) (platform.Config, error) {
	cfg := platform.DefaultConfig()
	self, err := os.Executable()
	if err != nil {
		return cfg, &disdel.Error{Kind: disdel.Internal, Op: "find this program", Err: err}
	}
	cfg.PoolMemory, cfg.Logger, cfg.AuthKey = s.Pool, s.Log, platform.RandomKey()
	cfg.Limits.Memory.Max = cmp.Or(s.ActionMemory, DefaultActionMemory)
	cfg.Limits.Timeout.Max = cmp.Or(s.ActionTimeout, DefaultActionTimeout)
	cfg.Limits.InvocationsPerMinute, cfg.Limits.ConcurrentInvocations = PerMinute, Concurrent
	if s.CPUScaling != "" {
		if cfg.CPU, err = platform.ParseCPUScaling(s.CPUScaling); err != nil {
			return cfg, err
		}
	}
	cfg.Hidden, cfg.Devices = secrets(s.Home), s.Devices
	cfg.Kinds = map[string]platform.Kind{
		disdel.RuntimeKind: {Command: []string{cmp.Or(s.Program, self), "runtime", "--listen", "{listen}"}, Forks: true},
	}
	PassOn(cfg.Kinds, []string{kernel.Variable, kernel.BlocksVariable}) // how the engine computes is this machine's
	return cfg, nil
}

// PassOn passes environment variables of this process to containers of every kind, for example credentials of a blob
// store, which no invocation has.
func PassOn(kinds map[string]platform.Kind, variables []string) {
	for name, kind := range kinds {
		for _, variable := range variables {
			if value, ok := os.LookupEnv(variable); ok {
				kind.Env = append(slices.Clone(kind.Env), variable+"="+value)
			}
		}
		kinds[name] = kind
	}
}

// HistoryFile is the embedded history of a home.
func HistoryFile(home string) string { return filepath.Join(home, "history.db") }

// secrets are files that no action may see: keys, the history, and the platform's data and log.
func secrets(home string) []string {
	out := []string{PropertiesFile(home), HistoryFile(home), filepath.Join(home, "platform"), Log(home)}
	if dir, err := os.UserHomeDir(); err == nil {
		out = append(out, filepath.Join(dir, ".wskprops"))
	}
	return out
}

// DefaultPool is three quarters of the machine's free memory, and at least enough for one action.
func DefaultPool() disdel.Bytes { return max(512*disdel.MB, freeMemory()/4*3) }

// freeMemory is MemAvailable, 0 if unknown.
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
