package service

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/service/lease"
)

// A job sets aside the room for its record when it begins: a disk that is full by its end has that much room for it.
// The file is locked while the job runs, so that whoever tidies up knows those that a killed process left.
const (
	reserveSuffix = ".reserve"
	reserveSize   = 1 << 20
)

func (s *core) reserveFile(id disdel.JobID) string {
	return filepath.Join(s.unsavedFolder(), url.PathEscape(string(id))+reserveSuffix)
}

// reserve sets the room aside until the returned function is called. It returns NoSpace where there is none. What else
// keeps a record from being set aside may not keep the job from running.
func (s *core) reserve(id disdel.JobID) (release func() error, err error) {
	path := s.reserveFile(id)
	nothing := func() error { return nil }
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nothing, s.noRoom(id, err)
	}
	if s.tidyDue() {
		s.tidy()
	}
	f, err := files.Lock(path)
	if err != nil {
		return nothing, s.noRoom(id, err)
	}
	if err := files.Allocate(f, reserveSize); err != nil {
		if full := s.noRoom(id, err); full != nil {
			return nothing, errors.Join(full, files.Unlock(f))
		}
	}
	return func() error { return files.Unlock(f) }, nil
}

// noRoom is NoSpace for a disk that is full, nil for any other error.
func (s *core) noRoom(id disdel.JobID, err error) error {
	if !files.DiskFull(err) {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.NoSpace, Op: "run job", Job: id,
		Msg: fmt.Sprintf("%s has %v of room left, and the job's record alone may need %v",
			s.cfg.Home, files.Free(s.cfg.Home), disdel.Bytes(reserveSize)),
		Hint: "free some space, or name a folder on another disk with --home",
	}
}

// tidyEvery is the time between looks for what killed processes left: each job of many would look at those of all
// others.
const tidyEvery = time.Minute

func (s *core) tidyDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tidied.IsZero() && time.Since(s.tidied) < tidyEvery {
		return false
	}
	s.tidied = time.Now()
	return true
}

// tidy removes what processes that were killed left behind: reserves that nobody has locked, and the marks of running
// jobs that versions before leases had.
func (s *core) tidy() {
	list, _ := os.ReadDir(lease.MarkFolder(s.cfg.Home)) // there is nothing to tidy
	for _, e := range list {
		removeUnlocked(filepath.Join(lease.MarkFolder(s.cfg.Home), e.Name()))
	}
	list, _ = os.ReadDir(s.unsavedFolder())
	for _, e := range list {
		name, ok := strings.CutSuffix(e.Name(), reserveSuffix)
		if !ok || e.Type() != fs.FileMode(0) {
			continue
		}
		id, err := url.PathUnescape(name)
		if err != nil {
			continue
		}
		if _, runs := lease.Marked(s.cfg.Home, disdel.JobID(id)); !runs {
			removeUnlocked(filepath.Join(s.unsavedFolder(), e.Name()))
		}
	}
}

func removeUnlocked(path string) {
	if f, err := files.Lock(path); err == nil {
		files.Unlock(f) //nolint:errcheck // the next one does it
	}
}
