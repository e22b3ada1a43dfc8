package platform

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The cases of OpenWhisk's docs/webactions.md and of the tests of its controller, in our own words. The action returns
// what it is given, so that a body says what the result is.

// asked is a request for a web action.
type asked struct {
	method, path, kind, body string
	headers                  map[string]string
	key                      string
}

func visit(t *testing.T, p *Platform, a asked) *replied {
	t.Helper()
	method := a.method
	if method == "" {
		method = http.MethodGet
		if a.body != "" {
			method = http.MethodPost
		}
	}
	req, err := http.NewRequest(method, p.URL()+"/api/v1/web/"+a.path, strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	if name, secret, ok := strings.Cut(a.key, ":"); ok {
		req.SetBasicAuth(name, secret)
	}
	if a.kind != "" {
		req.Header.Set("Content-Type", a.kind)
	}
	for name, value := range a.headers {
		req.Header.Set(name, value)
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &replied{res.StatusCode, res.Header, string(data)}
}

const appJSON = "application/json"

// withWeb starts a platform with web actions: mirror in no package and in the package demo, whose parameters each has
// some of.
func withWeb(t *testing.T, change func(*Config)) *Platform {
	t.Helper()
	p := start(t, change)
	export := `"annotations":[{"key":"web-export","value":true},{"key":"final","value":true}]`
	must(t, p, "PUT", "_/packages/demo", `{"publish":true,"parameters":[{"key":"x","value":"X"},{"key":"z","value":"z"}]}`)
	params := `"parameters":[{"key":"y","value":"Y"},{"key":"z","value":"Z"},{"key":"empty","value":null}],`
	for path, more := range map[string]string{
		"mirror": export, "demo/mirror": params + export,
		"demo/raw": params + `"annotations":[{"key":"web-export","value":true},{"key":"raw-http","value":true},` +
			`{"key":"final","value":true}]`,
		"demo/own":    `"annotations":[{"key":"web-export","value":true},{"key":"web-custom-options","value":true}]`,
		"demo/keyed":  `"annotations":[{"key":"web-export","value":true},{"key":"require-whisk-auth","value":true}]`,
		"demo/secret": `"annotations":[{"key":"web-export","value":true},{"key":"require-whisk-auth","value":"open sesame"}]`,
		"demo/number": `"annotations":[{"key":"web-export","value":true},{"key":"require-whisk-auth","value":42}]`,
		"demo/nobody": `"annotations":[{"key":"web-export","value":true},{"key":"require-whisk-auth","value":false}]`,
		"demo/inside": `"annotations":[{"key":"web-export","value":false}]`,
		"demo/yes":    `"annotations":[{"key":"web-export","value":"yes"}]`,
		"demo/html":   export,
	} {
		must(t, p, "PUT", "_/actions/"+path, code("mirror", more))
	}
	must(t, p, "PUT", "_/actions/demo/broken", code("dev-error", export))
	must(t, p, "PUT", "_/actions/demo/list", code("mirror", export))
	return p
}

// result visits with a result as the body, which the action gives back.
func result(path, body string) asked { return asked{path: path, kind: appJSON, body: body} }

func TestWebActionsAreFoundByTheirPath(t *testing.T) {
	p := withWeb(t, func(c *Config) { c.Namespaces = []Namespace{{Name: "alice", Key: aliceKey}} })
	must(t, p, "PUT", "_/packages/bound",
		`{"binding":{"namespace":"_","name":"demo"},"annotations":[{"key":"web-export","value":false}]}`)
	if got := ask(t, p, aliceKey, "PUT", "_/packages/mine",
		`{"binding":{"namespace":"guest","name":"demo"}}`); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for path, want := range map[string]int{
		"guest/demo/mirror.json": 200, "guest/default/mirror.json": 200, "guest/demo/mirror.json/": 200,
		"guest/demo/mirror.json/a/b": 200, "guest/demo/html.json": 200, "guest/bound/mirror.json": 200,
		"alice/mine/mirror.json": 200,
		"guest/demo/mirror.xyz":  404, "guest/demo/mirror.xyz/content": 404,
		"guest/demo/none.json": 404, "guest/none/mirror.json": 404, "nobody/demo/mirror.json": 404, "_/demo/mirror.json": 404,
		"guest/demo/inside.json": 404, "guest/demo/yes.json": 404, "guest/mirror.json": 404, "guest": 404, "": 404,
		"guest/demo/.json": 404, "alice/demo/mirror.json": 404, "alice/default/mirror.json": 404, "guest/demo": 404,
		"guest/%2e%2e/mirror.json": 404,
	} {
		for _, key := range []string{"", p.AuthKey(), "no:body"} {
			if got := visit(t, p, asked{path: path, key: key}); got.status != want {
				t.Errorf("%s: %d %s, want %d", path, got.status, got.body, want)
			}
		}
	}
	// a web action's activation is its owner's
	got := visit(t, p, asked{path: "guest/demo/mirror.json"})
	id := got.header.Get("x-openwhisk-activation-id")
	if rec := must(t, p, "GET", "_/activations/"+id, ""); rec.at("subject") != "guest" || rec.at("name") != "mirror" {
		t.Errorf("%s", rec.body)
	}
}

func TestWebActionsAreToldTheRequest(t *testing.T) {
	p := withWeb(t, nil)
	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH"} {
		got := visit(t, p, asked{
			method: method, path: "guest/demo/mirror.json/a%20b/c?q=1&q=2&r=a%26b", key: p.AuthKey(),
			headers: map[string]string{"X-Own": "v", "Accept": "*/*"},
		})
		var body map[string]any
		if json.Unmarshal([]byte(got.body), &body) != nil || got.status != 200 {
			t.Fatalf("%s: %d %s", method, got.status, got.body)
		}
		headers, _ := body["__ow_headers"].(map[string]any)
		if headers["x-own"] != "v" || headers["host"] == nil || headers["content-length"] != nil ||
			headers["authorization"] == nil {
			t.Errorf("%s: headers %v", method, headers)
		}
		delete(body, "__ow_headers")
		want := map[string]any{
			"__ow_method": strings.ToLower(method), "__ow_path": "/a%20b/c", "__ow_user": "guest", "q": "2", "r": "a&b",
			"x": "X", "y": "Y", "z": "Z", "empty": nil,
		}
		if diff := cmp.Diff(want, body); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", method, diff)
		}
	}
	if got := visit(t, p, asked{path: "guest/demo/mirror.json"}); got.at("__ow_user") != nil {
		t.Errorf("nobody is %v", got.at("__ow_user"))
	}
	// a visitor without a key comes from everywhere, and no other method is known
	for _, method := range []string{"TRACE", "BREW"} {
		if got := visit(t, p, asked{method: method, path: "guest/demo/mirror.json"}); got.status != 404 {
			t.Errorf("%s: %d", method, got.status)
		}
	}
}

