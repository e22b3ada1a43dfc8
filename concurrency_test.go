package disdel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unraced are the packages with goroutines that run without the race detector. scripts/test.sh gives the reasons.
var unraced = []string{
	"deploy/doctor", "deploy/image", "deploy/verify", "examples/embed", "internal/cli", "internal/export",
	"runtime/engine/native/kernel", "test/simulate",
}

// scripts/test.sh searches lines to choose the packages that the race detector watches. The promise here: whatever
// starts a goroutine, or serves HTTP, in its code or in its tests, is among them.
func TestPackagesWithGoroutinesAreRaced(t *testing.T) {
	listed, err := exec.CommandContext(t.Context(), "bash", "scripts/test.sh", "--raced").Output()
	if err != nil {
		t.Fatal(err)
	}
	raced := strings.Fields(string(listed))
	if len(raced) < 20 {
		t.Fatalf("the script races only %d packages: %v", len(raced), raced)
	}
	packages, err := exec.CommandContext(t.Context(), "go", "list", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(packages)) {
		folder := strings.TrimPrefix(strings.TrimPrefix(name, module), "/")
		started := concurrent(t, folder)
		isRaced := slices.Contains(raced, name)
		switch {
		case started != "" && !isRaced && !slices.Contains(unraced, folder):
			t.Errorf("%s has %s, and scripts/test.sh tests it without the race detector", folder, started)
		case isRaced && slices.Contains(unraced, folder):
			t.Errorf("%s is raced: take it off the exceptions", folder)
		}
	}
}

// concurrent tells by what the files of a folder do several things at once, "" if they do not.
func concurrent(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, name := range files {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "a go statement"
			case *ast.ImportSpec:
				if strings.HasPrefix(n.Path.Value, `"net/http`) {
					what = "an import of net/http"
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Go" || types.ExprString(s) == "t.Parallel") {
					what = "a call of " + types.ExprString(s)
				}
			}
			if what != "" {
				found = what + " at " + set.Position(n.Pos()).String()
			}
			return found == ""
		})
	}
	return found
}
