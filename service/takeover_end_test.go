package service

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/test/wait"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/tenant"
)

// endsUndelivered has a job of a killed process end as it would where the history does not take the end: it waits in a
// file of the home.
func endsUndelivered(t *testing.T, s *Service, rec disdel.Record) {
	t.Helper()
	rec.Status = disdel.StatusSucceeded
	data, err := json.Marshal(unsavedRecord{s.whichHistory(), rec})
	if err == nil {
		err = os.MkdirAll(s.unsavedFolder(), 0o700)
	}
	if err == nil {
		err = os.WriteFile(s.unsavedFile(rec.ID), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A job whose end waits beside the history has ended: nobody trains it again, takes it over, or cancels it.
func TestAnEndThatWaitsBesideTheHistoryCounts(t *testing.T) {
	for name, do := range map[string]func(s *Service, id disdel.JobID) error{
		"attend": func(s *Service, _ disdel.JobID) error { return s.Attend(t.Context()) },
		"resume": func(s *Service, id disdel.JobID) error {
			run, err := s.Resume(t.Context(), ResumeRequest{Job: string(id)})
			if err == nil {
				run.Cancel(nil)
				t.Error("a job that has succeeded is resumed")
			} else if disdel.AsError(err).Code == disdel.CodeSucceeded {
				err = nil
			}
			return err
		},
		"cancel": func(s *Service, id disdel.JobID) error {
			if err := s.RequestStop(t.Context(), string(id), disdel.StatusCanceled, "x"); disdel.KindOf(err) != disdel.Conflict {
				t.Errorf("a job that has succeeded is canceled: %v", err)
			}
			return nil
		},
	} {
		home := t.TempDir()
		rec := unfinishedAt(t, home, "", []disdel.Option{})
		s, err := Open(t.Context(), Config{
			Program: testProgram, Home: home, TakeOver: name == "attend", Place: []disdel.Option{},
		})
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.History(t.Context()) // whoever opens it delivers what waits then
		if err != nil {
			t.Fatal(err)
		}
		endsUndelivered(t, s, rec)
		if err := do(s, rec.ID); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, runs := s.findRun(rec.ID); runs {
			t.Errorf("%s: it runs again", name)
		}
		if got, err := h.Get(t.Context(), rec.ID); err != nil || got.Status != disdel.StatusSucceeded {
			t.Errorf("%s: the history says %v, %v", name, got.Status, err)
		}
		if left, _ := filepath.Glob(filepath.Join(s.unsavedFolder(), "*")); len(left) > 0 {
			t.Errorf("%s: left: %v", name, left)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A process may be killed between the last record of its job and the end of the job's checkpoints, or the history may
// not take the record until later. Then whoever takes the lease over, or delivers the record, deletes the checkpoints.
// Those of a job that has failed stay: it can be resumed.
func TestCheckpointsOfAnEndedJobAreDeletedLater(t *testing.T) {
	for name, c := range map[string]struct {
		undelivered bool
		ends        disdel.Status
		stay        bool
	}{
		"saved":       {false, disdel.StatusSucceeded, false},
		"undelivered": {true, disdel.StatusSucceeded, false},
		"failed":      {false, disdel.StatusFailed, true},
	} {
		home := t.TempDir()
		rec := unfinishedAt(t, home, "ann", []disdel.Option{})
		s, err := Open(t.Context(), Config{Program: testProgram, Home: home, TakeOver: true, Place: []disdel.Option{}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.History(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.undelivered {
			endsUndelivered(t, s, rec)
		} else {
			rec.Status = c.ends
			if err := h.Save(t.Context(), &rec); err != nil {
				t.Fatal(err)
			}
		}
		models, err := s.Tenant("ann").Models(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		folder := controller.CheckpointFolder(rec.ID)
		if _, _, err := models.NewestCheckpoint(t.Context(), folder); err != nil {
			t.Fatalf("%s: a killed job left no checkpoint: %v", name, err)
		}
		if err := s.Attend(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, _, err = models.NewestCheckpoint(t.Context(), folder)
		if c.stay != (err == nil) || !c.stay && disdel.KindOf(err) != disdel.NotFound {
			t.Errorf("%s: its checkpoint: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A job that is taken over claims its room of its tenant's disk quota until it ends, whether it had begun or not.
func TestAJobThatIsTakenOverClaimsItsDisk(t *testing.T) {
	for _, began := range []bool{false, true} {
		home := t.TempDir()
		rec := unfinishedAt(t, home, "ann", []disdel.Option{})
		s, err := Open(t.Context(), Config{Program: testProgram, Home: home, TakeOver: true, Place: []disdel.Option{}})
		if err != nil {
			t.Fatal(err)
		}
		quota := &scheduler.Quota{Disk: disdel.KB}
		if _, err := s.Tenants().Create(t.Context(), "ann", tenant.RoleSubmit, quota); err != nil {
			t.Fatal(err)
		}
		if !began {
			rec.Status, rec.Rounds, rec.Activations, rec.Stages, rec.Checkpoint = disdel.StatusQueued, nil, nil, nil, nil
			h, err := s.History(t.Context())
			if err == nil {
				err = h.Save(t.Context(), &rec)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Attend(t.Context()); err != nil {
			t.Fatal(err)
		}
		run, runs := s.findRun(rec.ID)
		if !runs || !after[RoundEnded](run) {
			t.Fatal("it does not run")
		}
		ann := s.Tenant("ann")
		claimed := func() disdel.Bytes {
			n, release := ann.disk.Add(0)
			release()
			return n
		}
		if n := claimed(); n == 0 {
			t.Errorf("began %t: nothing is claimed", began)
		}
		run.Cancel(nil)
		<-run.Done()
		wait.Until(t, "release of the claim", func() bool { return claimed() == 0 })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The renewals of a session do not wait for a Service that looks at many leases: it would lose its jobs meanwhile.
func TestRenewalsDoNotWaitForALongLook(t *testing.T) {
	var n session
	n.looking.Lock()
	defer n.looking.Unlock()
	if err := n.tryLook(t.Context(), []history.Lease{{Job: "job-1"}}); err != nil {
		t.Error(err)
	}
}
