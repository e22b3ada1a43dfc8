package platform

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// mountView is a mount namespace for containers with their own users. The spawner's thread enters it to start them. It
// covers folders that are closed to these users with empty ones that show only what the containers need. Permissions
// outside do not change.
type mountView struct {
	outside, inside int             // descriptors of mount namespaces; 0: containers share the platform's
	open            map[string]bool // paths that every user can reach inside
	masked          map[string]bool // as in confinement
}

// neededPaths are the paths that containers with their own users must reach.
type neededPaths struct {
	programs []string
	folders  []string // read with everything in them; may be files
	work     string   // has the working folders, which are written
}

// each calls f for every path with the permissions that every user needs on it.
func (n neededPaths) each(f func(path string, need os.FileMode)) {
	for _, path := range n.programs {
		f(path, 0o001)
	}
	for _, path := range n.folders {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			f(path, 0o004)
			continue
		}
		f(path, 0o005)
	}
	f(n.work, 0o001)
}

// openView creates the view on the spawner's thread and finds out what every user can reach in it.
func (c *confinement) openView() {
	n := c.paths
	c.own = mountView{open: map[string]bool{}, masked: maps.Clone(c.masked)}
	plan := newCoverPlan(n)
	if c.mounts && len(plan.covers) > 0 && c.own.build(plan) == nil { // without the view, fewer paths are open
		defer c.own.leave()
	}
	n.each(func(path string, need os.FileMode) { c.own.open[path] = openToAll(path, need) })
}

// build creates the namespace and covers closed folders in it. On success the thread is inside.
func (v *mountView) build(plan *coverPlan) error {
	outside, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unshareMounts(); err != nil {
		unix.Close(outside) //nolint:errcheck // it was only read
		return err
	}
	v.outside = outside
	inside, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		v.inside = inside
		err = plan.mount()
	}
	if err != nil {
		v.leave()
		v.close()
	}
	return err
}

// enter moves the thread into the view, until leave.
func (v *mountView) enter() error {
	if v.inside == 0 {
		return nil
	}
	return enterMounts(v.inside)
}

// leave moves the thread back. It panics on failure, because the thread would start every container in the wrong view.
func (v *mountView) leave() {
	if v.outside == 0 {
		return
	}
	if err := enterMounts(v.outside); err != nil {
		panic(fmt.Sprintf("platform: leave a mount namespace: %v", err))
	}
}

func (v *mountView) close() {
	for _, fd := range []*int{&v.outside, &v.inside} {
		if *fd != 0 {
			unix.Close(*fd) //nolint:errcheck // the namespace goes with its last process
			*fd = 0
		}
	}
}

// coverPlan lists the closed folders to cover, and what to show in the empty folders that cover them.
type coverPlan struct {
	covers  []string          // closed folders; none is inside another
	folders map[string]bool   // empty folders on the way to something shown
	links   map[string]string // symbolic links and their targets
	shown   map[string]bool   // files and folders that are mounted; true: writable
}

// newCoverPlan plans for all needed paths. Paths that cannot be followed stay closed.
func newCoverPlan(n neededPaths) *coverPlan {
	p := &coverPlan{folders: map[string]bool{}, links: map[string]string{}, shown: map[string]bool{}}
	n.each(func(path string, need os.FileMode) {
		p.add(path, need, path == n.work) //nolint:errcheck // see above
	})
	return p
}

// maxLinks is how many symbolic links the kernel follows in one path.
const maxLinks = 40

