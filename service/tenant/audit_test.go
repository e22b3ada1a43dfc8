package tenant

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// auditLines reads every line of a log, and its files.
func auditLines(t *testing.T, a *Audit) (lines []AuditLine, names []string) {
	t.Helper()
	names, err := filepath.Glob(a.path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for in := bufio.NewScanner(f); in.Scan(); {
			var one AuditLine
			if err := json.Unmarshal(in.Bytes(), &one); err != nil {
				t.Fatalf("%s: %q: %v", name, in.Text(), err)
			}
			lines = append(lines, one)
		}
		f.Close()
		// Files may be longer than the size: while one writer rotates, the others append to the file that there is.
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	return lines, names
}

// Several processes write one log at the same time, each with an Audit of its own. No line is lost or mixed with
// another while there is room; after that the oldest file is dropped.
func TestTheAuditLogIsRotatedBySize(t *testing.T) {
	home := t.TempDir()
	const writers, each = 4, 100
	var all sync.WaitGroup
	write := func() {
		for w := range writers {
			a := NewAudit(home)
			a.maximum = 16 << 10
			all.Go(func() {
				for n := range each {
					if err := a.Write(AuditLine{Event: AuditChange, Tenant: "ann", What: fmt.Sprintf("%d of %d", n, w)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	a := NewAudit(home)
	a.maximum = 16 << 10
	write()
	lines, names := auditLines(t, a)
	seen := map[string]bool{}
	for _, one := range lines {
		seen[one.What] = true
	}
	if len(seen) != writers*each || len(names) < 2 {
		t.Errorf("%d different lines in %v", len(seen), names)
	}
	for range 3 {
		write()
	}
	if _, names := auditLines(t, a); len(names) > keptAudits+1 {
		t.Errorf("%d files: %v", len(names), names)
	}
}

// Read gives the chosen lines of all files, the newest first, and no line of another tenant.
func TestTheAuditLogIsReadBackwards(t *testing.T) {
	a := NewAudit(t.TempDir())
	a.maximum = 70 << 10 // two blocks, and two files
	for i := range 1200 {
		line := AuditLine{Event: AuditChange, Tenant: []string{"ann", "bob", ""}[i%3], Path: fmt.Sprint("/p/", i)}
		if err := a.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	read := func(q AuditQuery) (paths []string) {
		t.Helper()
		list, err := a.Read(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			paths = append(paths, l.Path)
			if q.Tenant != nil && l.Tenant != *q.Tenant {
				t.Errorf("%+v is a line of another tenant", l)
			}
		}
		return paths
	}
	if _, files := auditLines(t, a); len(files) < 2 {
		t.Fatalf("the log has %q", files)
	}
	if got := read(AuditQuery{}); len(got) != 1200 || got[0] != "/p/1199" || got[1199] != "/p/0" {
		t.Errorf("%d lines", len(got))
	}
	if got := read(AuditQuery{Limit: 2, Tenant: new("bob")}); !slices.Equal(got, []string{"/p/1198", "/p/1195"}) {
		t.Errorf("the newest of bob: %q", got)
	}
	if got := read(AuditQuery{Words: "ANN /p/1197"}); !slices.Equal(got, []string{"/p/1197"}) {
		t.Errorf("by words: %q", got)
	}
	if got := read(AuditQuery{Event: AuditToken}); len(got) != 0 {
		t.Errorf("another event: %q", got)
	}
}
