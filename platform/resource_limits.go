package platform

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// cgroups is the platform's control group, which has a child for each container. Version 1 has separate trees for
// memory, processes and processors; version 2 has one.
type cgroups struct {
	version                       int
	magic                         int64    // of the file system: a plain folder accepts any file and limits nothing
	bases                         []string // memory first, processors last
	limit, swap, events, peakFile string   // names of files
	share, current                string
	prepared                      *preparedGroup // version 1 only
}

func groupsV2(name string) cgroups {
	return cgroups{
		version: 2, magic: cgroup2Magic, bases: []string{filepath.Join("/sys/fs/cgroup", name)},
		limit: "memory.max", swap: "memory.swap.max", events: "memory.events", peakFile: "memory.peak", share: "cpu.weight",
		current: "memory.current",
	}
}

func groupsV1(name string) cgroups {
	return cgroups{
		version: 1, magic: cgroup1Magic,
		bases: []string{
			filepath.Join("/sys/fs/cgroup/memory", name), filepath.Join("/sys/fs/cgroup/pids", name),
			filepath.Join("/sys/fs/cgroup/cpu", name),
		},
		limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes", events: "memory.oom_control",
		peakFile: "memory.max_usage_in_bytes", share: "cpu.shares", current: "memory.usage_in_bytes",
		prepared: &preparedGroup{},
	}
}

