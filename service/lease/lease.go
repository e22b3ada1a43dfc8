package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/process"
)

// Nobody is the token of leases that were handed over.
const Nobody = "nobody"

// Held is a lease that a session holds.
type Held struct {
	session *Session

	mu      sync.Mutex
	lease   history.Lease // guarded by mu: the newest state that was written
	lost    error         // guarded by mu: another process has the job
	release func() error  // guarded by mu: see AtEnd; nil: nothing
}

// Take takes the lease of a job, with the data and the place that it names. It returns Conflict if another process runs
// the job.
func (s *Session) Take(ctx context.Context, job disdel.JobID, data string, place []disdel.Option) (*Held, error) {
	if !s.reserve(job) {
		return nil, runAlready(job, ProcessText(os.Getpid()))
	}
	held, err := s.take(ctx, job, data, place)
	if err != nil {
		s.free(job)
	}
	return held, err
}

// reserve notes that this session takes a job, unless it has it.
func (s *Session) reserve(job disdel.JobID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has[job] {
		return false
	}
	s.has[job] = true
	return true
}

func (s *Session) free(job disdel.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.has, job)
}

func (s *Session) take(ctx context.Context, job disdel.JobID, data string, place []disdel.Option) (*Held, error) {
	if pid, runs := Marked(s.Home, job); runs {
		return nil, runAlready(job, ProcessText(pid))
	}
	l, err := s.History.Lease(ctx, job)
	switch {
	case disdel.KindOf(err) == disdel.NotFound:
		l = history.Lease{Job: job}
	case err != nil:
		return nil, err
	case l.Owner.Token != s.Token: // otherwise the answer to an earlier try was lost, since the session has no such job
		if alive, err := Alive(ctx, s.History, l); err != nil || alive {
			return nil, cmp.Or(err, runAlready(job, OwnerText(l.Owner)))
		}
	}
	l.Owner, l.Data, l.Addresses, l.Expires, l.StopRequest = OwnerOf(s.Token), data, place, time.Now().Add(s.Time), nil
	taken, err := s.History.Take(ctx, l)
	if err == nil {
		return &Held{session: s, lease: taken}, nil
	}
	// The history may have written the lease although its answer was lost. A second try is then a conflict.
	held := &Held{session: s, lease: l}
	if held.readAgain(ctx) && held.lease.Expires.Equal(l.Expires) {
		return held, nil
	}
	if disdel.KindOf(err) == disdel.Conflict {
		err = runAlready(job, "another process")
	}
	return nil, err
}

// OwnerOf names the session with a token in this process, as leases do.
func OwnerOf(token string) history.Owner {
	host, _ := os.Hostname() // only for people
	return history.Owner{Mark: process.Self(), Host: host, Token: token}
}

// Alive reports whether the owner of a lease still runs its job: the lease or the owner's session has not expired, and
// the owner is not a process of this machine that is gone.
func Alive(ctx context.Context, h *history.Store, l history.Lease) (bool, error) {
	if l.Owner.Gone() {
		return false, nil
	}
	if time.Now().Before(l.Expires) {
		return true, nil
	}
	alive, _, err := SessionAlive(ctx, h, l.Owner.Token, time.Now())
	return alive, err
}

// AtEnd has release called when the lease ends.
func (l *Held) AtEnd(release func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release = release
}

// Lost returns Conflict once another process has the job.
func (l *Held) Lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Lose notes that another process has the job. It returns the error that Lost returns from now on.
func (l *Held) Lose(to history.Owner) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = runAlready(l.lease.Job, OwnerText(to))
	return l.lost
}

// End gives the lease back, even if ctx has ended.
func (l *Held) End(ctx context.Context) { l.leave(ctx, l.giveBack) }

// HandOver lets the lease expire now, so that another process takes the job over.
func (l *Held) HandOver(ctx context.Context) { l.leave(ctx, l.expire) }

func (l *Held) leave(ctx context.Context, how func(context.Context) error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.session.free(l.lease.Job)
	var err error
	if l.lost == nil {
		if err = how(ctx); disdel.KindOf(err) == disdel.Conflict && l.readAgain(ctx) {
			err = how(ctx)
		}
	}
	if l.release != nil {
		err = errors.Join(err, l.release())
	}
	if err != nil {
		l.session.Log.WithError(err).WithField("job", l.lease.Job).Debug("the lease of the job stays until it expires")
	}
}

func (l *Held) giveBack(ctx context.Context) error { return l.session.History.Release(ctx, l.lease) }

func (l *Held) expire(ctx context.Context) error {
	next := l.lease
	next.Owner = history.Owner{Token: Nobody, Host: next.Owner.Host}
	next.Expires = time.Now()
	_, err := l.session.History.Take(ctx, next)
	return err
}

// readAgain reads the lease again, because somebody may have added a StopRequest to it. It returns false if the lease
// is another's; the caller holds the lock.
func (l *Held) readAgain(ctx context.Context) bool {
	stored, err := l.session.History.Lease(ctx, l.lease.Job)
	if err != nil || stored.Owner.Token != l.lease.Owner.Token {
		return false
	}
	l.lease = stored
	return true
}

func runAlready(id disdel.JobID, who string) error {
	return &disdel.Error{
		Kind: disdel.Conflict, Op: "run job", Job: id, Msg: fmt.Sprintf("%s runs %s already", who, id),
		Hint: "wait for it, or stop it with Ctrl-C or kill first",
	}
}

// Here reports whether the owner is of this machine and process namespace, so that its process number means something.
func Here(o history.Owner) bool {
	self := process.Self()
	return o.Boot == self.Boot && o.Namespace == self.Namespace
}

// OwnerText names the owner of a lease for a person, such as "process 12 on HOST".
func OwnerText(o history.Owner) string {
	if Here(o) {
		return ProcessText(o.PID)
	}
	return fmt.Sprintf("process %d on %s", o.PID, cmp.Or(o.Host, "another machine"))
}

// ProcessText names a process of this machine for a person; 0 is another process.
func ProcessText(pid int) string {
	switch {
	case pid == os.Getpid():
		return "this process"
	case pid > 0:
		return fmt.Sprintf("process %d", pid)
	default:
		return "another process"
	}
}

// MarkFolder is where versions before leases marked the jobs that they ran, each by a file that the process locked.
func MarkFolder(home string) string { return filepath.Join(home, "running") }

// Marked returns the process of a version before leases that runs a job, 0 if its number is unknown. runs is false if
// none does.
func Marked(home string, id disdel.JobID) (pid int, runs bool) {
	f, err := os.Open(filepath.Join(MarkFolder(home), url.PathEscape(string(id))))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	holder, locked := files.Holder(f)
	if !locked || holder > 0 { // only a lock of a process says whose it is, not one of an open file
		return holder, locked
	}
	text, _ := io.ReadAll(io.LimitReader(f, 20))
	pid, _ = strconv.Atoi(string(text))
	return max(pid, 0), true
}

// MarkedJobs lists the jobs of a home that processes of versions before leases run.
func MarkedJobs(home string) (out []disdel.JobID) {
	list, _ := os.ReadDir(MarkFolder(home)) // without it there are none
	for _, f := range list {
		id, err := url.PathUnescape(f.Name())
		if err != nil {
			continue
		}
		if _, runs := Marked(home, disdel.JobID(id)); runs {
			out = append(out, disdel.JobID(id))
		}
	}
	return out
}
