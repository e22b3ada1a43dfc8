package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/service/lease"
)

// unsavedRecord is the record of an ended job that the history did not take. It stays in Home until a command reaches
// that history.
type unsavedRecord struct {
	History string        `json:"history"` // the address without its user; "": the home's own
	Record  disdel.Record `json:"record"`
}

func (s *core) unsavedFolder() string { return filepath.Join(s.cfg.Home, "unsaved") }

func (s *core) unsavedFile(id disdel.JobID) string {
	return filepath.Join(s.unsavedFolder(), url.PathEscape(string(id))+".json")
}

// whichHistory is the address of the history without its credentials.
func (s *core) whichHistory() string {
	u, err := url.Parse(s.cfg.CouchDB)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// keep writes a record to Home because the history did not take it, and logs that. If that fails too, it returns the
// error of the history.
func (s *core) keep(rec *disdel.Record, failed error) error {
	path := s.unsavedFile(rec.ID)
	remaining := unsavedRecord{s.whichHistory(), *rec}
	data, err := json.Marshal(remaining)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		if err = files.WriteWhole(path, ".unsaved-*", data); files.DiskFull(err) {
			err = s.spend(remaining, data)
		}
	}
	if err != nil {
		s.log.WithError(err).Warnf("the record could not be kept in %s either", s.unsavedFolder())
		return failed
	}
	s.log.WithError(failed).Warnf("the history did not take the job's end; it is in %s, and is given to the history once "+
		"that takes it: by this process, or by the next command", path)
	s.deliverLater(rec.ID)
	return nil
}

// spend writes a record into the reserved room. If the record is too long, it drops the logs first, and then successful
// activations.
func (s *core) spend(remaining unsavedRecord, data []byte) (err error) {
	for _, shorten := range []func(*disdel.Record){func(*disdel.Record) {}, withoutLogs, withoutPassed} {
		shorten(&remaining.Record)
		if data, err = json.Marshal(remaining); err != nil {
			return err
		}
		if len(data) <= reserveSize {
			break
		}
	}
	reserve := s.reserveFile(remaining.Record.ID)
	f, err := os.OpenFile(reserve, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err = errors.Join(err, f.Truncate(int64(len(data))), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(reserve, s.unsavedFile(remaining.Record.ID))
}

func withoutLogs(r *disdel.Record) {
	r.Activations = slices.Clone(r.Activations)
	for i := range r.Activations {
		r.Activations[i].Logs = nil
	}
}

func withoutPassed(r *disdel.Record) {
	before := len(r.Activations)
	r.Activations = slices.DeleteFunc(slices.Clone(r.Activations),
		func(a disdel.Activation) bool { return a.Outcome == disdel.OutcomeSuccess })
	r.Omitted += before - len(r.Activations)
}

// Times between tries to give the history a record that it did not take.
const (
	deliverEvery       = 2 * time.Second // ends of this process
	deliverOthersEvery = time.Minute     // ends of other processes of the home, which only a server delivers
)

// undelivered has the jobs of this process whose end the history did not take. Readers of such a job get its end from
// here.
type undelivered struct {
	jobs  map[disdel.JobID]*Run // nil values: the job's Run is not known
	tries bool                  // a goroutine tries to deliver them
}

// deliverLater tries to give the history the end of a job until it takes it or the Service is closed.
func (s *core) deliverLater(id disdel.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.undelivered.jobs == nil {
		s.undelivered.jobs = map[disdel.JobID]*Run{}
	}
	s.undelivered.jobs[id] = s.runs[id]
	if s.closed || s.undelivered.tries {
		return
	}
	s.undelivered.tries = true
	s.running.Go(s.deliverUntilTaken)
}

func (s *core) deliverUntilTaken() {
	tick := time.NewTicker(deliverEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.open.Done():
			return
		}
		h, err := s.historyOfAll(s.open)
		if err != nil {
			continue
		}
		for _, path := range s.unsavedFiles() {
			if err := s.deliverOne(s.open, h, path); err != nil {
				s.log.WithError(err).Debugf("%s could not be given to the history", path) // keep has warned
			}
		}
		if s.allDelivered() {
			return
		}
	}
}

// allDelivered forgets the ends that the history has. It returns true, and the tries end, if none is left.
func (s *core) allDelivered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.undelivered.jobs {
		if _, err := os.Stat(s.unsavedFile(id)); errors.Is(err, fs.ErrNotExist) {
			delete(s.undelivered.jobs, id)
			s.log.WithField("job", id).Info("the history has the job's end now")
		}
	}
	s.undelivered.tries = len(s.undelivered.jobs) > 0
	return !s.undelivered.tries
}

