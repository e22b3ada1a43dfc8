package service

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/service/queue"
)

// How much is at work a platform that others use too tells in its status; one that does not answer is as it was.
func TestAPlatformTellsWhatIsAtWork(t *testing.T) {
	var busy atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := busy.Load()
		if n < 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(local.Status{ //nolint:errcheck // the client sees
			Pool: local.Pool{Bytes: disdel.GB, BusyBytes: disdel.Bytes(n)},
		})
	}))
	defer server.Close()
	s, err := Open(t.Context(), Config{
		Program: testProgram, Home: t.TempDir(),
		OpenWhisk: OpenWhisk{Host: server.URL, Key: "user:key"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, n := range []int64{int64(300 * disdel.MB), 0, int64(200 * disdel.MB)} {
		busy.Store(n)
		s.poolLoad.at = s.poolLoad.at.Add(-queue.LookEvery)
		if got := s.busyMemory(t.Context()); got != disdel.Bytes(n) {
			t.Errorf("%v are at work, want %v", got, disdel.Bytes(n))
		}
	}
	busy.Store(-1)
	s.poolLoad.at = s.poolLoad.at.Add(-queue.LookEvery)
	if got := s.busyMemory(t.Context()); got != 200*disdel.MB {
		t.Errorf("of a platform that does not answer: %v", got)
	}
}
