package history_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// The password is for the server that was named, whatever it says.
func TestNoPasswordFollowsARedirect(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		first := httptest.NewServer(http.RedirectHandler(other.URL+"/disdel_history", status))
		u, _ := url.Parse(first.URL)
		u.User = url.UserPassword("admin", "CANARY")
		_, err := history.Open(context.Background(), history.Config{URL: u.String()})
		first.Close()
		if !errors.Is(err, disdel.Denied) || !strings.Contains(err.Error(), "redirects to "+other.URL) ||
			strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%d: %v", status, err)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the other server was asked %d times", n)
	}
}

// S6: a CouchDB whose certificate nobody answers for gets no password, and the cause is said.
func TestAnUnknownCertificateIsDenied(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer server.Close()
	u, _ := url.Parse(server.URL)
	u.User = url.UserPassword("admin", "CANARY")
	_, err := history.Open(context.Background(), history.Config{URL: u.String()})
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "CANARY") ||
		asked.Load() > 0 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
}

// No error of the history has the password in it.
func TestErrorsHaveNoPassword(t *testing.T) {
	for _, address := range []string{
		"http://admin:CANARY@127.0.0.1:1", "http://admin:CANARY%zz@127.0.0.1", "admin:CANARY@h",
		"http://admin:CANARY@256.0.0.1:5984",
	} {
		_, err := history.Open(context.Background(), history.Config{URL: address})
		if err == nil {
			t.Fatal(address)
		}
		hint := ""
		var e *disdel.Error
		if errors.As(err, &e) {
			hint = e.Hint
		}
		if text := err.Error() + hint; strings.Contains(text, "CANARY") {
			t.Error(text)
		}
	}
}

// A document that says it is another job than the one it is stored under is no record: its id would become a path.
func TestADocumentIsNotBelievedItsID(t *testing.T) {
	server := lite(t, t.TempDir()+"/history.db")
	s, err := history.Open(context.Background(), history.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const key = "job-01m80104rj3cabn3tetc26z8w3"
	for _, body := range []string{
		`{"apiVersion":"disdel/v1","id":"../../../victim","job":{"metadata":{"name":"planted"}}}`,
		`{"apiVersion":"disdel/v1","id":"job-01m80104rj3cabn3tetc26z8w4","job":{"metadata":{"name":"planted"}}}`,
		`{"apiVersion":"disdel/v1","job":{"metadata":{"name":"planted"}}}`,
		`{"apiVersion":"disdel/v1","id":7}`,
	} {
		r, _ := http.NewRequest(http.MethodPut, server.URL()+"/disdel_history/"+key, strings.NewReader(body))
		res, err := http.DefaultClient.Do(r)
		if err != nil || res.StatusCode != 201 {
			t.Fatal(err, res)
		}
		rev := strings.Trim(res.Header.Get("ETag"), `"`)
		res.Body.Close()
		if _, err := s.Get(context.Background(), key); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("%s: %v", body, err)
		}
		for _, ref := range []string{"@last", "planted"} {
			if id, err := s.Resolve(context.Background(), ref); !errors.Is(err, disdel.NotFound) {
				t.Errorf("%s: %s is %q, %v", body, ref, id, err)
			}
		}
		r, _ = http.NewRequest(http.MethodDelete, server.URL()+"/disdel_history/"+key+"?rev="+rev, nil)
		if res, err = http.DefaultClient.Do(r); err != nil || res.StatusCode != 200 {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}
