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
type accepted struct {
	path string
	mu   sync.Mutex
	file *os.File
	open map[string][]byte // lines of activations without a record in the store, by id
	size int64
}

// acceptedEntry is one line of the file. Exactly one field is set.
type acceptedLine struct {
	Lost  *activation `json:"lost,omitempty"`
	Ended *activation `json:"ended,omitempty"`
	Filed string      `json:"filed,omitempty"`
}

// unfinished are the activations that an earlier platform left without a record in the store, sorted by start.
type leftOpen struct {
	ended []*activation // with the records that clients got
	lost  []*activation // with the records that say so
}

// compactAbove is the size in bytes below which the file is never rewritten.
const smallAccepted = 1 << 20

// openAccepted opens the file in dir and returns what an earlier platform left unfinished in it.
func openAccepted(dir string) (*accepted, leftOpen, error) {
	path := filepath.Join(dir, "accepted.jsonl")
	left, err := readAccepted(path)
	if err != nil {
		return nil, leftOpen{}, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, leftOpen{}, err
	}
	a := &accepted{path: path, file: f, open: map[string][]byte{}}
	if info, err := f.Stat(); err == nil {
		a.size = info.Size()
	}
	return a, left, nil
}

// readAccepted reads the unfinished activations of a file. It skips lines that are cut off or foreign.
func readAccepted(path string) (leftOpen, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return leftOpen{}, nil
	}
	lost, ended := map[string]*activation{}, map[string]*activation{}
	for line := range bytes.Lines(data) {
		var v acceptedLine
		if json.Unmarshal(line, &v) != nil {
			continue
		}
		switch {
		case v.Lost.ours():
			lost[v.Lost.ActivationID] = v.Lost
		case v.Ended.ours():
			ended[v.Ended.ActivationID] = v.Ended
			delete(lost, v.Ended.ActivationID)
		default:
			delete(lost, v.Filed)
			delete(ended, v.Filed)
		}
	}
	return leftOpen{byStart(ended), byStart(lost)}, err
}

// valid tells whether a record that was read from the file can be one that a platform wrote.
func (a *activation) ours() bool {
	return a != nil && activationID.MatchString(a.ActivationID) && a.Namespace != ""
}

func byStart(records map[string]*activation) []*activation {
	return slices.SortedFunc(maps.Values(records), func(a, b *activation) int { return cmp.Compare(a.Start, b.Start) })
}

// add writes the line of an accepted activation, before the client gets its id.
func (a *accepted) add(lost *activation) error {
	if a == nil {
		return nil
	}
	line, err := json.Marshal(acceptedLine{Lost: lost})
	if err != nil {
		return err
	}
	return a.keep(lost.ActivationID, line)
}

// ended writes the line of an ended activation, before its record is answered and stored.
func (a *accepted) ended(record *activation) error {
	data, err := record.bytes()
	if err != nil {
		return err
	}
	return a.keep(record.ActivationID, slices.Concat([]byte(`{"ended":`), data, []byte{'}'}))
}

