package platform

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/disdel/disdel/internal/test/wait"
)

// oddRequests makes requests of a seed that no client would make, and many that one might by mistake: whatever is sent,
// the answer keeps the rules that all recorded answers of a real OpenWhisk keep.
type oddRequests struct{ *rand.Rand }

func (r oddRequests) one(of ...string) string { return of[r.IntN(len(of))] }

func (r oddRequests) name() string {
	if r.IntN(8) > 0 {
		return r.one("a", "b", "pkg", "t", "r")
	}
	return r.one("a", "b", "pkg", "t", "r", "default", "refresh", "_", "guest", strings.Repeat("n", 256),
		strings.Repeat("n", 257), "a%20b", "a%20", "%20a", "a%2Fb", "..",
		"%2e%2e", ".", "", "a!b", "%00", "%ff", "%F0%9F%98%80",
		"a%0Ab", "-a", "a-", "a&b", "a@b.c", "%C3%A4", "ACTION", "0", "%25", "a;b", "a,b", strings.Repeat("0", 32))
}

func (r oddRequests) path() string {
	parts := []string{"", "api", "v1", "namespaces", r.one("_", "_", "_", "_", "_", "guest", "guest", "alice", r.name())}
	switch r.IntN(24) {
	case 0:
		parts = parts[:1+r.IntN(len(parts))]
	case 1:
		parts = []string{"", r.one("ping", "metrics", "api", "docs", "PING", "")}
	case 2:
		parts = append(parts[:3:3], "web", "guest", r.one("default", "pkg", r.name()),
			r.name()+r.one("", ".json", ".html", ".x"))
	case 3:
		parts = append(parts, r.one("activations", "limits", "Actions"), r.name())
	case 4, 5, 6:
		parts = append(parts, r.one("actions", "packages", "triggers", "rules", "activations"))
	case 7, 8, 9:
		parts = append(parts, "actions", r.one("pkg", "pkg", r.name()), r.name())
	default:
		parts = append(parts, r.one("actions/a", "actions/b", "packages/pkg", "triggers/t", "rules/r",
			r.one("actions", "packages", "triggers", "rules")+"/"+r.name()))
	}
	if r.IntN(20) == 0 {
		parts = append(parts, r.one("", "/", ".", r.name()))
	}
	return strings.Join(parts, "/")
}

func (r oddRequests) query() string {
	var parts []string
	for range r.IntN(4) {
		parts = append(parts, r.one("overwrite", "blocking", "result", "limit", "skip", "count", "docs", "since", "upto",
			"name", "code", "force", "timeout", "public", "x")+r.one("=", "=", "=", "")+
			r.one("true", "true", "false", "maybe", "", "0", "-1", "1", "200", "201", "99999999999999999999", "1e3", "%zz",
				"a/b", "a/b/c", "+1", "true&", ";", "%F0%9F%98%80"))
	}
	return strings.Join(parts, "&")
}

// value is any JSON, or nearly.
func (r oddRequests) value(depth int) string {
	switch n := r.IntN(12); {
	case n == 0 && depth > 0:
		return "[" + r.value(depth-1) + "," + r.value(depth-1) + "]"
	case n < 3 && depth > 0:
		return `{"` + r.one("key", "value", "init", "name", "namespace", "path", "kind", "code", "image", "memory") + `":` +
			r.value(depth-1) + `,"` + r.one("key", "value", "kind", "components", "timeout") + `":` + r.value(depth-1) + `}`
	default:
		return r.one("1", "-1", "0", "1.5", "1e999", "-0", "99999999999999999999", "true", "false", "null", `""`, `"x"`,
			`"a"`, `"/_/a"`, `"/guest/pkg/b"`, `"_"`, `"blackbox"`, `"sequence"`, `"x/y:1"`, `"active"`, `"0.0.1"`, `"1.0"`,
			`"ä\u0000"`, `"\ud800"`, "[]", "{}", `"`+strings.Repeat("x", 300)+`"`)
	}
}

