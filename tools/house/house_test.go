package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, root string, files map[string]string) (names []string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// A planted bad sentence breaks a limit: in a comment, in help and in a page.
func TestAPlantedSentenceIsFound(t *testing.T) {
	long := "This is " + strings.Repeat("very ", 30) + "long."
	for name, c := range map[string]struct{ file, text, broken string }{
		"a long comment":      {"a.go", "package a\n\n// X is a sum. " + long + "\nvar X = 1\n", "comments_long_pct"},
		"a banned comment":    {"a.go", "package a\n\n// X waits for who waits.\nvar X = 1\n", "comments_banned"},
		"long help":           {"a.go", "package a\n\nvar x = flag{Usage: \"" + long + "\"}\n", "help_long_pct"},
		"banned help":         {"a.go", "package a\n\nvar x = flag{Usage: \"it \" + \"is who waits\"}\n", "help_banned"},
		"a long page":         {"README.md", "# A page\n\nShort. " + long + "\n", "docs_long_pct"},
		"a banned word":       {"README.md", "A job that is\ntaken up again.\n", "docs_banned"},
		"nothing":             {"README.md", "A job that is resumed. `who waits`\n\n```sh\nwho waits\n```\n", ""},
		"a table and heading": {"README.md", "# Who waits\n\n| who waits |\n|---|\n", ""},
		"a test":              {"a_test.go", "package a\n\n// X waits for who waits.\nvar X = 1\n", ""},
	} {
		root := t.TempDir()
		files := write(t, root, map[string]string{c.file: c.text})
		write(t, root, map[string]string{
			"banned.txt": "# a comment\nwho waits\ntaken up again\n",
			"limits.txt": "comments_long_pct < 0\ncomments_banned < 0\nhelp_long_pct < 0\nhelp_banned < 0\n" +
				"docs_long_pct < 0\ndocs_banned < 0\n",
		})
		all, err := allSentences(root, files)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		banned, err := readBanned(filepath.Join(root, "banned.txt"))
		if err != nil {
			t.Fatal(err)
		}
		err = keepLimits(filepath.Join(root, "limits.txt"), measure(all, banned))
		if (err != nil) != (c.broken != "") || err != nil && !strings.Contains(err.Error(), "\n  "+c.broken+" is") {
			t.Errorf("%s: %v, want %q", name, err, c.broken)
		}
	}
}

func TestReadingEase(t *testing.T) {
	for w, want := range map[string]int{"a": 1, "worker": 2, "gone": 1, "table": 2, "estimate": 3, "queue": 1} {
		if got := syllablesOf(w); got != want {
			t.Errorf("%s has %d syllables, want %d", w, got, want)
		}
	}
	page := split(docs, "a.md", 0, "The cat sat on the mat. It sat.")
	if got := ease(page); got < 110 || got > 120 { // 206.835 - 1.015 * 4 - 84.6
		t.Errorf("%v", got)
	}
}
