package platform

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What a real OpenWhisk was seen to do, and what this one did otherwise before.
func TestItDoesAsARealOpenWhisk(t *testing.T) {
	p := start(t, nil)
	for name, does := range map[string]func(*testing.T, *Platform){
		"a sequence has no parameters of its package":             sequenceInAPackage,
		"a sequence behind a binding has no parameters of it":     sequenceBehindABinding,
		"actions of rules get the headers of the request":         headersOfRules,
		"a web action without its key names the authentication":   webActionWithoutKey,
		"what takes no JSON is not acceptable on any path":        notAcceptable,
		"times of log lines have no zeros at their end":           timesOfLogs,
		"bodies that are no UTF-8 have replacements, as recorded": bodiesOfOtherSets,
	} {
		t.Run(name, func(t *testing.T) { does(t, p) })
	}
}

func sequenceInAPackage(t *testing.T, p *Platform) {
	must(t, p, "PUT", "_/packages/pkg", `{"parameters":[{"key":"q","value":"pkg"},{"key":"p","value":"pkg"}]}`)
	must(t, p, "PUT", "_/actions/pkg/first", code("told", `"parameters":[{"key":"q","value":"act"}]`))
	must(t, p, "PUT", "_/actions/pkg/all", `{"exec":{"kind":"sequence","components":["/_/pkg/first"]}}`)
	got := must(t, p, "POST", "_/actions/pkg/all?blocking=true&result=true", `{"x":1}`)
	if got.at("told.q") != "act" || got.at("told.p") != "pkg" || got.at("told.x") != 1.0 {
		t.Errorf("%s", got.body)
	}
}

func sequenceBehindABinding(t *testing.T, p *Platform) {
	must(t, p, "PUT", "_/packages/far", `{"parameters":[{"key":"p","value":"pkg"}]}`)
	must(t, p, "PUT", "_/packages/near",
		`{"binding":{"namespace":"_","name":"far"},"parameters":[{"key":"p","value":"bind"},{"key":"b","value":"bind"}]}`)
	must(t, p, "PUT", "_/actions/own", code("told", `"parameters":[{"key":"p","value":"own"}]`))
	must(t, p, "PUT", "_/actions/far/inside", code("told", ""))
	must(t, p, "PUT", "_/actions/far/all", `{"exec":{"kind":"sequence","components":["/_/own"]}}`)
	must(t, p, "PUT", "_/actions/bound", `{"exec":{"kind":"sequence","components":["/_/near/inside"]}}`)
	got := must(t, p, "POST", "_/actions/near/all?blocking=true&result=true", `{}`)
	if got.at("told.p") != "own" || got.at("told.b") != nil {
		t.Errorf("a component elsewhere: %s", got.body)
	}
	if got := must(t, p, "POST", "_/actions/bound?blocking=true&result=true", `{}`); got.at("told.p") != "bind" {
		t.Errorf("a component behind the binding: %s", got.body)
	}
}

func headersOfRules(t *testing.T, p *Platform) {
	must(t, p, "PUT", "_/actions/seen", code("mirror", ""))
	must(t, p, "PUT", "_/triggers/fires", `{}`)
	must(t, p, "PUT", "_/rules/ruled", `{"trigger":"/_/fires","action":"/_/seen"}`)
	fired := withHeaders(t, p, "POST", "namespaces/_/triggers/fires", `{"x":1}`, map[string]string{"X-Seen": "Yes"})
	rec := must(t, p, "GET", "_/activations/"+fired.at("activationId").(string), "")
	if strings.Contains(rec.body, "__ow_headers") || strings.Contains(strings.ToLower(rec.body), "x-seen") {
		t.Errorf("the trigger's record has headers: %s", rec.body)
	}
	var rule outcome
	if err := json.Unmarshal([]byte(rec.at("logs.0").(string)), &rule); err != nil {
		t.Fatal(err)
	}
	given := await(t, p, rule.ActivationID)["response"].(map[string]any)["result"].(map[string]any)
	headers, _ := given["__ow_headers"].(map[string]any)
	if headers["x-seen"] != "Yes" || headers["host"] == nil || headers["authorization"] == nil || given["x"] != 1.0 ||
		headers["content-length"] != nil {
		t.Errorf("the action got %v", given)
	}
}

func webActionWithoutKey(t *testing.T, p *Platform) {
	must(t, p, "PUT", "_/actions/closed", code("mirror",
		`"annotations":[{"key":"web-export","value":true},{"key":"require-whisk-auth","value":true}]`))
	res, err := http.Get(p.URL() + "/api/v1/web/guest/default/closed.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body struct{ Error string }
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil || res.StatusCode != 401 ||
		body.Error != "Authentication is possible but has failed or not yet been provided." {
		t.Errorf("%d %q, %v", res.StatusCode, body.Error, err)
	}
}

func notAcceptable(t *testing.T, p *Platform) {
	must(t, p, "PUT", "_/actions/there", code("mirror", ""))
	const ours, theirs = "namespaces/_/actions", "application/xml"
	for _, c := range []struct {
		method, path, body, accept string
		status                     int
	}{
		{"GET", ours, "", theirs, 406},
		{"GET", ours + "/there", "", "text/html, application/xml;q=0.9", 406},
		{"PUT", ours + "/other", code("mirror", ""), theirs, 406},
		{"POST", ours + "/there", `{}`, theirs, 406},
		{"DELETE", ours + "/there", "", theirs, 406},
		{"OPTIONS", ours, "", theirs, 200},
		{"GET", ours + "/there", "", "text/html, */*;q=0.1", 200},
		{"GET", ours + "/there", "", "application/*", 200},
		{"GET", ours + "/there", "", "", 200},
	} {
		if got := withHeaders(t, p, c.method, c.path, c.body, map[string]string{"Accept": c.accept}); got.status != c.status {
			t.Errorf("%s %s that takes %q: %d %s", c.method, c.path, c.accept, got.status, got.body)
		}
	}
}

func timesOfLogs(t *testing.T, _ *Platform) {
	for nanos, want := range map[int]string{
		0: "2026-01-01T00:00:00Z           stdout: x", 120_000_000: "2026-01-01T00:00:00.12Z        stdout: x",
		123_456_789: "2026-01-01T00:00:00.123456789Z stdout: x",
	} {
		if got := logLine(time.Date(2026, 1, 1, 0, 0, 0, nanos, time.UTC), "stdout", "x"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func bodiesOfOtherSets(t *testing.T, p *Platform) {
	must(t, p, "PUT", "_/actions/says", code("mirror", ""))
	got := must(t, p, "POST", "_/actions/says?blocking=true&result=true", "{\"x\":\"\xe9\"}")
	if got.at("x") != "\uFFFD" {
		t.Errorf("%s", got.body)
	}
}

// withHeaders sends a request of the platform's own user with headers of its own.
func withHeaders(t *testing.T, p *Platform, method, path, body string, headers map[string]string) *replied {
	t.Helper()
	req, err := http.NewRequest(method, fmt.Sprintf("%s/api/v1/%s", p.URL(), path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	name, key, _ := strings.Cut(p.AuthKey(), ":")
	req.SetBasicAuth(name, key)
	req.Header.Set("Content-Type", "application/json")
	for k, v := range headers {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	return replyTo(t, req)
}
