package platform

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// talkative is a container whose program is a handler of this process, and how many connections it was asked over.
func talkative(t *testing.T, h http.HandlerFunc) (*container, *atomic.Int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	made := &atomic.Int64{}
	server := &http.Server{Handler: h, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l) //nolint:errcheck // ends with ErrServerClosed
	}()
	c := &container{exited: newOnce(), maxReply: 100, socket: socketPath{dial: path}}
	t.Cleanup(func() {
		c.closeIdleConns()
		server.Close()
		<-served
	})
	return c, made
}

// echoing is a program that echoes what it is sent, and says whether its connections are kept.
func echoing(header string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if header != "" {
			w.Header().Set("Connection", header)
		}
		w.Write(data)
	}
}

// A connection serves again where the program says that it keeps it, and nowhere else; one that was not used for a
// while is not trusted.
func TestConnectionsServeAgainWhereTheProgramSaysSo(t *testing.T) {
	for header, want := range map[string]int64{"keep-alive": 1, "close": 10, "": 10} {
		c, made := talkative(t, echoing(header))
		for range 10 {
			got, err := c.request(t.Context(), "/run", []byte(`{"a":1}`), time.Minute)
			if err != nil || got.status != 200 || string(got.body) != `{"a":1}` || got.length != 7 {
				t.Fatalf("%q: %+v, %v", header, got, err)
			}
		}
		if made.Load() != want {
			t.Errorf("Connection: %q: %d connections, want %d", header, made.Load(), want)
		}
	}
	c, made := talkative(t, echoing("keep-alive"))
	for range 2 {
		if _, err := c.request(t.Context(), "/run", nil, time.Minute); err != nil {
			t.Fatal(err)
		}
		c.idleConns[0].lastUsed = time.Now().Add(-2 * idleConnLife)
	}
	if made.Load() != 2 {
		t.Errorf("%d connections where one is too old, want 2", made.Load())
	}
}

// An answer that is not read to its end leaves nothing for the next one.
func TestAnAnswerThatIsTooLongIsCutAndItsConnectionClosed(t *testing.T) {
	long := strings.Repeat("x", 1000)
	c, made := talkative(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "keep-alive")
		io.WriteString(w, long)
	})
	for range 2 {
		got, err := c.request(t.Context(), "/run", []byte(`{}`), time.Minute)
		if err != nil || string(got.body) != long[:100] || got.length != 1000 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if made.Load() != 2 {
		t.Errorf("%d connections", made.Load())
	}
}

// What a request ends with tells a limit that passed from everything else.
func TestHowRequestsToContainersEnd(t *testing.T) {
	c, _ := talkative(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/hang":
			<-r.Context().Done()
		case "/chunked":
			w.(http.Flusher).Flush()
		case "/cut":
			w.Header().Set("Content-Length", "50")
			io.WriteString(w, "{}")
		}
	})
	if _, err := c.request(t.Context(), "/hang", nil, 20*time.Millisecond); !isTimeout(err) {
		t.Errorf("after its limit: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, stop)
	if _, err := c.request(ctx, "/hang", nil, time.Minute); !errors.Is(err, errDied) {
		t.Errorf("as the platform ends: %v", err)
	}
	for _, path := range []string{"/chunked", "/cut"} {
		if _, err := c.request(t.Context(), path, nil, time.Minute); !errors.Is(err, errDied) {
			t.Errorf("%s: %v", path, err)
		}
	}
	gone := &container{exited: newOnce(), socket: socketPath{dial: filepath.Join(t.TempDir(), "none")}}
	if _, err := gone.request(t.Context(), "/run", nil, 10*time.Millisecond); !isTimeout(err) {
		t.Errorf("where nobody listens: %v", err)
	}
	gone.exited.close()
	if _, err := gone.request(t.Context(), "/run", nil, time.Minute); !errors.Is(err, errDied) {
		t.Errorf("where the process ended: %v", err)
	}
}
