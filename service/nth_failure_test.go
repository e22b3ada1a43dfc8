package service

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/internal/test/faults"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/platform/local"
)

// wayTo is the way to a server. It counts what clients write, and one of these writes fails.
type wayTo struct {
	target string
	door   net.Listener
	nth    int    // the write that fails, from 1; 0: none
	how    string // lost, short or unanswered

	flows sync.WaitGroup
	mu    sync.Mutex
	seen  int
	open  map[net.Conn]struct{}
}

// The ways in which a call fails.
const (
	lost       = "lost"       // the server does not get it
	short      = "short"      // the server gets half of it
	unanswered = "unanswered" // the server does it, and the answer is lost
)

func newWayTo(t *testing.T, target string, nth int, how string) *wayTo {
	t.Helper()
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wayTo{target: target, door: door, nth: nth, how: how, open: map[net.Conn]struct{}{}}
	w.flows.Go(func() {
		for {
			client, err := door.Accept()
			if err != nil {
				return
			}
			w.flows.Go(func() { w.carry(client) })
		}
	})
	return w
}

// through is the address of a server with its host replaced by this way.
func through(t *testing.T, address string, nth int, how string) (*wayTo, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	w := newWayTo(t, u.Host, nth, how)
	u.Host = w.door.Addr().String()
	return w, u.String()
}

func (w *wayTo) carry(client net.Conn) {
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		client.Close()
		return
	}
	w.mu.Lock()
	w.open[client], w.open[server] = struct{}{}, struct{}{}
	w.mu.Unlock()
	mute := &muted{to: client, answered: make(chan struct{})}
	w.flows.Go(func() {
		io.Copy(mute, server) //nolint:errcheck // one of them has ended
		mute.once.Do(func() { close(mute.answered) })
		client.Close()
	})
	defer server.Close()
	for call := make([]byte, 64<<10); ; {
		n, err := client.Read(call)
		if err != nil {
			return
		}
		if w.fails() {
			switch w.how {
			case short:
				server.Write(call[:n/2]) //nolint:errcheck // it is lost anyway
			case unanswered:
				mute.shut()
				server.Write(call[:n]) //nolint:errcheck // it is lost anyway
				<-mute.answered
			}
			client.Close()
			return
		}
		if _, err := server.Write(call[:n]); err != nil {
			client.Close()
			return
		}
	}
}

// fails counts a call, and tells whether it is the one that fails.
func (w *wayTo) fails() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	return w.seen == w.nth
}

// mend has no more calls fail.
func (w *wayTo) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nth = 0
}

// calls is how many calls there were.
func (w *wayTo) calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

func (w *wayTo) close() {
	w.door.Close()
	w.mu.Lock()
	for c := range w.open {
		c.Close()
	}
	w.mu.Unlock()
	w.flows.Wait()
}

// muted is a connection that answers go back on until it is shut.
type muted struct {
	to       io.Writer
	answered chan struct{} // closed with the first answer that is not passed on, or with the connection
	once     sync.Once
	mu       sync.Mutex
	closed   bool
}

func (m *muted) shut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

func (m *muted) Write(data []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		return m.to.Write(data)
	}
	m.once.Do(func() { close(m.answered) })
	return len(data), nil
}

// disturbed has the servers of a job, whose addresses never fail, and what the job comes to undisturbed.
type disturbed struct {
	redis, couchDB string
	openWhisk      OpenWhisk
	weights        []safetensors.Tensor
	accuracy       float64
}

// startServers starts a Redis and a history.
func startServers(t *testing.T) *disturbed {
	t.Helper()
	redis, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { redis.Close() })
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return &disturbed{redis: redis.URL(), couchDB: server.URL()}
}

// startPlatform starts the platform that a Service embeds, for many jobs.
func (d *disturbed) startPlatform(t *testing.T) {
	t.Helper()
	s := opened(t, t.TempDir())
	cfg, err := s.platformConfig()
	if err != nil {
		t.Fatal(err)
	}
	p, err := platform.New(cfg)
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.End(p) }) //nolint:errcheck // the test is over
	d.openWhisk = OpenWhisk{Host: p.URL(), Key: p.AuthKey()}
}

// tensorsOf is the tensors of a record's model. Its metadata has the job's id, which differs.
func tensorsOf(t *testing.T, home string, rec disdel.Record) []safetensors.Tensor {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(home, "models", rec.Model.Path))
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return f.Tensors
}

// clear fails the test unless an error is one of disdel's that says what failed and why.
func clear(t *testing.T, err error) {
	t.Helper()
	var e *disdel.Error
	if !errors.As(err, &e) || e.Op == "" || e.Msg == "" && e.Err == nil {
		t.Errorf("an error that does not say what failed and why: %#v", err)
	}
}

