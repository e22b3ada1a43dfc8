package service

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/tenant"
)

// became is what a job has been.
func became(rec disdel.Record) (out []disdel.Status) {
	for _, t := range rec.Transitions {
		out = append(out, t.To)
	}
	return out
}

// pooled is a Service of a home with a pool of so much, and digits.
func pooled(t testing.TB, home string, pool disdel.Bytes, takeOver bool) *Service {
	t.Helper()
	s, err := Open(t.Context(), Config{Program: testProgram, Home: home, Pool: pool, TakeOver: takeOver})
	if err == nil {
		err = s.AddDigits(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Two processes of one home share one pool: the second job waits where its gang does not fit, is told so, and both
// pass.
func TestTwoServicesShareAPool(t *testing.T) {
	home := t.TempDir()
	const pool = 600 * disdel.MB // the gang of one has 512: two train actions, an aggregation and an evaluation
	first, second := pooled(t, home, pool, false), pooled(t, home, pool, false)
	long := submit(t, first, small(t, "training.epochs=300"))
	if !after[RoundEnded](long) {
		t.Fatal("no round of the first job")
	}
	waits := submit(t, second, small(t))
	if !after[Queued](waits) {
		t.Fatal("the second job did not wait")
	}
	long.Cancel(errors.New("enough"))
	for _, c := range []struct {
		run  *Run
		want []disdel.Status
	}{
		{long, []disdel.Status{
			disdel.StatusQueued, disdel.StatusAdmitted, disdel.StatusRunning,
			disdel.StatusCanceled,
		}},
		{waits, []disdel.Status{
			disdel.StatusQueued, disdel.StatusAdmitted, disdel.StatusRunning,
			disdel.StatusSucceeded,
		}},
	} {
		rec, err := c.run.Wait(t.Context())
		if err != nil || !slices.Equal(became(rec), c.want) {
			t.Errorf("%s became %v, want %v; %v", rec.ID, rec.Transitions, c.want, err)
		}
		h, _ := first.History(t.Context())
		if kept, err := h.Get(t.Context(), rec.ID); err != nil || !slices.Equal(became(kept), c.want) {
			t.Errorf("the record of %s says %v, %v", rec.ID, kept.Transitions, err)
		}
	}
}

// A pool that cannot keep all containers of a job grants them for a round: a more urgent job goes on in between, and
// the first one after it.
func TestJobsTakeTurnsByRounds(t *testing.T) {
	t.Parallel()
	const pool = 400 * disdel.MB // a round takes 384: two train actions and an aggregation; the evaluation is another 128
	s := pooled(t, t.TempDir(), pool, false)
	long := submit(t, s, small(t, "training.epochs=300"))
	if !after[RoundEnded](long) {
		t.Fatal("no round of the first job")
	}
	urgent, err := s.Submit(t.Context(), Request{Job: small(t), Priority: 1})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := urgent.Wait(t.Context())
	if err != nil || rec.Status != disdel.StatusSucceeded {
		t.Errorf("%v, %v: %v", rec.Status, err, rec.Failure)
	}
	if why := rec.Plan.Reasons[len(rec.Plan.Reasons)-1]; !strings.Contains(why, "are granted round by round") {
		t.Errorf("the plan says %q", why)
	}
	select {
	case <-long.Done():
		t.Error("the first job ended before the urgent one")
	default:
	}
	seen := 0
	for e := range long.Events() {
		seen = e.Number
		if _, waits := e.What.(Queued); waits {
			break
		}
	}
	for e := range long.EventsAfter(t.Context(), seen) {
		if _, ok := e.What.(RoundEnded); ok {
			break
		}
	}
	long.Cancel(errors.New("enough"))
	if rec, err = long.Wait(t.Context()); err != nil || rec.Status != disdel.StatusCanceled {
		t.Errorf("%v, %v: %v", rec.Status, err, rec.Failure)
	}
}

// What a tenant may spend bounds its jobs: those that have ended count, and a job beyond it is refused with the
// arithmetic.
func TestATenantsCostIsBounded(t *testing.T) {
	s := pooled(t, t.TempDir(), 0, false)
	if _, err := s.Tenants().Create(t.Context(), "ann", tenant.RoleSubmit, &scheduler.Quota{Cost: 1e-6}); err != nil {
		t.Fatal(err)
	}
	ann := s.Tenant("ann")
	if err := ann.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := submit(t, ann, small(t)) // of which nobody knows what it will cost
	if rec, err := run.Wait(t.Context()); err != nil || rec.Status != disdel.StatusSucceeded || rec.CostGBs <= 0 {
		t.Fatalf("%v, %v GB-s, %v", rec.Status, rec.CostGBs, err)
	}
	_, err := ann.Submit(t.Context(), Request{Job: small(t)})
	if !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), "quota of tenant ann") {
		t.Errorf("a job beyond the quota: %v", err)
	}
	_, err = ann.Estimate(t.Context(), Request{Job: small(t)}, Questions{Admit: true})
	if !errors.Is(err, disdel.OverLimit) || !strings.Contains(err.Error(), "quota of tenant ann") {
		t.Errorf("asked whether it would be taken: %v", err)
	}
	if _, err = ann.Estimate(t.Context(), Request{Job: small(t)}, Questions{}); err != nil {
		t.Errorf("its plan: %v", err)
	}
	if run, err = s.Submit(t.Context(), Request{Job: small(t)}); err != nil {
		t.Fatalf("another's job: %v", err)
	}
	run.Cancel(errors.New("enough"))
	run.Wait(t.Context()) //nolint:errcheck // how it ended is another test's
}

// A job that was acknowledged and whose process is no more is finished by another one; one that never began begins.
func TestAJobOfADeadProcessIsTakenOver(t *testing.T) {
	home := t.TempDir()
	first := pooled(t, home, 0, true)
	run := submit(t, first, small(t, "training.epochs=300"))
	if !after[RoundEnded](run) {
		t.Fatal("no round")
	}
	if err := first.Close(); err != nil { // it gives its jobs back, as a server that drains
		t.Fatal(err)
	}
	second := pooled(t, home, 0, false)
	h, err := second.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec, err := h.Get(t.Context(), run.ID())
	if err != nil || rec.Status != disdel.StatusQueued || rec.Failure != nil {
		t.Fatalf("given back as %v, %v, %v", rec.Status, rec.Failure, err)
	}
	rec.Job = small(t)                                      // a short end
	rec.Rounds, rec.Activations, rec.Stages = nil, nil, nil // as if it had never begun
	if err := h.Save(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	ended := exec.Command("true")
	ended.Start()
	dead := process.Self()
	dead.PID = ended.Process.Pid
	ended.Wait()
	l, err := h.Lease(t.Context(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	l.Owner, l.Expires = history.Owner{Mark: dead, Token: "dead"}, time.Now().Add(time.Hour)
	if _, err := h.Take(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	third := pooled(t, home, 0, true)
	if err := third.Attend(t.Context()); err != nil {
		t.Fatal(err)
	}
	taken, ok := third.Run(run.ID())
	if !ok {
		t.Fatal("nobody has the job")
	}
	if rec, err = taken.Wait(t.Context()); err != nil || rec.Status != disdel.StatusSucceeded {
		t.Errorf("%v, %v: %v", rec.Status, err, rec.Failure)
	}
}

// A key makes a repeated submit the same job, also once it has ended; with another job it is refused.
func TestAKeyMeansOneJob(t *testing.T) {
	s := opened(t, t.TempDir())
	req := Request{Job: small(t), Key: "k"}
	first, err := s.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Submit(t.Context(), req)
	if err != nil || again.ID() != first.ID() {
		t.Fatalf("%v, %v", again, err)
	}
	if _, err := first.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, err := s.Submit(t.Context(), req)
	if err != nil || ended.ID() != first.ID() {
		t.Fatalf("after its end: %v, %v", ended, err)
	}
	if rec, err := ended.Wait(t.Context()); err != nil || rec.Status != disdel.StatusSucceeded || rec.Key != "k" {
		t.Errorf("%v, %v", rec.Status, err)
	}
	req.Job = small(t, "training.epochs=3")
	if _, err := s.Submit(t.Context(), req); !errors.Is(err, disdel.Conflict) {
		t.Errorf("another job with the key: %v", err)
	}
	other, err := s.Tenant("other").Submit(t.Context(), req) // whose data sets are others
	if other != nil || disdel.KindOf(err) != disdel.Invalid {
		t.Errorf("another tenant's: %v", err)
	}
}

// Another Service of the home pauses a job, and it goes on when it is resumed.
func TestAJobIsPausedFromElsewhere(t *testing.T) {
	home := t.TempDir()
	s, other := opened(t, home), opened(t, home)
	run := submit(t, s, small(t, "training.epochs=300"))
	if !after[RoundEnded](run) {
		t.Fatal("no round")
	}
	look, err := other.Watch(t.Context(), string(run.ID()))
	if err != nil {
		t.Fatal(err)
	}
	look.Pause(errors.New("later"))
	rec, err := run.Wait(t.Context())
	if err != nil || rec.Status != disdel.StatusPaused || rec.Failure != nil {
		t.Fatalf("%v, %v: %v", rec.Status, err, rec.Failure)
	}
	if seen, err := look.Wait(t.Context()); err != nil || seen.Status != disdel.StatusPaused {
		t.Errorf("seen from elsewhere: %v, %v", seen.Status, err)
	}
	last := rec.Transitions[len(rec.Transitions)-1]
	if last.To != disdel.StatusPaused || last.Cause != "later" {
		t.Errorf("%+v", last)
	}
	if err := other.RequestStop(t.Context(), string(run.ID()), disdel.StatusCanceled, "no more"); err != nil {
		t.Error(err)
	}
	if err := other.RequestStop(t.Context(), string(run.ID()), disdel.StatusPaused, ""); !errors.Is(err, disdel.Conflict) {
		t.Errorf("a job that has ended is paused: %v", err)
	}
}

// Who reads that a job was canceled, and cancels it again at once, hears that it has ended. Who reads that it is paused
// can cancel it at once. Its process may still count the job as one that it runs then.
func TestAStatusCountsAsSoonAsItIsRead(t *testing.T) {
	s := opened(t, t.TempDir())
	for _, first := range []disdel.Status{disdel.StatusCanceled, disdel.StatusPaused} {
		run := submit(t, s, small(t, "training.epochs=300"))
		id := string(run.ID())
		if !after[RoundEnded](run) {
			t.Fatal("no round")
		}
		if err := s.RequestStop(t.Context(), id, first, "first"); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for left := false; !left; time.Sleep(time.Millisecond) {
			_, there := s.Run(run.ID())
			left = !there
		}
		entered := func(change func()) {
			s.mu.Lock()
			defer s.mu.Unlock()
			change()
		}
		entered(func() { s.runs[run.ID()] = run }) // as it was a moment before
		err := s.RequestStop(t.Context(), id, disdel.StatusCanceled, "second")
		entered(func() { delete(s.runs, run.ID()) })
		if ended := first == disdel.StatusCanceled; ended != errors.Is(err, disdel.Conflict) || !ended && err != nil {
			t.Errorf("a job that is %v is canceled: %v", first, err)
		}
		rec, err := s.Look(t.Context(), id)
		if err != nil || rec.Status != disdel.StatusCanceled {
			t.Errorf("a job that was %v and then canceled is %v, %v", first, rec.Status, err)
		}
	}
}
