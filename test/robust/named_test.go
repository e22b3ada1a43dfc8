package robust

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The checks name tests of other packages. One that is moved or renamed is missed here, not after minutes of checks.
func TestEveryNamedTestIsThere(t *testing.T) {
	for _, c := range checks {
		for _, h := range c.tests {
			there := testsIn(t, h.folder)
			for name := range strings.SplitSeq(h.tests, "|") {
				name, _, _ = strings.Cut(name, "/") // a part of a test has its name while the test runs
				if !regexp.MustCompile(name).MatchString(there) {
					t.Errorf("%s (%s): %s has no test %s", c.id, c.what, h.folder, name)
				}
			}
		}
	}
}

// testsIn is the names of a package's tests, a line each.
func testsIn(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names strings.Builder
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names.WriteString(f.Name.Name + "\n")
			}
		}
	}
	return names.String()
}

// A client whose process was not found is never killed: kill(2) takes the id 0 for this process and all of its group.
func TestAClientWithoutAProcessIsNotKilled(t *testing.T) {
	if (&client{}).kill() || (&client{pid: -1}).kill() {
		t.Error("a process that nobody knows was killed")
	}
}
