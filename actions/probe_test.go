package actions

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// A probe tells of its container, and what it reaches; where nothing answers, it says so and ends all the same.
func TestAProbeTellsWhatItReaches(t *testing.T) {
	b := setUp(t)
	couch := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized) // an answer
	}))
	defer couch.Close()
	h := NewHost(probe, backends.Standard(nil))
	h.Within(256 * disdel.MB)
	probes := disdel.JobID("job-00000000000000000000000001")
	res, err := ask[disdel.ProbeResult](t, h, disdel.TaskProbe, disdel.ProbeRequest{
		Probes: probes, Store: &b.store, Models: "file://" + t.TempDir(), CouchDB: couch.URL,
	})
	if err != nil || res.Processors < 1 || res.Limit != 256*disdel.MB || res.Warm || len(res.Reached) != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	if age := time.Since(time.UnixMilli(res.UnixMs)); age < 0 || age > time.Hour {
		t.Errorf("its clock is %v off", age)
	}
	for _, r := range res.Reached {
		if r.Failure != nil {
			t.Errorf("%s: %v", r.What, r.Failure)
		}
	}
	res, err = ask[disdel.ProbeResult](t, h, disdel.TaskProbe, disdel.ProbeRequest{
		Probes: probes, Store: &disdel.Store{URLs: []string{"redis://127.0.0.1:1/0"}}, Models: "nothing://",
		CouchDB: "http://127.0.0.1:1",
	})
	if err != nil || !res.Warm || len(res.Reached) != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, r := range res.Reached {
		if r.Failure == nil {
			t.Errorf("%s is reached", r.What)
		}
	}
}

// A probe stays until all of its check are sent away, and is seen meanwhile.
func TestAProbeStaysUntilItIsSentAway(t *testing.T) {
	b := setUp(t)
	probes := disdel.JobID("job-00000000000000000000000001")
	ended := make(chan error, 1)
	go func() {
		_, err := ask[disdel.ProbeResult](t, NewHost(probe, backends.Standard(nil)), disdel.TaskProbe, disdel.ProbeRequest{
			Probes: probes, Member: 3, Store: &b.store, Hold: disdel.Millis(time.Hour),
		})
		ended <- err
	}()
	for {
		there, err := b.board.Progress(t.Context(), probes)
		if err != nil {
			t.Fatal(err)
		}
		if len(there) == 1 && there[0].Member == 3 && there[0].Task == disdel.TaskProbe {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := b.board.Cancel(t.Context(), probes); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
