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
			if got := visit(t, p, a); got.status != 400 || got.text() != errParameterSet.text {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
	}
	got := visit(t, p, result("guest/demo/mirror.json?a=query&b=query&empty=set", `{"a":"body"}`))
	if got.at("a") != "body" || got.at("b") != "query" || got.at("empty") != "set" {
		t.Errorf("%s", got.body)
	}
}
