package platform

import (
	"testing"

	"github.com/disdel/disdel"
)

// Each namespace has its own entities, activations and limits, and no way to another's.
func TestNamespacesAreIsolated(t *testing.T) {
	p := start(t, withNamespaces)
	if got := ask(t, p, aliceKey, "PUT", "_/actions/a", code("echo", "")); got.status != 200 ||
		got.at("namespace") != "alice" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := ask(t, p, aliceKey, "POST", "alice/actions/a?blocking=true", `{}`); got.status != 200 ||
		got.at("namespace") != "alice" || got.at("subject") != "alice" {
		t.Errorf("%d %s", got.status, got.body)
	}
	for path, want := range map[string]int{
		"alice/actions/a": 403, "alice/actions": 403, "alice/activations": 403, "alice/limits": 403, "alice/triggers/t": 403,
		"nobody/actions": 403, "_/actions/a": 404,
	} {
		if got := ask(t, p, bobKey, "GET", path, ""); got.status != want {
			t.Errorf("bob at %s: %d %s, want %d", path, got.status, got.body, want)
		}
	}
	for key, want := range map[string]string{bobKey: `["bob"]`, aliceKey: `["alice"]`, p.AuthKey(): `["guest"]`} {
		if got := ask(t, p, key, "GET", "", ""); got.body != want {
			t.Errorf("namespaces: %s, want %s", got.body, want)
		}
	}
	if got := ask(t, p, bobKey, "GET", "_/activations?count=true", ""); got.at("activations") != 0.0 {
		t.Errorf("bob sees %s", got.body)
	}
	if got := ask(t, p, "alice-uuid:bob-secret", "GET", "_/actions", ""); got.status != 401 {
		t.Errorf("a key of two halves: %d", got.status)
	}
}

// A namespace's throttles are its own: bob's do not touch alice's.
func TestThrottlesAreOfOneNamespace(t *testing.T) {
	p := start(t, withNamespaces)
	for path, want := range map[string]any{
		"invocationsPerMinute": 3.0, "concurrentInvocations": 2.0,
		"firesPerMinute": 1.0, "maxParameterSize": "1048576 B",
	} {
		if got := ask(t, p, bobKey, "GET", "_/limits", ""); got.at(path) != want {
			t.Errorf("%s is %v, want %v", path, got.at(path), want)
		}
	}
	for _, key := range []string{aliceKey, bobKey} {
		ask(t, p, key, "PUT", "_/actions/sleep", code("sleep", ""))
		ask(t, p, key, "PUT", "_/triggers/t", `{}`)
	}
	for i, want := range []int{202, 202, 429} {
		got := ask(t, p, bobKey, "POST", "_/actions/sleep", `{"ms":400}`)
		if got.status != want || want == 429 && got.text() != errConcurrent(2, 2).text {
			t.Errorf("bob's invocation %d: %d %s", i, got.status, got.body)
		}
	}
	for i, want := range []int{204, 429} {
		got := ask(t, p, bobKey, "POST", "_/triggers/t", `{}`)
		if got.status != want || want == 429 && got.text() != errPerMinute(2, 1).text {
			t.Errorf("bob's fire %d: %d %s", i, got.status, got.body)
		}
	}
	for range 3 {
		if got := ask(t, p, aliceKey, "POST", "_/actions/sleep", `{"ms":1}`); got.status != 202 {
			t.Errorf("alice: %d %s", got.status, got.body)
		}
	}
}

