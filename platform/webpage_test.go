package platform

import (
	"encoding/base64"
	"strings"
	"testing"
)

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
	mismatch, invalid := errWebMismatch.text, "Response is not valid 'message/http'."
	for _, c := range []struct {
		form, result string
		status       int
		text         string
	}{
		{"http", `{"headers":{"content-type":"text/html"},"body":{"a":1}}`, 400, mismatch},
		{"http", `{"headers":{"content-type":"image/png"},"body":"no base64!"}`, 400, mismatch},
		{"http", `{"headers":{"content-type":"xyzbar"},"body":"hello"}`, 400, errWebContentType.text},
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
		{"text", `{"a":"b"}`, 404, errWebNoProperty.text},
		{"json", `{"error":"bad response type"}`, 400, "Response is not valid 'application/json'."},
	} {
		got := visit(t, p, result("guest/default/mirror."+c.form, c.result))
		if got.status != c.status || got.text() != c.text || got.at("code") == nil {
			t.Errorf(".%s %s: %d %s, want %d %s", c.form, c.result, got.status, got.body, c.status, c.text)
		}
	}
	for _, form := range []string{"json", "text", "http"} {
		got := visit(t, p, asked{path: "guest/demo/broken." + form})
		if got.status != 400 || got.text() != errWebProcessing.text {
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
		if got.status != want || want == 406 && got.text() != errNotAcceptable("text/html; charset=UTF-8").text {
			t.Errorf("%q: %d %s", accept, got.status, got.body)
		}
	}
}
