package platform

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// fencer puts memory limits around processes by the best means this machine offers. Where that is not the kernel's
// exact count, the container's watch on resident memory stands beside it.
type fencer interface {
	fmt.Stringer
	// fence makes the limits that a process will be started in, cpu being its part of the processors.
	fence(name string, limit disdel.Bytes, cpu processing) fence
	folders() []string // that list the processes in them
	close()
}

// fence is the limit around one container's processes.
type fence interface {
	// enter makes the next process that a thread starts one inside; leave is called some time after that start. Neither
	// runs on that thread, which may see control groups otherwise than the platform does.
	enter(attr *syscall.SysProcAttr, thread int) (leave func())
	// took is told the process. Where enter could not do it, it is moved now.
	took(pid int)
	// exact tells whether the kernel keeps the limit; else the watch does.
	exact() bool
	// killed tells whether the kernel ended a process in it for memory.
	killed() bool
	// mark is the most memory that the kernel counted, 0 where it does not count.
	mark() disdel.Bytes
	// now is the memory that the kernel counts now, 0 where it does not count.
	now() disdel.Bytes
	// cache is what of it is the pages of files that are there now, which the kernel takes back before it kills.
	cache() disdel.Bytes
	// remove ends what still runs inside.
	remove()
}

// sharesOfPool is Docker's --cpu-shares as the invoker gives it: processors in proportion to memory.
func sharesOfPool(memory, pool disdel.Bytes) int { return int(max(2, 1024*memory/pool)) }

func newFencer() fencer {
	name := groupName()
	for _, g := range []groups{groupsV2(name), groupsV1(name)} {
		if g.usable() {
			return g
		}
	}
	return rlimits{}
}

// rlimits bounds a process's private memory by RLIMIT_DATA. It counts what is mapped, not what is resident, so it has
// room to spare; the watch keeps the limit itself. (RLIMIT_AS would end every Go program at its start.) Processors are
// not divided: a nice value is no proportion, and one that was raised cannot be lowered again without privileges.
type rlimits struct{}

const rlimitRoom = 64 * disdel.MB

func (rlimits) String() string {
	return "RLIMIT_DATA and a watch on resident memory; processors are shared equally, nice values are not used"
}
func (rlimits) folders() []string { return nil }
func (rlimits) close()            {}

func (rlimits) fence(_ string, limit disdel.Bytes, _ processing) fence { return rlimit{limit} }

type rlimit struct{ limit disdel.Bytes }

func (rlimit) enter(*syscall.SysProcAttr, int) func() { return func() {} }
func (rlimit) exact() bool                            { return false }
func (rlimit) killed() bool                           { return false }
func (rlimit) mark() disdel.Bytes                     { return 0 }
func (rlimit) cache() disdel.Bytes                    { return 0 }
func (rlimit) remove()                                {}

func (r rlimit) took(pid int) {
	most := uint64(r.limit + r.limit/2 + rlimitRoom)
	setLimit(pid, unix.RLIMIT_DATA, most) //nolint:errcheck // the watch stands beside
}

// residentOf reads what a process holds that the kernel cannot take back, and the most that it held, 0 once it is gone.
// Pages of files are left out, as a program's are shared between containers; a group counts them for whoever asked
// first.
func residentOf(pid int) (resident, peak disdel.Bytes) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	var file, mark disdel.Bytes
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch size := disdel.Bytes(n) * disdel.KB; name {
		case "RssAnon", "RssShmem":
			resident += size
		case "RssFile":
			file = size
		case "VmHWM":
			mark = size
		}
	}
	return resident, max(resident, mark-file)
}

// straysOf lists the processes that have a container's folder in the environment that they were started with: what left
// the container's process group, as a daemon does, still has it.
func straysOf(dir string) []int {
	var out []int
	list, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	for _, file := range list {
		data, err := os.ReadFile(file)
		pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && bad == nil && pid != os.Getpid() &&
			bytes.Contains(append([]byte{0}, data...), []byte("\x00TMPDIR="+dir+"\x00")) {
			out = append(out, pid)
		}
	}
	return out
}

// membersOf lists the other processes of a group, by its leader's id.
func membersOf(leader int) []int {
	var out []int
	list, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, dir := range list {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == leader {
			continue
		}
		if group, err := unix.Getpgid(pid); err == nil && group == leader {
			out = append(out, pid)
		}
	}
	return out
}
