package platform

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// groups is a control group of the platform's with one child for each container. Version 1 has one tree for memory and
// one for processors, version 2 one for both.
type groups struct {
	version                    int
	magic                      int64    // of the file system: a plain folder takes any file, and limits nothing
	bases                      []string // memory first, processors last
	limit, swap, events, peaks string   // files
	share, current             string
	ahead                      *ahead // of version 1
}

func groupsV2(name string) groups {
	return groups{
		version: 2, magic: unix.CGROUP2_SUPER_MAGIC, bases: []string{filepath.Join("/sys/fs/cgroup", name)},
		limit: "memory.max", swap: "memory.swap.max", events: "memory.events", peaks: "memory.peak", share: "cpu.weight",
		current: "memory.current",
	}
}

func groupsV1(name string) groups {
	return groups{
		version: 1, magic: unix.CGROUP_SUPER_MAGIC,
		bases: []string{
			filepath.Join("/sys/fs/cgroup/memory", name), filepath.Join("/sys/fs/cgroup/pids", name),
			filepath.Join("/sys/fs/cgroup/cpu", name),
		},
		limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes", events: "memory.oom_control",
		peaks: "memory.max_usage_in_bytes", share: "cpu.shares", current: "memory.usage_in_bytes",
		ahead: &ahead{},
	}
}

// usable makes the groups and one below, and looks whether that can be limited.
func (g groups) usable() bool {
	var fs unix.Statfs_t
	if unix.Statfs(filepath.Dir(g.bases[0]), &fs) != nil || int64(fs.Type) != g.magic {
		return false
	}
	for _, base := range g.bases {
		removeStaleGroups(filepath.Dir(base))
		os.Mkdir(base, 0o755)                                             //nolint:errcheck // the probe tells
		writeTo(filepath.Join(base, "cgroup.subtree_control"), "+memory") // apart: a machine may have one of them
		writeTo(filepath.Join(base, "cgroup.subtree_control"), "+cpu")
		writeTo(filepath.Join(base, "cgroup.subtree_control"), "+pids")
	}
	probe := filepath.Join(g.bases[0], "probe")
	ok := os.Mkdir(probe, 0o755) == nil && writeTo(filepath.Join(probe, g.limit), "134217728")
	os.Remove(probe) //nolint:errcheck // may not be there
	if !ok {
		g.close()
	}
	return ok
}

// writeTo writes a file that is there: os.WriteFile would make one where the file system is none of the kernel's.
func writeTo(file, text string) bool {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close()) == nil
}

// groupName names a platform's groups by its process and by the namespace that this number is of: what the process
// table here says of another namespace's number means nothing. A process may have several platforms.
func groupName() string {
	return fmt.Sprintf("disdel-%d-%s-%s", os.Getpid(), processSpace(), newID()[:8])
}

// processSpace is the number of this process's own namespace of processes, 0 where it cannot be told.
func processSpace() string {
	link, _ := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	_, number, _ := strings.Cut(link, "[")
	return cmp.Or(strings.TrimSuffix(number, "]"), "0")
}

// leftGroups lists the groups that platforms of this namespace of processes left whose process is gone.
func leftGroups(parent string) []string {
	var out []string
	names, _ := filepath.Glob(filepath.Join(parent, "disdel-*-"+processSpace()+"-*")) // the pattern is well-formed
	for _, name := range names {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(name), "disdel-%d-", &pid); err != nil || pid <= 0 {
			continue
		}
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			out = append(out, name)
		}
	}
	return out
}

