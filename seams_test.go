package disdel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// sources calls visit with every file below some folders that is no test.
func sources(t *testing.T, visit func(path string, set *token.FileSet, f *ast.File), folders ...string) {
	t.Helper()
	seen := 0
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "gen"):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			seen++
			visit(filepath.ToSlash(path), set, f)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen == 0 {
		t.Fatal("no source was seen: the test does not look")
	}
}

// Nothing is found out of an engine by asserting its type: what actions need, the seam has. What may be asserted are
// the values of third parties' tensors and what a panic was raised with.
func TestNoCapabilityIsFoundByAssertion(t *testing.T) {
	panics := []string{"runtime/server.go", "runtime/engine/native/kernel/team.go"}
	asserted := 0
	sources(t, func(path string, set *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			a, ok := n.(*ast.TypeAssertExpr)
			if !ok {
				return true
			}
			asserted++
			to := "type"
			if a.Type != nil {
				to = types.ExprString(a.Type)
			}
			if !slices.Contains([]string{"float32", "[]float32"}, to) && !slices.Contains(panics, path) {
				t.Errorf("%s: %s is asserted to be a %s", set.Position(a.Pos()), types.ExprString(a.X), to)
			}
			return true
		})
	}, "actions", "runtime")
	if asserted == 0 {
		t.Error("no assertion was seen: the test does not look")
	}
}

// Those who use backends go by the table that they were given, and by no name.
func TestNobodyButTheirTableNamesBackends(t *testing.T) {
	sources(t, func(path string, set *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && slices.Contains(disdel.Backends(), text) {
					t.Errorf("%s: a backend is named", set.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if strings.HasPrefix(n.Sel.Name, "Backend") && types.ExprString(n.X) == "disdel" {
					t.Errorf("%s: a backend is named", set.Position(n.Pos()))
				}
			}
			return true
		})
	}, "actions", "estimator", "scheduler")
}

// A job file may ask for what there is.
func TestJobFilesNameTheBackendsThereAre(t *testing.T) {
	table := backends.Standard(nil)
	if got := table.Names(); !slices.Equal(got, disdel.Backends()) {
		t.Errorf("the table has %v, job files may have %v", got, disdel.Backends())
	}
	if got := table.Name("", nil); got != disdel.BackendNative {
		t.Errorf("%s computes what asks for none", got)
	}
	if !slices.Contains(table.Names(), table.Custom) {
		t.Errorf("networks of a program's own are for %s, which is not in the table", table.Custom)
	}
}
