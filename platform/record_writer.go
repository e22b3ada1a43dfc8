package platform

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// acceptedLog is a file of activations that were accepted and have no record in the store yet. It has one line when an
// activation is accepted, one with its record when it ends, and one when the store has the record. The next platform on
// the same data folder reads what a killed platform left in it, so no client waits for a record that never comes. The
// file is not synced: it survives the end of the process, not a power failure. A line costs an invocation a few
// microseconds.
type acceptedLog struct {
	path string
	mu   sync.Mutex
	file *os.File
	open map[string][]byte // lines of activations without a record in the store, by id
	size int64
}

// acceptedEntry is one line of the file. Exactly one field is set.
type acceptedEntry struct {
	Lost  *activation `json:"lost,omitempty"`
	Ended *activation `json:"ended,omitempty"`
	Filed string      `json:"filed,omitempty"`
}

// unfinished are the activations that an earlier platform left without a record in the store, sorted by start.
type unfinished struct {
	ended []*activation // with the records that clients got
	lost  []*activation // with the records that say so
}

// compactAbove is the size in bytes below which the file is never rewritten.
const compactAbove = 1 << 20

// openAccepted opens the file in dir and returns what an earlier platform left unfinished in it.
func openAccepted(dir string) (*acceptedLog, unfinished, error) {
	path := filepath.Join(dir, "accepted.jsonl")
	remaining, err := readAccepted(path)
	if err != nil {
		return nil, unfinished{}, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, unfinished{}, err
	}
	a := &acceptedLog{path: path, file: f, open: map[string][]byte{}}
	if info, err := f.Stat(); err == nil {
		a.size = info.Size()
	}
	return a, remaining, nil
}

// readAccepted reads the unfinished activations of a file. It skips lines that are cut off or foreign.
func readAccepted(path string) (unfinished, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return unfinished{}, nil
	}
	lost, ended := map[string]*activation{}, map[string]*activation{}
	for line := range bytes.Lines(data) {
		var v acceptedEntry
		if json.Unmarshal(line, &v) != nil {
			continue
		}
		switch {
		case v.Lost.valid():
			lost[v.Lost.ActivationID] = v.Lost
		case v.Ended.valid():
			ended[v.Ended.ActivationID] = v.Ended
			delete(lost, v.Ended.ActivationID)
		default:
			delete(lost, v.Filed)
			delete(ended, v.Filed)
		}
	}
	return unfinished{byStart(ended), byStart(lost)}, err
}

// valid tells whether a record that was read from the file can be one that a platform wrote.
func (a *activation) valid() bool {
	return a != nil && activationID.MatchString(a.ActivationID) && a.Namespace != ""
}

func byStart(records map[string]*activation) []*activation {
	return slices.SortedFunc(maps.Values(records), func(a, b *activation) int { return cmp.Compare(a.Start, b.Start) })
}

// add writes the line of an accepted activation, before the client gets its id.
func (a *acceptedLog) add(lost *activation) error {
	if a == nil {
		return nil
	}
	line, err := json.Marshal(acceptedEntry{Lost: lost})
	if err != nil {
		return err
	}
	return a.appendOpen(lost.ActivationID, line)
}

// ended writes the line of an ended activation, before its record is answered and stored.
func (a *acceptedLog) ended(record *activation) error {
	data, err := record.bytes()
	if err != nil {
		return err
	}
	return a.appendOpen(record.ActivationID, slices.Concat([]byte(`{"ended":`), data, []byte{'}'}))
}

// appendOpen writes a line that stays open until recorded is called with its id.
func (a *acceptedLog) appendOpen(id string, line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.write(append(line, '\n')); err != nil {
		return err
	}
	a.open[id] = line
	return nil
}

// recorded notes that the store has the records of these activations. A failed write is harmless: the next start looks
// into the store.
func (a *acceptedLog) recorded(ids ...string) {
	if a == nil || len(ids) == 0 {
		return
	}
	var lines []byte
	for _, id := range ids {
		lines = append(append(append(lines, `{"filed":"`...), id...), "\"}\n"...)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		delete(a.open, id)
	}
	a.write(lines) //nolint:errcheck // see above
	if a.size > compactAbove && a.size > 2*a.openSize() {
		a.compact()
	}
}

// write writes whole lines with one system call.
func (a *acceptedLog) write(lines []byte) error {
	n, err := a.file.Write(lines)
	a.size += int64(n)
	if err != nil && n > 0 {
		a.file.Write([]byte{'\n'}) //nolint:errcheck // a cut-off line must not spoil the next one
	}
	return err
}

func (a *acceptedLog) openSize() (sum int64) {
	for _, line := range a.open {
		sum += int64(len(line))
	}
	return sum
}

