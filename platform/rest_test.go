package platform

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
)

const (
	aliceKey = "alice-uuid:alice-secret"
	bobKey   = "bob-uuid:bob-secret"
)

// Every error has the status and the words that OpenWhisk's clients know, and the request's id.
func TestErrorsSpeakOpenWhisksWords(t *testing.T) {
	p := start(t, func(c *Config) {
		withNamespaces(c)
		c.Limits.SequenceLength = 3
	})
	for _, set := range [][2]string{
		{"_/packages/full", `{}`},
		{"_/packages/bound", `{"binding":{"namespace":"_","name":"full"}}`},
		{"_/actions/full/a", code("echo", "")},
		{"_/actions/a", code("echo",
			`"parameters":[{"key":"x","value":1},{"key":"y","value":""}],"annotations":[{"key":"final","value":true}]`)},
		{"_/actions/s", `{"exec":{"kind":"sequence","components":["/_/a","/_/a"]}}`},
		{"_/triggers/t", `{}`},
		{"_/rules/r", `{"trigger":"/_/t","action":"/_/a"}`},
	} {
		must(t, p, "PUT", set[0], set[1])
	}
	large := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"GET", "/api/v1/nothing", "", 404, "The requested resource could not be found."},
		{"GET", "_/nothing", "", 404, "The requested resource could not be found."},
		{"GET", "alice/actions", "", 403, "The supplied authentication is not authorized to access 'alice'."},
		{
			"PUT", "alice/actions/a", code("echo", ""), 403,
			"The supplied authentication is not authorized to access 'alice/a'.",
		},
		{"POST", "_/actions", "", 404, errNoRoute.text},
		{"PATCH", "_/actions/a", "", 404, errNoRoute.text},
		{"POST", "_/packages/full", "", 404, errNoRoute.text},
		{
			"GET", "_/actions?limit=201", "", 400,
			"The query parameter 'limit' was malformed:\nThe value '201' is not in the range of 0 to 200 for actions.",
		},
		{
			"GET", "_/rules?limit=x", "", 400,
			"The query parameter 'limit' was malformed:\nThe value 'x' is not an integer for rules.",
		},
		{
			"GET", "_/triggers?skip=-1", "", 400,
			"The query parameter 'skip' was malformed:\nThe value '-1' is not greater than or equal to 0 for triggers.",
		},
		{
			"GET", "_/actions?count=maybe", "", 400,
			"The query parameter 'count' was malformed:\n'maybe' is not a valid Boolean value",
		},
		{"GET", "_/activations?count=true&docs=true", "", 400, "The parameter 'docs' is not permitted with 'count'."},
		{
			"GET", "_/activations?since=yesterday", "", 400,
			"The query parameter 'since' was malformed:\nParameter is not a valid value for epoch seconds: yesterday",
		},
		{
			"GET", "_/activations?name=a/b/c", "", 400,
			"The query parameter 'name' was malformed:\nParameter may be a 'simple' name or 'package-name/simple' name: a/b/c",
		},
		{"GET", "_/activations/abc", "", 400, "Activation id length is 3 but must be 32."},
		{"GET", "_/activations/" + strings.Repeat("X", 32), "", 400, "The activation id is not valid."},
		{"GET", "_/activations/" + strings.Repeat("0", 32), "", 404, "The requested resource does not exist."},
		{"GET", "_/activations/" + strings.Repeat("0", 32) + "/logs", "", 404, "The requested resource does not exist."},
		{"GET", "_/actions/none", "", 404, "The requested resource does not exist."},
		{"DELETE", "_/actions/none", "", 404, "The requested resource does not exist."},
		{"POST", "_/actions/none", "{}", 404, "The requested resource does not exist."},
		{"PUT", "_/actions/none/a", code("echo", ""), 404, "The requested resource does not exist."},
		{"PUT", "_/actions/a", code("echo", ""), 409, "resource already exists"},
		{"PUT", "_/packages/full", `{}`, 409, "resource already exists"},
		{"PUT", "_/triggers/t", `{}`, 409, "resource already exists"},
		{"PUT", "_/rules/r", `{"trigger":"/_/t","action":"/_/a"}`, 409, "resource already exists"},
		{
			"PUT", "_/actions/b", `{`, 400,
			"The request content was malformed:\nUnexpected end-of-input at input index 1 (line 1, position 2), expected " +
				"'\"':\n{\n ^\n",
		},
		{"PUT", "_/actions/b", `{}`, 400, "exec undefined"},
		{
			"PUT", "_/actions/b", `{"exec":{"kind":"disdel:1"}}`, 400,
			"The request content was malformed:\n'code' must be a string or attachment object defined in 'exec' for " +
				"'disdel:1' actions",
		},
		{
			"PUT", "_/actions/b", `{"exec":{"kind":"cobol:default","code":"x"}}`, 400,
			"The request content was malformed:\nThe specified runtime 'cobol:default' is not supported by this platform. " +
				"Valid values are: 'disdel:1', 'blackbox', 'sequence'.",
		},
		{
			"PUT", "_/actions/b", `{"exec":{"kind":"blackbox","image":"x/y:1","code":"x"}}`, 400,
			"The request content was malformed:\nThe specified image 'x/y:1' is not supported by this platform, which has no " +
				"images. Valid kinds are: 'disdel:1'.",
		},
		{"PUT", "_/actions/b!", code("echo", ""), 400, "The name of the entity contains illegal characters."},
		{
			"PUT", "_/actions/" + strings.Repeat("b", 257), code("echo", ""), 400,
			"Name segement longer than allowed: 257 > 256.",
		},
		{
			"PUT", "_/actions/b", code("echo", `"parameters":[{"key":"x","value":"`+large+`"}]`), 413,
			"parameters larger than allowed: 1048579 > 1048576 bytes.",
		},
		{
			"PUT", "_/actions/s2", `{"exec":{"kind":"sequence","components":[]}}`, 400,
			"No component specified for the sequence.",
		},
		{
			"PUT", "_/actions/s2", `{"exec":{"kind":"sequence","components":["/_/none"]}}`, 400,
			"Sequence component does not exist.",
		},
		{
			"PUT", "_/actions/s2", `{"exec":{"kind":"sequence","components":["a"]}}`, 400,
			"The request content was malformed:\nrequirement failed: The fully qualified name of the entity must contain at " +
				"least the namespace and the name of the entity.",
		},
		{
			"PUT", "_/actions/s2", `{"exec":{"kind":"sequence","components":["/_/s","/_/s"]}}`, 400,
			"Too many actions in the sequence.",
		},
		{
			"PUT", "_/actions/s?overwrite=true", `{"exec":{"kind":"sequence","components":["/_/s"]}}`, 400,
			"Sequence may not refer to itself.",
		},
		{"PUT", "_/packages/default", `{}`, 400, "Package name 'default' is reserved."},
		{
			"PUT", "_/packages/b", `{"binding":{"namespace":"_","name":"none"}}`, 400,
			"Binding references a package that does not exist.",
		},
		{
			"PUT", "_/packages/b", `{"binding":{"namespace":"_","name":"bound"}}`, 400,
			"Cannot bind to another package binding.",
		},
		{
			"PUT", "_/packages/full?overwrite=true", `{"binding":{"namespace":"_","name":"bound"}}`, 409,
			"Resource is a package and cannot be converted into a binding.",
		},
		{"PUT", "_/actions/bound/b", code("echo", ""), 400, "Operation not permitted on package binding."},
		{
			"DELETE", "_/packages/full", "", 409,
			"Package not empty (contains 1 entity). Set force param or delete package contents.",
		},
		{"PUT", "_/triggers/f", `{"annotations":[{"key":"feed","value":1}]}`, 400, "Feed name is not valid"},
		{"PUT", "_/rules/r2", `{"trigger":"/_/t"}`, 400, "rule requires a valid trigger and a valid action"},
		{"PUT", "_/rules/r2", `{"trigger":"/_/none","action":"/_/a"}`, 400, "trigger /guest/none does not exist"},
		{"PUT", "_/rules/r2", `{"trigger":"/_/t","action":"/_/none"}`, 400, "action /guest/none does not exist"},
		{
			"POST", "_/rules/r", `{"status":"maybe"}`, 400,
			"The request content was malformed:\nrequirement failed: maybe is not a recognized rule state",
		},
		{
			"POST", "_/actions/a", `{"x":2}`, 400,
			"Request defines parameters that are not allowed (e.g., reserved properties).",
		},
		{"POST", "_/actions/a", `"text"`, 400, "The request content was malformed:\nJSON object expected"},
		{
			"POST", "_/actions/a?blocking=true&timeout=60001", `{}`, 400,
			"The query parameter 'timeout' was malformed:\nTimeout must be number of milliseconds up to 60000.",
		},
		{"POST", "_/actions/a", `{"z":"` + large + `"}`, 413, "Request larger than allowed: 1048584 > 1048576 bytes."},
	} {
		got := ask(t, p, p.AuthKey(), c.method, c.path, c.body)
		if got.status != c.status || got.text() != c.text || got.at("code") != got.header.Get("X-Request-ID") {
			t.Errorf("%s %.60s %.80s: %d %q, want %d %q", c.method, c.path, c.body, got.status, got.body, c.status, c.text)
		}
	}
}