func TestNamespacesNeedNamesAndKeysOfTheirOwn(t *testing.T) {
	for name, list := range map[string][]Namespace{
		"the first one's name": {{Name: "guest", Key: aliceKey}}, "the first one's key": {{Name: "a", Key: guestKey}},
		"twice": {{Name: "a", Key: aliceKey}, {Name: "a", Key: bobKey}}, "no key": {{Name: "a"}},
		"a slash": {{Name: "a/b", Key: aliceKey}},
	} {
		cfg := DefaultConfig()
		cfg.Kinds = map[string]Kind{"x:1": {}}
		cfg.Namespaces = list
		if _, err := New(cfg); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Public packages of others can be read, bound and invoked, not changed; private ones do not even exist.
func TestPublicPackagesAreSharedAndPrivateOnesAreNot(t *testing.T) {
	p := start(t, withNamespaces)
	for _, set := range [][2]string{
		{"_/packages/open", `{"publish":true,"parameters":[{"key":"from","value":"package"},{"key":"of","value":"alice"}]}`},
		{"_/packages/closed", `{}`},
		{"_/actions/open/a", code("mirror", `"parameters":[{"key":"action","value":1}]`)},
		{"_/actions/closed/a", code("mirror", "")},
	} {
		if got := ask(t, p, aliceKey, "PUT", set[0], set[1]); got.status != 200 {
			t.Fatalf("%s: %s", set[0], got.body)
		}
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "alice/packages", "", 200},
		{"GET", "alice/packages/open", "", 200},
		{"GET", "alice/packages/closed", "", 403},
		{"GET", "alice/packages/none", "", 403},
		{"GET", "alice/actions/open/", "", 200},
		{"GET", "alice/actions/open/a", "", 200},
		{"GET", "alice/actions/closed/a", "", 403},
		{"PUT", "alice/actions/open/b", code("echo", ""), 403},
		{"DELETE", "alice/actions/open/a", "", 403},
		{"DELETE", "alice/packages/open", "", 403},
		{"PUT", "_/packages/secret", `{"binding":{"namespace":"alice","name":"closed"}}`, 403},
		{
			"PUT", "_/packages/mine",
			`{"binding":{"namespace":"alice","name":"open"},"parameters":[{"key":"from","value":"binding"}]}`, 200,
		},
		{"POST", "alice/packages/refresh", "", 404},
		{"POST", "_/packages/refresh", "", 200},
	} {
		if got := ask(t, p, bobKey, c.method, c.path, c.body); got.status != c.status {
			t.Errorf("bob's %s %s: %d %s, want %d", c.method, c.path, got.status, got.body, c.status)
		}
	}
	if got := ask(t, p, bobKey, "GET", "alice/packages", ""); got.at("0.name") != "open" || got.at("1") != nil {
		t.Errorf("bob sees of alice: %s", got.body)
	}
	if got := ask(t, p, bobKey, "GET", "_/packages?public=true", ""); got.at("0.name") != "mine" ||
		got.at("1.name") != "open" || got.at("2") != nil {
		t.Errorf("own and public packages: %s", got.body)
	}
	got := ask(t, p, bobKey, "POST", "_/actions/mine/a?blocking=true", `{"request":2}`)
	for path, want := range map[string]any{
		"namespace": "bob", "response.result.from": "binding", "response.result.of": "alice", "response.result.action": 1.0,
		"response.result.request": 2.0,
	} {
		if got.at(path) != want {
			t.Errorf("through the binding %s is %v, want %v", path, got.at(path), want)
		}
	}
	if got.noted("path") != "alice/open/a" || got.noted("binding") != "bob/mine" {
		t.Errorf("path %v, binding %v", got.noted("path"), got.noted("binding"))
	}
	if got := ask(t, p, bobKey, "GET", "_/activations?name=mine/a", ""); got.at("0.name") != "a" {
		t.Errorf("found by the binding's name: %s", got.body)
	}
	if got := ask(t, p, bobKey, "GET", "_/packages/mine", ""); got.at("actions.0.name") != "a" ||
		got.at("parameters.0.value") != "binding" || got.at("binding.namespace") != "alice" {
		t.Errorf("the binding: %s", got.body)
	}
}

// Two namespaces that invoke one public action do not meet in a container.
func TestContainersServeOneNamespace(t *testing.T) {
	p := start(t, withNamespaces)
	ask(t, p, aliceKey, "PUT", "_/packages/open", `{"publish":true}`)
	ask(t, p, aliceKey, "PUT", "_/actions/open/a", code("echo", ""))
	pids := map[any]string{}
	for _, key := range []string{aliceKey, bobKey, aliceKey, bobKey} {
		got := ask(t, p, key, "POST", "alice/actions/open/a?blocking=true&result=true", `{}`)
		pid := got.at("pid")
		if other, ok := pids[pid]; ok && other != key || pid == nil {
			t.Errorf("container %v served %s and %s: %s", pid, other, key, got.body)
		}
		pids[pid] = key
	}
	if len(pids) != 2 {
		t.Errorf("%d containers for two namespaces, want 2 warm ones", len(pids))
	}
}