// add follows a path like the kernel and plans what is closed on it. need are the permissions for its last part.
func (p *coverPlan) add(path string, need os.FileMode, writable bool) error {
	at, rest, links := "/", strings.TrimPrefix(path, "/"), 0
	for rest != "" {
		name, tail, _ := strings.Cut(rest, "/")
		rest = strings.TrimLeft(tail, "/")
		if name == "" || name == "." || name == ".." {
			at = filepath.Join(at, name)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return err
		}
		switch {
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(next)
			if links++; err != nil || links > maxLinks {
				return errors.Join(err, fmt.Errorf("%s: %w", path, unix.ELOOP))
			}
			if p.covered(at) {
				p.links[next] = target
			}
			if filepath.IsAbs(target) {
				at = "/"
			}
			rest = strings.TrimLeft(filepath.ToSlash(target)+"/"+rest, "/")
		case rest != "":
			p.passFolder(next, info.Mode())
			at = next
		default:
			return p.show(next, info, need, writable)
		}
	}
	return nil // a link to the root, or the root
}

func (p *coverPlan) covered(path string) bool {
	return slices.ContainsFunc(p.covers, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// passFolder plans a folder on the way.
func (p *coverPlan) passFolder(dir string, mode os.FileMode) {
	switch {
	case p.covered(dir):
		p.folders[dir] = true
	case mode.Perm()&0o001 == 0:
		p.covers = slices.DeleteFunc(p.covers, func(other string) bool { // it is covered with this one
			below := strings.HasPrefix(other, dir+"/")
			p.folders[other] = p.folders[other] || below
			return below
		})
		p.covers = append(p.covers, dir)
	}
}

// show plans to show the end of a path. If it is a closed folder, show plans to show its content instead.
func (p *coverPlan) show(path string, info os.FileInfo, need os.FileMode, writable bool) error {
	if !info.IsDir() || info.Mode().Perm()&need == need {
		if p.covered(filepath.Dir(path)) {
			p.shown[path] = p.shown[path] || writable
		}
		return nil
	}
	p.passFolder(path, 0)
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		at := filepath.Join(path, entry.Name())
		if entry.Type()&os.ModeSymlink != 0 {
			if p.links[at], err = os.Readlink(at); err != nil {
				return err
			}
			continue
		}
		p.shown[at] = p.shown[at] || writable
	}
	return nil
}

// mount carries out the plan in the thread's own mount namespace.
func (p *coverPlan) mount() error {
	paths := slices.Sorted(maps.Keys(p.shown)) // a folder comes before what is in it
	sources := make([]int, 0, len(paths))
	defer func() {
		for _, fd := range sources {
			unix.Close(fd) //nolint:errcheck // it names a path and was not read
		}
	}()
	for _, path := range paths { // before covers hide the paths
		fd, err := openPath(path)
		if err != nil {
			return err
		}
		sources = append(sources, fd)
	}
	for _, dir := range p.covers {
		if err := mount("none", dir, "tmpfs", mountCover, "mode=755"); err != nil {
			return fmt.Errorf("cover %s: %w", dir, err)
		}
	}
	if err := p.fill(paths, sources); err != nil {
		return err
	}
	for _, dir := range p.covers {
		if err := mount("", dir, "", mountReadOnly,
			""); err != nil {
			return fmt.Errorf("close %s: %w", dir, err)
		}
	}
	return nil
}

// fill creates folders, links and mounts in the covers.
func (p *coverPlan) fill(paths []string, sources []int) error {
	for _, dir := range slices.Sorted(maps.Keys(p.folders)) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for at, target := range p.links {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(target, at)); err != nil {
			return err
		}
	}
	var mounted string // the last folder that was mounted with its content
	for i, path := range paths {
		if mounted != "" && strings.HasPrefix(path, mounted+"/") {
			continue
		}
		dir, err := showAt(path, sources[i], p.shown[path])
		if err != nil {
			return fmt.Errorf("show %s: %w", path, err)
		}
		if dir {
			mounted = path
		}
	}
	return nil
}

// showAt mounts the file or folder of a descriptor at a path, and tells whether it is a folder.
func showAt(path string, source int, writable bool) (dir bool, err error) {
	var s unix.Stat_t
	if err := unix.Fstat(source, &s); err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	if dir = s.Mode&unix.S_IFMT == unix.S_IFDIR; dir {
		err = os.MkdirAll(path, 0o755)
	} else {
		err = os.WriteFile(path, nil, 0o644)
	}
	if err != nil {
		return dir, err
	}
	from := fmt.Sprintf("/proc/thread-self/fd/%d", source)
	if err := mount(from, path, "", mountBind, ""); err != nil || writable {
		return dir, err
	}
	return dir, mount("", path, "", mountReadOnly, "")
}