// A client that is still sending when its request is refused gets the answer, not a connection that was reset.
func TestRefusalsReachClientsThatStillSend(t *testing.T) {
	p := start(t, nil)
	large := `{"z":"` + strings.Repeat("x", 8<<20) + `"}`
	for range 20 {
		for path, want := range map[string]int{"_/actions/a": 413, "_/packages/a": 404, "_/actions/a?blocking=maybe": 400} {
			if got := ask(t, p, p.AuthKey(), "POST", path, large); got.status != want {
				t.Fatalf("%s: %d %.100s", path, got.status, got.text())
			}
		}
	}
}

func TestKindsAreListedByFamilyWithOneDefault(t *testing.T) {
	command := Kind{Command: []string{os.Args[0], "serve", "{listen}"}}
	old := command
	old.Default = true
	p := start(t, func(c *Config) {
		c.Kinds = map[string]Kind{"go:1.20": old, "go:1.21": command, "nodejs:18": command, "nodejs:20": command}
	})
	r := ask(t, p, "", "GET", "/", "")
	for path, want := range map[string]any{
		"runtimes.go.0.kind": "go:1.20", "runtimes.go.0.default": true, "runtimes.go.1.default": false,
		"runtimes.nodejs.1.default": true,
		"limits.sequence_length":    50.0, "limits.triggers_per_minute": 60.0,
	} {
		if got := r.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	for _, c := range [][2]string{{"go:default", "go:1.20"}, {"nodejs:default", "nodejs:20"}} {
		got := must(t, p, "PUT", "_/actions/a?overwrite=true", `{"exec":{"kind":"`+c[0]+`","code":"x"}}`)
		if got.at("exec.kind") != c[1] {
			t.Errorf("%s became %v, want %s", c[0], got.at("exec.kind"), c[1])
		}
	}
}

// Lists are in pages, newest first, and count=true counts.
func TestListsComeInPages(t *testing.T) {
	p := start(t, nil)
	for i := range 35 {
		must(t, p, "PUT", fmt.Sprintf("_/triggers/t%02d", i), `{}`)
	}
	for path, want := range map[string]int{"": 30, "?limit=0": 35, "?limit=10": 10, "?skip=30": 5, "?skip=100": 0} {
		var list []struct{ Updated int64 }
		json.Unmarshal([]byte(must(t, p, "GET", "_/triggers"+path, "").body), &list)
		if len(list) != want {
			t.Errorf("%s: %d entries, want %d", path, len(list), want)
		}
		for i := 1; i < len(list); i++ {
			if list[i].Updated > list[i-1].Updated {
				t.Errorf("%s: not newest first", path)
			}
		}
	}
	if got := must(t, p, "GET", "_/triggers/?count=true", ""); got.at("triggers") != 35.0 {
		t.Errorf("count: %s", got.body)
	}
}

// A name may have spaces and signs; clients escape them.
func TestNamesMayHaveSpaces(t *testing.T) {
	p := start(t, nil)
	name := "my action@1.0 & co"
	must(t, p, "PUT", "_/actions/"+url.PathEscape(name), code("echo", ""))
	if got := must(t, p, "GET", "_/actions/"+url.PathEscape(name)+"?code=false", ""); got.at("name") != name ||
		got.at("exec.code") != nil {
		t.Errorf("%s", got.body)
	}
}
