package history_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/test/historytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var databases atomic.Int32

// opener opens a database of its own on the server at address, with views that may be as slow as the machine is busy.
func opener(address string) func(t *testing.T) *history.Store { return hasty(address, time.Minute) }

// hasty is opener with so much patience for views.
func hasty(address string, patience time.Duration) func(t *testing.T) *history.Store {
	return func(t *testing.T) *history.Store {
		t.Helper()
		name := fmt.Sprintf("history_%d_%d", os.Getpid(), databases.Add(1))
		s, err := history.Open(context.Background(), history.Config{
			URL: address, Database: name, Logger: logrus.New(), Patience: patience,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

func lite(t *testing.T, path string) *couchlite.Server {
	t.Helper()
	s, err := couchlite.Open(path, couchlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestOnCouchlite(t *testing.T) {
	s := lite(t, filepath.Join(t.TempDir(), "history.db"))
	historytest.Exercise(t, opener(s.URL()))
}

// The same suite on a server that others wrote.
func TestOnPouchDB(t *testing.T) { historytest.Exercise(t, opener(pouchdb(t))) }

func TestOnCouchDB(t *testing.T) {
	address := os.Getenv("DISDEL_TEST_COUCHDB_URL")
	if address == "" {
		t.Skip("DISDEL_TEST_COUCHDB_URL names no CouchDB")
	}
	historytest.Exercise(t, opener(address))
}

// pouchdb starts a pouchdb-server in memory, or skips.
func pouchdb(t *testing.T) string {
	t.Helper()
	program := os.Getenv("DISDEL_TEST_POUCHDB")
	if program == "" {
		program, _ = filepath.Abs("../.cache/npm/node_modules/.bin/pouchdb-server")
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("pouchdb-server is not installed; scripts/test-deps.sh installs it")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	cmd := exec.Command(program, "--port", port, "--host", "127.0.0.1", "--in-memory", "--no-stdout-logs")
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	address := "http://127.0.0.1:" + port
	for range 600 {
		if res, err := http.Get(address); err == nil {
			res.Body.Close()
			http.DefaultClient.CloseIdleConnections()
			return address
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("pouchdb-server did not come up")
	return ""
}

// A running job and `disdel history` in another terminal: two servers, one file.
func TestTwoServersShareOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	var stores []*history.Store
	for range 2 {
		s, err := history.Open(context.Background(), history.Config{URL: lite(t, path).URL(), Logger: logrus.New()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		stores = append(stores, s)
	}
	done := make(chan error, 2)
	for k, s := range stores {
		go func() {
			for i := range 25 {
				r := historytest.Record(100*k + i)
				if err := s.Save(context.Background(), &r); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range stores {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if list, err := stores[0].List(context.Background(), history.Query{Limit: 100}); err != nil || len(list) != 50 {
		t.Errorf("%d records, %v", len(list), err)
	}
}

func TestRecordsOutliveTheServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	for i := range 3 {
		server, err := couchlite.Open(path, couchlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		s, err := history.Open(context.Background(), history.Config{URL: server.URL(), Logger: logrus.New()})
		if err != nil {
			t.Fatal(err)
		}
		r := historytest.Record(i)
		if err := s.Save(context.Background(), &r); err != nil {
			t.Fatal(err)
		}
		if list, err := s.List(context.Background(), history.Query{}); err != nil || len(list) != i+1 {
			t.Errorf("start %d: %d records, %v", i, len(list), err)
		}
		s.Close()
		server.Close()
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	server := lite(t, filepath.Join(t.TempDir(), "history.db"))
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("admin", "wrong")
	for address, want := range map[string]disdel.Kind{
		"http://127.0.0.1:1": disdel.Unavailable, "nonsense": disdel.Invalid,
		u.String(): disdel.Denied,
	} {
		if _, err := history.Open(context.Background(), history.Config{URL: address, Logger: logrus.New()}); !errors.Is(err,
			want) {
			t.Errorf("%s: got %v, want %v", address, err, want)
		}
	}
}

// A record of a later version is refused in one line, and never rewritten.
func TestNewerRecordsAreLeftAlone(t *testing.T) {
	server := lite(t, filepath.Join(t.TempDir(), "history.db"))
	s := opener(server.URL())(t)
	r := historytest.Record(1)
	r.APIVersion = "disdel/v9"
	if err := s.Save(context.Background(), &r); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(context.Background(), r.ID); !errors.Is(err, disdel.Conflict) {
		t.Errorf("get: %v, want Conflict", err)
	}
	old := historytest.Record(1)
	if err := s.Save(context.Background(), &old); !errors.Is(err, disdel.Conflict) {
		t.Errorf("save: %v, want Conflict", err)
	}
}
