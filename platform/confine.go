package platform

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// confinement is what the thread that starts containers gives up before it starts the first, and what they therefore
// lack. Everything is tried, and what this system or this user may not do is left out: what there is, String tells.
type confinement struct {
	hidden []string // files and folders that containers do not see
	done   []string
	mounts bool // the thread has mounts of its own
	masked map[string]bool
	needs  needs // of containers with users of their own
	own    view  // that they have
}

// maxProcesses bounds the processes and threads of a container, as the invoker's --pids-limit does.
const maxProcesses = 1024

// maxDescriptors bounds the open files of each of a container's processes, as the invoker's --ulimit nofile does.
const maxDescriptors = 1024

// enter is called on the thread itself, once. It never ends: the thread's children inherit it.
func (c *confinement) enter() {
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == nil {
		c.done = append(c.done, "no new privileges")
	}
	if os.Geteuid() != 0 || unix.Unshare(unix.CLONE_NEWNS) != nil {
		return
	}
	// What is mounted later outside shall be seen, and nothing that is mounted here shall be seen outside.
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") != nil {
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

// readOnlyGroups lets this thread's mounts of control groups be read alone: a process could else move to another group,
// and its limit would be gone.
func readOnlyGroups() bool {
	points := mountsBelow("/sys/fs/cgroup")
	for _, point := range points {
		if unix.Mount("", point, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
			"") != nil {
			return false
		}
	}
	return len(points) > 0
}

// mountsBelow lists where something is mounted in this thread's view, deepest first.
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

// hide covers what containers must not see. It is called before each start, because a file that is replaced is no
// longer covered. masked are the folders that are covered in the thread's view.
func (c *confinement) hide(masked map[string]bool) {
	if !c.mounts {
		return
	}
	for _, path := range c.hidden {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode().IsRegular():
			masked[path] = unix.Mount("/dev/null", path, "", unix.MS_BIND, "") == nil
		case info.IsDir() && !masked[path]:
			masked[path] = unix.Mount("none", path, "tmpfs", unix.MS_RDONLY, "size=4k,mode=000") == nil
		}
	}
}

// hiddenPaths are what was asked for, and the data folder.
func (c *Config) hiddenPaths() []string {
	var out []string
	for _, path := range append(slices.Clone(c.Hidden), c.DataDir) {
		if full, err := filepath.Abs(path); err == nil && path != "" {
			out = append(out, full)
		}
	}
	return out
}

// openToAll tells whether every user can pass all folders on the way to a path, and has the permissions of need on its
// last part.
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
