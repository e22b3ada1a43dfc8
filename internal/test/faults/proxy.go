package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Duplicate runs jobs whose every invocation reaches the platform twice, the second time up to Pace later: while the
// first one runs, after it, after its round. It goes on until there were enough second deliveries.
func (r *Rig) Duplicate(deliveries int) (Tally, error) {
	return r.proxied(deliveries, func(x *proxy, req *http.Request, body []byte) {
		time.Sleep(x.random(r.Pace))
		again := req.Clone(context.Background())
		again.RequestURI, again.URL.Scheme, again.URL.Host = "", x.target.Scheme, x.target.Host
		again.Body = io.NopCloser(bytes.NewReader(body))
		res, err := http.DefaultClient.Do(again)
		if err != nil {
			return // the part is over
		}
		res.Body.Close()
		if res.StatusCode == http.StatusAccepted { // the job may have ended, its package with it
			x.faults.Add(1)
		}
	})
}

// The share of aggregations that KillAggregates disturbs, and the time after their invocation.
const (
	killedOf   = 5
	killWithin = 15 * time.Millisecond
)

// KillAggregates kills every action process just after an aggregation was invoked, until there were enough such
// moments. What was running dies, the aggregation among it unless it was quicker.
func (r *Rig) KillAggregates(moments int) (Tally, error) {
	return r.proxied(moments, func(x *proxy, req *http.Request, _ []byte) {
		if !strings.Contains(path.Base(req.URL.Path), "aggregate") || x.random(killedOf) > 0 {
			return
		}
		time.Sleep(x.random(killWithin))
		for _, victim := range actionsOf(x.platform.Process.Pid) {
			syscall.Kill(victim, syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
		x.faults.Add(1)
	})
}

// proxied runs jobs on a platform of another process, through a proxy that does something at every invocation.
func (r *Rig) proxied(faults int, invoked func(x *proxy, req *http.Request, body []byte)) (t Tally, err error) {
	x, err := r.startProxy(invoked)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, x.stop()) }()
	r.auth = x.auth
	defer func() { r.auth = "" }()
	return r.disturb(faults, func(*process) (int, error) { return int(x.faults.Swap(0)), nil }, "--apihost", x.url)
}

// proxy stands between disdel and its platform.
type proxy struct {
	url, auth string
	target    *url.URL
	platform  *exec.Cmd
	server    *http.Server
	forward   *httputil.ReverseProxy
	invoked   func(x *proxy, req *http.Request, body []byte)
	faults    atomic.Int64
	flying    sync.WaitGroup

	mu   sync.Mutex
	draw func(maximum time.Duration) time.Duration // guarded by mu
}

// random is a duration below maximum; requests come side by side.
func (x *proxy) random(maximum time.Duration) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.draw(maximum)
}

func (x *proxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost || !strings.Contains(req.URL.Path, "/actions/") {
		x.forward.ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	kept := req.Clone(context.Background())
	x.forward.ServeHTTP(w, req)
	x.flying.Go(func() { x.invoked(x, kept, body) })
}

func (r *Rig) startProxy(invoked func(x *proxy, req *http.Request, body []byte)) (*proxy, error) {
	r.homes++
	home := filepath.Join(r.Dir, fmt.Sprintf("%03d-platform", r.homes))
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	properties := filepath.Join(home, "faults.wskprops")
	x := &proxy{invoked: invoked, draw: r.random}
	x.platform = r.command(home, "platform", "up", "--port", "0", "--per-minute", "1000000", "--concurrent", "1000",
		"--wskprops", properties, "-q")
	x.platform.Stderr = r.Log
	if err := x.platform.Start(); err != nil {
		return nil, err
	}
	if err := x.find(properties); err != nil {
		return nil, errors.Join(err, x.end())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, x.end())
	}
	x.url = "http://" + l.Addr().String()
	x.forward = httputil.NewSingleHostReverseProxy(x.target)
	x.forward.ErrorLog = log.New(r.Log, "proxy: ", 0)
	x.server = &http.Server{Handler: x, ReadHeaderTimeout: time.Minute}
	x.flying.Go(func() { x.server.Serve(l) }) //nolint:errcheck // that it was closed
	return x, nil
}

// find waits for the platform's address and key.
func (x *proxy) find(properties string) error {
	for range 500 {
		text, err := os.ReadFile(properties)
		found := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			found[name] = value
		}
		if err == nil && found["NAMESPACE"] != "" {
			x.auth = found["AUTH"]
			x.target, err = url.Parse(found["APIHOST"])
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("the platform does not start")
}

// stop waits for what invocations set off, and ends the platform.
func (x *proxy) stop() error {
	err := x.server.Close()
	x.flying.Wait()
	return errors.Join(err, x.end())
}

func (x *proxy) end() error {
	if err := x.platform.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return x.platform.Wait()
}
