package platform

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// everyMethod is what any route is asked with.
var everyMethod = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"}

// everyPath fills the routes' placeholders, and adds what is no route.
func everyPath(p *Platform) []string {
	fill := strings.NewReplacer("{ns}", "_", "{name}", "a", "{pkg}", "full", "{id}", strings.Repeat("0", 32), "{$}", "")
	out := []string{"/nothing", "/api/v1/nothing"}
	for _, rt := range p.routes() {
		out = append(out, fill.Replace(rt.path))
	}
	return out
}

// send sends a request with the platform's own key and these headers; Host is the name that it is sent under.
func send(t *testing.T, p *Platform, method, path string, headers map[string]string) *replied {
	t.Helper()
	req, err := http.NewRequest(method, p.URL()+path, strings.NewReader(`{"exec":{"kind":"disdel:1","code":"x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	user, key, _ := strings.Cut(p.AuthKey(), ":")
	req.SetBasicAuth(user, key)
	for name, value := range headers {
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(res.Body)
	return &replied{res.StatusCode, res.Header, string(data)}
}

// No web page may call, with any key, by any method, on any path: it would run programs for whoever looks at it.
func TestNoWebPageCanCall(t *testing.T) {
	p := start(t, nil)
	host := strings.TrimPrefix(p.URL(), "http://")
	_, port, _ := net.SplitHostPort(host)
	pages := []map[string]string{
		{"Origin": "http://evil.example"},
		{"Origin": "null"},
		{"Origin": "file://"},
		{"Origin": ""},
		{"Origin": "http://127.0.0.1:1"},
		{"Origin": "https://" + host},
		{"Origin": p.URL() + ".evil.example"},
		{"Origin": "chrome-extension://abc"},
		{"Origin": "http://evil.example", "Host": "evil.example"},
		{"Host": "evil.example:" + port},
		{"Host": "evil.example:" + port, "Origin": "http://evil.example:" + port}, // a name of the page's own that leads here
		{"Host": "localhost.evil.example"},
		{"Host": "10.1.2.3:" + port},
		{"Sec-Fetch-Site": "cross-site"},
		{"Sec-Fetch-Site": "same-site"},
	}
	for _, path := range everyPath(p) {
		for _, method := range everyMethod {
			for _, headers := range pages {
				got := send(t, p, method, path, headers)
				foreign := headers["Host"] != ""
				if foreign != (got.status == 421) || !foreign && got.status != 403 {
					t.Fatalf("%s %s %v: %d %s", method, path, headers, got.status, got.body)
				}
				if method != "HEAD" && (got.text() == "" || got.at("code") == nil) {
					t.Fatalf("%s %s %v: no clear text: %s", method, path, headers, got.body)
				}
				if got.header.Get("Access-Control-Allow-Origin") != "" {
					t.Fatalf("%s %s %v: %v", method, path, headers, got.header)
				}
			}
		}
	}
	if got := must(t, p, "GET", "_/actions?limit=0", ""); got.body != "[]" {
		t.Errorf("a page made %s", got.body)
	}
}

// What is no page may call by every name of the platform, as before, and no answer invites pages.
func TestClientsCallByEveryName(t *testing.T) {
	p := start(t, func(c *Config) { c.Hosts = []string{"whisk.local"} })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(p.URL(), "http://"))
	for _, host := range []string{
		"127.0.0.1:" + port, "localhost:" + port, "LOCALHOST", "localhost.", "[::1]:" + port,
		"127.0.0.2", "whisk.local:80",
	} {
		for _, path := range everyPath(p) {
			got := send(t, p, "GET", path, map[string]string{"Host": host})
			if got.status == 403 || got.status == 421 || got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s of %s: %d %v", path, host, got.status, got.header)
			}
		}
	}
	if got := send(t, p, "GET", "/", map[string]string{"Origin": p.URL()}); got.status != 200 {
		t.Errorf("a page of the platform's own: %d %s", got.status, got.body)
	}
	for site, want := range map[string]int{"none": 200, "same-origin": 200} {
		if got := send(t, p, "GET", "/", map[string]string{"Sec-Fetch-Site": site}); got.status != want {
			t.Errorf("Sec-Fetch-Site %s: %d", site, got.status)
		}
	}
}

// A page that is on the list may call, and a preflight needs no key; all others still may not.
func TestListedPagesMayCall(t *testing.T) {
	const page = "https://board.example:8443"
	p := start(t, func(c *Config) { c.Origins = []string{page} })
	req, _ := http.NewRequest("OPTIONS", p.URL()+"/api/v1/namespaces/_/actions/a", nil)
	req.Header.Set("Origin", page)
	req.Header.Set("Access-Control-Request-Private-Network", "true")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if h := res.Header; res.StatusCode != 200 || h.Get("Access-Control-Allow-Origin") != page ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization") ||
		h.Get("Access-Control-Allow-Methods") != corsMethods || h.Get("Access-Control-Allow-Private-Network") != "true" ||
		h.Get("Vary") != "Origin" {
		t.Errorf("%d %v", res.StatusCode, h)
	}
	if got := send(t, p, "GET", "/api/v1/namespaces/_/actions", map[string]string{"Origin": page}); got.status != 200 ||
		got.header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("%d %v", got.status, got.header)
	}
	for _, other := range []string{"https://board.example", "http://board.example:8443", page + "0", page + "/", "null"} {
		if got := send(t, p, "GET", "/", map[string]string{"Origin": other}); got.status != 403 ||
			got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", other, got.status, got.header)
		}
	}
}

// Whoever serves the handler himself has the gate as well, and so has what stands around it.
func TestTheGateStandsBeforeEveryHandler(t *testing.T) {
	p := start(t, nil)
	for name, h := range map[string]http.Handler{
		"Handler": p.Handler(), "gate": p.refuseForeignPages(http.NotFoundHandler()),
	} {
		server := httptest.NewServer(h)
		req, _ := http.NewRequest("GET", server.URL+"/disdel/status", nil)
		req.Header.Set("Origin", "http://evil.example")
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != 403 {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
		server.Close()
	}
}

func TestOriginsAndHostsAreChecked(t *testing.T) {
	for _, c := range []struct{ origin, host string }{
		{"*", ""},
		{"null", ""},
		{"board.example", ""},
		{"http://", ""},
		{"http://board.example/", ""},
		{"ftp://board.example", ""},
		{"", "board.example:80"},
		{"", "Board"},
		{"", ""},
	} {
		cfg := DefaultConfig()
		cfg.Kinds = map[string]Kind{disdel.RuntimeKind: {Command: []string{"x"}}}
		if c.origin != "" {
			cfg.Origins = []string{c.origin}
		} else {
			cfg.Hosts = []string{c.host}
		}
		if _, err := New(cfg); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
