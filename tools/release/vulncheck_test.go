package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// weakness is an entry of a database of weaknesses (https://go.dev/doc/security/vuln/database) that we made up.
const weakness = `{"id": "GO-2026-0001", "modified": "2026-01-01T00:00:00Z", "summary": "made up",
	"database_specific": {"url": "https://example.org"},
	"affected": [{"package": {"name": "golang.org/x/sys", "ecosystem": "Go"},
		"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": %q}]}],
		"ecosystem_specific": {"imports": [{"path": "golang.org/x/sys/unix"}]}}]}`

// make vulncheck reads a copy of the database without a network, and fails only for a weakness that is not corrected in
// the version that we use.
func TestVulncheckFindsAReachedWeakness(t *testing.T) {
	for _, c := range []struct {
		fixed string
		found bool
	}{{"999.0.0", true}, {"0.1.0", false}} {
		copied := database(t, c.fixed)
		check := exec.Command("make", "-C", "../..", "vulncheck", "DB=file://"+copied, "PACKAGES=./internal/files")
		out, err := check.CombinedOutput()
		if found := bytes.Contains(out, []byte("GO-2026-0001")); found != c.found || (err != nil) != c.found {
			t.Errorf("corrected in %s: %v\n%s", c.fixed, err, out)
		}
	}
}

// database writes a database with one weakness, and returns its folder.
func database(t *testing.T, fixed string) string {
	t.Helper()
	dir := t.TempDir()
	const entry = `{"id": "GO-2026-0001", "modified": "2026-01-01T00:00:00Z"`
	for name, text := range map[string]string{
		"index/db.json":        `{"modified": "2026-01-01T00:00:00Z"}`,
		"index/vulns.json":     "[" + entry + "}]",
		"index/modules.json":   `[{"path": "golang.org/x/sys", "vulns": [` + entry + fmt.Sprintf(`, "fixed": %q}]}]`, fixed),
		"ID/GO-2026-0001.json": fmt.Sprintf(weakness, fixed),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
