package platform

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// markerName is the file by which a platform's folder of sockets and working folders is known. It is locked for as long
// as the platform lives and tells the folder's name, so that nothing but what a platform of this user left is ever
// removed.
const markerName = ".disdel-platform"

// root is the folder of one platform.
type root struct {
	dir    string
	marker *os.File // locked
}

// makeRoot makes a platform's folder, and removes those that killed platforms left beside it.
func makeRoot(parent string) (*root, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	removeLeftRoots(parent)
	fail := func(err error) error {
		return &disdel.Error{
			Kind: disdel.Unavailable, Op: "start platform", Err: err,
			Hint: "free space in the folder for temporary files, or set TMPDIR",
		}
	}
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("disdel-%d-", os.Getpid()))
	if err != nil {
		return nil, fail(err)
	}
	marker, err := mark(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, fail(err)
	}
	return &root{dir, marker}, nil
}

// mark puts the marker into a folder, locked before it has its name: one that can be found can be believed.
func mark(dir string) (*os.File, error) {
	draft := filepath.Join(dir, markerName+"-draft")
	f, err := os.OpenFile(draft, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		_, err = f.WriteString(filepath.Base(dir))
	}
	if err == nil {
		err = os.Rename(draft, filepath.Join(dir, markerName))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openToUsers lets containers' users reach their own folders below, and see no others.
func (r *root) openToUsers() {
	if canSwitch() {
		os.Chmod(r.dir, 0o711) //nolint:errcheck // where it stays closed, no container has a user of its own
	}
}

// remove removes the folder; the lock goes last.
func (r *root) remove() error { return errors.Join(os.RemoveAll(r.dir), r.marker.Close()) }

// removeLeftRoots removes what platforms left that were killed: folders of this user, with a marker that tells their
// name and that no living process has locked, in whatever process namespace it may be.
func removeLeftRoots(parent string) {
	names, _ := filepath.Glob(filepath.Join(parent, "disdel-*")) // the pattern is well-formed
	for _, dir := range names {
		marker, err := abandoned(dir)
		if err != nil {
			continue
		}
		os.RemoveAll(dir) //nolint:errcheck // the next platform tries again
		marker.Close()
	}
}

var errInUse = errors.New("not a folder that a platform left")

// abandoned returns the marker of a folder that a killed platform left, locked.
func abandoned(dir string) (*os.File, error) {
	path := filepath.Join(dir, markerName)
	if !own(dir, unix.S_IFDIR) || !own(path, unix.S_IFREG) {
		return nil, errInUse
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	name := make([]byte, len(filepath.Base(dir))+1)
	n, _ := f.Read(name) // what is no marker reads as another name
	if string(name[:n]) != filepath.Base(dir) || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil, errInUse
	}
	return f, nil
}

// own tells whether path itself, not what it may link to, is this user's and of a type.
func own(path string, mode uint32) bool {
	var s unix.Stat_t
	return unix.Lstat(path, &s) == nil && int(s.Uid) == os.Geteuid() && s.Mode&unix.S_IFMT == mode
}
