package service

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
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/localplatform"
	"github.com/disdel/disdel/internal/process"
)

// leaseFor is how long a lease is to be believed after it was last renewed. Machines that share a history have clocks
// that differ by less. It is renewed three times in that.
const leaseFor = 30 * time.Second

// releaseWithin bounds the writing of a lease at a job's end: one that stays is taken over.
const releaseWithin = 5 * time.Second

// ownership is a lease that this Service holds, and the room that it has set aside.
type ownership struct {
	s       *Service
	history *history.Store
	release func() error

	mu    sync.Mutex
	lease history.Lease // guarded by mu: the newest state that was written
	lost  error         // guarded by mu: another process has the job
}

// own makes this Service the one that runs a job, and sets aside the room for its record. It returns Conflict if
// somebody else runs it, and NoSpace.
func (s *Service) own(ctx context.Context, h *history.Store, id disdel.JobID) (*ownership, error) {
	if pid, runs := marked(s.cfg.Home, id); runs {
		return nil, runAlready(id, processText(pid))
	}
	was, err := h.Lease(ctx, id)
	switch {
	case disdel.KindOf(err) == disdel.NotFound:
		was = history.Lease{Job: id}
	case err != nil:
		return nil, err
	case s.alive(was):
		return nil, runAlready(id, ownerText(was.Owner))
	}
	was.Owner, was.Data, was.Expires = s.owner(), s.storage("datasets"), time.Now().Add(s.leaseFor)
	lease, err := h.Take(ctx, was)
	if disdel.KindOf(err) == disdel.Conflict {
		return nil, runAlready(id, "another process")
	}
	if err != nil {
		return nil, err
	}
	o := &ownership{s: s, history: h, lease: lease}
	if o.release, err = s.reserve(id); err != nil {
		o.end(ctx)
		return nil, err
	}
	return o, nil
}

// owner is this Service, as leases name it.
func (s *Service) owner() history.Owner {
	host, _ := os.Hostname() // for a person, who can do without
	return history.Owner{Mark: process.Self(), Host: host, Token: s.token}
}

// alive tells whether the owner of a lease is to be taken for one that runs its job.
func (s *Service) alive(l history.Lease) bool {
	return !l.Owner.Gone() && time.Now().Before(l.Expires)
}

// keep renews the lease until stop is called. Where another process has taken the job, it is cancelled here. A history
// that does not answer costs the job nothing: it goes on, and asks again.
func (o *ownership) keep(ctx context.Context, cancel context.CancelCauseFunc) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(o.s.leaseFor / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if err := o.renew(ctx); err != nil {
				cancel(err)
				return
			}
		}
	})
	return func() { end(); done.Wait() }
}

// renew writes the lease anew. It returns the error of a job that another process has taken; any other trouble is
// logged.
func (o *ownership) renew(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, releaseWithin)
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	next := o.lease
	next.Expires = time.Now().Add(o.s.leaseFor)
	l, err := o.history.Take(ctx, next)
	if disdel.KindOf(err) == disdel.Conflict { // an answer that was lost looks like this, too
		l, err = o.again(ctx, next)
	}
	switch {
	case err == nil:
		o.lease = l
	case errors.Is(err, errTaken):
		o.lost = runAlready(o.lease.Job, ownerText(l.Owner))
		return o.lost
	default:
		o.s.log.WithError(err).WithField("job", o.lease.Job).Debug("the lease of the job could not be renewed")
	}
	return nil
}

var errTaken = errors.New("another process has the job")

// again writes over what was written meanwhile, if that was this Service's own.
func (o *ownership) again(ctx context.Context, next history.Lease) (history.Lease, error) {
	there, err := o.history.Lease(ctx, next.Job)
	switch {
	case disdel.KindOf(err) == disdel.NotFound:
		there = history.Lease{Job: next.Job}
	case err != nil:
		return there, err
	case there.Owner.Token != next.Owner.Token:
		return there, errTaken
	}
	there.Owner, there.Data, there.Expires = next.Owner, next.Data, next.Expires
	return o.history.Take(ctx, there)
}

// held returns Conflict once another process has the job.
func (o *ownership) held() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// end gives the job and its room back, whatever became of ctx.
func (o *ownership) end(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	var err error
	if o.lost == nil {
		err = o.history.Release(ctx, o.lease)
	}
	if o.release != nil {
		err = errors.Join(err, o.release())
	}
	if err != nil {
		o.s.log.WithError(err).WithField("job", o.lease.Job).Debug("the lease of the job stays until it expires")
	}
}

