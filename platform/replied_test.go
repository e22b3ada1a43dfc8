package platform

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// replied is what came back.
type replied struct {
	status int
	header http.Header
	body   string
}

// text is the error a reply carries.
func (r *replied) text() string {
	var e struct{ Error, Code string }
	json.Unmarshal([]byte(r.body), &e)
	return e.Error
}

// at is the value under a path of keys and indices: "a.0.b".
func (r *replied) at(path string) any {
	var v any
	json.Unmarshal([]byte(r.body), &v)
	for key := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// noted is an annotation's value.
func (r *replied) noted(key string) any {
	var v map[string]any
	json.Unmarshal([]byte(r.body), &v)
	return annotation(v, key)
}

// ask makes a request with a key; path is below /api/v1/namespaces unless it starts with a slash.
func ask(t *testing.T, p *Platform, key, method, path, body string) *replied {
	t.Helper()
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/namespaces/" + path
	}
	req, err := http.NewRequest(method, p.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if name, secret, ok := strings.Cut(key, ":"); ok {
		req.SetBasicAuth(name, secret)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return replyTo(t, req)
}

// replyTo sends a request.
func replyTo(t *testing.T, req *http.Request) *replied {
	t.Helper()
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
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

// must is ask as the platform's own namespace, which has to succeed.
func must(t *testing.T, p *Platform, method, path, body string) *replied {
	t.Helper()
	r := ask(t, p, p.AuthKey(), method, path, body)
	if r.status >= 300 {
		t.Fatalf("%s %s %s: %d %s", method, path, body, r.status, r.body)
	}
	return r
}

// code is the body of a PUT of an action whose container behaves as main, with more fields.
func code(main, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"exec":{"kind":%q,"code":"x","main":%q},"limits":{"memory":128}%s}`, disdel.RuntimeKind, main,
		more)
}

func withNamespaces(c *Config) {
	c.Namespaces = []Namespace{
		{Name: "alice", Key: aliceKey},
		{Name: "bob", Key: bobKey, InvocationsPerMinute: 3, ConcurrentInvocations: 2, FiresPerMinute: 1},
	}
}
