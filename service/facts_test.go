package service

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/clusterfacts"
)

// What the doctor has found out of a cluster is what jobs there are planned by; what was said counts more.
func TestWhatIsKnownOfAClusterIsUsed(t *testing.T) {
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, `{"limits": {"actions_per_minute": 60, "concurrent_actions": 30}}`)
	}))
	defer cluster.Close()
	home := t.TempDir()
	facts := clusterfacts.Facts{Pool: 3 * disdel.GB, Processors: 4, Nodes: 2, PerMinute: 600}
	if err := clusterfacts.Write(home, cluster.URL, facts); err != nil {
		t.Fatal(err)
	}
	for said, want := range map[disdel.Bytes]disdel.Bytes{0: 3 * disdel.GB, disdel.GB: disdel.GB} {
		s, err := Open(t.Context(), Config{Home: home, OpenWhisk: OpenWhisk{Host: cluster.URL, Key: "a:b"}, Pool: said})
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.openWhisk(t.Context())
		if err != nil || w.pool != want {
			t.Errorf("said %v: %v, %v", said, w.pool, err)
		}
		if n := s.processors(t.Context(), nil); n != 8 {
			t.Errorf("%d processors", n)
		}
		if f := s.facts(); f.PerMinute != 600 {
			t.Errorf("%+v", f)
		}
		s.Close()
	}
	facts.AtLeast = true // a quota, or too few that were asked for, is no bound of the pool
	if err := clusterfacts.Write(home, cluster.URL, facts); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{Home: home, OpenWhisk: OpenWhisk{Host: cluster.URL, Key: "a:b"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if w, err := s.openWhisk(t.Context()); err != nil || w.pool != 0 {
		t.Errorf("at least %v: a bound of %v, %v", facts.Pool, w.pool, err)
	}
}