func (r oddRequests) body() string {
	switch r.IntN(12) {
	case 0:
		return r.one("", " ", "{", "}", `{"a":`, `{"a" 1}`, "[1,]", "\xff\xfe", "{\"a\":\"\xff\"}", "nul", "{}{}",
			"\x00", "'a'", `{"a":1,"a":2}`, "\ufeff{}", strings.Repeat("[", 3000),
			strings.Repeat(`{"a":`, 1001)+"1"+strings.Repeat("}", 1001), `{"x":"`+strings.Repeat("x", 2<<20)+`"}`)
	case 1, 2:
		return r.value(3)
	case 6:
		return `{"x":"` + strings.Repeat("x", 2<<20>>r.IntN(8)) + `"}`
	case 3, 4, 5: // what makes something
		return r.one(`{}`, `{"exec":{"kind":"blackbox","image":"x/y:1"}}`,
			`{"exec":{"kind":"disdel:1","code":"x"},"annotations":[{"key":"web-export","value":true}]}`,
			`{"trigger":"/_/t","action":"/_/a"}`,
			`{"exec":{"kind":"sequence","components":["/_/a","/_/pkg/b"]}}`, `{"binding":{"namespace":"_","name":"pkg"}}`,
			`{"publish":true}`, `{"status":"active"}`, `{"status":"inactive"}`)
	}
	var fields []string
	for range 1 + r.IntN(4) {
		fields = append(fields, `"`+r.one("exec", "limits", "parameters", "annotations", "version", "publish", "binding",
			"trigger", "action", "status", "delAnnotations", "name", "updated")+`":`+r.value(3))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// next is a request, nil where not even a client could send it.
func (r oddRequests) next(p *Platform) *http.Request {
	address, err := url.ParseRequestURI(r.path() + "?" + r.query())
	if err != nil {
		return nil
	}
	method := r.one("GET", "PUT", "PUT", "PUT", "PUT", "POST", "POST", "POST", "DELETE", r.one("HEAD", "OPTIONS", "PATCH",
		"TRACE", "BREW"))
	body := r.body()
	out := &http.Request{
		Method: method, URL: address, Host: "localhost", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		RemoteAddr: "127.0.0.1:1",
	}
	if r.IntN(10) == 0 {
		out.ContentLength = -1 // chunked
	}
	kind := "application/json"
	if r.IntN(5) == 0 {
		kind = r.one("application/json; charset=utf-8", "text/plain", "", ";", "application/x-www-form-urlencoded")
	}
	if kind != "" {
		out.Header.Set("Content-Type", kind)
	}
	user, secret, _ := strings.Cut(p.AuthKey(), ":")
	switch r.IntN(40) {
	case 0:
	case 1:
		out.SetBasicAuth("a", "b")
	case 2:
		out.Header.Set("Authorization", r.one("Basic !", "Bearer x", "Basic ", "basic "+strings.Repeat("A", 5000)))
	default:
		out.SetBasicAuth(user, secret)
	}
	if r.IntN(8) == 0 {
		out.Header.Set("X-Request-ID", r.one("mine", "sid_mine", strings.Repeat("i", 1000)))
	}
	return out
}

// usual are the statuses that there are for requests of no web action: no redirect, no error of the server's own. 502
// is an activation's.
var usual = []int{200, 202, 204, 400, 401, 403, 404, 405, 406, 409, 413, 415, 502}

// ofGo are words that no OpenWhisk says.
var ofGo = regexp.MustCompile(`json:|unmarshal|invalid character|strconv|goroutine|platform\.|reflect|runtime error|` +
	`EOF|%!`)

// checkAnswer holds an answer against what all of a real OpenWhisk's have in common.
func checkAnswer(q *http.Request, status int, header http.Header, body string) error {
	id := header.Get("X-Request-ID")
	asked := q.Header.Get("X-Request-ID")
	var refusal struct{ Error, Code *string }
	plain := strings.HasPrefix(header.Get("Content-Type"), "text/plain")
	switch {
	case !slices.Contains(usual, status):
		return fmt.Errorf("status %d", status)
	case id == "" || asked != "" && !strings.HasPrefix(asked, "sid_") && id != asked:
		return fmt.Errorf("X-Request-ID %q, asked for %q", id, asked)
	case q.Method == http.MethodHead || status == 204 || status == 502 || plain || isWeb(q) && status < 400:
		return nil
	case !json.Valid([]byte(body)):
		return fmt.Errorf("no JSON")
	case status < 400:
		return nil
	case json.Unmarshal([]byte(body), &refusal) != nil || refusal.Error == nil || refusal.Code == nil ||
		*refusal.Code != id:
		return fmt.Errorf("no error with the request's id")
	case ofGo.MatchString(*refusal.Error):
		return fmt.Errorf("words of another program")
	case status == 401 && !isWeb(q) && header.Get("WWW-Authenticate") == "":
		return fmt.Errorf("no word on how to authenticate")
	}
	return nil
}

// Thousands of requests of a seed, odd in every part: each is answered by the rules, and what they made can be read,
// listed and deleted like anything else.
func TestOddRequestsAreAnsweredByTheRules(t *testing.T) {
	const each = 1000
	answered := map[int]int{}
	for _, seed := range []uint64{1, 2} {
		p := start(t, func(c *Config) {
			c.Namespaces = []Namespace{{Name: "alice", Key: aliceKey}}
			c.Limits.InvocationsPerMinute, c.Limits.FiresPerMinute = 1_000_000, 1_000_000
		})
		h := p.Handler()
		random := oddRequests{rand.New(rand.NewPCG(seed, 0))}
		for n := range each {
			if n%20 == 0 {
				furnish(t, p)
			}
			q := random.next(p)
			if q == nil {
				continue
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, q)
			answered[w.Code]++
			if err := checkAnswer(q, w.Code, w.Header(), w.Body.String()); err != nil {
				t.Errorf("seed %d, request %d: %s %s: %v: %d %.300s", seed, n, q.Method, q.URL, err, w.Code, w.Body)
			}
		}
		cleanUp(t, p)
	}
	for _, want := range []int{200, 202, 400, 401, 403, 404, 405, 409, 413, 415} {
		if answered[want] == 0 {
			t.Errorf("the seeds try little: nothing was answered with %d (%v)", want, answered)
		}
	}
}

// furnish makes what odd requests are about, where it is not there.
func furnish(t *testing.T, p *Platform) {
	t.Helper()
	for _, set := range [][2]string{
		{"actions/a", `{"exec":{"kind":"disdel:1","code":"x"}}`},
		{"packages/pkg", `{}`},
		{"actions/pkg/b", `{"exec":{"kind":"disdel:1","code":"x"}}`},
		{"triggers/t", `{}`},
		{"rules/r", `{"trigger":"/_/t","action":"/_/a"}`},
	} {
		if got := ask(t, p, p.AuthKey(), "PUT", "_/"+set[0], set[1]); got.status != 200 && got.status != 409 &&
			got.status != 400 { // pkg may stand for another package, and t be something else
			t.Errorf("%s: %d %s", set[0], got.status, got.body)
		}
	}
}

// cleanUp reads and deletes all that there is.
func cleanUp(t *testing.T, p *Platform) {
	t.Helper()
	for _, collection := range []string{"rules", "triggers", "actions", "packages"} {
		var list []header
		if err := json.Unmarshal([]byte(must(t, p, "GET", "_/"+collection+"?limit=0", "").body), &list); err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			_, pkgName, _ := strings.Cut(v.Namespace, "/")
			at := "_/" + collection + "/"
			if pkgName != "" {
				at += url.PathEscape(pkgName) + "/"
			}
			if got := ask(t, p, p.AuthKey(), "GET", at+url.PathEscape(v.Name), ""); got.status != 200 &&
				collection != "packages" { // a binding may have lost what it stood for
				t.Errorf("%s%s: %d %s", at, v.Name, got.status, got.body)
			}
			must(t, p, "DELETE", at+url.PathEscape(v.Name)+"?force=true", "")
		}
	}
	for _, collection := range []string{"rules", "triggers", "actions", "packages"} {
		if got := must(t, p, "GET", "_/"+collection, ""); got.body != "[]" {
			t.Errorf("%s are left: %s", collection, got.body)
		}
	}
	must(t, p, "GET", "_/activations?docs=true&limit=0", "")
}

// Paths with empty parts and dots lead nowhere, as in OpenWhisk; nobody is sent elsewhere.
func TestUncleanPathsLeadNowhere(t *testing.T) {
	p := start(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for path, want := range map[string]int{
		"//": 405, "/./": 405, "/ping/..": 405, "//ping": 405, "/api/v1//": 404, "/api/v1/../v1": 404,
		"/api/v1/namespaces//actions": 404, "/api/v1/namespaces/_/actions//": 404, "/api/v1/namespaces/_/actions/./a": 404,
		"/api/v1/namespaces/": 401, "/ping": 200, "/": 200, "/api/v1/": 200,
	} {
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
		if res.Close {
			conn.Close()
			if conn, err = net.Dial("tcp", strings.TrimPrefix(p.URL(), "http://")); err != nil {
				t.Fatal(err)
			}
			answers.Reset(conn)
		}
	}
}

// Bodies of other shapes are refused in spray-json's words, and none is nested deeper than it reads.
func TestBodiesOfOtherShapes(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/actions/a", code("mirror", ""))
	must(t, p, "PUT", "_/actions/not-utf8", code("not-utf8", ""))
	if got := must(t, p, "POST", "_/actions/not-utf8?blocking=true&result=true", ""); got.body != "{\"a\":\"\ufffd\"}" {
		t.Errorf("a result that is no UTF-8: %q", got.body)
	}
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}" }
	nested := strings.TrimPrefix(errTooDeep.text, errMalformed("").text)
	for _, c := range []struct{ method, path, body, text string }{
		{"PUT", "_/packages/p", `[]`, "Object expected in field 'binding'"},
		{"PUT", "_/triggers/t", `1`, "Object expected in field 'parameters'"},
		{"PUT", "_/rules/r", `"x"`, "Object expected in field 'trigger'"},
		{"PUT", "_/actions/b", `null`, "Object expected in field 'exec'"},
		{"PUT", "_/packages/p", `{"publish":"yes"}`, `Expected JsBoolean, but got "yes"`},
		{"PUT", "_/packages/p", `{"publish":{"a": [1, 2]}}`, `Expected JsBoolean, but got {"a":[1,2]}`},
		{"PUT", "_/rules/r", `{"trigger":7,"action":"/_/a"}`, "Expected String as JsString, but got 7"},
		{"PUT", "_/actions/a?overwrite=true", `{"delAnnotations":"x"}`, `Expected List as JsArray, but got "x"`},
		{"POST", "_/actions/a", deep(1001), nested},
		{"POST", "_/triggers/t", deep(1001), nested},
		{"PUT", "_/packages/p", deep(5000), nested},
	} {
		got := ask(t, p, p.AuthKey(), c.method, c.path, c.body)
		if got.status != 400 || got.text() != errMalformed(c.text).text {
			t.Errorf("%s %s %.60s: %d %s, want %s", c.method, c.path, c.body, got.status, got.body, c.text)
		}
	}
	quoted := `{"a":"` + strings.Repeat(`[\"{`, 2000) + `"}`
	for body, want := range map[string]string{
		deep(1000): deep(1000), quoted: quoted,
		"{\"a\":\"\xff\"}": "{\"a\":\"\ufffd\"}", `{"a":1e999}`: `{"a":1e999}`,
	} {
		got := must(t, p, "POST", "_/actions/a?blocking=true&result=true", body)
		if got.body != want {
			t.Errorf("%.60s: %.100s", body, got.body)
		}
	}
}

// However updates, deletions and invocations meet, an activation is of one state of its action, whole, or finds none.
func TestInvocationsSeeOneStateOfTheirAction(t *testing.T) {
	p := start(t, func(c *Config) {
		c.Limits.ConcurrentInvocations, c.DataDir = 1000, t.TempDir()
		c.PoolMemory = 4 * 128 << 20
	})
	const states = 10
	written := make(chan struct{})
	go func() {
		defer close(written)
		for n := range states {
			body := code("mirror", fmt.Sprintf(`"version":"1.0.%d","parameters":[{"key":"n","value":%d}]`, n, n))
			ask(t, p, p.AuthKey(), "PUT", "_/actions/a?overwrite=true", body)
			got := ask(t, p, p.AuthKey(), "POST", "_/actions/a?blocking=true", `{}`)
			if got.at("response.result.n") != float64(n) { // its own change is seen at once
				t.Errorf("state %d: %d %s", n, got.status, got.body)
			}
			if n%4 == 3 {
				ask(t, p, p.AuthKey(), "DELETE", "_/actions/a", "")
			}
		}
	}()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-written:
					return
				default:
				}
				got := ask(t, p, p.AuthKey(), "POST", "_/actions/a?blocking=true", `{}`)
				version := fmt.Sprintf("1.0.%v", got.at("response.result.n"))
				if got.status != 404 && (got.status != 200 || got.at("version") != version) {
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
	all.Wait()
	wait.Until(t, "nothing runs", func() bool { s := p.Status(); return s.Running+s.Queued == 0 })
	wait.Until(t, "every record on the disk", func() bool {
		p.accepted.mu.Lock()
		defer p.accepted.mu.Unlock()
		return len(p.accepted.open) == 0
	})
}
