package platform

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"
)

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
	return problem{503, textCannotWrite(reason(u.why))}
}

// unwritable is err as the API answers it where the platform's file cannot be written.
func unwritable(err error) error {
	switch no := reason(err); no {
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EFBIG:
		return problem{503, textCannotWrite(no)}
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
