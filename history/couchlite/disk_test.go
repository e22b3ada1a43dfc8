package couchlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/test/faults"
)

// Whatever call to the disk fails, the history keeps every document that it acknowledged, and takes more later. A
// document that it did not acknowledge is there whole or not at all.
func TestAFailedCallToTheDiskLosesNoDocument(t *testing.T) {
	const documents = 6
	text := func(id string) string { return strings.Repeat("text of "+id+" ", 500) }
	put := func(w wire, id string) int {
		status, _, _ := w.do("PUT", "/db/"+id, fmt.Sprintf(`{"text":%q}`, text(id)))
		return status
	}
	faults.FailEveryDiskCall(t, func(dir string, done func(string), failed func(error)) {
		s, err := Open(filepath.Join(dir, "h.db"), Config{})
		if err != nil {
			failed(err)
			return
		}
		w := wire{t, s}
		w.do("PUT", "/db", "")
		for i := range documents {
			id := fmt.Sprintf("d%d", i)
			switch status := put(w, id); {
			case status == 201:
				done(id)
			case status < 400:
				t.Errorf("%s: status %d", id, status)
			default:
				failed(errors.New("status"))
			}
		}
		if err := s.Close(); err != nil {
			failed(err)
		}
	}, func(t *testing.T, dir string, done []string) {
		s, err := Open(filepath.Join(dir, "h.db"), Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		w := wire{t, s}
		w.do("PUT", "/db", "")
		there := map[string]bool{}
		for i := range documents {
			id := fmt.Sprintf("d%d", i)
			status, body, _ := w.do("GET", "/db/"+id, "")
			if there[id] = status == 200; there[id] && body["text"] != text(id) || !there[id] && status != 404 {
				t.Errorf("%s: status %d, %.100v", id, status, body)
			}
		}
		for _, id := range done {
			if !there[id] {
				t.Errorf("%s was acknowledged, and is gone", id)
			}
		}
		if status := put(w, "later"); status != 201 {
			t.Errorf("a later document: status %d", status)
		}
	})
}
