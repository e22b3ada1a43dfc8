package platform

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// view is what containers with users of their own see of the file system: a mount namespace that the spawner's thread
// enters for their start. Folders that are closed to these users are covered by empty ones there, which show only what
// the containers need. No permission outside changes.
type view struct {
	outside, inside int             // descriptors of mount namespaces; 0: there is one for all
	open            map[string]bool // paths that every user can reach in it
	masked          map[string]bool // as of confinement
}

// needs are the paths that containers with users of their own must reach.
type needs struct {
	programs []string
	folders  []string // read with all that is in them; files too
	work     string   // holds the working folders, and is written below
}

// each calls f for every path with the permissions that every user must have on the last part of the path.
func (n needs) each(f func(path string, need os.FileMode)) {
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

// openView makes the view, on the spawner's thread, and finds out what every user can reach in it.
func (c *confinement) openView() {
	n := c.needs
	c.own = view{open: map[string]bool{}, masked: maps.Clone(c.masked)}
	plan := newCovering(n)
	if c.mounts && len(plan.covers) > 0 && c.own.build(plan) == nil { // without it, less is open
		defer c.own.leave()
	}
	n.each(func(path string, need os.FileMode) { c.own.open[path] = openToAll(path, need) })
}

// build makes a second namespace and covers the closed folders in it. On success the thread is in it.
func (v *view) build(plan *covering) error {
	outside, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
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

// enter has the thread see what containers with users of their own see, until leave.
func (v *view) enter() error {
	if v.inside == 0 {
		return nil
	}
	return unix.Setns(v.inside, unix.CLONE_NEWNS)
}

// leave ends enter. A thread that cannot go back would start every container in the wrong view.
func (v *view) leave() {
	if v.outside == 0 {
		return
	}
	if err := unix.Setns(v.outside, unix.CLONE_NEWNS); err != nil {
		panic(fmt.Sprintf("platform: leave a mount namespace: %v", err))
	}
}

func (v *view) close() {
	for _, fd := range []*int{&v.outside, &v.inside} {
		if *fd != 0 {
			unix.Close(*fd) //nolint:errcheck // the namespace goes with its last process
			*fd = 0
		}
	}
}

// covering is the plan of a view: closed folders, and what stands in the empty folders that cover them.
type covering struct {
	covers  []string          // closed folders, none below another
	folders map[string]bool   // empty ones, on the way
	links   map[string]string // to their targets
	shown   map[string]bool   // files and folders as they are outside; true: they may be written
}

// newCovering plans what is needed. A path that cannot be followed is left out: it stays closed.
func newCovering(n needs) *covering {
	p := &covering{folders: map[string]bool{}, links: map[string]string{}, shown: map[string]bool{}}
	n.each(func(path string, need os.FileMode) {
		p.add(path, need, path == n.work) //nolint:errcheck // see above
	})
	return p
}

// mostLinks is how many links the kernel follows on one path.
const mostLinks = 40

// add follows a path as the kernel does and plans what is closed on it. The last part must have the permissions of need
// for every user.
func (p *covering) add(path string, need os.FileMode, writable bool) error {
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
			if links++; err != nil || links > mostLinks {
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
			p.pass(next, info.Mode())
			at = next
		default:
			return p.show(next, info, need, writable)
		}
	}
	return nil // a link to the root, or the root
}

func (p *covering) covered(path string) bool {
	return slices.ContainsFunc(p.covers, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// pass plans a folder on the way.
func (p *covering) pass(dir string, mode os.FileMode) {
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

// show plans to show the end of a path. If that is a closed folder, it plans to show everything in the folder instead.
func (p *covering) show(path string, info os.FileInfo, need os.FileMode, writable bool) error {
	if !info.IsDir() || info.Mode().Perm()&need == need {
		if p.covered(filepath.Dir(path)) {
			p.shown[path] = p.shown[path] || writable
		}
		return nil
	}
	p.pass(path, 0)
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

// mount carries the plan out in the thread's own mount namespace.
func (p *covering) mount() error {
	paths := slices.Sorted(maps.Keys(p.shown)) // a folder comes before what is in it
	sources := make([]int, 0, len(paths))
	defer func() {
		for _, fd := range sources {
			unix.Close(fd) //nolint:errcheck // it names a path and was not read
		}
	}()
	for _, path := range paths { // before the covers hide it
		fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		sources = append(sources, fd)
	}
	for _, dir := range p.covers {
		if err := unix.Mount("none", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("cover %s: %w", dir, err)
		}
	}
	if err := p.fill(paths, sources); err != nil {
		return err
	}
	for _, dir := range p.covers {
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV,
			""); err != nil {
			return fmt.Errorf("close %s: %w", dir, err)
		}
	}
	return nil
}

// fill makes what stands in the covers.
func (p *covering) fill(paths []string, sources []int) error {
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
	var whole string // the folder that was shown last, with everything in it
	for i, path := range paths {
		if whole != "" && strings.HasPrefix(path, whole+"/") {
			continue
		}
		dir, err := showAt(path, sources[i], p.shown[path])
		if err != nil {
			return fmt.Errorf("show %s: %w", path, err)
		}
		if dir {
			whole = path
		}
	}
	return nil
}

// showAt mounts what a descriptor names at a path, and tells whether it is a folder.
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
	if err := unix.Mount(from, path, "", unix.MS_BIND, ""); err != nil || writable {
		return dir, err
	}
	return dir, unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
}
