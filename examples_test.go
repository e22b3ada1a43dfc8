package disdel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// documented is the packages whose every public entry has an example: what is named after it, or makes use of it. An
// entry is a function, or a type with methods.
var documented = []string{
	"aggregator",
	"controller",
	"estimator",
	"executor",
	"history",
	"model",
	"platform",
	"runtime",
	"runtime/engine",
	"scheduler",
	"service",
	"service/batch",
}

func TestEveryPublicEntryHasAnExample(t *testing.T) {
	for _, folder := range documented {
		t.Run(folder, func(t *testing.T) {
			entries, shown, helpers := map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}
			files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range f.Decls {
					d, ok := d.(*ast.FuncDecl)
					switch {
					case !ok:
					case !strings.HasSuffix(file, "_test.go"):
						entries[entry(d)] = true
					case d.Recv == nil && strings.HasPrefix(d.Name.Name, "Example"):
						maps.Copy(shown, shows(d))
					case d.Recv == nil:
						helpers[d.Name.Name] = shows(d)
					}
				}
			}
			delete(entries, "")
			for name, helper := range helpers {
				if shown[name] { // an example calls it
					maps.Copy(shown, helper)
				}
			}
			if len(entries) == 0 {
				t.Fatal("no public entry was seen: the test does not look")
			}
			for _, name := range slices.Sorted(maps.Keys(entries)) {
				if !shown[name] {
					t.Errorf("%s.%s has no example: write an Example%s, or one that uses it", filepath.Base(folder), name, name)
				}
			}
		})
	}
}

// entry is the public entry that a function is or belongs to: itself, or the type that it is a method of. "": none.
func entry(f *ast.FuncDecl) string {
	if !f.Name.IsExported() {
		return ""
	}
	name := f.Name.Name
	if f.Recv != nil {
		name = receiver(f.Recv.List[0].Type)
	}
	if !ast.IsExported(name) {
		return ""
	}
	return name
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr: // of a type with a parameter
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

// shows is every name that an example has in its own name or in its body.
func shows(f *ast.FuncDecl) map[string]bool {
	out := map[string]bool{}
	of, _, _ := strings.Cut(strings.TrimPrefix(f.Name.Name, "Example"), "_")
	out[of] = true
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			out[id.Name] = true
		}
		return true
	})
	return out
}
