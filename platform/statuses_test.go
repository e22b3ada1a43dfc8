package platform

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// comparing are the files that read statuses which others answered, and why.
var comparing = map[string]string{
	"invocation.go":  "a container answers /init and /run",
	"server.go":      "the log of requests begins with what net/http answers if nobody says otherwise",
	"web_actions.go": "a web action's result names its own status",
}

// statuses.go lists every status and text of the REST API: no other file names one, and whatever is listed is answered.
func TestStatusesAreListed(t *testing.T) {
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	listed, used := map[string]bool{}, map[string]bool{}
	for _, entry := range names {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if name == "statuses.go" {
			noteListed(file, listed, used)
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text := ownStatus(n, comparing[name] != ""); text != "" {
				t.Errorf("%v: %s: it belongs into statuses.go", fset.Position(n.Pos()), text)
			}
			if id, ok := n.(*ast.Ident); ok {
				used[id.Name] = true
			}
			return true
		})
	}
	for name := range listed {
		if !used[name] {
			t.Errorf("statuses.go lists %s, and nothing answers it", name)
		}
	}
}

// noteListed notes what the list has, and what of it one of the others is made of.
func noteListed(file *ast.File, listed, used map[string]bool) {
	for _, decl := range file.Decls {
		own := map[string]bool{}
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				continue
			}
			own[d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, id := range v.Names {
						own[id.Name] = true
					}
				}
			}
		}
		for name := range own {
			listed[name] = true
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !own[id.Name] {
				used[id.Name] = true
			}
			return true
		})
	}
}

// ownStatus says how a node names a status of its own, "" where it does not.
func ownStatus(n ast.Node, compares bool) string {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if id, ok := n.Type.(*ast.Ident); ok && id.Name == "apiError" {
			return "a refusal"
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "badRequest" {
			return "a refusal"
		}
	case *ast.ReturnStmt:
		if len(n.Results) < 2 {
			return ""
		}
		if lit, ok := n.Results[0].(*ast.BasicLit); ok && lit.Kind == token.INT {
			if status, err := strconv.Atoi(lit.Value); err == nil && status >= 100 && status < 600 {
				return "status " + lit.Value
			}
		}
	case *ast.SelectorExpr:
		if id, ok := n.X.(*ast.Ident); ok && id.Name == "http" && strings.HasPrefix(n.Sel.Name, "Status") &&
			n.Sel.Name != "StatusText" && !compares {
			return "http." + n.Sel.Name
		}
	}
	return ""
}
