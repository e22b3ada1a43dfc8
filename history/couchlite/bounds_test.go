package couchlite

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel/internal/boltcheck"
)

func packed(text string) *bytes.Buffer {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write([]byte(text)) //nolint:errcheck // a buffer takes all
	z.Close()
	return &out
}

// A small request does not become a large one.
func TestRequestsAreBounded(t *testing.T) {
	s := open(t)
	w := wire{t, s}
	w.do("PUT", "/db", "")
	for what, c := range map[string]struct {
		path, body string
		status     int
	}{
		"a record": {"/db/_bulk_docs", `{"docs":[{"_id":"a","text":"` +
			strings.Repeat("word of a log ", 20000) + `"}]}`, 201},
		"many documents":         {"/db/_bulk_docs", `{"docs":[` + strings.Repeat("{},", maxBulk) + `{}]}`, 413},
		"very many documents":    {"/db/_bulk_docs", `{"docs":[` + strings.Repeat("{},", 2_000_000) + `{}]}`, 413},
		"one of many numbers":    {"/db", `{"a":[` + strings.Repeat("0,", 10_000_000) + `0]}`, 413},
		"one of many spaces":     {"/db", `{"a":` + strings.Repeat(" ", 30<<20) + `0}`, 413},
		"no gzip":                {"/db", "", 400},
		"deeper than one can go": {"/db", strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), 400},
	} {
		body := packed(c.body)
		if c.body == "" {
			body = bytes.NewBufferString("no gzip")
		}
		r := httptest.NewRequest("POST", c.path, body)
		r.Header.Set("Content-Encoding", "gzip")
		r.SetBasicAuth(user, s.password)
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, r)
		if rec.Code != c.status {
			t.Errorf("%s: %d %.200s", what, rec.Code, rec.Body)
		}
	}
}

// Wherever the disk's room ends, a write is made or it is not.
func TestAFullDiskLeavesWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("a disk of its own takes the right to mount one: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH) //nolint:errcheck // the test is over
	refused, made := 0, 0
	for pages := range 24 {
		path := filepath.Join(dir, fmt.Sprintf("h%d.db", pages))
		s, err := Open(path, Config{})
		if err != nil {
			t.Fatal(err)
		}
		w := wire{t, s}
		if pages%2 == 0 { // else even the file is to be made on the full disk
			w.do("PUT", "/db", "")
			w.do("PUT", "/db/before", `{"n":1}`)
		}
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		ballast := filepath.Join(dir, "ballast")
		if n := int(st.Bavail) - pages; n > 0 {
			os.WriteFile(ballast, make([]byte, n*int(st.Bsize)), 0o600) //nolint:errcheck // as much as there is room for
		}
		w.do("PUT", "/db", "")
		status, got, _ := w.do("PUT", "/db/after", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 20000)))
		os.Remove(ballast)
		if _, err := os.Stat(path); err == nil {
			if err := boltcheck.Check(path, 0); err != nil {
				t.Errorf("%d pages: %v", pages, err)
			}
		}
		switch there, _, _ := w.do("GET", "/db/after", ""); {
		case status == 201 && there == 200:
			made++
		case (status == StatusNoSpace || status == 404) && there == 404:
			refused++
			if reason := fmt.Sprint(got["reason"]); status == StatusNoSpace && !strings.Contains(reason, path) {
				t.Errorf("%d pages: %s", pages, reason)
			}
		default:
			t.Errorf("%d pages: %d %v, and then %d", pages, status, got, there)
		}
		if there, _, _ := w.do("GET", "/db/before", ""); pages%2 == 0 && there != 200 {
			t.Errorf("%d pages: what was there is gone: %d", pages, there)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*-*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		os.Remove(path)
	}
	if made == 0 || refused == 0 {
		t.Errorf("%d made, %d refused: the test does not look", made, refused)
	}
}
