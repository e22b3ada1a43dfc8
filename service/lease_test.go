package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/internal/test/wait"
	"github.com/disdel/disdel/service/lease"
)

const someJob disdel.JobID = "job-01m80104rj3cabn3tetc26z8w3"

// records is the history of a Service in a home.
func records(t *testing.T, home string) (*Service, *history.Store) {
	t.Helper()
	s := opened(t, home)
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, h
}

// A job is run once at a time, by whichever Service of one process; looking who runs it lets nobody in.
func TestAJobIsHeldByOne(t *testing.T) {
	home := t.TempDir()
	first, _ := records(t, home)
	second, _ := records(t, home)
	own, err := first.own(t.Context(), someJob, "digits")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if who, runs, err := second.Runner(t.Context(), someJob); !runs || who.PID != os.Getpid() || err != nil {
			t.Errorf("%+v, %v, %v", who, runs, err)
		}
		if _, err := second.own(t.Context(), someJob, "digits"); !errors.Is(err, disdel.Conflict) ||
			!strings.Contains(err.Error(), "this process runs") {
			t.Errorf("a second one: %v", err)
		}
	}
	own.End(t.Context())
	if _, runs, _ := second.Runner(t.Context(), someJob); runs {
		t.Error("it is held after its end")
	}
	own, err = second.own(t.Context(), someJob, "digits")
	if err != nil {
		t.Fatal(err)
	}
	own.End(t.Context())
	if left, _ := os.ReadDir(first.unsavedFolder()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Whoever comes while others go: two never hold one job.
func TestHoldersTakeTurns(t *testing.T) {
	home := t.TempDir()
	var inside, held atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		s, _ := records(t, home)
		all.Go(func() {
			for range 10 {
				own, err := s.own(t.Context(), someJob, "digits")
				if errors.Is(err, disdel.Conflict) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two hold one job")
				}
				held.Add(1)
				inside.Add(-1)
				own.End(t.Context())
			}
		})
	}
	all.Wait()
	if held.Load() == 0 {
		t.Error("nobody ever held it")
	}
}

// A lease is believed until it expires, but for that of a process of this machine that is no more.
func TestWhoMayTakeAJobOver(t *testing.T) {
	s, h := records(t, t.TempDir())
	ended := exec.Command("true")
	ended.Start()
	dead := process.Self()
	dead.PID = ended.Process.Pid
	ended.Wait()
	elsewhere := process.Self()
	elsewhere.Boot, elsewhere.PID = "another boot", 1
	container := process.Self()
	container.Namespace, container.PID = "pid:[1]", dead.PID
	for name, c := range map[string]struct {
		mark    process.Mark
		expires time.Duration
		runs    string // "": it may be taken over
	}{
		"a living process":                       {process.Self(), time.Minute, "this process runs"},
		"a living process that stopped renewing": {process.Self(), -time.Second, ""},
		"a process that is no more":              {dead, time.Minute, ""},
		"another machine":                        {elsewhere, time.Minute, "process 1 on there runs"},
		"another machine that stopped renewing":  {elsewhere, -time.Second, ""},
		"a process that a container has, not we": {
			container, time.Minute,
			fmt.Sprintf("process %d on there runs", dead.PID),
		},
		"a process of a system that tells no mark": {process.Mark{PID: 1}, time.Minute, "process 1 on there runs"},
	} {
		was, err := h.Lease(t.Context(), someJob)
		if err != nil {
			was = history.Lease{Job: someJob}
		}
		was.Owner, was.Expires = history.Owner{Mark: c.mark, Host: "there", Token: "theirs"}, time.Now().Add(c.expires)
		if was, err = h.Take(t.Context(), was); err != nil {
			t.Fatal(err)
		}
		own, err := s.own(t.Context(), someJob, "digits")
		switch {
		case c.runs == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.runs != "" && (!errors.Is(err, disdel.Conflict) || !strings.Contains(err.Error(), c.runs)):
			t.Errorf("%s: %v, want %q", name, err, c.runs)
		}
		if err == nil {
			own.End(t.Context())
		}
	}
}

