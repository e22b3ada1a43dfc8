package disdel_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlock    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	wholeURL     = regexp.MustCompile(`^[a-z]+:`)
	pagePath     = regexp.MustCompile(`\bdocs/[a-zA-Z0-9/-]+\.md\b`)
)

// namesPages are the kinds of files whose comments and texts may name a page.
var namesPages = map[string]bool{".go": true, ".sh": true, ".py": true, ".yaml": true, ".tmpl": true}

// markdownFiles are README.md, CHANGELOG.md and all pages of documentation, by path.
func markdownFiles(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	read := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.ToSlash(path)] = string(text)
	}
	top, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(top, "clients/python/README.md", "examples/gorgonia/README.md") {
		read(path)
	}
	err = filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			read(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// anchors are the names by which links mean the headings of a page, as GitHub makes them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		name := markdownLink.ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(notInAnchors.ReplaceAllString(name, ""), " ", "-")] = true
	}
	return found
}

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	pages := markdownFiles(t)
	for path, text := range pages {
		for _, m := range markdownLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			if wholeURL.MatchString(m[1]) {
				continue
			}
			target, anchor, _ := strings.Cut(m[1], "#")
			file := path
			if target != "" {
				file = filepath.ToSlash(filepath.Join(filepath.Dir(path), target))
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[1])
			} else if anchor != "" && !anchors(pages[file])[anchor] {
				t.Errorf("%s: %s has no heading #%s", path, file, anchor)
			}
		}
	}
}

// Comments, messages and scripts name pages that are there.
func TestNamedPagesAreThere(t *testing.T) {
	elsewhere := map[string]bool{"docs/conductors.md": true, "docs/webactions.md": true, "docs/IR.md": true} // of others
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || !namesPages[filepath.Ext(path)] && path != "Makefile" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, page := range pagePath.FindAllString(string(text), -1) {
			if _, err := os.Stat(page); err != nil && !elsewhere[page] {
				t.Errorf("%s names %s, which is not there", path, page)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// docs/README.md lists every page, in a line of its own.
func TestTheIndexListsEveryPage(t *testing.T) {
	pages := markdownFiles(t)
	listed := map[string]bool{}
	for line := range strings.SplitSeq(pages["docs/README.md"], "\n") {
		if m := markdownLink.FindStringSubmatch(line); strings.HasPrefix(line, "- ") && m != nil {
			listed[filepath.ToSlash(filepath.Join("docs", m[1]))] = true
		}
	}
	for path := range pages {
		if strings.HasPrefix(path, "docs/") && !strings.HasPrefix(path, "docs/explanation/decisions/") &&
			path != "docs/README.md" && !listed[path] {
			t.Errorf("docs/README.md does not list %s", path)
		}
	}
}

// A page has at most 400 lines, and above 100 lines a list of its parts, unless bench/paper writes it. README.md has at
// most 120 lines, and a dated section of CHANGELOG.md at most 15.
func TestPagesAreShort(t *testing.T) {
	pages := markdownFiles(t)
	for path, text := range pages {
		if !strings.HasPrefix(path, "docs/") || strings.HasPrefix(path, "docs/explanation/decisions/") {
			continue
		}
		lines := strings.Count(text, "\n")
		if lines > 400 {
			t.Errorf("%s has %d lines", path, lines)
		}
		parts := strings.Count(codeBlock.ReplaceAllString(text, ""), "\n## ")
		if lines > 100 && parts > 1 && !strings.Contains(text, "](#") && path != "docs/explanation/reproduction.md" {
			t.Errorf("%s has %d lines and no list of its parts", path, lines)
		}
	}
	if n := strings.Count(pages["README.md"], "\n"); n > 120 {
		t.Errorf("README.md has %d lines", n)
	}
	for section := range strings.SplitSeq(pages["CHANGELOG.md"], "\n## ") {
		name, _, _ := strings.Cut(section, "\n")
		if n := strings.Count(strings.TrimSpace(section), "\n"); n > 15 && name != "Unreleased" {
			t.Errorf("CHANGELOG.md: section %s has %d lines", name, n)
		}
	}
}
