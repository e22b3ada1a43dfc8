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
// most 120 lines, a dated section of CHANGELOG.md at most 15, and the glossary at most 60 rows.
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
	if n := strings.Count(pages["docs/reference/glossary.md"], "\n| "); n > 61 { // with the head
		t.Errorf("the glossary has %d rows", n-1)
	}
	for section := range strings.SplitSeq(pages["CHANGELOG.md"], "\n## ") {
		name, _, _ := strings.Cut(section, "\n")
		if n := strings.Count(strings.TrimSpace(section), "\n"); n > 15 && name != "Unreleased" {
			t.Errorf("CHANGELOG.md: section %s has %d lines", name, n)
		}
	}
}

// docs/README.md answers the questions of newcomers by a link, and README.md links to it: two clicks at most. Whether
// the links lead somewhere is TestLinksOfPagesLeadSomewhere.
func TestQuestionsOfNewcomersHaveAnAnswer(t *testing.T) {
	pages := markdownFiles(t)
	if !strings.Contains(pages["README.md"], "](docs/README.md)") {
		t.Error("README.md does not link to docs/README.md")
	}
	_, questions, _ := strings.Cut(pages["docs/README.md"], "\n## Questions of newcomers\n")
	answered := 0
	for line := range strings.Lines(questions) {
		question, answer, asked := strings.Cut(line, "? ")
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		if !asked || !markdownLink.MatchString(answer) {
			t.Errorf("docs/README.md: %q has no answer", question)
		}
		answered++
	}
	if answered < 20 {
		t.Errorf("docs/README.md answers %d questions", answered)
	}
}

// The pages that describe the packages name files and folders that are there.
func TestFilesThatPagesNameAreThere(t *testing.T) {
	named := regexp.MustCompile("`(\\.?/?(?:" + topFolders(t) + ")/[A-Za-z0-9_./*-]*)`")
	for _, page := range []string{"CONTRIBUTING.md", "docs/explanation/packages.md", "docs/explanation/architecture.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "NAME") {
				continue // a file to come
			}
			if found, err := filepath.Glob(filepath.FromSlash(m[1])); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
}

// topFolders are the names of the folders at the root, as an alternative of a regular expression.
func topFolders(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" {
			names = append(names, regexp.QuoteMeta(e.Name()))
		}
	}
	return strings.Join(names, "|")
}

var (
	commandHead   = regexp.MustCompile("(?m)^##+ (disdel[a-z -]*?)(?: `.*)?$")
	flagRow       = regexp.MustCompile("(?m)^\\| (`-[^|]*) \\|")
	commandBlock  = regexp.MustCompile("(?ms)^ *```(?:sh|console)\n(.*?)^ *```|`(disdel [^`]*)`")
	commandOfPage = regexp.MustCompile(`(?:^|[ /("])disdel ([^|;)>&"]*)`)
	quotedOrNoted = regexp.MustCompile(`'[^']*'|(?m:(^| )#.*)`)
)

// referenceOfCommands returns the flags of every command, and those of all commands, from the pages that a test in
// internal/cli holds against the program.
func referenceOfCommands(t *testing.T, pages map[string]string) (flags map[string]string, global string) {
	t.Helper()
	flags = map[string]string{}
	for path, text := range pages {
		if !strings.HasPrefix(path, "docs/reference/cli") {
			continue
		}
		heads := commandHead.FindAllStringSubmatchIndex(text, -1)
		for i, h := range heads {
			end := len(text)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			flags[text[h[2]:h[3]]] = strings.Join(flagRow.FindAllString(text[h[1]:end], -1), "\n")
		}
		if path == "docs/reference/cli.md" {
			global = strings.Join(flagRow.FindAllString(text[:heads[0][0]], -1), "\n")
		}
	}
	if len(flags) < 70 || global == "" {
		t.Fatalf("the reference has %d commands", len(flags))
	}
	return flags, global
}

// Pages use only commands and flags that the program has, also where tests cannot run the command.
func TestPagesUseCommandsThatAreThere(t *testing.T) {
	pages := markdownFiles(t)
	flags, global := referenceOfCommands(t, pages)
	checked := 0
	for path, text := range pages {
		if strings.HasPrefix(path, "docs/explanation/decisions/") || path == "CHANGELOG.md" {
			continue // they tell what was
		}
		for _, block := range commandBlock.FindAllStringSubmatch(text, -1) {
			lines := quotedOrNoted.ReplaceAllString(strings.ReplaceAll(block[1]+block[2], "\\\n", " "), " X")
			for line := range strings.Lines(lines) {
				for _, m := range commandOfPage.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
					checked++
					checkCommand(t, path, strings.Fields(m[1]), flags, global)
				}
			}
		}
	}
	if checked < 200 {
		t.Errorf("the pages have %d commands", checked)
	}
}

// checkCommand fails the test if a command or one of its flags is not in the reference.
func checkCommand(t *testing.T, page string, words []string, flags map[string]string, global string) {
	t.Helper()
	name, given := "disdel", []string{}
	for i, w := range words {
		flag := strings.TrimRight(strings.SplitN(w, "=", 2)[0], ",.:")
		switch _, known := flags[name+" "+w]; {
		case strings.HasPrefix(flag, "-") && strings.Trim(flag, "-") != "":
			given = append(given, flag)
		case known && i == strings.Count(name, " "):
			name += " " + w
		}
	}
	if name == "disdel" && len(words) > 0 && words[0] >= "a" {
		t.Errorf("%s: there is no command %q", page, strings.Join(words, " "))
	}
	for _, flag := range given {
		if !strings.Contains(flags[name], "`"+flag+"`") && !strings.Contains(global, "`"+flag+"`") {
			t.Errorf("%s: %s has no flag %s", page, name, flag)
		}
	}
}