// endedHere returns a job that has ended in this process and whose end the history did not take yet.
func (s *Service) endedHere(id disdel.JobID) (*Run, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.undelivered.jobs[id]
	if r == nil || s.tenant != nil && r.tenant != *s.tenant {
		return nil, false
	}
	select {
	case <-r.done:
		return r, true
	default:
		return nil, false
	}
}

// Undelivered returns the record of a job that has ended in this process, if the history did not take it yet.
func (s *Service) Undelivered(id disdel.JobID) (rec disdel.Record, ok bool) {
	if r, ok := s.endedHere(id); ok {
		return *r.rec, true
	}
	return rec, false
}

// UndeliveredEnds returns the records of all jobs that have ended in this process and that the history did not take
// yet.
func (s *Service) UndeliveredEnds() (list []disdel.Record) {
	s.mu.Lock()
	jobs := slices.Collect(maps.Keys(s.undelivered.jobs))
	s.mu.Unlock()
	for _, id := range jobs {
		if rec, ok := s.Undelivered(id); ok {
			list = append(list, rec)
		}
	}
	return list
}

func (s *core) unsavedFiles() []string {
	files, _ := filepath.Glob(filepath.Join(s.unsavedFolder(), "*.json")) // the pattern is well-formed
	return files
}

// deliver gives the history the records that it did not take before. What it does not take now stays in Home.
func (s *core) deliver(ctx context.Context, h *history.Store) {
	for _, path := range s.unsavedFiles() {
		if err := s.deliverOne(ctx, h, path); err != nil {
			s.log.WithError(err).Warnf("%s could not be given to the history", path)
		}
	}
}

func (s *core) deliverOne(ctx context.Context, h *history.Store, path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) { // another process has delivered it
		return nil
	}
	if err != nil {
		return err
	}
	var remaining unsavedRecord
	if err := json.Unmarshal(data, &remaining); err != nil || !remaining.Record.ID.Valid() {
		return s.putAside(path, cmp.Or(err, errNoRecord))
	}
	if remaining.History != s.whichHistory() {
		return nil
	}
	there, err := h.Get(ctx, remaining.Record.ID)
	damaged := disdel.KindOf(err) == disdel.Corrupt // then what waits here is the better record
	if err != nil && disdel.KindOf(err) != disdel.NotFound && !damaged {
		return err
	}
	if there.Resumes <= remaining.Record.Resumes { // else another home took the job up since
		if err := h.Save(ctx, &remaining.Record); err != nil {
			return err
		}
		s.discardLate(ctx, &remaining.Record)
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) { // another deliverer was faster
		return err
	}
	return nil
}

// discardLate deletes the checkpoints of a job whose process could not do so after its end.
func (s *core) discardLate(ctx context.Context, rec *disdel.Record) {
	models, err := s.view(rec.Tenant).Models(ctx)
	if err == nil {
		err = controller.DiscardCheckpoints(ctx, models, rec)
	}
	if err != nil {
		s.log.WithError(err).WithField("job", rec.ID).Warn("checkpoints of an ended job stay: disdel prune checkpoints")
	}
}

var errNoRecord = errors.New("it names no job")

// putAside renames a file that has no record, so that it is reported once.
func (s *core) putAside(path string, why error) error {
	aside := path + ".damaged"
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	s.mu.Lock()
	maps.DeleteFunc(s.undelivered.jobs, func(id disdel.JobID, _ *Run) bool { return s.unsavedFile(id) == path })
	s.mu.Unlock()
	s.log.WithError(why).Warnf("%s is no record, and is not looked at again; the job's record in the history says what "+
		"it came to", aside)
	return nil
}

// A job reserves the room for its record when it begins, so that its end can be written although the disk is full. The
// reserve file is locked while the job runs, so that the files of killed processes can be recognised.
const (
	reserveSuffix = ".reserve"
	reserveSize   = 1 << 20
)

func (s *core) reserveFile(id disdel.JobID) string {
	return filepath.Join(s.unsavedFolder(), url.PathEscape(string(id))+reserveSuffix)
}

// reserve reserves the room until release is called. It returns NoSpace if the disk is full. Other errors do not keep
// the job from running.
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

// noRoom returns NoSpace if err says that the disk is full, else nil.
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

// tidyEvery is the time between searches for files of killed processes: with many jobs, each would look at the files of
// all.
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

// tidy removes files of killed processes: reserves that are not locked, and marks of versions before leases.
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