// confinement is what the thread that starts containers gives up, so that containers lack it. It tries everything and
// skips what the system or the user does not allow.
type confinement struct {
	hidden []string // files and folders that containers must not see
	done   []string
	mounts bool // the thread has its own mount namespace
	masked map[string]bool
	paths  neededPaths // of containers with their own users
	own    mountView   // of containers with their own users
}

// maxProcesses bounds a container's processes and threads, like the --pids-limit of OpenWhisk's invoker.
const maxProcesses = 1024

// maxDescriptors bounds the open files of each process in a container, like the --ulimit nofile of OpenWhisk's invoker.
const maxDescriptors = 1024

// enter restricts the calling thread for good; its children inherit that.
func (c *confinement) enter() {
	if setNoNewPrivileges() == nil {
		c.done = append(c.done, "no new privileges")
	}
	if os.Geteuid() != 0 || unshareMounts() != nil {
		return
	}
	// Later mounts outside become visible here, and mounts here stay invisible outside.
	if mount("", "/", "", mountSlave, "") != nil {
		return
	}
	c.mounts, c.masked = true, map[string]bool{}
	if readOnlyGroups() {
		c.done = append(c.done, "control groups that cannot be left")
	}
	c.hide(c.masked)
	if len(c.masked) > 0 {
		c.done = append(c.done, "no view of the platform's own files")
	}
}

// readOnlyGroups makes the thread's cgroup mounts read-only, because a process that moves to another group escapes its
// limit.
func readOnlyGroups() bool {
	points := mountsBelow("/sys/fs/cgroup")
	for _, point := range points {
		if mount("", point, "", mountReadOnly|mountNoExec,
			"") != nil {
			return false
		}
	}
	return len(points) > 0
}

// mountsBelow lists the mount points at or below dir, deepest first.
func mountsBelow(dir string) []string {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		const point = 4
		if len(fields) > point && (fields[point] == dir || strings.HasPrefix(fields[point], dir+"/")) {
			out = append(out, fields[point])
		}
	}
	slices.Reverse(out)
	return out
}

// hide covers what containers must not see. It runs before each start, because a replaced file is no longer covered.
// masked are the paths that are covered already.
func (c *confinement) hide(masked map[string]bool) {
	if !c.mounts {
		return
	}
	for _, path := range c.hidden {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode().IsRegular():
			masked[path] = mount("/dev/null", path, "", mountBind, "") == nil
		case info.IsDir() && !masked[path]:
			masked[path] = mount("none", path, "tmpfs", mountClosed, "size=4k,mode=000") == nil
		}
	}
}

// hiddenPaths are the configured paths and the data folder.
func (c *Config) hiddenPaths() []string {
	var out []string
	for _, path := range append(slices.Clone(c.Hidden), c.DataDir) {
		if full, err := filepath.Abs(path); err == nil && path != "" {
			out = append(out, full)
		}
	}
	return out
}