// compact rewrites the file with only the open lines.
func (a *acceptedLog) compact() {
	draft := a.path + "-new"
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return // the old one will do
	}
	next := &acceptedLog{file: f}
	for _, line := range a.open {
		err = errors.Join(err, next.write(append(slices.Clone(line), '\n')))
	}
	if err == nil {
		err = os.Rename(draft, a.path)
	}
	if err != nil {
		f.Close()
		os.Remove(draft) //nolint:errcheck // a draft
		return
	}
	a.file.Close()
	a.file, a.size = f, next.size
}

// clear empties the file, once all records in it are in the store.
func (a *acceptedLog) clear() error {
	a.size = 0
	return a.file.Truncate(0)
}

func (a *acceptedLog) close() error {
	if a == nil {
		return nil
	}
	return a.file.Close()
}

// lostRecord is the record that an activation gets if the platform ends before the activation does.
func (run *running) lostRecord() *activation {
	a := run.action
	result, _ := json.Marshal(map[string]string{"error": textLost}) // plain data
	none := int64(0)
	return &activation{
		Namespace: run.user.Name, Name: a.Name, Version: a.Version, Subject: run.user.Name, ActivationID: run.id,
		Cause: run.cause,
		Start: run.received.UnixMilli(), End: run.received.UnixMilli(), Duration: &none, Logs: []string{},
		Response:    response{Result: result, Status: statusInternal},
		Annotations: append(run.annotations(), kv("limits", a.Limits), kv("timeout", false)),
	}
}

// recordUnfinished stores records for the activations that an earlier platform left unfinished.
func (p *Platform) recordUnfinished(remaining unfinished) error {
	if p.accepted == nil {
		return nil
	}
	err := p.store.update(func(t tx) error {
		for _, a := range slices.Concat(remaining.ended, remaining.lost) {
			if t.hasRecord(a) {
				continue // the platform was killed between writing the record and the line
			}
			if err := p.store.putRecord(t, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = p.accepted.clear()
	}
	if len(remaining.lost) > 0 && err == nil {
		p.cfg.Logger.WithField("activations",
			len(remaining.lost)).Warn("an earlier platform ended while activations ran: their records say so")
	}
	return err
}

// pendingRecords are the records that are not in the store: queued ones, which clients can read already, as in
// OpenWhisk, and failed ones, which could not be written because the disk is full. Both are read from memory. While
// there are failed records the platform accepts nothing new, so their number is bounded.
type pendingRecords struct {
	mu       sync.Mutex
	queued   []*activation // to be written soon
	writing  bool          // a goroutine writes the queued records
	full     chan struct{} // signals that half of maxQueued are queued
	failed   []*activation // could not be written
	cause    error
	retrying bool // a goroutine retries the failed records
}

const (
	// retryEvery is the time between two attempts to write failed records.
	retryEvery = time.Second
	// batchEvery is how long records are collected before they are written together. Nobody waits for them. A sync of the
	// disk takes as long for a hundred records as for one, and delays other writers on ext4.
	batchEvery = 500 * time.Millisecond
)

// maxQueued bounds the queued records. Above it an activation waits until its own record is written.
const maxQueued = 1000

// saveRecord makes a record readable and durable. A record that is in the accepted log is written to the store later,
// because a sync takes most of a short activation's time.
func (p *Platform) saveRecord(record *activation) {
	err := record.encode()
	if err == nil && p.accepted != nil && p.accepted.ended(record) == nil && p.pending.enqueue(record) {
		if p.pending.startWriter() {
			p.runs.Go(p.writePending)
		}
		return
	}
	p.noteWritten([]*activation{record}, []error{p.store.saveRecord(record)})
}

// enqueue queues a record, or returns false if the queue is full.
func (u *pendingRecords) enqueue(record *activation) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queued) >= maxQueued {
		return false
	}
	u.queued = append(u.queued, record)
	if len(u.queued) >= maxQueued/2 {
		select {
		case u.full <- struct{}{}:
		default: // the signal is there already
		}
	}
	return true
}

// startWriter returns true if the caller has to start the goroutine that writes queued records.
func (u *pendingRecords) startWriter() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	idle := !u.writing
	u.writing = true
	return idle
}

// batch returns the queued records. If there are none, the writer must end.
func (u *pendingRecords) batch() []*activation {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.writing = len(u.queued) > 0
	return slices.Clone(u.queued)
}

// writePending writes queued records until there are none.
func (p *Platform) writePending() {
	for {
		p.waitForBatch()
		batch := p.pending.batch()
		if len(batch) == 0 {
			return
		}
		p.noteWritten(batch, p.store.saveRecords(batch))
	}
}

// waitForBatch waits for more records to write together.
func (p *Platform) waitForBatch() {
	timer := time.NewTimer(batchEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.pending.full:
	case <-p.work.Done():
	}
}

