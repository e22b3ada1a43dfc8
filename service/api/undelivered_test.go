package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service"
)

// historyWithoutEnds is the address of a history that takes everything but the end of a job.
func historyWithoutEnds(t *testing.T) string {
	t.Helper()
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: at.Scheme, Host: at.Host})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if r.Header.Get("Content-Encoding") == "gzip" {
			in, err := gzip.NewReader(bytes.NewReader(body))
			if err == nil {
				body, err = io.ReadAll(in)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if r.Method == http.MethodPut && bytes.Contains(body, []byte(`"status":"succeeded"`)) {
			http.Error(w, `{"error":"down"}`, http.StatusInsufficientStorage)
			return
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	return strings.Replace(proxy.URL, "://", "://"+at.User.String()+"@", 1)
}

// A job whose end the history did not take has ended on every list and page.
func TestAnUndeliveredEndIsSeenEverywhere(t *testing.T) {
	h := houseOf(t, Config{}, service.Config{Home: t.TempDir(), CouchDB: historyWithoutEnds(t)})
	rec := h.submitted()
	at := "/api/v1/jobs/" + string(rec.ID)
	if status, data := h.ask("ann read", "GET", at+"/wait?timeout=5m", nil); status != 200 {
		t.Fatalf("%d %s", status, data)
	}
	if _, waits := h.s.Undelivered(rec.ID); !waits {
		t.Fatal("the history has the end")
	}
	_, data := h.ask("ann read", "GET", at, nil)
	if err := json.Unmarshal(data, &rec); err != nil || rec.Status != disdel.StatusSucceeded {
		t.Errorf("the record says %v, %v", rec.Status, err)
	}
	var list apitypes.JobList
	_, data = h.ask("ann read", "GET", "/api/v1/jobs", nil)
	if err := json.Unmarshal(data, &list); err != nil || len(list.Jobs) != 1 ||
		list.Jobs[0].Status != disdel.StatusSucceeded {
		t.Errorf("the list says %.300s, %v", data, err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	for _, path := range []string{"/ui/jobs", "/ui/jobs?status=succeeded"} {
		res, err := browser.PostForm(h.URL+"/ui/login", url.Values{"token": {h.tokens["ann read"]}})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res, err = browser.Get(h.URL + path); err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(res.Body)
		res.Body.Close()
		_, row, found := strings.Cut(string(page), "<tbody")
		row, _, _ = strings.Cut(row, "</tbody")
		if err != nil || !found || !strings.Contains(row, "succeeded") || strings.Contains(row, "running") {
			t.Errorf("%s: %v\n%.1500s", path, err, row)
		}
	}
}
