package api

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel/service/tenant"
)

// auditLine is a line of the audit log, as JSON has it.
type auditLine struct {
	Tenant, Role, Route, Method, Path string
	Status                            int
}

// auditLog reads what a server's log has of requests.
type auditLog struct {
	heard
	t    *testing.T
	read int // bytes of the log that were read
}

// next are the lines since the last call.
func (a *auditLog) next() (out []auditLine) {
	a.t.Helper()
	text := a.String()[a.read:]
	a.read += len(text)
	for line := range strings.Lines(text) {
		var one struct {
			auditLine
			Msg string
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			a.t.Fatalf("%q: %v", line, err)
		}
		if one.Msg == "request" {
			out = append(out, one.auditLine)
		}
	}
	return out
}

// Each request that can change something, signs in, or is refused leaves one line: who, with which role, asked for
// which route, and what the answer was. No line has a token or a key.
func TestEveryChangeLeavesAnAuditLine(t *testing.T) {
	lines := &auditLog{t: t}
	log := logrus.New()
	log.SetOutput(lines)
	log.SetFormatter(&logrus.JSONFormatter{})
	h := newHouse(t, Config{Log: log, Enter: "the key of a page"})
	check := func(what string, want ...auditLine) {
		t.Helper()
		if got := lines.next(); !slices.Equal(got, want) {
			t.Errorf("%s: lines\n%+v\nwant\n%+v", what, got, want)
		}
	}
	for _, r := range routes {
		path := strings.NewReplacer("{", "", "}", "").Replace(r.path)
		line := func(tenant, role string, status int) auditLine {
			return auditLine{tenant, role, r.method + " " + r.path, r.method, path, status}
		}
		if r.role == "" {
			h.ask("", r.method, path, nil)
			check(r.path + " that anybody may ask for")
			continue
		}
		for _, token := range []string{"", "a token of nobody"} {
			status, _ := h.ask(token, r.method, path, nil)
			check(fmt.Sprintf("%s %s with token %q", r.method, r.path, token), line("", "", status))
			if status != http.StatusUnauthorized {
				t.Errorf("%s %s: %d", r.method, r.path, status)
			}
		}
		if r.role != tenant.RoleRead {
			status, _ := h.ask("ann read", r.method, path, nil)
			check(r.method+" "+r.path+" with too small a role", line("ann", "read", status))
			if status != http.StatusForbidden {
				t.Errorf("%s %s: %d", r.method, r.path, status)
			}
		}
		if r.method == http.MethodGet {
			continue
		}
		status, _ := h.ask("bob "+string(r.role), r.method, path, nil)
		check(r.method+" "+r.path, line("bob", string(r.role), status))
		status, _ = h.ask(operator, r.method, path, nil)
		check(r.method+" "+r.path+" of the operator", line("operator", "admin", status))
	}
	h.ask("ann read", "GET", "/api/v1/jobs", nil)
	check("a look")
	h.ask("ann submit", "POST", "/api/v1/jobs", nil, "Host", "other.example")
	check("another host", auditLine{"", "", "POST /api/v1/jobs", "POST", "/api/v1/jobs", 403})
	h.ask("ann submit", "GET", "/api/v1/jobs", nil, "Host", "other.example")
	check("a look at another host", auditLine{"", "", "GET /api/v1/jobs", "GET", "/api/v1/jobs", 403})
	h.ask("", "POST", "/ui/login", nil, "Origin", "https://other.example")
	check("another origin", auditLine{"", "", "/ui/", "POST", "/ui/login", 403})
	h.ask("ann submit", "PATCH", "/nowhere%0Alevel=info", nil)
	check("no route", auditLine{"", "", "/", "PATCH", "/nowhere\nlevel=info", 404})
	h.pageChanges(check)
	text := lines.String()
	secrets := []string{"a token of nobody", "the key of a page", operator}
	for _, secret := range slices.AppendSeq(secrets, maps.Values(h.tokens)) {
		if strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret)) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// pageChanges signs in and out on the page, changes something there, and checks the lines of that.
func (h *house) pageChanges(check func(what string, want ...auditLine)) {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	step := func(method, path, token, tenant, role string, want int) {
		h.t.Helper()
		r, err := http.NewRequestWithContext(h.t.Context(), method, h.URL+path,
			strings.NewReader(url.Values{"token": {token}}.Encode()))
		if err != nil {
			h.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := browser.Do(r)
		if err != nil {
			h.t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, res.Body) // its end comes after the line
		res.Body.Close()                       //nolint:errcheck // all of it was read
		if err != nil {
			h.t.Fatal(err)
		}
		if res.StatusCode != want {
			h.t.Errorf("%s %s: %d, want %d", method, path, res.StatusCode, want)
		}
		path, _, _ = strings.Cut(path, "?")
		route := method + " " + strings.Replace(path, "/any/", "/{job}/", 1)
		check(route+" of "+tenant, auditLine{tenant, role, route, method, path, want})
	}
	step("POST", "/ui/login", "a token of nobody", "", "", 401)
	step("POST", "/ui/jobs/any/cancel", "", "", "", 303)
	step("POST", "/ui/login", h.tokens["ann read"], "ann", "read", 303)
	step("POST", "/ui/jobs/any/cancel", "", "ann", "read", 403)
	step("POST", "/ui/logout", "", "ann", "read", 303)
	step("POST", "/ui/login", h.tokens["bob submit"], "bob", "submit", 303)
	step("POST", "/ui/jobs/any/pause", "", "bob", "submit", 404)
	step("POST", "/ui/submit", "", "bob", "submit", 400)
	step("GET", "/ui/enter?key=wrong", "", "", "", 303)
	step("GET", "/ui/enter?key="+url.QueryEscape("the key of a page"), "", "operator", "admin", 303)
	step("POST", "/ui/logout", "", "operator", "admin", 303)
}
