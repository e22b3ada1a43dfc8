package api

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/service"
)

// heard is everything that was said somewhere.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// overheard is a platform that is spoken to through somebody who listens to what it is sent and answers: parameters of
// activations, actions, records of activations. Keys are in headers, which are not listened to.
func overheard(t *testing.T, home string, all *heard) (address, key string) {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(all)
	cfg, err := local.Config(local.Settings{Home: home, Pool: disdel.GB, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	p, err := platform.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.End(p); err != nil {
			t.Error(err)
		}
	})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	way := &http.Transport{}
	t.Cleanup(way.CloseIdleConnections)
	between := &httputil.ReverseProxy{
		Transport: way,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			data, err := io.ReadAll(r.Body)
			all.Write(data) //nolint:errcheck // never fails
			r.Body = io.NopCloser(bytes.NewReader(data))
			return err
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body) // what is cut off the platform refuses
		all.Write(data)               //nolint:errcheck // never fails
		r.Body = io.NopCloser(bytes.NewReader(data))
		between.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, p.AuthKey()
}

// Tokens of tenants, the operator's and the passwords of Redis are nowhere once they were used: not in logs, records,
// events, reports, metrics, parameters and records of activations, the home, or the command lines of processes.
func TestNoSecretIsSaidAnywhere(t *testing.T) {
	redis, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	home, sent, said := t.TempDir(), &heard{}, &heard{}
	address, key := overheard(t, home, sent)
	log := logrus.New()
	log.SetLevel(logrus.TraceLevel)
	log.SetOutput(said)
	h := houseOf(t, Config{Log: log}, service.Config{
		Home: home, TakeOver: true, Log: log, Redis: []string{redis.URL()},
		OpenWhisk: service.OpenWhisk{Host: address, Key: key},
	})
	rec := h.submitted()
	texts := map[string]string{}
	for _, path := range []string{
		"/api/v1/jobs/" + string(rec.ID) + "/wait?timeout=5m", "/api/v1/jobs/" + string(rec.ID),
		"/api/v1/jobs/" + string(rec.ID) + "/events", "/api/v1/jobs/" + string(rec.ID) + "/logs",
		"/api/v1/jobs/" + string(rec.ID) + "/report", "/api/v1/jobs/" + string(rec.ID) + "/report?format=html",
	} {
		status, data := h.ask("ann read", "GET", path, nil)
		texts[path] = string(data)
		if strings.Contains(path, "/wait") {
			if err := json.Unmarshal(data, &rec); err != nil || status != 200 || rec.Status != disdel.StatusSucceeded {
				t.Fatalf("%d %s, %v", status, data, err)
			}
			for _, f := range commandLines() {
				texts["the command line of "+f] = f
			}
		}
	}
	_, data := h.ask(operator, "GET", "/metrics", nil)
	texts["/metrics"] = string(data)
	texts["the log"], texts["what the platform was sent and said"] = said.String(), sent.String()
	filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error { //nolint:errcheck // what is gone is gone
		if err == nil && e.Type().IsRegular() {
			data, _ := os.ReadFile(path) // the same
			texts[path] = string(data)
		}
		return nil
	})
	if !strings.Contains(texts["what the platform was sent and said"], `"sealed"`) {
		t.Error("nothing that is sealed was sent: the test does not listen")
	}
	u, err := url.Parse(redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	secrets := map[string]string{"the password of Redis": password, "the operator's token": operator}
	for who, token := range h.tokens {
		secrets["a token of "+who] = token
	}
	for what, secret := range secrets {
		for where, text := range texts {
			if secret == "" || strings.Contains(text, secret) {
				t.Errorf("%s has %s", where, what)
			}
		}
	}
}

// commandLines are those of all processes that can be seen.
func commandLines() (out []string) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, f := range list {
		data, _ := os.ReadFile(f) // it may have ended
		out = append(out, string(data))
	}
	return out
}
