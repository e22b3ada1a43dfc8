package couchlite

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/boltcheck"
)

// Statuses of errors of the file itself. CouchDB has only StatusNoSpace of them.
const (
	StatusNoSpace  = 507
	StatusDamaged  = 552
	StatusReadOnly = 553
)

// view and update run f on the open file: many readers or one writer at a time, in all processes. tx is nil in a view
// without a file.
func (s *Server) view(f func(*bbolt.Tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, err := os.Stat(s.path); errors.Is(err, fs.ErrNotExist) {
		return f(nil)
	}
	return s.with(&bbolt.Options{ReadOnly: true}, func(db *bbolt.DB) error { return db.View(f) })
}

func (s *Server) update(f func(*bbolt.Tx) error) error { return s.commits.run(f, s.commit) }

// commit writes several changes in one transaction.
func (s *Server) commit(all func(*bbolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := boltcheck.Create(s.path, func(made string) error {
		return withFile(made, &bbolt.Options{}, s.cfg.LockWait, func(*bbolt.DB) error { return nil })
	})
	if err != nil {
		return err
	}
	err = s.with(&bbolt.Options{NoSync: s.noSync}, func(db *bbolt.DB) error { return db.Update(all) })
	if now, failed := stateOf(s.path); err == nil && failed == nil {
		// our own write needs no check: a file of 100,000 records has 1,250 inner pages
		s.checked.Store(&now)
	}
	return err
}

// with opens the file for f. It checks the file first, because a missing page of a mapped file ends the process.
func (s *Server) with(o *bbolt.Options, f func(*bbolt.DB) error) error {
	if err := s.check(); err != nil {
		return err
	}
	return boltcheck.Guard(s.path, func() error { return withFile(s.path, o, s.cfg.LockWait, f) })
}

// withFile opens the file for f. If bbolt panics, it closes the file, so that no lock stays.
func withFile(path string, o *bbolt.Options, wait time.Duration, f func(*bbolt.DB) error) error {
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

// fileState changes when a file is written.
type fileState struct {
	size, modified int64
	inode          uint64
}

func stateOf(path string) (fileState, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return fileState{st.Size, st.Mtim.Nano(), st.Ino}, err
}

// check checks the file, unless it has not changed since the last check.
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

// errorOf translates an error into an answer. Errors of the file name it, because clients show the text to users.
func (s *Server) errorOf(err error) couchError {
	var p couchError
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, berrors.ErrTimeout), errors.Is(err, boltcheck.ErrBusy):
		return couchError{503, "service_unavailable", "another process holds " + s.path + " for too long"}
	case errors.Is(err, disdel.Corrupt):
		return couchError{StatusDamaged, "file_damaged", err.Error()}
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return couchError{
			StatusNoSpace, "insufficient_storage",
			fmt.Sprintf("%s cannot be written: %s", s.path, diskFullText(filepath.Dir(s.path))),
		}
	case errors.Is(err, unix.EROFS), errors.Is(err, fs.ErrPermission):
		return couchError{StatusReadOnly, "read_only", fmt.Sprintf("%s cannot be written: %v", s.path, pathless(err))}
	default:
		return couchError{500, "internal_server_error", s.path + ": " + pathless(err).Error()}
	}
}

// pathless drops the path, which the message has already.
func pathless(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// diskFullText tells how much space a folder's disk has.
func diskFullText(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return "the disk of " + dir + " is full"
	}
	return fmt.Sprintf("the disk of %s is full, %v are free", dir, disdel.Bytes(int64(st.Bavail)*int64(st.Bsize)))
}

// commitQueue lets concurrent writers share a commit, because opening the file and syncing it take as long for one
// document as for many. A writer that comes during a commit waits and then commits for all that came meanwhile.
type commitQueue struct {
	mu      sync.Mutex
	busy    bool      // guarded by mu: a commit runs or is about to
	waiting []*change // guarded by mu
}

// change is one writer's change of the file.
type change struct {
	do      func(*bbolt.Tx) error
	refused error         // of do
	turn    chan struct{} // gets a value if this writer has to commit for all
	ended   chan error    // one value
}

// errAborted is the error of changes whose commit panicked in another goroutine.
var errAborted = errors.New("the write was broken off")

// run commits a change, alone or with others. A failed change is rolled back without affecting the others, whose
// functions may run again.
func (s *commitQueue) run(f func(*bbolt.Tx) error, commit func(func(*bbolt.Tx) error) error) error {
	c := &change{do: f, turn: make(chan struct{}, 1), ended: make(chan error, 1)}
	s.join(c)
	select {
	case err := <-c.ended:
		return err
	case <-c.turn:
	}
	defer s.wakeNext()
	writeAll(s.take(), commit)
	return <-c.ended
}

// join adds a change. It gets the turn if no commit runs.
func (s *commitQueue) join(c *change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, c)
	if !s.busy {
		s.busy = true
		c.turn <- struct{}{}
	}
}