// recorder saves the records of a job for as long as it is this Service's: whoever took it up has the newer ones.
type recorder struct {
	own *ownership
	to  *history.Store
}

// Save writes a record.
func (r recorder) Save(ctx context.Context, rec *disdel.Record) error {
	if err := r.own.held(); err != nil {
		return err
	}
	return r.to.Save(ctx, rec)
}

// Runner is who runs a job, as far as that is known.
type Runner struct {
	PID   int    // 0: not known, or of another machine
	Text  string // who it is, as "process 12" or "another process"
	Known bool   // the history tells, not a version before leases or nobody
}

// Runner tells whether a job is run, and by whom.
func (s *Service) Runner(ctx context.Context, id disdel.JobID) (who Runner, runs bool, err error) {
	if pid, runs := marked(s.cfg.Home, id); runs {
		return Runner{PID: pid, Text: processText(pid)}, true, nil
	}
	h, err := s.History(ctx)
	if err != nil {
		return who, false, err
	}
	l, err := h.Lease(ctx, id)
	if err != nil {
		if disdel.KindOf(err) == disdel.NotFound {
			err = nil
		}
		return who, false, err
	}
	who = Runner{Text: ownerText(l.Owner), Known: true}
	if here(l.Owner) {
		who.PID = l.Owner.PID
	}
	return who, s.alive(l), nil
}

// Reader is a running job that reads a data set, "" where none is known to.
func (s *Service) Reader(ctx context.Context, name string) disdel.JobID {
	_, none := os.Stat(localplatform.HistoryFile(s.cfg.Home))
	if s.cfg.CouchDB == "" && none != nil {
		return ""
	}
	h, err := s.History(ctx)
	if err != nil {
		return ""
	}
	running := markedJobs(s.cfg.Home)
	leases, _ := h.Leases(ctx) // what cannot be read is not known
	host, _ := os.Hostname()
	for _, l := range leases {
		onlyThere := strings.HasPrefix(l.Data, "file:") && l.Owner.Host != host
		if l.Data == s.storage("datasets") && !onlyThere && s.alive(l) {
			running = append(running, l.Job)
		}
	}
	for _, id := range running {
		if r, err := h.Get(ctx, id); err == nil && r.Data.Name == name {
			return id
		}
	}
	return ""
}

func runAlready(id disdel.JobID, who string) error {
	return &disdel.Error{
		Kind: disdel.Conflict, Op: "run job", Job: id, Msg: fmt.Sprintf("%s runs %s already", who, id),
		Hint: "wait for it, or stop it with Ctrl-C or kill first",
	}
}

// here tells whether an owner's process number means one that this process sees.
func here(o history.Owner) bool {
	self := process.Self()
	return o.Boot == self.Boot && o.Namespace == self.Namespace
}

func ownerText(o history.Owner) string {
	if here(o) {
		return processText(o.PID)
	}
	return fmt.Sprintf("process %d on %s", o.PID, cmp.Or(o.Host, "another machine"))
}

func processText(pid int) string {
	switch {
	case pid == os.Getpid():
		return "this process"
	case pid > 0:
		return fmt.Sprintf("process %d", pid)
	default:
		return "another process"
	}
}

// markFolder is where versions before leases told which jobs they run, each in a file that its process kept locked.
func markFolder(home string) string { return filepath.Join(home, "running") }

// marked is the process of a version before leases that runs a job, 0 if its number is not known; false if none does.
func marked(home string, id disdel.JobID) (pid int, runs bool) {
	f, err := os.Open(filepath.Join(markFolder(home), url.PathEscape(string(id))))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	holder, locked := files.Holder(f)
	if !locked || holder > 0 { // a lock that is a process's, and not an open file's, tells whose it is
		return holder, locked
	}
	text, _ := io.ReadAll(io.LimitReader(f, 20))
	pid, _ = strconv.Atoi(string(text))
	return max(pid, 0), true
}

// markedJobs is the jobs of a home that processes of versions before leases run.
func markedJobs(home string) (out []disdel.JobID) {
	list, _ := os.ReadDir(markFolder(home)) // without it there are none
	for _, f := range list {
		id, err := url.PathUnescape(f.Name())
		if err != nil {
			continue
		}
		if _, runs := marked(home, disdel.JobID(id)); runs {
			out = append(out, disdel.JobID(id))
		}
	}
	return out
}
