package robust

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// openWhisk is a platform in a process of its own.
type openWhisk struct {
	*process
	url, auth string
}

// platformUp starts one on a free port.
func platformUp(t *testing.T, d disdelIn, args ...string) *openWhisk {
	t.Helper()
	properties := filepath.Join(t.TempDir(), "wskprops")
	p := &openWhisk{process: d.start(t,
		append([]string{"platform", "up", "--port", "0", "--wskprops", properties, "-q"}, args...)...)}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && !p.ended(); {
		select {
		case <-look.C:
		case <-p.done:
		}
		text, err := os.ReadFile(properties)
		found := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			found[name] = value
		}
		if err == nil && found["NAMESPACE"] != "" {
			p.url, p.auth = found["APIHOST"], found["AUTH"]
			return p
		}
	}
	t.Fatalf("the platform does not start: %s%s", p.out.String(), p.err.String())
	return nil
}

// unreliable stands between disdel and its platform: answers break off after the platform has accepted, requests are
// refused for their number, and records come late.
type unreliable struct {
	forward *httputil.ReverseProxy
	late    time.Duration // a record is not there until so long after it was first asked for

	mu      sync.Mutex
	rng     *rand.Rand           // guarded by mu
	asked   map[string]time.Time // guarded by mu
	refused int                  // guarded by mu
	broken  int                  // guarded by mu
}

// drawn tells whether one of n happens now.
func (u *unreliable) drawn(n int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.rng.IntN(n) == 0
}

func (u *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/actions/") && u.drawn(8):
		u.count(&u.refused)
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, //nolint:errcheck // the client may be gone
			`{"error":"Too many concurrent requests in flight (count: 31, allowed: 30).","code":"1"}`)
	case r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/actions/") && u.drawn(8):
		u.count(&u.broken)
		u.forward.ServeHTTP(discard{http.Header{}}, r) // the platform has accepted it, and nobody hears
		w.WriteHeader(http.StatusBadGateway)
	case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/activations/") && u.hidden(r.URL.Path):
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"error":"The requested resource does not exist.","code":"1"}`) //nolint:errcheck
	default:
		u.forward.ServeHTTP(w, r)
	}
}

func (u *unreliable) count(n *int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	*n++
}

// hidden tells whether a record is not yet to be seen.
func (u *unreliable) hidden(path string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	first, ok := u.asked[path]
	if !ok {
		first = time.Now()
		if u.rng.IntN(4) > 0 { // most are on time
			first = time.Time{}
		}
		u.asked[path] = first
	}
	return time.Since(first) < u.late
}

// discard is a reader that has gone.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// unreliablePlatform runs a job on a platform whose every eighth invocation is refused, whose every eighth answer
// breaks off after it was accepted, and a quarter of whose records are two seconds late: it ends with the bits of a job
// left alone.
func unreliablePlatform(c *trial) {
	t, d := c.t, newHome(c.t)
	file := d.job(t, "unreliable", shortJob(6))
	alone := d.run(t, patience, "submit", file, "-o", "json", "-q")
	want := d.weights(t, record(t, alone))
	p := platformUp(t, disdelIn{path: d.path, home: filepath.Join(t.TempDir(), "platform")}, "--per-minute", "100000",
		"--concurrent", "100")
	target, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	u := &unreliable{late: 2 * time.Second, rng: c.rng, asked: map[string]time.Time{}}
	u.forward = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	l := listen(t)
	server := &http.Server{Handler: u, ReadHeaderTimeout: time.Minute}
	go server.Serve(l)                   //nolint:errcheck // that it was closed
	t.Cleanup(func() { server.Close() }) //nolint:errcheck // at the end
	d.env = append(d.env, "DISDEL_AUTH="+p.auth)
	r := d.run(t, 2*patience, "submit", file, "--apihost", "http://"+l.Addr().String(), "-o", "json", "-q")
	if r.code != 0 {
		t.Fatal(r)
	}
	rec := record(t, r)
	t.Logf("%d refused, %d broken off, %d failed attempts", u.refused, u.broken, rec.Losses.Attempts)
	if got := d.weights(t, rec); got != want {
		t.Errorf("weights %s, want %s", got, want)
	}
	if u.refused+u.broken == 0 {
		t.Error("nothing went wrong: the test tests nothing")
	}
}