// take returns all waiting changes.
func (s *commitQueue) take() []*change {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.waiting
	s.waiting = nil
	return all
}

// wakeNext gives the turn to the first waiting change.
func (s *commitQueue) wakeNext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy = len(s.waiting) > 0; s.busy {
		s.waiting[0].turn <- struct{}{}
	}
}

// writeAll commits changes and reports their results. After a failure it repeats the commit without the failed change.
// That one may have met what another writes, so it is told only when the others are in the file.
func writeAll(all []*change, commit func(func(*bbolt.Tx) error) error) {
	err := errAborted // after a panic
	defer func() { reportAll(all, err) }()
	for left := slices.Clone(all); len(left) > 0; {
		failed := -1
		committed := commit(func(tx *bbolt.Tx) error {
			for i, c := range left {
				if c.refused = c.do(tx); c.refused != nil {
					failed = i
					return c.refused
				}
			}
			return nil
		})
		if failed < 0 {
			err = committed
			return
		}
		left = slices.Delete(left, failed, failed+1)
	}
	err = nil // all were refused
}

// reportAll tells each change its own error, or that of the commit.
func reportAll(all []*change, err error) {
	for _, c := range all {
		c.ended <- cmp.Or(err, c.refused)
	}
}

// RepairResult is the result of Repair.
type RepairResult struct {
	Kept  int    // documents in the new file
	Aside string // path of the damaged file
}

// Repair makes a new file at path from the readable documents of the damaged one, which it renames. It takes the newest
// intact state of each document. All documents go into one database. It returns NotFound without a file. If it fails,
// the old file stays.
func Repair(path, name string) (RepairResult, error) {
	fail := func(err error) (RepairResult, error) {
		return RepairResult{}, &disdel.Error{Kind: disdel.Unavailable, Op: "repair history", Msg: path, Err: pathless(err)}
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return RepairResult{}, &disdel.Error{Kind: disdel.NotFound, Op: "repair history", Msg: "there is no " + path}
	}
	values, err := newestStates(path)
	if err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".history-*")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "new")
	if err := withFile(made, &bbolt.Options{}, time.Second,
		func(db *bbolt.DB) error { return fillNew(db, name, values) }); err != nil {
		return fail(err)
	}
	out := RepairResult{Aside: path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000")}
	for _, v := range values {
		if !v.Deleted {
			out.Kept++
		}
	}
	if err := os.Link(path, out.Aside); err != nil {
		return fail(err)
	}
	if err := os.Rename(made, path); err != nil {
		return fail(errors.Join(err, os.Remove(out.Aside)))
	}
	return out, nil
}

// newestStates is the newest intact state of every document in a file.
func newestStates(path string) (map[string]stored, error) {
	out := map[string]stored{}
	err := boltcheck.Scan(path, func(key, value []byte) {
		if len(key) == 0 || bytes.IndexByte(key, 0) >= 0 { // a key of a catalog
			return
		}
		d, _, err := parse(key, value)
		if before, there := out[string(key)]; err != nil || there && before.Seq >= d.Seq {
			return
		}
		d.Body = slices.Clone(d.Body)
		out[string(key)] = d
	})
	return out, err
}

func fillNew(db *bbolt.DB, name string, values map[string]stored) error {
	return db.Update(func(tx *bbolt.Tx) error {
		docs, err := tx.CreateBucket([]byte(name))
		if err != nil {
			return err
		}
		c, err := openCatalog(tx, name)
		if err != nil {
			return err
		}
		last := uint64(0)
		for id, d := range values {
			last = max(last, d.Seq)
			value := d.value(id)
			if err := docs.Put([]byte(id), value); err != nil {
				return fmt.Errorf("document %q: %w", id, err)
			}
			if err := c.add(id, d, value); err != nil {
				return err
			}
		}
		if err := docs.SetSequence(last); err != nil {
			return err
		}
		return c.flush(tx)
	})
}
