package couchlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type wire struct {
	t *testing.T
	s *Server
}

func open(t testing.TB) *Server {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "x", "h.db"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.noSync = true
	return s
}

// do makes a request and returns status, body as a map, and headers.
func (w wire) do(method, path, body string) (int, map[string]any, http.Header) {
	w.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.SetBasicAuth(user, w.s.password)
	rec := httptest.NewRecorder()
	w.s.Handler().ServeHTTP(rec, r)
	out := map[string]any{}
	json.Unmarshal(rec.Body.Bytes(), &out) //nolint:errcheck // lists have no fields
	return rec.Code, out, rec.Header()
}

// The codes and words of CouchDB's API reference.
func TestAnswersAreCouchDBs(t *testing.T) {
	w := wire{t, open(t)}
	rev := ""
	for _, c := range []struct {
		method, path, body string
		status             int
		field              string
		want               any
	}{
		{"GET", "/", "", 200, "couchdb", "Welcome"},
		{"GET", "/_up", "", 200, "status", "ok"},
		{"GET", "/db", "", 404, "error", "not_found"},
		{"PUT", "/db", "", 201, "ok", true},
		{"PUT", "/db", "", 412, "error", "file_exists"},
		{"PUT", "/Db", "", 400, "error", "illegal_database_name"},
		{"GET", "/db/a", "", 404, "reason", "missing"},
		{"PUT", "/db/a", `{"n":1}`, 201, "id", "a"},
		{"PUT", "/db/a", `{"n":2}`, 409, "error", "conflict"},
		{"PUT", "/db/b", `{"_rev":"1-abc","n":2}`, 409, "error", "conflict"},
		{"PUT", "/db/c", `[1]`, 400, "error", "bad_request"},
		{"PUT", "/db/_c", `{}`, 400, "error", "bad_request"},
		{"GET", "/db/a", "", 200, "n", 1.0},
		{"POST", "/db", `{"_id":"z","n":26}`, 201, "id", "z"},
		{"GET", "/db", "", 200, "doc_count", 2.0},
		{"GET", "/db/_all_docs", "", 200, "total_rows", 2.0},
		{"POST", "/db/_all_docs?include_docs=true", `{"keys":["a"]}`, 200, "total_rows", 1.0},
		{"POST", "/db/_find", `{"selector":{"n":{"$gt":5}}}`, 200, "bookmark", "1"},
		{"POST", "/db/_find", `{"selector":{"n":{"$gt":5}},"fields":["_id","_rev"]}`, 200, "bookmark", "1"},
		{"POST", "/db/_find", `{"selector":{"$where":"1"}}`, 400, "error", "invalid_operator"},
		{"POST", "/db/_find", `{}`, 400, "error", "missing_required_key"},
		{"DELETE", "/db/a?rev=1-no", "", 409, "error", "conflict"},
		{"DELETE", "/db/a?rev=REV", "", 200, "ok", true},
		{"GET", "/db/a", "", 404, "reason", "deleted"},
		{"PUT", "/db/a", `{"n":3}`, 201, "id", "a"}, // anew after a delete
		{"GET", "/db/_changes", "", 200, "pending", 0.0},
		{"GET", "/db/a/attachment", "", 405, "error", "method_not_allowed"},
		{"DELETE", "/db", "", 200, "ok", true},
	} {
		status, got, header := w.do(c.method, strings.Replace(c.path, "REV", rev, 1), c.body)
		if status != c.status || got[c.field] != c.want {
			t.Errorf("%s %s %s: %d %v, want %d with %s %v", c.method, c.path, c.body, status, got, c.status, c.field, c.want)
		}
		if r, _ := got["rev"].(string); r != "" && got["id"] == "a" {
			rev = r
			if header.Get("ETag") != `"`+r+`"` {
				t.Errorf("%s %s: ETag %s for revision %s", c.method, c.path, header.Get("ETag"), r)
			}
		}
	}
}

func TestRevisionsCountUp(t *testing.T) {
	w := wire{t, open(t)}
	w.do("PUT", "/db", "")
	_, first, _ := w.do("PUT", "/db/a", `{"n":1}`)
	_, second, _ := w.do("PUT", "/db/a", fmt.Sprintf(`{"n":2,"_rev":%q}`, first["rev"]))
	if a, b := fmt.Sprint(first["rev"]), fmt.Sprint(second["rev"]); !strings.HasPrefix(a, "1-") ||
		!strings.HasPrefix(b, "2-") {
		t.Errorf("revisions %s and %s", a, b)
	}
}

func TestOnlyThePasswordOpens(t *testing.T) {
	s := open(t)
	for _, password := range []string{"", "wrong"} {
		r := httptest.NewRequest("GET", "/", nil)
		if password != "" {
			r.SetBasicAuth(user, password)
		}
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, r)
		if rec.Code != 401 {
			t.Errorf("password %q: %d", password, rec.Code)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	w := wire{t, open(t)}
	w.s.cfg.MaxBody = 100
	w.do("PUT", "/db", "")
	if status, got, _ := w.do("PUT", "/db/a", `{"x":"`+strings.Repeat("x", 200)+`"}`); status != 413 {
		t.Errorf("%d %v", status, got)
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(`{"selector":{"a.b":{"$gt":1,"$in":[1]},"$or":[{"c":null}]},"sort":[{"a":"desc"}],"limit":-1,"skip":-3}`))
	s := open(f)
	for _, body := range [][2]string{{"/db", ""}, {"/db/a", `{"a":{"b":2},"c":[1,"x",true,null]}`}} {
		r := httptest.NewRequest("PUT", body[0], strings.NewReader(body[1]))
		r.SetBasicAuth(user, s.password)
		s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/db/_find", "/db/_all_docs", "/db", "/db/_bulk_docs"} {
			r := httptest.NewRequest("POST", path, bytes.NewReader(body))
			r.SetBasicAuth(user, s.password)
			rec := httptest.NewRecorder()
			s.Handler().ServeHTTP(rec, r)
			if rec.Code >= 500 {
				t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
			}
		}
	})
}