// openToAll tells whether every user can pass all folders of a path and has the permissions need on its end.
func openToAll(path string, need os.FileMode) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for at := real; ; at, need = filepath.Dir(at), 0o001 {
		info, err := os.Stat(at)
		if err != nil || info.Mode().Perm()&need != need {
			return false
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

// Each container has a user id from a range that systems leave to programs (systemd's for services without an account).
// These users own nothing.
const (
	firstUser = 61184
	users     = 4096
)

// KindUser tells which user the containers of a kind run as.
type KindUser struct {
	Kind    string
	Own     bool   // each container has its own user, who owns nothing
	User    int    // id of the platform's user if Own is false
	Refused string // why containers of the kind are not started, and what to do; "": they are
}

// Users lists the kinds by name with the user of their containers.
func (p *Platform) Users() []KindUser {
	out := make([]KindUser, 0, len(p.cfg.Kinds))
	for _, name := range slices.Sorted(maps.Keys(p.cfg.Kinds)) {
		out = append(out, p.userOfKind(name))
	}
	return out
}

func (p *Platform) userOfKind(name string) KindUser {
	kind := p.cfg.Kinds[name]
	out := KindUser{Kind: name, User: os.Geteuid()}
	if p.hasOwnUsers(kind) {
		out.Own, out.User = true, 0
		return out
	}
	if kind.OwnUser && realRoot() && !p.cfg.AllowRoot {
		out.Refused = fmt.Sprintf("its actions would run as root: %s. Install it where every user may read and start it, "+
			"or start the platform with --allow-root", p.whyNoOwnUsers(kind))
	}
	return out
}

// hasOwnUsers tells whether containers of a kind have their own users.
func (p *Platform) hasOwnUsers(kind Kind) bool { return kind.OwnUser && p.whyNoOwnUsers(kind) == "" }

// whyNoOwnUsers returns why containers of a kind cannot have their own users; "" if they can.
func (p *Platform) whyNoOwnUsers(kind Kind) string {
	if !p.ownUsers {
		return "this process cannot start others as other users, or they cannot reach " + p.temp.dir
	}
	program, err := exec.LookPath(kind.Command[0])
	if err != nil {
		return err.Error()
	}
	for _, path := range append([]string{program}, kind.Reads...) {
		if !p.spawner.confined.own.open[path] {
			return path + " is closed to other users"
		}
	}
	return ""
}

// familiesOf lists the families of the chosen kinds, each once.
func familiesOf(kinds []KindUser, chosen func(KindUser) bool) string {
	var out []string
	for _, u := range kinds {
		if name := family(u.Kind); chosen(u) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// refusal is the error of a kind whose containers are not started, or nil.
func (p *Platform) refusal(name string) error {
	why := p.userOfKind(name).Refused
	if why == "" {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "start container", Msg: "the kind " + name + " is refused: " + why,
	}
}

// userFor is the user id of the next container of a kind; 0 means the platform's user.
func (p *Platform) userFor(kind Kind) uint32 {
	if !p.hasOwnUsers(kind) {
		return 0
	}
	return firstUser + p.started.Add(1)%users
}

// needsOf are the paths that containers with their own users must reach, including the platform's folder.
func needsOf(kinds map[string]Kind, work string) neededPaths {
	n := neededPaths{work: work}
	for _, kind := range kinds {
		if !kind.OwnUser || len(kind.Command) == 0 {
			continue
		}
		if program, err := exec.LookPath(kind.Command[0]); err == nil && !slices.Contains(n.programs, program) {
			n.programs = append(n.programs, program)
		}
		for _, folder := range kind.Reads {
			if !slices.Contains(n.folders, folder) {
				n.folders = append(n.folders, folder)
			}
		}
	}
	return n
}

// idMap is the first line of this process's user id map: count ids from inside on are the ids from outside on.
func idMap() (inside, outside, count uint64) {
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return 0, 0, 0
	}
	fmt.Sscan(string(data), &inside, &outside, &count) //nolint:errcheck // an unreadable map has no ids
	return inside, outside, count
}

// realRoot tells whether this process is the machine's root, or root in a container without a user namespace.
func realRoot() bool {
	_, outside, count := idMap()
	return os.Geteuid() == 0 && outside == 0 && count > 0
}

// canSwitch tells whether this process may start others as the containers' users.
func canSwitch() bool {
	inside, _, count := idMap()
	return os.Geteuid() == 0 && inside == 0 && count >= firstUser+users &&
		hasCapabilities(capSetUID, capSetGID, capChown)
}

// hasCapabilities tells whether this process has all of these capabilities.
func hasCapabilities(list ...uint) bool {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), "\nCapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	have, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err == nil && !slices.ContainsFunc(list, func(n uint) bool { return have&(1<<n) == 0 })
}