// noteWritten removes records from the queue after an attempt to write them, and keeps those that failed.
func (p *Platform) noteWritten(batch []*activation, errs []error) {
	var done []string
	tried := map[*activation]bool{}
	for i, record := range batch {
		tried[record] = true
		if errs[i] == nil {
			done = append(done, record.ActivationID)
		}
	}
	p.accepted.recorded(done...)
	u := &p.pending
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queued = slices.DeleteFunc(u.queued, func(a *activation) bool { return tried[a] })
	for i, record := range batch {
		if errs[i] != nil {
			p.keepFailed(record, errs[i])
		}
	}
}

// keepFailed keeps a record whose write failed. The caller holds the lock.
func (p *Platform) keepFailed(record *activation, err error) {
	p.cfg.Logger.WithError(err).WithField("activation", record.ActivationID).Error(
		"a record could not be written: it stays in memory, and the platform accepts nothing new until the disk takes it")
	u := &p.pending
	u.failed, u.cause = append(u.failed, record), err
	if !u.retrying {
		u.retrying = true
		p.runs.Go(p.retryFailed)
	}
}

// retryFailed writes failed records until none is left or the platform ends.
func (p *Platform) retryFailed() {
	u := &p.pending
	for {
		p.sleep(retryEvery)
		u.mu.Lock()
		list := slices.Clone(u.failed)
		u.mu.Unlock()
		done := 0
		for _, record := range list {
			if p.store.saveRecord(record) != nil {
				break
			}
			p.accepted.recorded(record.ActivationID)
			done++
		}
		u.mu.Lock()
		u.failed = slices.Delete(u.failed, 0, done)
		if len(u.failed) == 0 || p.work.Err() != nil {
			u.retrying, u.cause = false, nil
			u.mu.Unlock()
			return
		}
		u.mu.Unlock()
	}
}

// find returns the record of an activation that is not in the store, or nil.
func (u *pendingRecords) find(ns, id string) *activation {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range slices.Concat(u.queued, u.failed) {
		if a.Namespace == ns && a.ActivationID == id {
			return a
		}
	}
	return nil
}

// newest returns the records of a namespace that are not in the store, newest first.
func (u *pendingRecords) newest(ns string) []*activation {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []*activation
	for _, a := range slices.Concat(u.queued, u.failed) {
		if a.Namespace == ns {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b *activation) int { return cmp.Compare(b.Start, a.Start) })
	return out
}

// writeError returns why nothing new can be accepted, or nil.
func (u *pendingRecords) writeError() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.failed) == 0 {
		return nil
	}
	return errCannotWrite(systemError(u.cause))
}

// diskError translates an error of a full or broken disk into the refusal that the API answers. Other errors stay as
// they are.
func diskError(err error) error {
	switch no := systemError(err); no {
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EFBIG:
		return errCannotWrite(no)
	default:
		return err
	}
}

// systemError returns the error of the operating system, without the path.
func systemError(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// recordCommits lets records that end at the same time share one sync of the disk. A record that comes while others are
// written is in the next batch; nothing else delays a write.
type recordCommits struct {
	mu      sync.Mutex
	writing bool
	waiting []recordCommit
}

type recordCommit struct {
	record *activation
	done   chan error
}

// commit returns once the record is on the disk.
func (f *recordCommits) commit(s *store, a *activation) error {
	mine := recordCommit{a, make(chan error, 1)}
	f.mu.Lock()
	f.waiting = append(f.waiting, mine)
	first := !f.writing
	f.writing = true
	f.mu.Unlock()
	if first && f.write(s) { // records that came meanwhile are written without this caller
		go func() {
			for f.write(s) {
			}
		}()
	}
	return <-mine.done
}

// write writes the waiting records and tells whether there were any.
func (f *recordCommits) write(s *store) bool {
	f.mu.Lock()
	batch := f.waiting
	f.waiting, f.writing = nil, len(batch) > 0
	f.mu.Unlock()
	if len(batch) > 0 {
		commitAll(s, batch)
	}
	return len(batch) > 0
}

func commitAll(s *store, batch []recordCommit) {
	list := make([]*activation, len(batch))
	for i, b := range batch {
		list[i] = b.record
	}
	for i, err := range s.saveRecords(list) {
		batch[i].done <- err
	}
}

// saveRecords stores records in one transaction. If that fails it stores them one by one, so each gets its own error.
func (s *store) saveRecords(list []*activation) []error {
	errs := make([]error, len(list))
	err := s.updateRecords(func(t tx) error {
		for _, a := range list {
			if err := s.putRecord(t, a); err != nil {
				return err
			}
		}
		return nil
	})
	for i, a := range list {
		if errs[i] = err; err != nil && len(list) > 1 {
			errs[i] = s.updateRecords(func(t tx) error { return s.putRecord(t, a) })
		}
	}
	return errs
}
