package controller

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// Orders and events are sealed, so that a switch over them can be total; every one of this package is, and has no
// default that would swallow a new type. Who adds a type is told here where it has to be handled.
func TestEverySwitchOverOrdersAndEventsIsTotal(t *testing.T) {
	set := token.NewFileSet()
	var files []*ast.File
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || e.Name() == "example_test.go" {
			continue
		}
		f, err := parser.ParseFile(set, e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	for marker, where := range map[string][]string{"order": {"carryOut", "describe"}, "event": {"step", "addToRecord"}} {
		concrete := marked(files, marker)
		if len(concrete) == 0 {
			t.Fatalf("no type has the method %s: the test does not look", marker)
		}
		seen := map[string]bool{}
		for _, f := range files {
			for _, d := range f.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				for _, s := range switchesOver(f, concrete) {
					seen[f.Name.Name] = true
					missing := maps.Clone(concrete)
					for _, name := range s.cases {
						delete(missing, name)
					}
					if len(missing) > 0 || s.other {
						t.Errorf("%s: the switch of %s leaves out %v, with a default: %v", set.Position(s.at), f.Name.Name,
							slices.Sorted(maps.Keys(missing)), s.other)
					}
				}
			}
		}
		for _, name := range where {
			if !seen[name] {
				t.Errorf("%s has no switch over what is marked with %s: the test does not look", name, marker)
			}
		}
	}
}

// marked is the types that have a method of this name of their own.
func marked(files []*ast.File, method string) map[string]bool {
	out := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok || d.Recv == nil || d.Name.Name != method || d.Type.Params.NumFields() > 0 {
				continue
			}
			if receiver, ok := d.Recv.List[0].Type.(*ast.Ident); ok && receiver.IsExported() {
				out[receiver.Name] = true
			}
		}
	}
	return out
}

// typeSwitch is what one has cases for.
type typeSwitch struct {
	at    token.Pos
	cases []string
	other bool // it has a default
}

// switchesOver is the type switches of a function with a case for one of these types.
func switchesOver(f *ast.FuncDecl, types map[string]bool) (out []typeSwitch) {
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.TypeSwitchStmt)
		if !ok {
			return true
		}
		found := typeSwitch{at: s.Pos()}
		for _, c := range s.Body.List {
			names := c.(*ast.CaseClause).List
			found.other = found.other || names == nil
			for _, name := range names {
				if name, ok := name.(*ast.Ident); ok {
					found.cases = append(found.cases, name.Name)
				}
			}
		}
		if slices.ContainsFunc(found.cases, func(name string) bool { return types[name] }) {
			out = append(out, found)
		}
		return true
	})
	return out
}
