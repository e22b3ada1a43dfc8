package platform

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Parameters come from the package, the action and the request, the later ones winning.
func TestParametersMergeOutwardIn(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/packages/p",
		`{"parameters":[{"key":"a","value":"p"},{"key":"b","value":"p"},{"key":"c","value":"p"}]}`)
	must(t, p, "PUT", "_/actions/p/a",
		code("mirror", `"parameters":[{"key":"b","value":"a"},{"key":"c","value":"a"},`+
			`{"key":"secret","value":"x","init":true}]`))
	if got := must(t, p, "POST", "_/actions/p/a?blocking=true&result=true",
		`{"c":"r"}`); got.body != `{"a":"p","b":"a","c":"r"}` {
		t.Errorf("%s", got.body)
	}
	if got := must(t, p, "GET", "_/actions/p/a", ""); got.at("parameters.0.value") != "p" ||
		got.at("parameters.1.value") != "a" {
		t.Errorf("%s", got.body)
	}
}

// An action may return an array, which is answered bare, and the next of a sequence gets it. A request is an object.
func TestArraysComeOut(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/actions/a", code("list", ""))
	must(t, p, "PUT", "_/actions/b", code("mirror", `"parameters":[{"key":"b","value":"a"}]`))
	must(t, p, "PUT", "_/actions/s", `{"exec":{"kind":"sequence","components":["/_/a","/_/b"]}}`)
	for _, path := range []string{"a?blocking=true&result=true", "a?blocking=true", "s?blocking=true"} {
		if got := must(t, p, "POST", "_/actions/"+path, `{}`); got.body != `[1,{"x":"y"}]` {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	if got := ask(t, p, p.AuthKey(), "POST", "_/actions/a", `[1]`); got.status != 400 ||
		got.text() != errNotAnObject.text {
		t.Errorf("%d %s", got.status, got.body)
	}
	id := must(t, p, "POST", "_/actions/a?blocking=true", `{}`).header.Get("x-openwhisk-activation-id")
	if got := must(t, p, "GET", fmt.Sprintf("_/activations/%s/result", id), ""); got.at("result.0") != 1.0 ||
		got.at("success") != true {
		t.Errorf("%s", got.body)
	}
}

// A blocking request that takes too long is answered with the id; the activation goes on.
func TestBlockingTurnsIntoAcceptedAfterTheWait(t *testing.T) {
	p := start(t, func(c *Config) { c.BlockingWait = 100 * time.Millisecond })
	must(t, p, "PUT", "_/actions/a", code("sleep", ""))
	for _, path := range []string{
		"?blocking=true", "?blocking=true&result=true", "?blocking=true&timeout=50",
		"?blocking=false",
	} {
		got := must(t, p, "POST", "_/actions/a"+path, `{"ms":300}`)
		id, _ := got.at("activationId").(string)
		if got.status != 202 || got.body != `{"activationId":"`+id+`"}` || got.header.Get("x-openwhisk-activation-id") != id {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		if rec := await(t, p, id); rec["activationId"] != id {
			t.Errorf("%s: %v", path, rec)
		}
	}
}

// An update keeps what it does not name, and counts the version on.
func TestUpdatesKeepWhatTheyDoNotName(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/actions/a",
		code("mirror", `"annotations":[{"key":"one","value":1},{"key":"two","value":2}],`+
			`"parameters":[{"key":"p","value":1}]`))
	got := must(t, p, "PUT", "_/actions/a?overwrite=true",
		`{"annotations":[{"key":"three","value":3}],"delAnnotations":["one"],"limits":{"timeout":1000,"instances":4}}`)
	for path, want := range map[string]any{
		"version": "0.0.2", "exec.main": "mirror", "limits.memory": 128.0,
		"limits.timeout": 1000.0, "limits.instances": 4.0, "parameters.0.key": "p",
	} {
		if got.at(path) != want {
			t.Errorf("%s is %v, want %v", path, got.at(path), want)
		}
	}
	for key, want := range map[string]any{
		"one": nil, "two": 2.0, "three": 3.0, "exec": "disdel:1",
		"provide-api-key": false,
	} {
		if got.noted(key) != want {
			t.Errorf("annotation %s is %v, want %v", key, got.noted(key), want)
		}
	}
	if got := must(t, p, "PUT", "_/actions/a?overwrite=true", `{"version":"2.1"}`); got.at("version") != "2.1.0" {
		t.Errorf("%s", got.body)
	}
}

// Lists of activations: by name, in and out of packages, with a status and no result unless docs are asked for.
func TestActivationsAreListedByName(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/packages/p", `{}`)
	must(t, p, "PUT", "_/actions/p/a", code("app-error", ""))
	must(t, p, "PUT", "_/actions/b", code("mirror", ""))
	ask(t, p, p.AuthKey(), "POST", "_/actions/p/a?blocking=true", `{}`)
	must(t, p, "POST", "_/actions/b?blocking=true", `{}`)
	for name, want := range map[string]float64{"": 2, "a": 0, "p/a": 1, "p/b": 0, "b": 1, "q/a": 0} {
		if got := must(t, p, "GET", "_/activations?count=true&name="+name, ""); got.at("activations") != want {
			t.Errorf("%q: %s, want %v", name, got.body, want)
		}
	}
	got := must(t, p, "GET", "_/activations?name=p/a", "")
	if got.at("0.statusCode") != 1.0 || got.at("0.response") != nil || got.at("0.logs") != nil {
		t.Errorf("%s", got.body)
	}
	if got := must(t, p, "GET", "_/activations?docs=true&limit=1&skip=1",
		""); got.at("0.response.status") != statusApplication || got.at("1") != nil {
		t.Errorf("%s", got.body)
	}
}

// Each component gets what the one before it gave; the records of all of them hang together.
func TestSequencesPassResultsOn(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/packages/p", `{"parameters":[{"key":"pkg","value":1}]}`)
	must(t, p, "PUT", "_/actions/p/a", code("mirror", `"parameters":[{"key":"a","value":1}]`))
	must(t, p, "PUT", "_/actions/b",
		code("mirror", `"parameters":[{"key":"b","value":1},{"key":"a","value":0}],`+
			`"annotations":[{"key":"final","value":true}]`))
	must(t, p, "PUT", "_/actions/inner", `{"exec":{"kind":"sequence","components":["/_/b"]}}`)
	made := must(t, p, "PUT", "_/actions/s",
		`{"exec":{"kind":"sequence","components":["/_/p/a","/guest/inner"]},"parameters":[{"key":"s","value":1}]}`)
	if made.at("exec.components.0") != "/guest/p/a" || made.noted("exec") != "sequence" ||
		made.at("parameters.0.key") != "_actions" {
		t.Errorf("%s", made.body)
	}
	id := must(t, p, "POST", "_/actions/s?blocking=true", `{"r":1}`).at("activationId").(string)
	got := must(t, p, "GET", "_/activations/"+id, "")
	for _, key := range []string{"r", "pkg", "a", "b"} {
		if got.at("response.result."+key) != 1.0 {
			t.Errorf("%s got lost: %s", key, got.body)
		}
	}
	if got.noted("topmost") != true || got.noted("kind") != "sequence" || got.noted("path") != "guest/s" ||
		got.noted("limits") == nil || got.at("cause") != nil {
		t.Errorf("%s", got.body)
	}
	for i, topmost := range []any{nil, false} {
		part := must(t, p, "GET", fmt.Sprintf("_/activations/%v", got.at(fmt.Sprintf("logs.%d", i))), "")
		if part.at("cause") != id || part.noted("topmost") != topmost || part.noted("causedBy") != "sequence" {
			t.Errorf("component %d: %s", i, part.body)
		}
	}
	if got.at("logs.2") != nil {
		t.Errorf("%s", got.body)
	}
}

func TestAFailingComponentEndsItsSequence(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/actions/good", code("mirror", ""))
	must(t, p, "PUT", "_/actions/bad", code("dev-error", ""))
	must(t, p, "PUT", "_/actions/s", `{"exec":{"kind":"sequence","components":["/_/good","/_/bad","/_/good"]}}`)
	got := ask(t, p, p.AuthKey(), "POST", "_/actions/s?blocking=true", `{}`)
	if got.status != 502 || got.at("response.status") != statusDeveloper || got.at("response.result.error") != "broken" {
		t.Errorf("%d %s", got.status, got.body)
	}
	id, _ := got.at("activationId").(string)
	if rec := must(t, p, "GET", "_/activations/"+id, ""); rec.at("logs.1") == nil || rec.at("logs.2") != nil {
		t.Errorf("%s", rec.body)
	}
	must(t, p, "DELETE", "_/actions/bad", "")
	got = ask(t, p, p.AuthKey(), "POST", "_/actions/s?blocking=true&result=true", `{}`)
	if got.status != 502 || got.text() != errSequenceComponent.text {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A binding that is pointed elsewhere can close a circle of sequences that was none when they were made.
func TestACircleOfSequencesEnds(t *testing.T) {
	p := start(t, nil)
	for _, set := range [][2]string{
		{"_/packages/one", `{}`},
		{"_/packages/two", `{}`},
		{"_/packages/b", `{"binding":{"namespace":"_","name":"one"}}`},
		{"_/actions/one/x", code("mirror", "")},
		{"_/actions/s", `{"exec":{"kind":"sequence","components":["/_/b/x"]}}`},
		{"_/actions/two/x", `{"exec":{"kind":"sequence","components":["/_/s"]}}`},
		{"_/packages/b?overwrite=true", `{"binding":{"namespace":"_","name":"two"}}`},
	} {
		must(t, p, "PUT", set[0], set[1])
	}
	if got := ask(t, p, p.AuthKey(), "POST", "_/actions/s?blocking=true&result=true", `{}`); got.status != 502 ||
		got.text() != errSequenceCycle.text {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := ask(t, p, p.AuthKey(), "PUT", "_/actions/other",
		`{"exec":{"kind":"sequence","components":["/_/s"]}}`); got.status != 400 || got.text() != errSequenceCycle.text {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Code is bounded by what it is, not by how it is escaped on the wire.
func TestCodeHasALimitOfItsOwn(t *testing.T) {
	p := start(t, func(c *Config) { c.Limits.Code = 1000 })
	for size, want := range map[int]int{1000: 200, 1001: 413} {
		body := fmt.Sprintf(`{"exec":{"kind":"disdel:1","code":"%s"}}`, strings.Repeat("\\n", size))
		got := ask(t, p, p.AuthKey(), "PUT", "_/actions/a?overwrite=true", body)
		if got.status != want || want == 413 && got.text() != "exec larger than allowed: 1001 > 1000 bytes." {
			t.Errorf("%d bytes: %d %.200s", size, got.status, got.body)
		}
	}
}
