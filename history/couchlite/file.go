package couchlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/boltcheck"
)

// The statuses of what goes wrong with the file itself, which no CouchDB answers with but for StatusNoSpace.
const (
	StatusNoSpace  = 507
	StatusDamaged  = 552
	StatusReadOnly = 553
)

// view and update run f on the open file: many readers or one writer at a time, of this process and of others, who are
// waited for. tx is nil in a view of a file that is not there.
func (s *Server) view(f func(*bbolt.Tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, err := os.Stat(s.path); errors.Is(err, fs.ErrNotExist) {
		return f(nil)
	}
	return s.with(&bbolt.Options{ReadOnly: true}, func(db *bbolt.DB) error { return db.View(f) })
}

func (s *Server) update(f func(*bbolt.Tx) error) error { return s.commits.make(f, s.commit) }

// commit writes what changes make of the file, once for all of them.
func (s *Server) commit(all func(*bbolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.create(); err != nil {
		return err
	}
	err := s.with(&bbolt.Options{NoSync: s.noSync}, func(db *bbolt.DB) error { return db.Update(all) })
	if now, failed := stateOf(s.path); err == nil && failed == nil {
		// what one wrote oneself is not looked at again: a file of 100,000 records has 1,250 inner pages
		s.checked.Store(&now)
	}
	return err
}

// with opens the file for the length of f. It is checked before, since what is missing in a mapped file ends the
// process.
func (s *Server) with(o *bbolt.Options, f func(*bbolt.DB) error) error {
	if err := s.check(); err != nil {
		return err
	}
	return boltcheck.Guard(s.path, func() error { return opened(s.path, o, s.cfg.LockWait, f) })
}

// opened runs f with the open file. Where bbolt panics, the file is closed without it: whatever it holds, no lock
// stays.
func opened(path string, o *bbolt.Options, wait time.Duration, f func(*bbolt.DB) error) error {
	var file *os.File
	done := false
	o.Timeout = wait
	o.OpenFile = func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}
	defer func() {
		if !done && file != nil {
			file.Close()
		}
	}()
	db, err := bbolt.Open(path, 0o600, o)
	if err == nil {
		err = f(db)
		if closed := db.Close(); err == nil {
			err = closed
		}
	}
	done = true
	return err
}

// create makes the file under another name first: whatever happens meanwhile, it is whole or not there.
func (s *Server) create() error {
	if _, err := os.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(s.path), ".history-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "new")
	if err := opened(made, &bbolt.Options{}, s.cfg.LockWait, func(*bbolt.DB) error { return nil }); err != nil {
		return err
	}
	if err := os.Link(made, s.path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil // another process may have been faster
}

// fileState tells whether a file was written to since it was checked.
type fileState struct {
	size, modified int64
	inode          uint64
}

func stateOf(path string) (fileState, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return fileState{st.Size, st.Mtim.Nano(), st.Ino}, err
}

// check looks at the file, unless it has done so and nobody wrote to it since.
func (s *Server) check() error {
	now, err := stateOf(s.path)
	if err != nil {
		return err
	}
	if now.size == 0 {
		return boltcheck.Named(s.path, damaged("it is empty"))
	}
	if before := s.checked.Load(); before != nil && *before == now {
		return nil
	}
	if err := boltcheck.Check(s.path, s.cfg.LockWait); err != nil {
		return err
	}
	s.checked.Store(&now)
	return nil
}

// problemOf is an error as it is answered. What is wrong with the file is said with the file's name: the client shows
// it to the user as it is.
func (s *Server) problemOf(err error) problem {
	var p problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, berrors.ErrTimeout), errors.Is(err, boltcheck.ErrBusy):
		return problem{503, "service_unavailable", "another process holds " + s.path + " for too long"}
	case errors.Is(err, disdel.Corrupt):
		return problem{StatusDamaged, "file_damaged", err.Error()}
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return problem{
			StatusNoSpace, "insufficient_storage",
			fmt.Sprintf("%s cannot be written: %s", s.path, full(filepath.Dir(s.path))),
		}
	case errors.Is(err, unix.EROFS), errors.Is(err, fs.ErrPermission):
		return problem{StatusReadOnly, "read_only", fmt.Sprintf("%s cannot be written: %v", s.path, plain(err))}
	default:
		return problem{500, "internal_server_error", s.path + ": " + plain(err).Error()}
	}
}

// plain drops the path that the message names already.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// full says how much room a folder's disk has.
func full(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return "the disk of " + dir + " is full"
	}
	return fmt.Sprintf("the disk of %s is full, %v are free", dir, disdel.Bytes(int64(st.Bavail)*st.Bsize))
}