// A session is renewed, also where an answer was lost; a job that another process has taken is cancelled, saves nothing
// more, and leaves the lease to that one.
func TestALeaseHoldsUntilItIsTaken(t *testing.T) {
	s, h := records(t, t.TempDir())
	s.leaseFor = 40 * time.Millisecond
	own, err := s.own(t.Context(), someJob, "digits")
	if err != nil {
		t.Fatal(err)
	}
	first, err := h.Note(t.Context(), history.NoteSession, s.token)
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "renewal", func() bool {
		n, err := h.Note(t.Context(), history.NoteSession, s.token)
		return err == nil && expires(n).After(expires(first))
	})
	if n, err := h.Note(t.Context(), history.NoteSession, s.token); err != nil {
		t.Error(err)
	} else if _, err := h.WriteNote(t.Context(), n); err != nil && !errors.Is(err, disdel.Conflict) { // a lost answer
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	r := &Run{id: someJob, own: own, cancel: cancel, status: &jobStatus{}, done: make(chan struct{})}
	if err := s.enter(r); err != nil {
		t.Fatal(err)
	}
	rec := disdel.Record{APIVersion: disdel.APIVersion, ID: someJob}
	if err := (recorder{own: own, to: h, status: r.status}).Save(t.Context(), &rec); err != nil || ctx.Err() != nil {
		t.Errorf("%v, %v", err, context.Cause(ctx))
	}
	wait.Until(t, "another owner", func() bool {
		l, err := h.Lease(t.Context(), someJob)
		l.Owner.Token, l.Expires = "theirs", time.Now().Add(time.Hour)
		if err == nil {
			_, err = h.Take(t.Context(), l)
		}
		return err == nil
	})
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, disdel.Conflict) {
		t.Errorf("cancelled for %v", err)
	}
	if err := (recorder{own: own, to: h, status: r.status}).Save(t.Context(), &rec); !errors.Is(err, disdel.Conflict) {
		t.Errorf("saved: %v", err)
	}
	own.End(t.Context())
	s.leave(r)
	if l, err := h.Lease(t.Context(), someJob); err != nil || l.Owner.Token != "theirs" {
		t.Errorf("%+v, %v", l, err)
	}
}

// expires is when a session's note expires.
func expires(n history.Note) (at time.Time) {
	var note struct{ Expires *time.Time }
	note.Expires = &at
	json.Unmarshal(n.Value, &note) //nolint:errcheck // it is zero then
	return at
}

// A process of the version before leases keeps a file locked for as long as it runs a job, and is respected.
func TestTheLockOfAnEarlierVersionIsRespected(t *testing.T) {
	home := t.TempDir()
	s, _ := records(t, home)
	path := filepath.Join(lease.MarkFolder(home), url.PathEscape(string(someJob)))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString("4711")
	}
	if err == nil {
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.tidy()
	if _, err := s.own(t.Context(), someJob, "digits"); !errors.Is(err, disdel.Conflict) ||
		!strings.Contains(err.Error(), "process 4711 runs") {
		t.Errorf("%v", err)
	}
	if who, runs, err := s.Runner(t.Context(), someJob); !runs || who.PID != 4711 || err != nil {
		t.Errorf("%+v, %v, %v", who, runs, err)
	}
	f.Close() // it was killed: its mark stays
	own, err := s.own(t.Context(), someJob, "digits")
	if err != nil {
		t.Fatal(err)
	}
	own.End(t.Context())
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mark stays: %v", err)
	}
}

// What a killed process left goes with the next job; the room of a job that runs and a record stay.
func TestStaleFilesAreTidied(t *testing.T) {
	home := t.TempDir()
	s, _ := records(t, home)
	own, err := s.own(t.Context(), someJob, "digits")
	if err != nil {
		t.Fatal(err)
	}
	stale := []string{"running/job-01m80104rj3cabn3tetc26zzzz", "unsaved/job-01m80104rj3cabn3tetc26zzzz.reserve"}
	record := "unsaved/job-01m80104rj3cabn3tetc26zzzz.json"
	for _, name := range append(stale, record) {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.tidy()
	for _, name := range stale {
		if _, err := os.Stat(filepath.Join(home, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{filepath.Join(home, record), s.reserveFile(someJob)} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	own.End(t.Context())
}

// A process that is only waited for, and one whose number is another's by now, are gone.
func TestAnUnreapedProcessIsGone(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	mark := process.Self()
	mark.PID, mark.Start = cmd.Process.Pid, process.StartTicks(cmd.Process.Pid)
	if mark.Gone() {
		t.Error("a living process is gone")
	}
	in.Close()
	bufio.NewReader(out).ReadByte()
	wait.Until(t, "end", mark.Gone) // nobody has asked how it ended
	cmd.Wait()
	self := process.Self()
	if self.Start++; !self.Gone() {
		t.Error("another process of this number is taken for it")
	}
}
