package service

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/localplatform"
	"github.com/disdel/disdel/scheduler"
)

// What a platform has at work beyond all that the jobs of the queue hold is others': a gang waits until they have gone,
// and what the jobs hold themselves is not counted twice.
func TestJobsWaitBehindOthers(t *testing.T) {
	gang := func(memory disdel.Bytes) scheduler.Gang {
		return scheduler.Gang{{Task: disdel.TaskTrain, Count: 1, Each: scheduler.Capacity{Memory: memory}}}
	}
	whole := scheduler.Capacity{Memory: disdel.GB}
	books := scheduler.NewAdmission(scheduler.Gangs{}, whole)
	l := ledger{Owners: map[disdel.JobID]string{}}
	ask := func(job disdel.JobID, memory disdel.Bytes) {
		t.Helper()
		if err := books.Enqueue(scheduler.Demand{Job: job, Gang: gang(memory)}); err != nil {
			t.Fatal(err)
		}
		l.Owners[job] = "me"
	}
	decide := func(busy disdel.Bytes) *scheduler.Admission {
		l.decide(books, "me", 0, busy)
		books = scheduler.RestoreAdmission(scheduler.Gangs{}, whole, l.Books)
		return books
	}
	ask("first", 600*disdel.MB)
	if decide(500 * disdel.MB).Has("first") {
		t.Error("600 MB were granted beside 500 of others")
	}
	if !decide(100 * disdel.MB).Has("first") {
		t.Error("600 MB were not granted beside 100 of others")
	}
	ask("second", 300*disdel.MB)
	if !decide(600 * disdel.MB).Has("second") {
		t.Error("what the first job has at work was taken for others'")
	}
}

// How much is at work a platform that others use too tells in its status; one that does not answer is as it was.
func TestAPlatformTellsWhatIsAtWork(t *testing.T) {
	var busy atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := busy.Load()
		if n < 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(localplatform.Status{ //nolint:errcheck // the client sees
			Pool: localplatform.Pool{Bytes: disdel.GB, BusyBytes: disdel.Bytes(n)},
		})
	}))
	defer server.Close()
	s, err := Open(t.Context(), Config{Home: t.TempDir(), OpenWhisk: OpenWhisk{Host: server.URL, Key: "user:key"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, n := range []int64{int64(300 * disdel.MB), 0, int64(200 * disdel.MB)} {
		busy.Store(n)
		s.crowd.at = s.crowd.at.Add(-lookEvery)
		if got := s.atWork(t.Context()); got != disdel.Bytes(n) {
			t.Errorf("%v are at work, want %v", got, disdel.Bytes(n))
		}
	}
	busy.Store(-1)
	s.crowd.at = s.crowd.at.Add(-lookEvery)
	if got := s.atWork(t.Context()); got != 200*disdel.MB {
		t.Errorf("of a platform that does not answer: %v", got)
	}
}