// appendOpen writes a line that stays open until recorded is called with its id.
func (a *accepted) keep(id string, line []byte) error {
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
func (a *accepted) filed(ids ...string) {
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
	if a.size > smallAccepted && a.size > 2*a.openSize() {
		a.restart()
	}
}

// write writes whole lines with one system call.
func (a *accepted) write(lines []byte) error {
	n, err := a.file.Write(lines)
	a.size += int64(n)
	if err != nil && n > 0 {
		a.file.Write([]byte{'\n'}) //nolint:errcheck // a cut-off line must not spoil the next one
	}
	return err
}

func (a *accepted) openSize() (sum int64) {
	for _, line := range a.open {
		sum += int64(len(line))
	}
	return sum
}

// compact rewrites the file with only the open lines.
func (a *accepted) restart() {
	draft := a.path + "-new"
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return // the old one will do
	}
	next := &accepted{file: f}
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
func (a *accepted) forget() error {
	a.size = 0
	return a.file.Truncate(0)
}

func (a *accepted) close() error {
	if a == nil {
		return nil
	}
	return a.file.Close()
}

// lostRecord is the record that an activation gets if the platform ends before the activation does.
func (run *running) lost() *activation {
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
func (p *Platform) answerForLost(left leftOpen) error {
	if p.accepted == nil {
		return nil
	}
	err := p.store.update(func(t tx) error {
		for _, a := range slices.Concat(left.ended, left.lost) {
			if t.has(a) {
				continue // the platform was killed between writing the record and the line
			}
			if err := p.store.fileIn(t, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = p.accepted.forget()
	}
	if len(left.lost) > 0 && err == nil {
		p.cfg.Logger.WithField("activations",
			len(left.lost)).Warn("an earlier platform ended while activations ran: their records say so")
	}
	return err
}

// pendingRecords are the records that are not in the store: queued ones, which clients can read already, as in
// OpenWhisk, and failed ones, which could not be written because the disk is full. Both are read from memory. While
// there are failed records the platform accepts nothing new, so their number is bounded.
type unfiled struct {
	mu      sync.Mutex
	coming  []*activation // to be written soon
	writing bool          // a goroutine writes the queued records
	many    chan struct{} // signals that half of maxQueued are queued
	list    []*activation // could not be written
	why     error
	retries bool // a goroutine retries the failed records
}

const (
	// retryEvery is the time between two attempts to write failed records.
	tryAgain = time.Second
	// batchEvery is how long records are collected before they are written together. Nobody waits for them. A sync of the
	// disk takes as long for a hundred records as for one, and delays other writers on ext4.
	gather = 500 * time.Millisecond
)

// maxQueued bounds the queued records. Above it an activation waits until its own record is written.
const mostComing = 1000

// saveRecord makes a record readable and durable. A record that is in the accepted log is written to the store later,
// because a sync takes most of a short activation's time.
func (p *Platform) keep(record *activation) {
	err := record.write()
	if err == nil && p.accepted != nil && p.accepted.ended(record) == nil && p.unfiled.announce(record) {
		if p.unfiled.begin() {
			p.flying.Go(p.fileComing)
		}
		return
	}
	p.settle([]*activation{record}, []error{p.store.file(record)})
}

// enqueue queues a record, or returns false if the queue is full.
func (u *unfiled) announce(record *activation) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.coming) >= mostComing {
		return false
	}
	u.coming = append(u.coming, record)
	if len(u.coming) >= mostComing/2 {
		select {
		case u.many <- struct{}{}:
		default: // the signal is there already
		}
	}
	return true
}

// startWriter returns true if the caller has to start the goroutine that writes queued records.
func (u *unfiled) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	idle := !u.writing
	u.writing = true
	return idle
}

// batch returns the queued records. If there are none, the writer must end.
func (u *unfiled) next() []*activation {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.writing = len(u.coming) > 0
	return slices.Clone(u.coming)
}

// writePending writes queued records until there are none.
func (p *Platform) fileComing() {
	for {
		p.gather()
		batch := p.unfiled.next()
		if len(batch) == 0 {
			return
		}
		p.settle(batch, p.store.fileAll(batch))
	}
}

// waitForBatch waits for more records to write together.
func (p *Platform) gather() {
	timer := time.NewTimer(gather)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.unfiled.many:
	case <-p.work.Done():
	}
}

// noteWritten removes records from the queue after an attempt to write them, and keeps those that failed.
func (p *Platform) settle(batch []*activation, errs []error) {
	var done []string
	tried := map[*activation]bool{}
	for i, record := range batch {
		tried[record] = true
		if errs[i] == nil {
			done = append(done, record.ActivationID)
		}
	}
	p.accepted.filed(done...)
	u := &p.unfiled
	u.mu.Lock()
	defer u.mu.Unlock()
	u.coming = slices.DeleteFunc(u.coming, func(a *activation) bool { return tried[a] })
	for i, record := range batch {
		if errs[i] != nil {
			p.remember(record, errs[i])
		}
	}
}

// keepFailed keeps a record whose write failed. The caller holds the lock.
func (p *Platform) remember(record *activation, err error) {
	p.cfg.Logger.WithError(err).WithField("activation",
		record.ActivationID).Error("a record could not be written: it stays in memory, and the platform accepts nothing new until " +
		"the disk takes it")
	u := &p.unfiled
	u.list, u.why = append(u.list, record), err
	if !u.retries {
		u.retries = true
		p.flying.Go(p.refile)
	}
}

// retryFailed writes failed records until none is left or the platform ends.
func (p *Platform) refile() {
	u := &p.unfiled
	for {
		p.pause(tryAgain)
		u.mu.Lock()
		list := slices.Clone(u.list)
		u.mu.Unlock()
		done := 0
		for _, record := range list {
			if p.store.file(record) != nil {
				break
			}
			p.accepted.filed(record.ActivationID)
			done++
		}
		u.mu.Lock()
		u.list = slices.Delete(u.list, 0, done)
		if len(u.list) == 0 || p.work.Err() != nil {
			u.retries, u.why = false, nil
			u.mu.Unlock()
			return
		}
		u.mu.Unlock()
	}
}

// find returns the record of an activation that is not in the store, or nil.
func (u *unfiled) of(ns, id string) *activation {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range slices.Concat(u.coming, u.list) {
		if a.Namespace == ns && a.ActivationID == id {
			return a
		}
	}
	return nil
}

// newest returns the records of a namespace that are not in the store, newest first.
func (u *unfiled) newest(ns string) []*activation {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []*activation
	for _, a := range slices.Concat(u.coming, u.list) {
		if a.Namespace == ns {
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b *activation) int { return cmp.Compare(b.Start, a.Start) })
	return out
}

// writeError returns why nothing new can be accepted, or nil.
func (u *unfiled) stuck() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.list) == 0 {
		return nil
	}
	return errCannotWrite(reason(u.why))
}

