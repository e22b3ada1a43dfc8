package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/disdel/disdel"
)

// Whatever the body of a request is, it is an entity that can be written, or it is refused in OpenWhisk's words.
func FuzzBodies(f *testing.F) {
	for _, text := range []string{
		`{"exec": {"kind": "python:3", "code": "x", "main": "y"}, "limits": {"timeout": 1, "memory": 128}}`,
		`{"exec": {"kind": "sequence", "components": ["/_/a", "b/c"]}, "annotations": [{"key": "a", "value": [1]}]}`,
		`{"trigger": "/_/t", "action": {"path": "_", "name": "a"}, "status": "active"}`,
		`{"binding": {"namespace": "_", "name": "p"}, "parameters": [{"key": "k", "value": null, "init": true}]}`,
		`{"version": "1.2.3", "publish": true}`, `{"limits": {"memory": 1e400}}`, `[[[[`, "\xff", ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []any{&actionPut{}, &packagePut{}, &rulePut{}, &headerPut{}, &limitsPut{}} {
			r := httptest.NewRequest("PUT", "/", bytes.NewReader(data))
			err := readEntity(r, disdel.MB, "exec", v)
			var reply apiError
			if err != nil && !errors.As(err, &reply) {
				t.Fatalf("%T: %v", v, err)
			}
			if err != nil {
				continue
			}
			if _, err := json.Marshal(v); err != nil {
				t.Fatalf("%T: %v", v, err)
			}
		}
	})
}

// Whatever is sent to a web action, its arguments are JSON, or the request is refused.
func FuzzWebCalls(f *testing.F) {
	f.Add([]byte(`{"a": 1}`), "application/json", "a=1&b=%20", false)
	f.Add([]byte("a=1&a=%zz"), "application/x-www-form-urlencoded", "", false)
	f.Add([]byte("\xff\x00"), "text/plain; charset=x", "%", true)
	f.Add([]byte(nil), "", "__ow_method=x", false)
	f.Fuzz(func(t *testing.T, data []byte, kind, query string, raw bool) {
		r := httptest.NewRequest("POST", "/", bytes.NewReader(data))
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", kind)
		c := webCall{Request: r, target: &webTarget{}, raw: raw}
		args, err := c.arguments(disdel.MB)
		if err == nil && !json.Valid(args) {
			t.Fatalf("%s", args)
		}
		path, err := parsePath(query, "ns")
		if err == nil && path.Name == "" {
			t.Fatalf("%q is the path %+v", query, path)
		}
	})
}
