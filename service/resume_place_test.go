package service

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/service/lease"
)

// unfinishedAt has a home with a job that ran at a place and whose process is no more. The place stands in the record,
// or for a tenant's job in the lease.
func unfinishedAt(t *testing.T, home, tenant string, place []disdel.Option) disdel.Record {
	t.Helper()
	s := opened(t, home)
	of := s.view(tenant)
	if err := of.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := submit(t, of, small(t, "training.epochs=3000"))
	if !after[RoundEnded](run) {
		t.Fatal("no round")
	}
	run.Cancel(errors.New("killed"))
	rec, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec.Status, rec.Failure, rec.Ended = disdel.StatusRunning, nil, time.Time{}
	theirs := history.Lease{Job: rec.ID, Owner: history.Owner{Token: lease.Nobody}}
	if tenant == "" {
		rec.Place = place
	} else {
		theirs.Addresses = place
	}
	if err := h.Save(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Take(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return rec
}

// A server does not run a job that ran at other addresses than its own. It logs that once, with the job's name. It
// refuses a resume until somebody asks for the move.
func TestAServerDoesNotMoveAJobUnasked(t *testing.T) {
	draw := rand.New(rand.NewPCG(31, 7))
	values := map[string]string{
		"apihost": "https://whisk.example", "storage": "file:///elsewhere", "redis": "redis://r.example:6379/0",
		"redis-prefix": "mine",
	}
	for i := range 4 {
		place, tenant := []disdel.Option{{Name: "pool-memory", Value: "1GB"}}, []string{"", "ann"}[i%2]
		for _, at := range draw.Perm(len(addresses.ComparedFlags))[:1+draw.IntN(len(addresses.ComparedFlags))] {
			flag := addresses.ComparedFlags[at]
			place = append(place, disdel.Option{Name: flag, Value: values[flag]})
		}
		home := t.TempDir()
		rec := unfinishedAt(t, home, tenant, place)
		log, told := logtest.NewNullLogger()
		s, err := Open(t.Context(), Config{
			Program: testProgram, Home: home, TakeOver: true, Log: log, Place: []disdel.Option{},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := s.Attend(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, runs := s.findRun(rec.ID); runs {
			t.Errorf("%v: the server runs it", place)
		}
		warned := 0
		for _, e := range told.AllEntries() {
			err, _ := e.Data[logrus.ErrorKey].(error)
			if err != nil && disdel.AsError(err).Code == disdel.CodeElsewhere {
				warned++
				if shows := strings.Contains(err.Error(), place[1].Value); tenant == "" && !shows && len(place) == 2 {
					t.Errorf("%v: %v", place, err)
				}
			}
		}
		if warned != 1 {
			t.Errorf("%v: told %d times", place, warned)
		}
		h, err := s.History(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if kept, err := h.Get(t.Context(), rec.ID); err != nil || kept.Status != disdel.StatusRunning || kept.Resumes != 0 {
			t.Errorf("%v: the record says %v, %v", place, kept.Status, err)
		}
		of := s.view(tenant)
		if _, err := of.Resume(t.Context(), ResumeRequest{Job: string(rec.ID)}); err == nil ||
			disdel.AsError(err).Code != disdel.CodeElsewhere || !strings.Contains(disdel.AsError(err).Hint, "--move") {
			t.Errorf("%v: resumed: %v", place, err)
		}
		moved(t, of, rec)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// moved has a job go on here, from its newest checkpoint, with this place in its record.
func moved(t *testing.T, s *Service, rec disdel.Record) {
	t.Helper()
	run, err := s.Resume(t.Context(), ResumeRequest{Job: string(rec.ID), Move: true})
	if err != nil {
		t.Fatal(err)
	}
	for e := range run.Events() {
		if r, ok := e.What.(Resumed); ok {
			if r.Fresh {
				t.Error("it began anew")
			}
			break
		}
	}
	if at := run.Submitted().Place; len(at) > 0 || s.whose() == "" && at == nil {
		t.Errorf("its record says it runs at %v", at)
	}
	run.Cancel(errors.New("enough"))
	run.Wait(t.Context()) //nolint:errcheck // that it began is what counts
}

// A server continues a job of its own place. If the place of a job is unknown, the server does not begin the job
// anew: its checkpoints may be in another storage.
func TestAServerGoesOnWithJobsOfItsPlace(t *testing.T) {
	for _, c := range []struct {
		name  string
		place []disdel.Option // nil: not known
		lost  bool            // its checkpoints are not there
		want  disdel.Code     // of the job's failure; "": it goes on
	}{
		{"its own", []disdel.Option{}, false, ""},
		{"its own, without checkpoints", []disdel.Option{}, true, ""},
		{"not known", nil, false, ""},
		{"not known, without checkpoints", nil, true, disdel.CodeNoCheckpoint},
	} {
		home := t.TempDir()
		rec := unfinishedAt(t, home, "", c.place)
		s, err := Open(t.Context(), Config{Program: testProgram, Home: home, TakeOver: true, Place: []disdel.Option{}})
		if err != nil {
			t.Fatal(err)
		}
		if c.lost {
			loseCheckpoints(t, s, rec.ID)
		}
		if err := s.Attend(t.Context()); err != nil {
			t.Fatal(err)
		}
		run, ok := s.Run(rec.ID)
		switch {
		case !ok && c.want == "":
			t.Errorf("%s: it does not run", c.name)
		case ok && c.want == "":
			if !after[RoundEnded](run) {
				t.Errorf("%s: no round", c.name)
			}
		case ok:
			<-run.Done()
			fallthrough
		default:
			h, _ := s.History(t.Context())
			kept, err := h.Get(t.Context(), rec.ID)
			if err != nil || kept.Failure == nil || kept.Failure.Code != c.want {
				t.Errorf("%s: %v, %v", c.name, kept.Failure, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func loseCheckpoints(t *testing.T, s *Service, job disdel.JobID) {
	t.Helper()
	m, err := s.Models(t.Context())
	if err == nil {
		err = m.Discard(t.Context(), controller.CheckpointFolder(job))
	}
	if err != nil {
		t.Fatal(err)
	}
}