// diskError translates an error of a full or broken disk into the refusal that the API answers. Other errors stay as
// they are.
func unwritable(err error) error {
	switch no := reason(err); no {
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EFBIG:
		return errCannotWrite(no)
	default:
		return err
	}
}

// systemError returns the error of the operating system, without the path.
func reason(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// recordCommits lets records that end at the same time share one sync of the disk. A record that comes while others are
// written is in the next batch; nothing else delays a write.
type filings struct {
	mu      sync.Mutex
	writing bool
	waiting []filing
}

type filing struct {
	record *activation
	done   chan error
}

// commit returns once the record is on the disk.
func (f *filings) file(s *store, a *activation) error {
	mine := filing{a, make(chan error, 1)}
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
func (f *filings) write(s *store) bool {
	f.mu.Lock()
	batch := f.waiting
	f.waiting, f.writing = nil, len(batch) > 0
	f.mu.Unlock()
	if len(batch) > 0 {
		writeFilings(s, batch)
	}
	return len(batch) > 0
}

func writeFilings(s *store, batch []filing) {
	list := make([]*activation, len(batch))
	for i, b := range batch {
		list[i] = b.record
	}
	for i, err := range s.fileAll(list) {
		batch[i].done <- err
	}
}

// saveRecords stores records in one transaction. If that fails it stores them one by one, so each gets its own error.
func (s *store) fileAll(list []*activation) []error {
	errs := make([]error, len(list))
	err := s.record(func(t tx) error {
		for _, a := range list {
			if err := s.fileIn(t, a); err != nil {
				return err
			}
		}
		return nil
	})
	for i, a := range list {
		if errs[i] = err; err != nil && len(list) > 1 {
			errs[i] = s.record(func(t tx) error { return s.fileIn(t, a) })
		}
	}
	return errs
}