// usable creates the groups and tries to limit one.
func (g cgroups) usable() bool {
	var fs unix.Statfs_t
	if unix.Statfs(filepath.Dir(g.bases[0]), &fs) != nil || int64(fs.Type) != g.magic {
		return false
	}
	for _, base := range g.bases {
		removeStaleGroups(filepath.Dir(base))
		os.Mkdir(base, 0o755)                                             //nolint:errcheck // the probe finds out
		writeTo(filepath.Join(base, "cgroup.subtree_control"), "+memory") // one write each: a machine may lack some
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

// writeTo writes to an existing file. os.WriteFile would create one in a plain folder.
func writeTo(file, text string) bool {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close()) == nil
}

// groupName is a new name with this process's id and its pid namespace. A process may have several platforms, and a
// process id means nothing in another namespace.
func groupName() string {
	return fmt.Sprintf("disdel-%d-%s-%s", os.Getpid(), processSpace(), newID()[:8])
}

// processSpace is the number of this process's pid namespace, "0" if it is unknown.
func processSpace() string {
	link, _ := os.Readlink("/proc/self/ns/pid") // pid:[4026531836]
	_, number, _ := strings.Cut(link, "[")
	return cmp.Or(strings.TrimSuffix(number, "]"), "0")
}

// leftGroups lists the groups of dead processes in this pid namespace.
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

// removeStaleGroups removes the groups of dead platforms. It retries for a moment because the kernel may still be
// emptying them; the next platform removes the rest.
func removeStaleGroups(parent string) {
	remaining := leftGroups(parent)
	for range 50 {
		remaining = slices.DeleteFunc(remaining, func(group string) bool { return !stillEmptying(group) })
		if len(remaining) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stillEmptying removes a group with its children, and tells whether the kernel was still emptying it.
func stillEmptying(group string) bool {
	for _, kind := range []string{"c-*", preparedPrefix + "*"} {
		members, _ := filepath.Glob(filepath.Join(group, kind)) // the pattern is well-formed
		for _, dir := range members {
			os.Remove(dir) //nolint:errcheck // the group around it cannot be removed then
		}
	}
	return errors.Is(os.Remove(group), unix.EBUSY)
}

func (g cgroups) String() string {
	text := "cgroup v" + strconv.Itoa(g.version)
	if _, err := os.Stat(filepath.Join(g.bases[len(g.bases)-1], g.share)); err != nil {
		return text + "; processors are shared equally, nice values are not used"
	}
	return text + "; processors in proportion to memory"
}

func (g cgroups) folders() []string { return g.bases }

func (g cgroups) close() {
	for _, base := range g.bases {
		remaining, _ := filepath.Glob(filepath.Join(base, preparedPrefix+"*")) // the pattern is well-formed
		for _, dir := range remaining {
			removeGroup(dir)
		}
		removeGroup(base)
	}
}

// removeGroup kills the processes in a group and removes it, retrying while the kernel empties it.
func removeGroup(dir string) {
	for range 200 {
		if err := os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EROFS) {
			return
		}
		for _, pid := range numbersIn(filepath.Join(dir, "cgroup.procs")) {
			// 0 is a process of another pid namespace; kill would take it for this process's group
			if pid > 0 && pid != os.Getpid() {
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may be gone already
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func numbersIn(file string) []int {
	data, _ := os.ReadFile(file) // a removed group has no processes
	var out []int
	for word := range strings.FieldsSeq(string(data)) {
		if n, err := strconv.Atoi(word); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func (g cgroups) newLimit(name string, limit disdel.Bytes, cpu cpuLimit) processLimit {
	f := cgroup{cgroups: g, preparedName: g.prepared.take()}
	if f.preparedName != "" {
		f.dirs = g.rename(f.preparedName, name)
	}
	if f.dirs == nil {
		f.preparedName, f.dirs = "", g.make(name)
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
	f.write(g.swap, swap) // swap may not be counted here
	f.write("memory.oom.group", "1")
	f.write("pids.max", strconv.Itoa(maxProcesses))
	f.write(g.share, strconv.Itoa(cpu.share))
	if cpu.quota > 0 {
		for _, q := range g.quotas(cpu.quota) {
			f.write(q[0], q[1]) // New has checked that quotas work
		}
	}
	f.eventsCounter = openCounterFile(filepath.Join(f.dirs[0], g.events))
	f.peakCounter = openCounterFile(filepath.Join(f.dirs[0], g.peakFile))
	return f
}

// make creates a group in every tree. It returns nil if the memory tree refuses.
func (g cgroups) make(name string) (dirs []string) {
	for _, base := range g.bases {
		dirs = append(dirs, filepath.Join(base, name))
		if os.Mkdir(dirs[len(dirs)-1], 0o755) != nil && len(dirs) == 1 {
			return nil
		}
	}
	return dirs
}

// rename gives a prepared group a container's name. It returns nil, with nothing changed, if it cannot.
func (g cgroups) rename(from, to string) (dirs []string) {
	for i, base := range g.bases {
		dirs = append(dirs, filepath.Join(base, to))
		if os.Rename(filepath.Join(base, from), dirs[i]) == nil {
			continue
		}
		for _, done := range g.bases[:i] {
			os.Rename(filepath.Join(done, to), filepath.Join(done, from)) //nolint:errcheck // undoes the first rename
		}
		return nil
	}
	return dirs
}

// cgroup is the control group of one container.
type cgroup struct {
	cgroups
	dirs          []string    // one for each of bases
	preparedName  string      // its name when it was prepared; "": it was not
	eventsCounter counterFile // reads the file events
	peakCounter   counterFile // reads the file peaks
}

// write writes to a file in each tree that has it, and tells whether one does.
func (f cgroup) write(file, text string) (ok bool) {
	for _, dir := range f.dirs {
		ok = writeTo(filepath.Join(dir, file), text) || ok
	}
	return ok
}

// enter starts the process inside the group, so that all its memory is counted. Version 2 uses clone3; version 1 moves
// the starting thread, because a child inherits its groups.
func (f cgroup) enter(attr *syscall.SysProcAttr, thread int) (leave func()) {
	if f.version == 2 {
		dir, err := os.Open(f.dirs[0])
		if err != nil {
			return func() {}
		}
		startInGroup(attr, dir)
		return func() { dir.Close() }
	}
	// Suspend the OOM killer: it might choose this process while its thread is in the group.
	f.write(f.events, "1")
	f.prepared.moveIn(f, thread)
	return func() {
		f.prepared.prepare(f.cgroups, thread)
		f.write(f.events, "0")
	}
}

// started moves a process that is not in the group yet. A needless move would take long.
func (f cgroup) started(pid int) {
	for _, dir := range f.dirs {
		if list := filepath.Join(dir, "cgroup.procs"); !slices.Contains(numbersIn(list), pid) {
			writeTo(list, strconv.Itoa(pid))
		}
	}
}

func (f cgroup) enforcedByKernel() bool { return true }

func (f cgroup) oomKilled() bool { return f.eventsCounter.hasNonZero("oom_kill") }

func (f cgroup) peak() disdel.Bytes { return disdel.Bytes(f.peakCounter.number()) }

// fileCache is the file cache that is counted for the group, without tmpfs, which cannot be dropped.
func (f cgroup) fileCache() (sum disdel.Bytes) {
	data, _ := os.ReadFile(filepath.Join(f.dirs[0], "memory.stat")) // a removed group has none
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

func (f cgroup) remove() {
	f.eventsCounter.close()
	f.peakCounter.close()
	writeTo(filepath.Join(f.dirs[0], "cgroup.kill"), "1") // version 2
	for _, dir := range f.dirs {
		removeGroup(dir)
	}
}

// limiter puts memory limits around processes with the best means of this machine. If the kernel does not enforce the
// limit exactly, the container's watch does.
type limiter interface {
	fmt.Stringer
	// newLimit creates the limit for a process that will be started. cpu is its share of the processors.
	newLimit(name string, limit disdel.Bytes, cpu cpuLimit) processLimit
	folders() []string // of control groups; they list the processes
	close()
}

// processLimit is the limit of one container's processes.
type processLimit interface {
	// enter prepares attr so that the next process of the thread starts inside the limit. leave is called after that
	// start. Neither runs on the thread itself, whose view of control groups may differ.
	enter(attr *syscall.SysProcAttr, thread int) (leave func())
	// started is called with the new process. If enter could not place it inside, started moves it.
	started(pid int)
	// enforcedByKernel tells whether the kernel enforces the limit; else the watch does.
	enforcedByKernel() bool
	// oomKilled tells whether the kernel killed a process for memory.
	oomKilled() bool
	// peak is the most memory that the kernel counted; 0 if it does not count.
	peak() disdel.Bytes
	// usage is the memory that the kernel counts now; 0 if it does not count.
	usage() disdel.Bytes
	// fileCache is the part of the memory that is file cache, which the kernel drops before it kills.
	fileCache() disdel.Bytes
	// remove kills what still runs inside.
	remove()
}

// cpuShares is Docker's --cpu-shares as OpenWhisk's invoker sets it: in proportion to memory.
func cpuShares(memory, pool disdel.Bytes) int { return int(max(2, 1024*memory/pool)) }

func newLimiter() limiter {
	name := groupName()
	for _, g := range []cgroups{groupsV2(name), groupsV1(name)} {
		if g.usable() {
			return g
		}
	}
	return rlimits{}
}

// rlimits bounds a process's private memory by RLIMIT_DATA. That counts mapped memory, so the bound is larger than the
// limit, and the watch enforces the limit. RLIMIT_AS would end every Go program at its start. Processors are not
// divided, because nice values are not proportional and cannot be lowered again without privileges.
type rlimits struct{}

const rlimitExtra = 64 * disdel.MB

func (rlimits) String() string {
	return "RLIMIT_DATA and a watch on resident memory; processors are shared equally, nice values are not used"
}
func (rlimits) folders() []string { return nil }
func (rlimits) close()            {}

func (rlimits) newLimit(_ string, limit disdel.Bytes, _ cpuLimit) processLimit { return rlimit{limit} }

type rlimit struct{ limit disdel.Bytes }

func (rlimit) enter(*syscall.SysProcAttr, int) func() { return func() {} }
func (rlimit) enforcedByKernel() bool                 { return false }
func (rlimit) oomKilled() bool                        { return false }
func (rlimit) peak() disdel.Bytes                     { return 0 }
func (rlimit) fileCache() disdel.Bytes                { return 0 }
func (rlimit) remove()                                {}

func (r rlimit) started(pid int) {
	maximum := uint64(r.limit + r.limit/2 + rlimitExtra)
	setLimit(pid, unix.RLIMIT_DATA, maximum) //nolint:errcheck // the watch enforces the limit too
}

// residentMemory reads a process's memory that the kernel cannot drop, and its peak; 0 if the process is gone. It
// leaves out file pages, because containers share a program's pages.
func residentMemory(pid int) (resident, peak disdel.Bytes) {
	own, shared, peak := memoryParts(pid)
	return own + shared, peak
}

// memoryParts is residentMemory in two parts: memory of the process's own, and memory that it may share with others.
func memoryParts(pid int) (own, shared, peak disdel.Bytes) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, 0
	}
	var file, mark disdel.Bytes
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch size := disdel.Bytes(n) * disdel.KB; name {
		case "RssAnon":
			own = size
		case "RssShmem":
			shared = size
		case "RssFile":
			file = size
		case "VmHWM":
			mark = size
		}
	}
	return own, shared, max(own+shared, mark-file)
}

// sumOfMemory is the resident memory of several processes. What they share counts once.
func sumOfMemory(leader int, others []int) disdel.Bytes {
	sum, maximum, _ := memoryParts(leader)
	for _, pid := range others {
		own, shared, _ := memoryParts(pid)
		sum, maximum = sum+own, max(maximum, shared)
	}
	return sum + maximum
}

// processesOfFolder lists the processes that were started with a container's folder in their environment. A process
// that left the container's process group, such as a daemon, still has it.
func processesOfFolder(dir string) []int {
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

// processesOf lists the other processes of a container: those of its leader's process group, and those that one of
// them has started in a group of its own, as the runtime does with users' Python programs.
func processesOf(leader int) []int {
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
	for _, pid := range childrenOfProcess(append([]int{leader}, out...)...) {
		if !slices.Contains(out, pid) {
			out = append(out, pid)
		}
	}
	return out
}

// childrenOfProcess lists the processes that some processes and their children have started.
func childrenOfProcess(processes ...int) (out []int) {
	for next := processes; len(next) > 0; next = next[1:] {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", next[0])) // the pattern is well-formed
		for _, list := range lists {
			started := numbersIn(list)
			out, next = append(out, started...), append(next, started...)
		}
	}
	return out
}

// preparedGroup is the control group of the next container, with the thread that starts containers already in it. It is
// prepared after a start, when nobody waits: the first move of a thread in a while takes 15 ms, half of a container's
// start.
//
// Its name differs from those of containers, because their processes are killed when a platform ends, and the thread
// belongs to this process.
type preparedGroup struct {
	mu   sync.Mutex
	free string // the group's name; "": it was taken

	threadIn string // the prepared name of the group that the thread is in; only the spawner's thread uses it
}

const preparedPrefix = "next-"

// take returns the prepared group's name and forgets it; "" if there is none.
func (a *preparedGroup) take() string {
	if a == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name := a.free
	a.free = ""
	return name
}

// moveIn moves the thread into a container's group, unless it is there already.
func (a *preparedGroup) moveIn(f cgroup, thread int) {
	if f.preparedName == "" || a.threadIn != f.preparedName {
		f.write("tasks", strconv.Itoa(thread))
	}
	a.threadIn = ""
}

// prepare moves the thread to a new group, so that a container's memory and end do not affect this process.
func (a *preparedGroup) prepare(g cgroups, thread int) {
	name := a.take() // an unused prepared group is reused
	if name == "" {
		name = preparedPrefix + newID()[:8]
		if g.make(name) == nil {
			name = ""
		}
	}
	for _, base := range g.bases {
		writeTo(filepath.Join(base, name, "tasks"), strconv.Itoa(thread))
	}
	a.threadIn = name
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = name
}

// counterFile is a small file of the kernel that is read often. It is opened once, so a read is one system call.
type counterFile struct {
	file *os.File // nil: there is none
	raw  syscall.RawConn
}

// counterFileSize is more than any of these files has.
const counterFileSize = 512

func openCounterFile(path string) counterFile {
	f, err := os.Open(path)
	if err != nil {
		return counterFile{}
	}
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return counterFile{}
	}
	return counterFile{f, raw}
}

// read appends the file's content, or nothing if the file is gone.
func (g counterFile) read(to []byte) []byte {
	if g.file == nil {
		return to
	}
	spare := to[len(to):cap(to)]
	g.raw.Control(func(fd uintptr) { //nolint:errcheck // a closed file has no content
		for {
			n, err := unix.Pread(int(fd), spare, 0)
			if err == unix.EINTR {
				continue
			}
			to = to[:len(to)+max(0, n)]
			return
		}
	})
	return to
}

// number is the number in the file; 0 if there is none.
func (g counterFile) number() int {
	n, _ := strconv.Atoi(string(bytes.TrimSpace(g.read(make([]byte, 0, counterFileSize)))))
	return n
}

// hasNonZero tells whether the file has a line with this name and a number other than 0.
func (g counterFile) hasNonZero(name string) bool {
	for line := range bytes.Lines(g.read(make([]byte, 0, counterFileSize))) {
		if reply, n, ok := bytes.Cut(bytes.TrimSpace(line), []byte{' '}); ok && string(reply) == name && string(n) != "0" {
			return true
		}
	}
	return false
}

func (g counterFile) close() {
	if g.file != nil {
		g.file.Close()
	}
}
