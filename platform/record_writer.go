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

// accepted is a file of the activations that were accepted and have no record on the disk yet: a line when one is
// accepted, a line when it has ended, with its record, and a line when that record is kept. A platform that was killed
// leaves it, and the next one on the same data answers for what is open in it, so that no client waits for a record
// that cannot come, and no answer is without its record. It is not synced: it outlives the process, which is what it is
// for, and costs an invocation a few microseconds. What a machine that lost power lost, its clients find out by their
// own patience.
type accepted struct {
	path string
	mu   sync.Mutex
	file *os.File
	open map[string][]byte // lines of what has no record on the disk, by id
	size int64
}

// acceptedLine is a line: the record that an activation gets if nothing more is heard of it, the record that it got, or
// the id of one whose record is kept.
type acceptedLine struct {
	Lost  *activation `json:"lost,omitempty"`
	Ended *activation `json:"ended,omitempty"`
	Filed string      `json:"filed,omitempty"`
}

// leftOpen is what an earlier platform left without a record on the disk, by start.
type leftOpen struct {
	ended []*activation // with the records that were answered
	lost  []*activation // of which nothing more was heard
}

// smallAccepted is up to where the file may grow before it is begun anew.
const smallAccepted = 1 << 20

// openAccepted opens the file in dir and returns what an earlier platform left open in it.
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

// readAccepted reads what is open in a file. A line that was cut off, or is none of ours, is passed over.
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

// ours tells whether a record that was read can be one that was written.
func (a *activation) ours() bool {
	return a != nil && activationID.MatchString(a.ActivationID) && a.Namespace != ""
}

func byStart(records map[string]*activation) []*activation {
	return slices.SortedFunc(maps.Values(records), func(a, b *activation) int { return cmp.Compare(a.Start, b.Start) })
}

// add is called before an activation is acknowledged.
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

// ended is called before an activation's record, whose JSON it is, is answered, if that is not on the disk yet.
func (a *accepted) ended(record *activation) error {
	data, err := record.bytes()
	if err != nil {
		return err
	}
	return a.keep(record.ActivationID, slices.Concat([]byte(`{"ended":`), data, []byte{'}'}))
}

// keep writes a line that stays open until its record is kept.
func (a *accepted) keep(id string, line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.write(append(line, '\n')); err != nil {
		return err
	}
	a.open[id] = line
	return nil
}

// filed is called when activations' records are kept. What cannot be written here is found out at the next start, which
// looks whether there is a record.
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

// write writes whole lines, at once.
func (a *accepted) write(lines []byte) error {
	n, err := a.file.Write(lines)
	a.size += int64(n)
	if err != nil && n > 0 {
		a.file.Write([]byte{'\n'}) //nolint:errcheck // what was cut off shall not spoil the next line
	}
	return err
}

func (a *accepted) openSize() (sum int64) {
	for _, line := range a.open {
		sum += int64(len(line))
	}
	return sum
}

// restart writes what is open into a file of its own, which then takes the place of the old one.
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

// forget empties the file: all that was open in it has a record.
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

// lost is the record that an activation gets if the platform ends before it does.
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

// answerForLost files the records of activations that an earlier platform accepted and did not file.
func (p *Platform) answerForLost(left leftOpen) error {
	if p.accepted == nil {
		return nil
	}
	err := p.store.update(func(t tx) error {
		for _, a := range slices.Concat(left.ended, left.lost) {
			if t.has(a) {
				continue // it was killed between the record and the line
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
			len(left.lost)).Warn("an earlier platform was ended with activations under way: their records say so")
	}
	return err
}

// unfiled are the records that are not on the disk: those on their way there, which were answered already, as OpenWhisk
// answers before it stores, and those that could not be written, as on a disk that is full. Both are read from memory.
// The latter are written when there is room again; until then nothing new is accepted, so that they are no more than
// what was under way.
type unfiled struct {
	mu      sync.Mutex
	coming  []*activation // on their way to the disk
	writing bool          // a goroutine writes them
	many    chan struct{} // signals that many are coming
	list    []*activation // could not be written
	why     error
	retries bool // a goroutine tries again
}

const (
	// tryAgain is the time between two tries to write what could not be written.
	tryAgain = time.Second
	// gather is for how long records come together before they are written, all at once, if not half of mostComing are
	// there before. Nobody waits for them, and a hundred together take little more than one. While a disk is synced,
	// others that write to it may have to wait, as the file of accepted activations does on ext4.
	gather = 500 * time.Millisecond
)

// mostComing is how many records may be on their way to the disk before who ends next waits for its own.
const mostComing = 1000

// keep sees to it that a record outlives the platform, and that it can be read from now on. One that is in the file of
// accepted activations does: a disk's sync, which is most of a short activation's time, is not waited for then.
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

// announce lets a record be read that is about to be written. It is false where too many are.
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
		default: // it is told already
		}
	}
	return true
}

// begin tells whether the caller is to see to it that what is coming is written.
func (u *unfiled) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	idle := !u.writing
	u.writing = true
	return idle
}

// next are the records that are coming. Where there are none, whoever writes them ends.
func (u *unfiled) next() []*activation {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.writing = len(u.coming) > 0
	return slices.Clone(u.coming)
}

// fileComing writes records for as long as some are coming.
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

// gather waits for records to come together.
func (p *Platform) gather() {
	timer := time.NewTimer(gather)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.unfiled.many:
	case <-p.work.Done():
	}
}

// settle is told how records were written. Those that were not are remembered and filed later.
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

// remember keeps a record in memory that could not be written; the caller holds the lock.
func (p *Platform) remember(record *activation, err error) {
	p.cfg.Logger.WithError(err).WithField("activation",
		record.ActivationID).Error("an activation's record could not be written: it is kept in memory, and nothing new is " +
		"accepted")
	u := &p.unfiled
	u.list, u.why = append(u.list, record), err
	if !u.retries {
		u.retries = true
		p.flying.Go(p.refile)
	}
}

// refile tries to write what could not be written until it is written, or the platform ends.
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

// of is the record of an activation that is not on the disk, nil if there is none.
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

// newest are those of a namespace, the newest first.
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

// stuck says why nothing can be accepted, nil if it can.
func (u *unfiled) stuck() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.list) == 0 {
		return nil
	}
	return errCannotWrite(reason(u.why))
}

// unwritable is err as the API answers it where the platform's file cannot be written.
func unwritable(err error) error {
	switch no := reason(err); no {
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EFBIG:
		return errCannotWrite(no)
	default:
		return err
	}
}

// reason is what the system says, without the path.
func reason(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// filings lets activations that end together share a sync of the disk, without making one that ends alone wait for
// others: whoever comes while a write is under way is in the next.
type filings struct {
	mu      sync.Mutex
	writing bool
	waiting []filing
}

type filing struct {
	record *activation
	done   chan error
}

// file returns when the activation is on the disk.
func (f *filings) file(s *store, a *activation) error {
	mine := filing{a, make(chan error, 1)}
	f.mu.Lock()
	f.waiting = append(f.waiting, mine)
	first := !f.writing
	f.writing = true
	f.mu.Unlock()
	if first && f.write(s) { // those who came meanwhile are not waited for
		go func() {
			for f.write(s) {
			}
		}()
	}
	return <-mine.done
}

// write writes those that wait, and tells whether there were any.
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

// fileAll keeps activations, all at once. If that cannot be, it does one by one, so that each gets the error that is
// its own.
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
