package platform

import (
	"strings"
	"testing"
)

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
		if got := visit(t, p, asked{path: path}); got.status != 404 || got.text() != errNoGateway.text {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
