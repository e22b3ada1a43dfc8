package cli

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/disdel/disdel/history/couchlite"
)

// A history that goes away while a job runs costs the job nothing, and gets its record once it is there again.
func TestARecordOutlivesAHistoryThatIsAway(t *testing.T) {
	t.Parallel()
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool
	var accepted sync.Once
	through := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: at.Scheme, Host: at.Host})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, `{"error":"down"}`, http.StatusBadGateway)
			return
		}
		through.ServeHTTP(w, r)
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/job-") {
			accepted.Do(func() { away.Store(true) })
		}
	}))
	defer proxy.Close()
	d := build(t)
	address := strings.Replace(proxy.URL, "://", "://"+at.User.String()+"@", 1)
	_, errs, code := d.run("--couchdb", address, "quickstart", "-q", "--set", "training.epochs=2")
	if code != 0 || !strings.Contains(errs, "the history did not take the job's end") {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	if list, _, _ := d.run("history"); strings.Contains(list, "digits-cnn") {
		t.Errorf("another history has it:\n%s", list)
	}
	away.Store(false)
	for range 2 { // the second time there is nothing left to deliver
		list, errs, code := d.run("--couchdb", address, "history")
		if code != 0 || !strings.Contains(list, "succeeded") || strings.Contains(errs, "could not be given") {
			t.Errorf("exit %d\n%s\n%s", code, list, errs)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(d.home, "unsaved", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	d.nothingStays()
}