// removeStaleGroups removes what dead platforms left. The kernel may still be emptying a group, so it looks again for a
// moment; what stays is the next platform's.
func removeStaleGroups(parent string) {
	left := leftGroups(parent)
	for range 50 {
		left = slices.DeleteFunc(left, func(group string) bool { return !stillEmptying(group) })
		if len(left) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stillEmptying removes a group after those in it, and tells whether the kernel was still emptying it.
func stillEmptying(group string) bool {
	for _, kind := range []string{"c-*", aheadPrefix + "*"} {
		members, _ := filepath.Glob(filepath.Join(group, kind)) // the pattern is well-formed
		for _, dir := range members {
			os.Remove(dir) //nolint:errcheck // the group around it cannot be removed then
		}
	}
	return errors.Is(os.Remove(group), unix.EBUSY)
}

func (g groups) String() string {
	text := "cgroup v" + strconv.Itoa(g.version)
	if _, err := os.Stat(filepath.Join(g.bases[len(g.bases)-1], g.share)); err != nil {
		return text + "; processors are shared equally, nice values are not used"
	}
	return text + "; processors in proportion to memory"
}

func (g groups) folders() []string { return g.bases }

func (g groups) close() {
	for _, base := range g.bases {
		left, _ := filepath.Glob(filepath.Join(base, aheadPrefix+"*")) // the pattern is well-formed
		for _, dir := range left {
			removeGroup(dir)
		}
		removeGroup(base)
	}
}

// removeGroup removes a group that the kernel may still be emptying, killing what still runs in it.
func removeGroup(dir string) {
	for range 200 {
		if err := os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EROFS) {
			return
		}
		for _, pid := range numbersIn(filepath.Join(dir, "cgroup.procs")) {
			if pid > 0 && pid != os.Getpid() { // 0 is one of another pid namespace, and would mean this process's group
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may be gone already
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func numbersIn(file string) []int {
	data, _ := os.ReadFile(file) // a group that is gone has nobody
	var out []int
	for word := range strings.FieldsSeq(string(data)) {
		if n, err := strconv.Atoi(word); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func (g groups) fence(name string, limit disdel.Bytes, cpu processing) fence {
	f := group{groups: g, was: g.ahead.take()}
	if f.was != "" {
		f.dirs = g.rename(f.was, name)
	}
	if f.dirs == nil {
		f.was, f.dirs = "", g.make(name)
	}
	if f.dirs == nil {
		return rlimit{limit}
	}
	bytes, swap := strconv.FormatInt(int64(limit), 10), strconv.FormatInt(int64(limit), 10)
	if g.version == 2 {
		swap = "0"
	}
	if !f.write(g.limit, bytes) {
		f.remove()
		return rlimit{limit}
	}
	f.write(g.swap, swap) // may not be counted here
	f.write("memory.oom.group", "1")
	f.write("pids.max", strconv.Itoa(maxProcesses))
	f.write(g.share, strconv.Itoa(cpu.share))
	if cpu.quota > 0 {
		for _, q := range g.quotas(cpu.quota) {
			f.write(q[0], q[1]) // New has seen that it can be
		}
	}
	f.deaths, f.most = openGauge(filepath.Join(f.dirs[0], g.events)), openGauge(filepath.Join(f.dirs[0], g.peaks))
	return f
}

// make makes a group in every tree, nil where that of memory refuses.
func (g groups) make(name string) (dirs []string) {
	for _, base := range g.bases {
		dirs = append(dirs, filepath.Join(base, name))
		if os.Mkdir(dirs[len(dirs)-1], 0o755) != nil && len(dirs) == 1 {
			return nil
		}
	}
	return dirs
}

// rename gives a group that was made ahead a container's name, nil where it cannot: nothing has changed then.
func (g groups) rename(from, to string) (dirs []string) {
	for i, base := range g.bases {
		dirs = append(dirs, filepath.Join(base, to))
		if os.Rename(filepath.Join(base, from), dirs[i]) == nil {
			continue
		}
		for _, done := range g.bases[:i] {
			os.Rename(filepath.Join(done, to), filepath.Join(done, from)) //nolint:errcheck // it could the other way
		}
		return nil
	}
	return dirs
}

// group is one container's.
type group struct {
	groups
	dirs   []string // as bases
	was    string   // the name that it had when it was made ahead, "" if it was not
	deaths gauge    // of events
	most   gauge    // of peaks
}

// write writes to the file in whichever tree has it.
func (f group) write(file, text string) (ok bool) {
	for _, dir := range f.dirs {
		ok = writeTo(filepath.Join(dir, file), text) || ok
	}
	return ok
}

// enter has the process start inside, so that not a page of it is counted elsewhere: version 2 by clone3's own means,
// version 1 by moving the thread that starts it, whose groups a child inherits.
func (f group) enter(attr *syscall.SysProcAttr, thread int) (leave func()) {
	if f.version == 2 {
		dir, err := os.Open(f.dirs[0])
		if err != nil {
			return func() {}
		}
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
		return func() { dir.Close() }
	}
	// Whoever runs out of memory waits: the kernel might choose this process, while its thread is there.
	f.write(f.events, "1")
	f.ahead.enter(f, thread)
	return func() {
		f.ahead.next(f.groups, thread)
		f.write(f.events, "0")
	}
}

// took moves a process that is not inside yet. One that is stays untouched: a move takes long even where it moves
// nothing.
func (f group) took(pid int) {
	for _, dir := range f.dirs {
		if list := filepath.Join(dir, "cgroup.procs"); !slices.Contains(numbersIn(list), pid) {
			writeTo(list, strconv.Itoa(pid))
		}
	}
}

func (f group) exact() bool { return true }

func (f group) killed() bool { return f.deaths.counts("oom_kill") }

func (f group) mark() disdel.Bytes { return disdel.Bytes(f.most.number()) }

// cache is the pages of files that are counted for the group, as version 1 or 2 calls them, but for those that are
// nowhere else.
func (f group) cache() (sum disdel.Bytes) {
	data, _ := os.ReadFile(filepath.Join(f.dirs[0], "memory.stat")) // a group that is gone has none
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "cache", "file":
			sum += disdel.Bytes(n)
		case "shmem":
			sum -= disdel.Bytes(n)
		}
	}
	return max(0, sum)
}

func (f group) remove() {
	f.deaths.close()
	f.most.close()
	writeTo(filepath.Join(f.dirs[0], "cgroup.kill"), "1") // version 2
	for _, dir := range f.dirs {
		removeGroup(dir)
	}
}