// run runs the small job with one failing call. It returns how many calls the job had.
func (d *disturbed) run(t *testing.T, server string, nth int, how string) (calls int) {
	t.Helper()
	home := t.TempDir()
	cfg := Config{Program: testProgram, Home: home, Redis: []string{d.redis}, CouchDB: d.couchDB}
	var way *wayTo
	switch server {
	case "Redis":
		way, cfg.Redis[0] = through(t, d.redis, nth, how)
	case "history":
		way, cfg.CouchDB = through(t, d.couchDB, nth, how)
	default:
		cfg.OpenWhisk = d.openWhisk
		way, cfg.OpenWhisk.Host = through(t, d.openWhisk.Host, nth, how)
	}
	defer way.close()
	s, err := Open(t.Context(), cfg)
	if err == nil {
		err = s.AddDigits(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	job := small(t, "distribution.workers=2", "reliability.checkpointEvery=1")
	req := Request{Job: job, Key: fmt.Sprintf("%s-%d-%s", server, nth, how)}
	run, err := s.Submit(t.Context(), req)
	if err != nil { // nothing is acknowledged; the same request again is
		clear(t, err)
		t.Logf("refused: %v", err)
		if run, err = s.Submit(t.Context(), req); err != nil {
			t.Fatalf("submitted again: %v", err)
		}
	}
	rec, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rec.Status != disdel.StatusSucceeded {
		clear(t, rec.Failure)
		t.Logf("%v: %v", rec.Status, rec.Failure)
		again, err := s.Resume(t.Context(), ResumeRequest{Job: string(run.ID())})
		if err != nil {
			t.Fatal(err)
		}
		if rec, err = again.Wait(t.Context()); err != nil || rec.Status != disdel.StatusSucceeded {
			t.Fatalf("resumed: %v: %v, %v", rec.Status, rec.Failure, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	calls = way.calls()
	way.mend()
	d.check(t, cfg, rec, req.Key)
	return calls
}

// check compares the stored record and weights of a job with the answer of its run, and with an undisturbed job.
func (d *disturbed) check(t *testing.T, cfg Config, rec disdel.Record, key string) {
	t.Helper()
	weights := tensorsOf(t, cfg.Home, rec)
	if d.weights == nil {
		d.weights, d.accuracy = weights, rec.Accuracy
	}
	if !reflect.DeepEqual(weights, d.weights) || rec.Accuracy != d.accuracy {
		t.Errorf("other weights than undisturbed; accuracy %v, want %v", rec.Accuracy, d.accuracy)
	}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := h.List(t.Context(), history.Query{})
	if err != nil {
		t.Fatal(err)
	}
	of := slices.DeleteFunc(all, func(r disdel.Record) bool { return r.Key != key })
	if len(of) != 1 || of[0].ID != rec.ID || of[0].Status != rec.Status || len(of[0].Rounds) != len(rec.Rounds) {
		t.Errorf("the history has %d records of the job, not one that is %v", len(of), rec.Status)
	}
	if left := s.unsavedFiles(); len(left) > 0 {
		t.Errorf("records that the history did not get: %v", left)
	}
}

// In each run of a job, one call to Redis, to the history or to the platform fails: its line is cut before, within or
// after it. The job ends as it does undisturbed, or the error says why not and the next try does.
// DISDEL_TEST_EVERY_CALL=1 tries all calls; otherwise each of the three failures meets one call to each server.
func TestTheNthCallFails(t *testing.T) {
	aggregator.SilenceRedis()
	d := startServers(t)
	d.startPlatform(t)
	for _, server := range []string{"Redis", "history", "platform"} {
		calls := d.run(t, server, 0, "")
		t.Logf("%d calls to %s", calls, server)
		for i, how := range []string{lost, short, unanswered} {
			first, step := 1+i*calls/3, calls
			if faults.EveryCall() {
				first, step = 1, 1
			}
			for nth := first; nth <= calls; nth += step {
				t.Run(fmt.Sprintf("%s/%s/%d", server, how, nth), func(t *testing.T) {
					t.Parallel()
					d.run(t, server, nth, how)
					t.Logf("kth %s: call %d is %s", server, nth, how)
				})
			}
		}
	}
}

// A submit whose record was saved is acknowledged, although the answer of the history was lost.
func TestALostAnswerLosesNoJob(t *testing.T) {
	t.Parallel()
	d := startServers(t)
	target, err := url.Parse(d.couchDB)
	if err != nil {
		t.Fatal(err)
	}
	var answerLost atomic.Bool
	history := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/job-") && answerLost.CompareAndSwap(false, true) {
			history.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		history.ServeHTTP(w, r)
	}))
	defer front.Close()
	way := *target
	way.Host = front.Listener.Addr().String()
	s, err := Open(t.Context(), Config{
		Program: testProgram, Home: t.TempDir(), Redis: []string{d.redis}, CouchDB: way.String(),
	})
	if err == nil {
		err = s.AddDigits(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	passed(t, submit(t, s, small(t)))
	if !answerLost.Load() {
		t.Error("no answer was lost")
	}
}
