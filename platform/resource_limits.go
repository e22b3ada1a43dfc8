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

// ahead is the group that the next container will start in, with the thread in it that starts containers. It is made
// after a start, while nobody waits: the first thread that is moved in a while makes the kernel wait until every
// processor has passed a quiet state, some 15 ms, which would be half of a container's start.
//
// Its name is none of a container's, whose groups' processes are killed when a platform ends: this process is in it.
type ahead struct {
	mu   sync.Mutex
	free string // the group's name, "" where it was taken

	inside string // the name, as it was made, of where the thread is: known to the spawner's orders alone
}

const aheadPrefix = "next-"

// take hands the group out, by the name that it was made with; "" where there is none, as before the first start.
func (a *ahead) take() string {
	if a == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name := a.free
	a.free = ""
	return name
}

// enter moves the thread into a container's group, unless it has waited there.
func (a *ahead) enter(f group, thread int) {
	if f.was == "" || a.inside != f.was {
		f.write("tasks", strconv.Itoa(thread))
	}
	a.inside = ""
}

// next moves the thread on: a container's memory and end shall not be those of the process that it belongs to.
func (a *ahead) next(g groups, thread int) {
	name := a.take() // made for a start that has not come: the thread went to another's
	if name == "" {
		name = aheadPrefix + newID()[:8]
		if g.make(name) == nil {
			name = ""
		}
	}
	for _, base := range g.bases {
		writeTo(filepath.Join(base, name, "tasks"), strconv.Itoa(thread))
	}
	a.inside = name
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = name
}

// gauge is a small file of the kernel's that is read again and again: it is opened once, and a look is one system call.
type gauge struct {
	file *os.File // nil: there is none
	raw  syscall.RawConn
}

// gaugeRoom holds any of the files that are read so.
const gaugeRoom = 512

func openGauge(path string) gauge {
	f, err := os.Open(path)
	if err != nil {
		return gauge{}
	}
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return gauge{}
	}
	return gauge{f, raw}
}

// read appends what the file says now, nothing where it is gone.
func (g gauge) read(to []byte) []byte {
	if g.file == nil {
		return to
	}
	room := to[len(to):cap(to)]
	g.raw.Control(func(fd uintptr) { //nolint:errcheck // closed: it says nothing
		for {
			n, err := unix.Pread(int(fd), room, 0)
			if err == unix.EINTR {
				continue
			}
			to = to[:len(to)+max(0, n)]
			return
		}
	})
	return to
}

// number is that which the file holds, 0 where it holds none.
func (g gauge) number() int {
	n, _ := strconv.Atoi(string(bytes.TrimSpace(g.read(make([]byte, 0, gaugeRoom)))))
	return n
}

// counts tells whether the file has a line of a name with another number than 0.
func (g gauge) counts(name string) bool {
	for line := range bytes.Lines(g.read(make([]byte, 0, gaugeRoom))) {
		if said, n, ok := bytes.Cut(bytes.TrimSpace(line), []byte{' '}); ok && string(said) == name && string(n) != "0" {
			return true
		}
	}
	return false
}

func (g gauge) close() {
	if g.file != nil {
		g.file.Close()
	}
}
