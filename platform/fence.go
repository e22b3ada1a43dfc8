package platform

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// fencer puts memory limits around processes by the best means this machine offers. Whichever it is, the container's
// watch on resident memory stands beside it.
type fencer interface {
	fmt.Stringer
	fence(pid int, name string, limit disdel.Bytes) fence
	close()
}

// fence is the limit around one process.
type fence interface {
	// killed tells whether the kernel ended a process in it for memory.
	killed() bool
	remove()
}

func newFencer() fencer {
	name := fmt.Sprintf("disdel-%d-%s", os.Getpid(), newID()[:8]) // a process may have several platforms
	for _, g := range []groups{
		{version: "cgroup v2", magic: unix.CGROUP2_SUPER_MAGIC, base: filepath.Join("/sys/fs/cgroup", name), limit: "memory.max", swap: "memory.swap.max", events: "memory.events"},
		{version: "cgroup v1", magic: unix.CGROUP_SUPER_MAGIC, base: filepath.Join("/sys/fs/cgroup/memory", name), limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes", events: "memory.oom_control"},
	} {
		if g.usable() {
			return g
		}
	}
	return rlimits{}
}

// groups is a control group with one child for each container.
type groups struct {
	version                   string
	magic                     int64 // of the file system: a plain folder takes any file, and limits nothing
	base, limit, swap, events string
}

// usable makes the group and one below it, and looks whether that can be limited.
func (g groups) usable() bool {
	var fs unix.Statfs_t
	if unix.Statfs(filepath.Dir(g.base), &fs) != nil || int64(fs.Type) != g.magic {
		return false
	}
	for _, left := range stale(filepath.Join(filepath.Dir(g.base), "disdel-*")) {
		members, _ := filepath.Glob(filepath.Join(left, "c-*")) // the pattern is well-formed
		for _, dir := range append(members, left) {
			os.Remove(dir) //nolint:errcheck // the kernel may still be emptying it; the next platform tries again
		}
	}
	probe := filepath.Join(g.base, "probe")
	if os.Mkdir(g.base, 0o755) != nil {
		return false
	}
	if strings.HasSuffix(g.version, "v2") {
		os.WriteFile(filepath.Join(g.base, "cgroup.subtree_control"), []byte("+memory"), 0o644) //nolint:errcheck // the probe tells
	}
	ok := os.Mkdir(probe, 0o755) == nil && os.WriteFile(filepath.Join(probe, g.limit), []byte("134217728"), 0o644) == nil
	os.Remove(probe) //nolint:errcheck // may not be there
	if !ok {
		os.Remove(g.base) //nolint:errcheck // may not be there
	}
	return ok
}

func (g groups) String() string { return g.version }

func (g groups) close() { removeGroup(g.base) }

// removeGroup removes a group that the kernel may still be emptying.
func removeGroup(dir string) {
	for range 100 {
		if err := os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (g groups) fence(pid int, name string, limit disdel.Bytes) fence {
	f := group{g, filepath.Join(g.base, name)}
	if os.Mkdir(f.dir, 0o755) != nil {
		return rlimits{}.fence(pid, name, limit)
	}
	f.write(g.limit, strconv.FormatInt(int64(limit), 10))
	swap := strconv.FormatInt(int64(limit), 10)
	if strings.HasSuffix(g.version, "v2") {
		swap = "0"
	}
	f.write(g.swap, swap)
	f.write("cgroup.procs", strconv.Itoa(pid))
	return f
}

type group struct {
	groups
	dir string
}

func (g group) write(file, text string) {
	os.WriteFile(filepath.Join(g.dir, file), []byte(text), 0o644) //nolint:errcheck // swap accounting may be off; the watch stands beside
}

func (g group) killed() bool {
	data, err := os.ReadFile(filepath.Join(g.dir, g.events))
	if err != nil {
		return false
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if n, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok && n != "0" {
			return true
		}
	}
	return false
}

func (g group) remove() { removeGroup(g.dir) }

// rlimits bounds a process's private memory by RLIMIT_DATA. It counts what is mapped, not what is resident, so it has room
// to spare; the watch keeps the limit itself. (RLIMIT_AS would end every Go program at its start.)
type rlimits struct{}

const rlimitRoom = 64 * disdel.MB

func (rlimits) String() string { return "RLIMIT_DATA and a watch on resident memory" }
func (rlimits) close()         {}
func (rlimits) killed() bool   { return false }
func (rlimits) remove()        {}

func (r rlimits) fence(pid int, _ string, limit disdel.Bytes) fence {
	most := uint64(limit + limit/2 + rlimitRoom)
	unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil) //nolint:errcheck // the watch stands beside
	return r
}

// residentOf reads a process's resident memory and its high-water mark, 0 once it is gone.
func residentOf(pid int) (resident, peak disdel.Bytes) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			resident = disdel.Bytes(n) * disdel.KB
		case "VmHWM":
			peak = disdel.Bytes(n) * disdel.KB
		}
	}
	return resident, peak
}
