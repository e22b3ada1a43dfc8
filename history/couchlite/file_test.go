package couchlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/disdel/disdel"
)

// earlier writes documents as the versions without a catalog did.
func earlier(t *testing.T, path string, docs map[string]string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("db"))
		if err != nil {
			return err
		}
		for id, body := range docs {
			seq, err := b.NextSequence()
			if err != nil {
				return err
			}
			data, err := json.Marshal(stored{Rev: "1-" + id, Seq: seq, Body: json.RawMessage(body)})
			if err != nil {
				return err
			}
			if err := b.Put([]byte(id), data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// count is how many documents a database has by each way of asking.
func (w wire) counts() [3]int {
	w.t.Helper()
	_, info, _ := w.do("GET", "/db", "")
	_, all, _ := w.do("GET", "/db/_all_docs", "")
	_, found, _ := w.do("POST", "/db/_find", `{"selector":{"kind":"a"},"limit":100000}`)
	n, _ := info["doc_count"].(float64)
	rows, _ := all["rows"].([]any)
	docs, _ := found["docs"].([]any)
	return [3]int{int(n), len(rows), len(docs)}
}

func bodies(from, to int) map[string]string {
	out := map[string]string{}
	for i := from; i < to; i++ {
		out[fmt.Sprintf("doc-%05d", i)] = fmt.Sprintf(`{"kind":"a","n":%d}`, i)
	}
	return out
}

const kindIndex = `{"index":{"fields":["kind","_id"]},"ddoc":"x","name":"kind"}`

func TestFilesOfEarlierVersionsAreReadAndIndexedOnce(t *testing.T) {
	s := open(t)
	w := wire{t, s}
	earlier(t, s.path, bodies(0, 300))
	if got := w.counts(); got != [3]int{300, 300, 300} {
		t.Errorf("before: %v", got)
	}
	if _, got, _ := w.do("POST", "/db/_index", kindIndex); got["result"] != "created" {
		t.Errorf("%v", got)
	}
	if _, got, _ := w.do("POST", "/db/_index", kindIndex); got["result"] != "exists" {
		t.Errorf("%v", got)
	}
	if status, got, _ := w.do("PUT", "/db/doc-00007", `{"_rev":"1-doc-00007","kind":"a","n":-7}`); status != 201 {
		t.Errorf("%v", got)
	}
	if _, got, _ := w.do("GET", "/db/doc-00008", ""); got["n"] != 8.0 || got["_rev"] != "1-doc-00008" {
		t.Errorf("%v", got)
	}
	// an earlier version writes to it again: the catalog is made anew, and loses nothing
	earlier(t, s.path, bodies(400, 450))
	if got := w.counts(); got != [3]int{350, 350, 350} {
		t.Errorf("after the earlier version wrote: %v", got)
	}
	w.do("PUT", "/db/new", `{"kind":"a"}`)
	if got := w.counts(); got != [3]int{351, 351, 351} {
		t.Errorf("after a write: %v", got)
	}
}

// reference answers as the documents themselves say.
func TestTheCatalogSaysWhatTheDocumentsSay(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	w := wire{t, open(t)}
	w.do("PUT", "/db", "")
	revs, want := map[string]string{}, map[string]map[string]any{}
	for i := range 700 {
		if i == 300 {
			w.do("POST", "/db/_index", `{"index":{"fields":["a","b.c",{"_id":"asc"}]},"ddoc":"x","name":"n"}`)
		}
		id := fmt.Sprintf("d%03d", random.IntN(200))
		if rev := revs[id]; rev != "" && random.IntN(3) == 0 {
			if status, got, _ := w.do("DELETE", "/db/"+id+"?rev="+rev, ""); status != 200 {
				t.Fatal(got)
			}
			delete(revs, id)
			delete(want, id)
			continue
		}
		doc := map[string]any{"a": float64(random.IntN(3)), "z": float64(i)}
		if random.IntN(2) == 0 {
			doc["b"] = map[string]any{"c": []any{"x", nil, true}[random.IntN(3)]}
		}
		want[id] = doc
		data, _ := json.Marshal(doc)
		path := "/db/" + id
		if revs[id] != "" {
			path += "?rev=" + revs[id]
		}
		status, got, _ := w.do("PUT", path, string(data))
		if status != 201 {
			t.Fatal(got)
		}
		revs[id] = got["rev"].(string)
	}
	for _, c := range []struct {
		selector string
		ok       func(map[string]any) bool
	}{
		{`{"a":1}`, func(d map[string]any) bool { return d["a"] == 1.0 }},
		{`{"a":{"$eq":1.0}}`, func(d map[string]any) bool { return d["a"] == 1.0 }},
		{`{"a":{"$gt":0}}`, func(d map[string]any) bool { return d["a"].(float64) > 0 }},
		{
			`{"a":{"$in":[0,2]},"z":{"$lt":900}}`,
			func(d map[string]any) bool { return d["a"] != 1.0 && d["z"].(float64) < 900 },
		},
		{`{"b.c":{"$exists":false}}`, func(d map[string]any) bool { return d["b"] == nil }},
		{`{"b.c":null}`, func(d map[string]any) bool { b, ok := d["b"].(map[string]any); return ok && b["c"] == nil }},
		{`{"$or":[{"a":0},{"b.c":"x"}]}`, func(d map[string]any) bool {
			b, _ := d["b"].(map[string]any)
			return d["a"] == 0.0 || b["c"] == "x"
		}},
		{`{"$nor":[{"a":0}]}`, func(d map[string]any) bool { return d["a"] != 0.0 }},
	} {
		for _, order := range []string{`[{"_id":"desc"}]`, `[{"_id":"asc"}]`, `[{"z":"desc"}]`} {
			_, got, _ := w.do("POST", "/db/_find", `{"selector":`+c.selector+`,"limit":1000,"sort":`+order+`}`)
			docs, _ := got["docs"].([]any)
			n := 0
			for _, d := range want {
				if c.ok(d) {
					n++
				}
			}
			if len(docs) != n {
				t.Errorf("%s: %d documents, want %d", c.selector, len(docs), n)
			}
			for i := 1; i < len(docs); i++ {
				a, b := docs[i-1].(map[string]any), docs[i].(map[string]any)
				if order == `[{"_id":"desc"}]` && a["_id"].(string) <= b["_id"].(string) || order == `[{"_id":"asc"}]` &&
					a["_id"].(string) >= b["_id"].(string) ||
					order == `[{"z":"desc"}]` && a["z"].(float64) < b["z"].(float64) {
					t.Fatalf("%s %s: %v before %v", c.selector, order, a, b)
				}
			}
			_, half, _ := w.do("POST", "/db/_find", `{"selector":`+c.selector+`,"limit":7,"skip":5,"sort":`+order+`}`)
			part, _ := half["docs"].([]any)
			for i := range part {
				if fmt.Sprint(part[i]) != fmt.Sprint(docs[5+i]) {
					t.Errorf("%s: a part of the answer is another", c.selector)
				}
			}
		}
	}
	_, info, _ := w.do("GET", "/db", "")
	if info["doc_count"] != float64(len(want)) {
		t.Errorf("%v documents, want %d", info["doc_count"], len(want))
	}
	s := &Server{path: w.s.path, cfg: w.s.cfg, password: w.s.password} // another process
	if got, _, _ := (wire{t, s}).do("GET", "/db/_all_docs", ""); got != 200 {
		t.Error(got)
	}
}

// Deleted documents are forgotten but the newest ones, so that a database of a few documents stays small, however many
// it has had. The others are as they were, for another process, too.
func TestOldDeletedDocumentsAreForgotten(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	w := wire{t, open(t)}
	w.do("PUT", "/db", "")
	revs, ids, first := map[string]string{}, []string(nil), ""
	for i := range 6 * mostDeleted {
		id := fmt.Sprintf("d%05d", random.IntN(100_000))
		status, got, _ := w.do("PUT", "/db/"+id, fmt.Sprintf(`{"n":%d}`, i))
		if status == 409 {
			continue // it is there
		}
		revs[id], ids = got["rev"].(string), append(ids, id)
		if random.IntN(10) == 0 {
			continue
		}
		k := random.IntN(len(ids))
		id = ids[k]
		if status, got, _ := w.do("DELETE", "/db/"+id+"?rev="+revs[id], ""); status != 200 {
			t.Fatal(id, got)
		}
		if first == "" {
			first = id + "?rev=" + revs[id]
		}
		delete(revs, id)
		ids = slices.Delete(ids, k, k+1)
	}
	other := &Server{path: w.s.path, cfg: w.s.cfg, password: w.s.password, noSync: true}
	for _, w := range []wire{w, {t, other}} {
		_, info, _ := w.do("GET", "/db", "")
		gone := info["doc_del_count"].(float64)
		if info["doc_count"] != float64(len(revs)) || gone < fewestDeleted || gone > mostDeleted {
			t.Errorf("%v documents and %v deleted ones, want %d", info["doc_count"], gone, len(revs))
		}
		for id, rev := range revs {
			if _, got, _ := w.do("GET", "/db/"+id, ""); got["_rev"] != rev {
				t.Fatalf("%s: %v, want revision %s", id, got, rev)
			}
		}
		_, changes, _ := w.do("GET", "/db/_changes", "")
		if n := len(changes["results"].([]any)); n != len(revs)+int(gone) {
			t.Errorf("%d changes", n)
		}
	}
	id, _, _ := strings.Cut(first, "?")
	if _, got, _ := w.do("GET", "/db/"+id, ""); got["reason"] != "missing" {
		t.Errorf("the first deleted document: %v", got)
	}
	if status, got, _ := w.do("PUT", "/db/"+first, `{}`); status != 409 {
		t.Errorf("its old revision: %d %v", status, got)
	}
	if status, got, _ := w.do("PUT", "/db/"+id, `{}`); status != 201 {
		t.Errorf("made again: %d %v", status, got)
	}
}

// answers is all that the server says of the file's documents.
func answers(s *Server) (text string, refusal string) {
	var out strings.Builder
	ask := func(method, path, body string) bool {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.SetBasicAuth(user, s.password)
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, r)
		if rec.Code >= 400 {
			refusal = fmt.Sprintf("%d %s", rec.Code, rec.Body)
			return false
		}
		fmt.Fprintln(&out, rec.Body)
		return true
	}
	ok := ask("GET", "/_all_dbs", "") && ask("GET", "/db", "") && ask("GET", "/db/_all_docs?include_docs=true", "") &&
		ask("POST", "/db/_find", `{"selector":{"kind":"a"},"limit":10,"sort":[{"_id":"desc"}]}`)
	for i := 0; ok && i < 40; i++ {
		ok = ask("GET", fmt.Sprintf("/db/doc-%05d", i), "")
	}
	return out.String(), refusal
}

// Whatever becomes of the file, its documents are what was written, or the file is named.
func TestDamageIsNamedOrHitsNothing(t *testing.T) {
	s := open(t)
	w := wire{t, s}
	w.do("PUT", "/db", "")
	w.do("POST", "/db/_index", kindIndex)
	for i := range 40 {
		id := fmt.Sprintf("/db/doc-%05d", i)
		_, first, _ := w.do("PUT", id, `{"kind":"a","state":"running"}`)
		w.do("PUT", id, fmt.Sprintf(`{"kind":"a","_rev":%q,"state":"done","text":%q}`, first["rev"],
			strings.Repeat("x", 50*i)))
	}
	whole, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	want, refusal := answers(s)
	if refusal != "" {
		t.Fatal(refusal)
	}
	random := rand.New(rand.NewPCG(5, 6))
	named := 0
	for n := range 200 {
		damaged := bytes.Clone(whole)
		what := ""
		switch n % 4 {
		case 0, 1:
			bit := random.IntN(8 * len(damaged))
			damaged[bit/8] ^= 1 << (bit % 8)
			what = fmt.Sprintf("bit %d", bit)
		case 2:
			page := random.IntN(len(damaged) / 4096)
			for i := range 4096 {
				damaged[4096*page+i] = byte(random.Uint32())
			}
			what = fmt.Sprintf("page %d", page)
		case 3:
			damaged = damaged[:random.IntN(len(damaged))]
			what = fmt.Sprintf("cut to %d", len(damaged))
		}
		path := filepath.Join(t.TempDir(), "h.db")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Open(path, Config{})
		if err != nil {
			t.Fatal(err)
		}
		d.password = s.password
		got, refusal := answers(d)
		switch {
		case refusal == "" && got != want:
			t.Errorf("%s: other documents", what)
		case refusal != "" && (!strings.HasPrefix(refusal, "552") || !strings.Contains(refusal, path)):
			t.Errorf("%s: %s", what, refusal)
		case refusal != "":
			named++
		}
	}
	t.Logf("%d of 200 were named", named)
}

// What the file leads to, not what is in it: every page of the tree is replaced by every other one's number.
func TestOneWordOfAPageIsNotBelieved(t *testing.T) {
	s := open(t)
	w := wire{t, s}
	w.do("PUT", "/db", "")
	w.do("POST", "/db/_index", kindIndex)
	for i := range 40 {
		w.do("PUT", fmt.Sprintf("/db/doc-%05d", i), fmt.Sprintf(`{"kind":"a","text":%q}`, strings.Repeat("y", 30*i)))
	}
	whole, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := answers(s)
	for at := 8192; at+8 <= len(whole); at += 8 {
		v := whole[at : at+8]
		if v[0] == 0 || !bytes.Equal(v[1:], make([]byte, 7)) || int(v[0]) >= len(whole)/4096 { // might be a page's number
			continue
		}
		for other := byte(rand.IntN(4)); int(other) < len(whole)/4096; other += 4 { // a quarter of the pages
			damaged := bytes.Clone(whole)
			damaged[at] = other
			if err := os.WriteFile(s.path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			s.checked.Store(nil)
			if got, refusal := answers(s); refusal == "" && got != want {
				t.Errorf("page %d of %d at %d: other documents", other, v[0], at)
			} else if refusal != "" && !strings.HasPrefix(refusal, "552") {
				t.Errorf("page %d of %d at %d: %s", other, v[0], at, refusal)
			}
		}
	}
}

// A repair keeps every document that the damage did not hit, and the damaged file.
func TestARepairKeepsWhatCanBeRead(t *testing.T) {
	s := open(t)
	w := wire{t, s}
	w.do("PUT", "/db", "")
	revs := map[int]any{}
	for i := range 60 {
		_, got, _ := w.do("PUT", fmt.Sprintf("/db/doc-%05d", i),
			fmt.Sprintf(`{"kind":"a","n":%d,"text":%q}`, i, strings.Repeat("z", 100*i)))
		revs[i] = got["rev"]
	}
	w.do("DELETE", fmt.Sprintf("/db/doc-00003?rev=%v", revs[3]), "")
	whole, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for what, damage := range map[string]func([]byte) []byte{
		"both heads": func(b []byte) []byte { clear(b[:8192]); return b },
		"cut":        func(b []byte) []byte { return b[:len(b)/2] },
		"catalog":    func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"version"`), []byte(`"varsion"`)) },
		"nothing":    func(b []byte) []byte { return b },
	} {
		if err := os.WriteFile(s.path, damage(bytes.Clone(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		s.checked.Store(nil)
		got, err := Repair(s.path, "db")
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if status, _, _ := w.do("GET", "/db/doc-00003", ""); status != 404 {
			t.Errorf("%s: what was deleted is there", what)
		}
		if n := w.counts(); n != [3]int{got.Kept, got.Kept, got.Kept} || what != "cut" && got.Kept != 59 || got.Kept == 0 {
			t.Errorf("%s: %+v, %v", what, got, n)
		}
		if _, err := os.Stat(got.Aside); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if status, answer, _ := w.do("PUT", "/db/more", `{"kind":"b"}`); status != 201 {
			t.Errorf("%s: %v", what, answer)
		}
	}
}

// A folder in the place of the file is named, with a next step that works.
func TestAFolderInPlaceOfTheFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, Config{})
	if err == nil || !strings.Contains(err.Error(), path+" is a folder") {
		t.Fatalf("it says %v", err)
	}
	_, command, _ := strings.Cut(disdel.AsError(err).Hint, ": mv ")
	from, to, _ := strings.Cut(command, " ")
	if err := os.Rename(from, to); err != nil {
		t.Error(err)
	}
	if _, err := Open(path, Config{}); err != nil {
		t.Error(err)
	}
}