func TestBodiesOfWebRequests(t *testing.T) {
	p := withWeb(t, nil)
	png := "\x89PNG\r\n\x1a\n\x00\xff"
	encoded := base64.StdEncoding.EncodeToString
	for _, c := range []struct {
		kind, body string
		want       string // of the result: fields
	}{
		{appJSON, `{"name":"Jane","n":1}`, `{"name":"Jane","n":1}`},
		{"application/cloudevents+json", `{"name":"Jane"}`, `{"name":"Jane"}`},
		{appJSON, `{}`, `{}`},
		{appJSON, ` `, `{}`},
		{appJSON, `[1,"a",false]`, `{"__ow_body":[1,"a",false]}`},
		{appJSON, `"text"`, `{"__ow_body":"text"}`},
		{appJSON, `null`, `{"__ow_body":null}`},
		{appJSON, `99`, `{"__ow_body":99}`},
		{"application/x-www-form-urlencoded", `a=1&b=two+words&a=2`, `{"a":"2","b":"two words"}`},
		{"text/plain", `Jane`, `{"__ow_body":"Jane"}`},
		{"text/html; charset=UTF-8", `1,2,3`, `{"__ow_body":"1,2,3"}`},
		{"application/xml", `<a/>`, `{"__ow_body":"<a/>"}`},
		{"image/png", png, `{"__ow_body":"` + encoded([]byte(png)) + `"}`},
		{"application/octet-stream", `abc`, `{"__ow_body":"` + encoded([]byte("abc")) + `"}`},
		{"", `abc`, `{"__ow_body":"` + encoded([]byte("abc")) + `"}`},
	} {
		got := visit(t, p, asked{path: "guest/default/mirror.json", kind: c.kind, body: c.body})
		var body, want map[string]any
		json.Unmarshal([]byte(got.body), &body)
		json.Unmarshal([]byte(c.want), &want)
		for _, name := range []string{"__ow_headers", "__ow_method", "__ow_path"} {
			delete(body, name)
		}
		if diff := cmp.Diff(want, body); diff != "" || got.status != 200 {
			t.Errorf("%s %q: %d (-want +got)\n%s", c.kind, c.body, got.status, diff)
		}
	}
	for _, c := range []struct {
		kind, body string
		status     int
		text       string
	}{
		{appJSON, `{"a":`, 400, "The request content was malformed:"},
		{appJSON, `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "Request larger than allowed: 1048584 > 1048576 bytes."},
		{
			"application/x-www-form-urlencoded", "a=" + strings.Repeat("x", 1<<20), 413,
			"Request larger than allowed: 1048578 > 1048576 bytes.",
		},
	} {
		got := visit(t, p, asked{path: "guest/default/mirror.json", kind: c.kind, body: c.body})
		if got.status != c.status || !strings.HasPrefix(got.text(), c.text) {
			t.Errorf("%s: %d %.200s", c.text, got.status, got.body)
		}
	}
}

// A raw web action gets query and body as they came.
func TestRawWebActionsGetTheRequestAsItIs(t *testing.T) {
	p := withWeb(t, nil)
	for _, c := range []struct{ query, kind, body, want string }{
		{"", "", "", ""},
		{"x=overridden&key2=value2", "", "", ""},
		{"a=1", appJSON, `{"x":"overridden"}`, base64.StdEncoding.EncodeToString([]byte(`{"x":"overridden"}`))},
		{"", "text/plain", "plain", "plain"},
		{"", "application/x-www-form-urlencoded", "a=1&b=2", "a=1&b=2"},
		{"", "image/png", "\x89", base64.StdEncoding.EncodeToString([]byte("\x89"))},
	} {
		got := visit(t, p, asked{path: "guest/demo/raw.json?" + c.query, method: "POST", kind: c.kind, body: c.body})
		if got.status != 200 || got.at("__ow_query") != c.query || got.at("__ow_body") != c.want || got.at("x") != "X" {
			t.Errorf("%+v: %d %s", c, got.status, got.body)
		}
	}
}

func TestNoRequestSetsWhatIsReserved(t *testing.T) {
	p := withWeb(t, nil)
	for _, name := range append([]string{"x", "y", "z"}, reserved...) {
		for _, a := range []asked{
			{path: "guest/demo/mirror.json?" + name + "=YYY"},
			result("guest/demo/mirror.json", fmt.Sprintf(`{%q:"YYY"}`, name)),
			{path: "guest/demo/mirror.json", kind: "application/x-www-form-urlencoded", body: name + "=YYY"},
		} {
			if got := visit(t, p, a); got.status != 400 || got.text() != textNotAllowed {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
	}
	got := visit(t, p, result("guest/demo/mirror.json?a=query&b=query&empty=set", `{"a":"body"}`))
	if got.at("a") != "body" || got.at("b") != "query" || got.at("empty") != "set" {
		t.Errorf("%s", got.body)
	}
}

func TestPagesOfWebActions(t *testing.T) {
	p := withWeb(t, nil)
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG"))
	hello := base64.StdEncoding.EncodeToString([]byte(`{"field":"value"}`))
	for _, c := range []struct {
		form, result string
		status       int
		kind, body   string // "": none
	}{
		{"http", `{"body":"hello world"}`, 200, "text/html; charset=UTF-8", "hello world"},
		{"http", `{"statusCode":201,"body":"made"}`, 201, "text/html; charset=UTF-8", "made"},
		{"http", `{"statusCode":"200","body":"a"}`, 200, "text/html; charset=UTF-8", "a"},
		{"http", `{}`, 204, "", ""},
		{"http", `{"body":""}`, 204, "", ""},
		{"http", `{"body":null}`, 204, "", ""},
		{"http", `{"statusCode":200}`, 200, "", ""},
		{"http", `{"statusCode":404}`, 404, "", ""},
		{"http", `{"headers":{"content-type":"image/png"},"body":"` + png + `"}`, 200, "image/png", "\x89PNG"},
		{"http", `{"headers":{"Content-Type":"application/json"},"body":"` + hello + `"}`, 200, appJSON, `{"field":"value"}`},
		{
			"http", `{"headers":{"Content-Type":"application/json"},"body":"{\"field\":\"value\"}"}`, 200, appJSON,
			`{"field":"value"}`,
		},
		{"http", `{"headers":{"Content-Type":"application/json"},"body":"hello world"}`, 200, appJSON, "hello world"},
		{
			"http", `{"headers":{"Content-Type":"application/json"},"body":{"field":[1,2]}}`, 200, appJSON,
			"{\n  \"field\": [1, 2]\n}",
		},
		{"http", `{"body":{"field":"value"}}`, 200, appJSON, "{\n  \"field\": \"value\"\n}"},
		{"http", `{"body":3}`, 200, appJSON, "3"},
		{
			"http", `{"headers":{"Content-Type":"application/hal+json"},"body":{"a":1}}`, 200, "application/hal+json",
			"{\n  \"a\": 1\n}",
		},
		{
			"http", `{"headers":{"Content-Type":"application/json-patch+json"},"body":"` + hello + `"}`, 200,
			"application/json-patch+json", `{"field":"value"}`,
		},
		{"http", `{"headers":{"Content-Type":"text/plain"},"body":"ünï"}`, 200, "text/plain; charset=UTF-8", "ünï"},
		{"json", `{"b":1,"a":"x"}`, 200, appJSON, `"b": 1`},
		{"html", `{"html":"<b>hi</b>"}`, 200, "text/html; charset=UTF-8", "<b>hi</b>"},
		{"html", `{"body":"<b>hi</b>","html":"no"}`, 200, "text/html; charset=UTF-8", "<b>hi</b>"},
		{"svg", `{"svg":"<svg/>"}`, 200, "image/svg+xml", "<svg/>"},
		{"text", `{"text":"default text"}`, 200, "text/plain; charset=UTF-8", "default text"},
		{"text", `{"text":{"a":"A","b":[]}}`, 200, "text/plain; charset=UTF-8", "{\n  \"a\": \"A\",\n  \"b\": []\n}"},
		{"text", `{"text":["a",1]}`, 200, "text/plain; charset=UTF-8", `["a", 1]`},
		{"text", `{"text":true}`, 200, "text/plain; charset=UTF-8", "true"},
		{"text", `{"text":1.5}`, 200, "text/plain; charset=UTF-8", "1.5"},
		{"text", `{"text":null}`, 200, "text/plain; charset=UTF-8", "null"},
		{
			"http", `{"error":{"statusCode":200,"body":"no hello for you"}}`, 200, "text/html; charset=UTF-8",
			"no hello for you",
		},
		{"http", `{"error":{"statusCode":418,"body":"tea"}}`, 418, "text/html; charset=UTF-8", "tea"},
		{"json", `{"error":{"why":1}}`, 200, appJSON, `"why": 1`},
	} {
		for _, rest := range []string{"", "/ignored"} {
			got := visit(t, p, result("guest/default/mirror."+c.form+rest, c.result))
			if got.status != c.status || got.header.Get("Content-Type") != c.kind || !strings.Contains(got.body, c.body) ||
				c.form != "json" && got.body != c.body {
				t.Errorf(".%s %s: %d %s %q, want %d %s %q", c.form, c.result, got.status, got.header.Get("Content-Type"), got.body,
					c.status, c.kind, c.body)
			}
			if len(got.header.Get("x-openwhisk-activation-id")) != 32 {
				t.Errorf(".%s %s: no activation is named", c.form, c.result)
			}
		}
	}
}

func TestResultsThatAreNoPages(t *testing.T) {
	p := withWeb(t, nil)
	mismatch, invalid := textContentMismatch, "Response is not valid 'message/http'."
	for _, c := range []struct {
		form, result string
		status       int
		text         string
	}{
		{"http", `{"headers":{"content-type":"text/html"},"body":{"a":1}}`, 400, mismatch},
		{"http", `{"headers":{"content-type":"image/png"},"body":"no base64!"}`, 400, mismatch},
		{"http", `{"headers":{"content-type":"xyzbar"},"body":"hello"}`, 400, textUnknownContent},
		{"http", `{"statusCode":"xyz","body":"a"}`, 400, invalid},
		{"http", `{"statusCode":700}`, 400, invalid},
		{"http", `{"statusCode":100}`, 400, invalid},
		{"http", `{"statusCode":200.5}`, 400, invalid},
		{"http", `{"statusCode":true}`, 400, invalid},
		{"http", `{"headers":"a: b"}`, 400, invalid},
		{"http", `{"headers":{"a":{"b":1}}}`, 400, invalid},
		{"http", `{"headers":{"a":null}}`, 400, invalid},
		{"http", `{"error":"text"}`, 400, invalid},
		{"html", `{"a":"b"}`, 400, "Response is not valid 'text/html'."},
		{"html", `{"html":{"a":1}}`, 400, "Response is not valid 'text/html'."},
		{"svg", `{"svg":1}`, 400, "Response is not valid 'image/svg+xml'."},
		{"text", `{"a":"b"}`, 404, textNoProperty},
		{"json", `{"error":"bad response type"}`, 400, "Response is not valid 'application/json'."},
	} {
		got := visit(t, p, result("guest/default/mirror."+c.form, c.result))
		if got.status != c.status || got.text() != c.text || got.at("code") == nil {
			t.Errorf(".%s %s: %d %s, want %d %s", c.form, c.result, got.status, got.body, c.status, c.text)
		}
	}
	for _, form := range []string{"json", "text", "http"} {
		got := visit(t, p, asked{path: "guest/demo/broken." + form})
		if got.status != 400 || got.text() != textErrorProcessing {
			t.Errorf("%s: %d %s", form, got.status, got.body)
		}
	}
}

func TestHeadersOfPages(t *testing.T) {
	p := withWeb(t, nil)
	got := visit(t, p, result("guest/default/mirror", `{"statusCode":302,"headers":{"location":"http://openwhisk.org"}}`))
	if got.status != 302 || got.header.Get("Location") != "http://openwhisk.org" || got.body != "" {
		t.Errorf("%d %v", got.status, got.header)
	}
	got = visit(t, p, result("guest/default/mirror",
		`{"headers":{"Set-Cookie":["a=b","c=d; Path = `+
			`/"],"X-Number":3,"X-Truth":true,"content-type":"text/plain"},"statusCode":200}`))
	if cookies := got.header.Values("Set-Cookie"); got.status != 200 || len(cookies) != 2 ||
		cookies[1] != "c=d; Path = /" ||
		got.header.Get("X-Number") != "3" || got.header.Get("X-Truth") != "true" || got.header.Get("Content-Type") != "" {
		t.Errorf("%d %v", got.status, got.header)
	}
	// what would break the answer apart stays within its header, or out
	got = visit(t, p, result("guest/default/mirror",
		`{"body":"abc","headers":{"X-A":"b\r\nX-Evil: 1","X `+
			`B":"c","Content-Length":"1","Transfer-Encoding":"chunked","Connection":"close"}}`))
	if got.status != 200 || got.body != "abc" || got.header.Get("X-Evil") != "" || got.header.Get("X B") != "" {
		t.Errorf("%d %v %q", got.status, got.header, got.body)
	}
	head := visit(t, p, asked{method: "HEAD", path: "guest/default/mirror?body=x"})
	if head.status != 200 || head.body != "" || head.header.Get("Content-Type") != "text/html; charset=UTF-8" {
		t.Errorf("HEAD: %d %v %q", head.status, head.header, head.body)
	}
	for accept, want := range map[string]int{
		appJSON: 406, "text/*;q=0.5": 200, "image/png, */*": 200, "text/html": 200, "": 200, "text/xml": 406,
	} {
		got := visit(t, p, asked{path: "guest/default/mirror?body=x", headers: map[string]string{"Accept": accept}})
		if got.status != want || want == 406 && got.text() != textOnlyAs("text/html; charset=UTF-8") {
			t.Errorf("%q: %d %s", accept, got.status, got.body)
		}
	}
}

func TestWebActionsThatAskForAKey(t *testing.T) {
	p := withWeb(t, func(c *Config) { c.Namespaces = []Namespace{{Name: "alice", Key: aliceKey}} })
	secret := func(v string) map[string]string { return map[string]string{"X-Require-Whisk-Auth": v} }
	for _, c := range []struct {
		name, key string
		headers   map[string]string
		want      int
	}{
		{"keyed", "", nil, 401},
		{"keyed", p.AuthKey(), nil, 200},
		{"keyed", aliceKey, nil, 200},
		{"keyed", "no:body", nil, 401},
		{"keyed", "", secret("true"), 401},
		{"secret", "", nil, 401},
		{"secret", p.AuthKey(), nil, 401},
		{"secret", "", secret("open sesame"), 200},
		{"secret", "", secret("open sesam"), 401},
		{"secret", "", secret(""), 401},
		{"number", "", secret("42"), 200},
		{"number", "", secret("43"), 401},
		{"nobody", p.AuthKey(), secret("false"), 401},
	} {
		got := visit(t, p, asked{path: "guest/demo/" + c.name + ".json", key: c.key, headers: c.headers})
		if got.status != c.want || c.want == 401 && got.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%+v: %d %s", c, got.status, got.body)
		}
	}
	if got := visit(t, p, asked{path: "guest/demo/keyed.json", key: aliceKey}); got.at("__ow_user") != "alice" {
		t.Errorf("%s", got.body)
	}
}

// Pages of every origin may call web actions, and nothing else; an action may answer their preflights itself.
func TestOnlyWebActionsAreForEveryPage(t *testing.T) {
	p := withWeb(t, nil)
	page := map[string]string{
		"Origin": "http://evil.example", "Access-Control-Request-Headers": "x-own",
		"Sec-Fetch-Site": "cross-site",
	}
	for _, method := range []string{"OPTIONS", "GET", "POST"} {
		got := visit(t, p, asked{method: method, path: "guest/default/mirror.json", headers: page})
		if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "*" ||
			got.header.Get("Access-Control-Allow-Methods") != webMethods ||
			got.header.Get("Access-Control-Allow-Headers") != "x-own" {
			t.Errorf("%s: %d %v", method, got.status, got.header)
		}
		invoked := got.header.Get("x-openwhisk-activation-id") != ""
		if invoked == (method == "OPTIONS") {
			t.Errorf("%s invokes: %v", method, invoked)
		}
	}
	got := visit(t, p, asked{path: "guest/default/mirror.json"})
	if got.header.Get("Access-Control-Allow-Headers") != corsHeaders {
		t.Errorf("%v", got.header)
	}
	got = visit(t, p, asked{
		method: "OPTIONS", path: "guest/demo/own.http?statusCode=200", headers: page,
	})
	if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "" ||
		got.header.Get("x-openwhisk-activation-id") == "" {
		t.Errorf("own: %d %v", got.status, got.header)
	}
	for _, path := range []string{
		"/api/v1/web/../namespaces/_/actions", "/api/v1/web/guest/../../namespaces", "/api/v1/webx/guest/demo/mirror",
		"/api/v1/web/%2e%2e/namespaces/_/actions",
	} {
		if got := send(t, p, "GET", path, map[string]string{"Origin": "http://evil.example"}); got.status != 403 &&
			got.status != 404 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := send(t, p, "GET", "/api/v1/web/guest/default/mirror.json",
		map[string]string{"Host": "evil.example"}); got.status != 421 {
		t.Errorf("under a foreign name: %d", got.status)
	}
}

func TestWebActionsAreThrottledAsTheirOwnersAre(t *testing.T) {
	p := withWeb(t, func(c *Config) { c.Limits.InvocationsPerMinute = 2 })
	statuses := map[int]int{}
	for range 6 { // a minute may turn meanwhile
		got := visit(t, p, asked{path: "guest/default/mirror.json"})
		statuses[got.status]++
		if got.status == 429 && !strings.HasPrefix(got.text(), "Too many requests in the last minute") {
			t.Errorf("%s", got.body)
		}
	}
	if statuses[429] < 2 || statuses[200]+statuses[429] != 6 {
		t.Errorf("%v", statuses)
	}
}

// A web action that takes its time is answered with its activation's id.
func TestASlowWebActionIsNotWaitedForForever(t *testing.T) {
	p := withWeb(t, func(c *Config) { c.BlockingWait = 20 * 1000 * 1000 })
	must(t, p, "PUT", "_/actions/sleep",
		code("sleep", `"annotations":[{"key":"web-export","value":true}],"parameters":[{"key":"ms","value":1500}]`))
	got := visit(t, p, asked{path: "guest/default/sleep.json"})
	if got.status != 202 || got.text() != textNotReady || len(got.header.Get("x-openwhisk-activation-id")) != 32 {
		t.Errorf("%d %s %v", got.status, got.body, got.header)
	}
}

// Clients that manage the API gateway are told that there is none.
func TestThereIsNoGateway(t *testing.T) {
	p := start(t, nil)
	for _, path := range []string{"whisk.system/apimgmt/createApi.http", "whisk.system/apimgmt/getApi.http"} {
		if got := visit(t, p, asked{path: path}); got.status != 404 || got.text() != textNoGateway {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
