package platform

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// markerName is the file that marks a platform's temporary folder. It contains the folder's name and is locked while
// the platform lives, so only abandoned folders of this user are ever removed.
const markerName = ".disdel-platform"

// tempFolder is the temporary folder of one platform, with its sockets and working folders.
type tempFolder struct {
	dir    string
	marker *os.File // locked
}

// newTempFolder creates the folder and removes those of killed platforms beside it.
func newTempFolder(parent string) (*tempFolder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	removeAbandonedFolders(parent)
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
	marker, err := lockMarker(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, fail(err)
	}
	return &tempFolder{dir, marker}, nil
}

// lockMarker creates the marker in a folder. It locks the file before it gives it its name, so that a visible marker is
// always valid.
func lockMarker(dir string) (*os.File, error) {
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

// openToUsers lets containers' users reach their own folders inside without seeing the others.
func (r *tempFolder) openToUsers() {
	if canSwitch() {
		os.Chmod(r.dir, 0o711) //nolint:errcheck // if it stays closed, containers run without their own users
	}
}

// remove deletes the folder and releases the lock last.
func (r *tempFolder) remove() error { return errors.Join(os.RemoveAll(r.dir), r.marker.Close()) }

// removeAbandonedFolders removes the folders of killed platforms: those of this user whose marker has their name and is
// not locked, in any process namespace.
func removeAbandonedFolders(parent string) {
	names, _ := filepath.Glob(filepath.Join(parent, "disdel-*")) // the pattern is well-formed
	for _, dir := range names {
		marker, err := lockAbandoned(dir)
		if err != nil {
			continue
		}
		os.RemoveAll(dir) //nolint:errcheck // the next platform tries again
		marker.Close()
	}
}

var errInUse = errors.New("not a folder that a platform left")

// lockAbandoned locks and returns the marker of a folder that a killed platform left.
func lockAbandoned(dir string) (*os.File, error) {
	path := filepath.Join(dir, markerName)
	if !isOwn(dir, unix.S_IFDIR) || !isOwn(path, unix.S_IFREG) {
		return nil, errInUse
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	name := make([]byte, len(filepath.Base(dir))+1)
	n, _ := f.Read(name) // a file that is not a marker has another content
	if string(name[:n]) != filepath.Base(dir) || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil, errInUse
	}
	return f, nil
}

// isOwn tells whether path itself, without following links, belongs to this user and has this type.
func isOwn(path string, mode uint32) bool {
	var s unix.Stat_t
	return unix.Lstat(path, &s) == nil && int(s.Uid) == os.Geteuid() && uint32(s.Mode)&unix.S_IFMT == mode
}
