package lease

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
)

// A session is renewed, and looks at the leases, until the life of its Service ends. Then it does so no more, even if
// nobody closes it.
func TestASessionEndsWithItsLife(t *testing.T) {
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	h, err := history.Open(t.Context(), history.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	life, end := context.WithCancel(t.Context())
	defer end()
	begun, over := context.WithCancel(t.Context())
	looked := make(chan struct{}, 1000)
	s, err := Begin(begun, life, Config{
		Home: t.TempDir(), History: h, Token: "mine", Time: 20 * time.Millisecond, Log: logrus.New(),
		Look: func(context.Context, []history.Lease) error {
			select {
			case looked <- struct{}{}:
			default:
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	over() // the context of the beginning does not end the session
	<-looked
	<-looked
	end()
	s.done.Wait()
	if alive, known, err := SessionAlive(t.Context(), h, "mine", time.Now().Add(2*Patience)); alive || !known || err != nil {
		t.Errorf("alive %v, known %v, %v: the note stays until Close and expires", alive, known, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, known, err := SessionAlive(t.Context(), h, "mine", time.Now()); known || err != nil {
		t.Errorf("known %v, %v after Close", known, err)
	}
}

// A lease that the history wrote is held, even if the answer was lost.
func TestALeaseWhoseAnswerWasLostIsHeld(t *testing.T) {
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	to, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	var lost, dropped atomic.Bool
	way := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host}) },
		ModifyResponse: func(r *http.Response) error {
			if lost.Load() && r.Request.Method == http.MethodPut && strings.Contains(r.Request.URL.Path, string(leasedJob)) {
				dropped.Store(true)
				panic(http.ErrAbortHandler)
			}
			return nil
		},
	}
	front := httptest.NewServer(way)
	defer front.Close()
	through := *to
	through.Host = strings.TrimPrefix(front.URL, "http://")
	h, err := history.Open(t.Context(), history.Config{URL: through.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s, err := Begin(t.Context(), t.Context(), Config{
		Home: t.TempDir(), History: h, Token: "mine", Time: time.Minute, Log: logrus.New(),
		Look: func(context.Context, []history.Lease) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the history is closed, too
	lost.Store(true)
	held, err := s.Take(t.Context(), leasedJob, "digits", nil)
	if err != nil || !dropped.Load() {
		t.Fatalf("%v; an answer was dropped: %v", err, dropped.Load())
	}
	lost.Store(false)
	held.End(t.Context())
	again, err := s.Take(t.Context(), leasedJob, "digits", nil)
	if err != nil {
		t.Fatalf("the lease was given back: %v", err)
	}
	again.End(t.Context())
	// The history may write a lease after the session has given up: the next try has the job, and nobody beside it.
	late := history.Lease{Job: leasedJob, Owner: OwnerOf("mine"), Expires: time.Now().Add(time.Minute)}
	if _, err := h.Take(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if again, err = s.Take(t.Context(), leasedJob, "digits", nil); err != nil {
		t.Fatalf("a lease that came late: %v", err)
	}
	if _, err := s.Take(t.Context(), leasedJob, "digits", nil); !errors.Is(err, disdel.Conflict) {
		t.Errorf("the session takes a job that it has: %v", err)
	}
	again.End(t.Context())
}

const leasedJob disdel.JobID = "job-01m80104rj3cabn3tetc26z8w3"
