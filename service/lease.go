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
	"sync/atomic"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/platform/local"
)

// leaseFor is how long a lease is to be believed after the session of its owner was last renewed. It is renewed four
// times in that. Machines that share a history have clocks that differ by less.
const leaseFor = 8 * time.Second

// patience is how much longer an owner is believed that this process sees at work: a machine that is busy, or a history
// that is slow, is no reason to take a job from a process that lives.
const patience = time.Minute

// nobody is the token of leases that were handed over.
const nobody = "nobody"

// releaseWithin bounds the writing of a lease at a job's end: one that stays is taken over.
const releaseWithin = 5 * time.Second

// ownership is a lease that this Service holds, and the room that it has set aside.
type ownership struct {
	s       *core
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
	if _, err := s.present(ctx); err != nil {
		return nil, err
	}
	was, err := h.Lease(ctx, id)
	switch {
	case disdel.KindOf(err) == disdel.NotFound:
		was = history.Lease{Job: id}
	case err != nil:
		return nil, err
	default:
		if lives, err := s.alive(ctx, h, was); err != nil || lives {
			return nil, cmp.Or(err, runAlready(id, ownerText(was.Owner)))
		}
	}
	was.Owner, was.Data, was.Expires, was.StopRequest = s.owner(), s.storage("datasets"), time.Now().Add(s.leaseFor), nil
	was.Addresses = s.addresses()
	lease, err := h.Take(ctx, was)
	if disdel.KindOf(err) == disdel.Conflict {
		return nil, runAlready(id, "another process")
	}
	if err != nil {
		return nil, err
	}
	o := &ownership{s: s.core, history: h, lease: lease}
	if o.release, err = s.reserve(id); err != nil {
		o.end(ctx)
		return nil, err
	}
	return o, nil
}

// owner is this Service, as leases name it.
func (s *core) owner() history.Owner {
	host, _ := os.Hostname() // for a person, who can do without
	return history.Owner{Mark: process.Self(), Host: host, Token: s.token}
}

// alive tells whether the owner of a lease is to be taken for one that runs its job: it has said so lately, or it is a
// process that is seen to live.
func (s *core) alive(ctx context.Context, h *history.Store, l history.Lease) (bool, error) {
	if l.Owner.Gone() {
		return false, nil
	}
	if time.Now().Before(l.Expires) {
		return true, nil
	}
	n, err := h.Note(ctx, history.NoteSession, l.Owner.Token)
	if disdel.KindOf(err) == disdel.NotFound || disdel.KindOf(err) == disdel.Invalid {
		return false, nil // an owner of a version before sessions has none
	}
	return err == nil && sessionOf(n).alive(time.Now()), err
}

// held returns Conflict once another process has the job.
func (o *ownership) held() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// lose has the job be another's, and returns what to tell of that.
func (o *ownership) lose(to history.Owner) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = runAlready(o.lease.Job, ownerText(to))
	return o.lost
}

// end gives the job and its room back, even if ctx has ended.
func (o *ownership) end(ctx context.Context) { o.leave(ctx, (*ownership).giveBack) }

// handOver leaves the job to whoever comes next, as that of a process that is no more.
func (o *ownership) handOver(ctx context.Context) { o.leave(ctx, (*ownership).expire) }

func (o *ownership) leave(ctx context.Context, how func(*ownership, context.Context) error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	var err error
	if o.lost == nil {
		if err = how(o, ctx); disdel.KindOf(err) == disdel.Conflict && o.readAgain(ctx) {
			err = how(o, ctx)
		}
	}
	if o.release != nil {
		err = errors.Join(err, o.release())
	}
	if err != nil {
		o.s.log.WithError(err).WithField("job", o.lease.Job).Debug("the lease of the job stays until it expires")
	}
}

func (o *ownership) giveBack(ctx context.Context) error { return o.history.Release(ctx, o.lease) }

func (o *ownership) expire(ctx context.Context) error {
	next := o.lease
	next.Owner = history.Owner{Token: nobody, Host: next.Owner.Host}
	next.Expires = time.Now()
	_, err := o.history.Take(ctx, next)
	return err
}

// readAgain takes the state of the lease that is there, if it is still this Service's: somebody asked something of its
// owner.
func (o *ownership) readAgain(ctx context.Context) bool {
	there, err := o.history.Lease(ctx, o.lease.Job)
	if err != nil || there.Owner.Token != o.lease.Owner.Token {
		return false
	}
	o.lease = there
	return true
}

// recorder saves the records of a job for as long as it is this Service's: whoever took it up has the newer ones.
type recorder struct {
	own   *ownership
	to    *history.Store
	story *story

	// queued is set where the job's record is durable already, as queued: that a history is away when it begins to run
	// costs it nothing then. nil: it is not.
	queued *atomic.Bool
}

// Save writes a record, with what the service knows of the job.
func (r recorder) Save(ctx context.Context, rec *disdel.Record) error {
	if err := r.own.held(); err != nil {
		return err
	}
	told := r.story.of(*rec)
	err := r.to.Save(ctx, &told)
	if first := r.queued != nil && r.queued.Swap(false); first && disdel.KindOf(err) == disdel.Unavailable {
		return nil
	}
	return err
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
	lives, err := s.alive(ctx, h, l)
	return who, lives, err
}

// Reader is a running job that reads a data set, "" where none is known to.
func (s *Service) Reader(ctx context.Context, name string) disdel.JobID {
	_, none := os.Stat(local.HistoryFile(s.cfg.Home))
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
		if l.Data != s.storage("datasets") || onlyThere {
			continue
		}
		if lives, err := s.alive(ctx, h, l); lives || err != nil {
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
