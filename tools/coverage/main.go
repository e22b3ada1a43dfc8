// Command coverage measures which errors' paths the tests of a package run. A path of an error is a block of statements
// that runs only where something failed: the body of an if that compares an error with nil, or a block that returns an
// error which it makes. Each such block counts once, however long it is. With -profile it counts what a profile of go
// test says instead, which tests of several packages may have written.
//
//	go -C tools run ./coverage -root ..
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	root := flag.String("root", "..", "folder of the repository")
	packages := flag.String("packages", "controller,scheduler,aggregator,executor,estimator", "packages, with commas")
	list := flag.Bool("list", false, "list the paths that no test runs")
	whole := flag.String("profile", "", "a profile of go test -coverpkg that counts in place of each package's own tests")
	flag.Parse()
	if err := run(*root, strings.Split(*packages, ","), *list, *whole); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

func run(root string, packages []string, list bool, whole string) error {
	var all, ran int
	figure, covered := "error_paths_covered_pct", blocks{}
	if whole != "" {
		figure = "error_paths_covered_by_all_pct"
		text, err := os.ReadFile(whole)
		if err == nil {
			covered, err = parse(string(text))
		}
		if err != nil {
			return err
		}
	}
	for _, name := range packages {
		if whole == "" {
			var err error
			if covered, err = profile(root, name); err != nil {
				return err
			}
		}
		folder := filepath.Join(root, name)
		p, err := build.ImportDir(folder, 0)
		if err != nil {
			return err
		}
		paths, seen := 0, 0
		for _, f := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(folder, f))
			if err != nil {
				return err
			}
			found, err := errorPaths(f, text)
			if err != nil {
				return err
			}
			for _, at := range found {
				paths++
				switch {
				case covered.runs(name+"/"+f, at):
					seen++
				case list:
					fmt.Printf("%s/%s:%d\n", name, f, at.line)
				}
			}
		}
		fmt.Printf("figure %s_%s %.1f %%\n", figure, name, percent(seen, paths))
		all, ran = all+paths, ran+seen
	}
	fmt.Printf("figure error_paths %d paths\nfigure %s %.1f %%\n", all, figure, percent(ran, all))
	return nil
}

func percent(part, all int) float64 { return 100 * float64(part) / float64(max(1, all)) }

// place is a position in a file, from 1.
type place struct{ line, column int }

func (p place) before(q place) bool {
	return p.line < q.line || p.line == q.line && p.column < q.column
}

// block is a run of statements of a file that tests ran.
type block struct{ from, to place }

// blocks are the blocks that tests ran, by the file's last folder and name.
type blocks map[string][]block

// runs tells whether tests ran the statement at a place.
func (b blocks) runs(file string, at place) bool {
	for _, r := range b[file] {
		if !at.before(r.from) && at.before(r.to) {
			return true
		}
	}
	return false
}

// profile runs the tests of a package.
func profile(root, name string) (blocks, error) {
	out, err := os.CreateTemp("", "disdel-coverage-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	c := exec.Command("go", "test", "-vet=off", "-count=1", "-timeout", "30m", "-coverprofile", out.Name(), "./"+name)
	c.Dir = root
	if said, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("test %s: %w\n%s", name, err, said)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		return nil, err
	}
	return parse(string(text))
}

// parse reads a profile of go test: lines FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT.
func parse(profile string) (blocks, error) {
	out := blocks{}
	for line := range strings.Lines(profile) {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		file, rest, ok := strings.Cut(line, ".go:")
		var b block
		var statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from.line, &b.from.column, &b.to.line, &b.to.column,
			&statements, &count); err != nil || !ok {
			return nil, fmt.Errorf("the line %s of the profile is none of go test's", strconv.Quote(line))
		}
		if count > 0 {
			name := filepath.Base(filepath.Dir(file)) + "/" + filepath.Base(file) + ".go"
			out[name] = append(out[name], b)
		}
	}
	return out, nil
}

// errorPaths returns where the first statement of each path of an error is, in the order of the text.
func errorPaths(file string, text []byte) ([]place, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []place
	seen := map[ast.Node]bool{}
	add := func(list []ast.Stmt) {
		if len(list) > 0 && !seen[list[0]] {
			seen[list[0]] = true
			at := fset.Position(list[0].Pos())
			found = append(found, place{at.Line, at.Column})
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if failed(n.Cond) || makesError(n.Body.List) {
				add(n.Body.List)
			}
		case *ast.CaseClause:
			if len(n.List) == 1 && failed(n.List[0]) || makesError(n.Body) {
				add(n.Body)
			}
		}
		return true
	})
	return found, nil
}

// failed tells whether a condition holds only for an error: it, or a part that && joins, is err != nil.
func failed(cond ast.Expr) bool {
	b, ok := cond.(*ast.BinaryExpr)
	if !ok {
		return false
	}
	if b.Op == token.LAND {
		return failed(b.X) || failed(b.Y)
	}
	return b.Op == token.NEQ && isError(b.X) && isNil(b.Y)
}

func isNil(e ast.Expr) bool { id, ok := e.(*ast.Ident); return ok && id.Name == "nil" }

func isError(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && strings.HasSuffix(strings.ToLower(id.Name), "err")
}

// makesError tells whether the last statement returns an error that it makes, as &disdel.Error{} or by fmt or errors.
func makesError(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	r, ok := list[len(list)-1].(*ast.ReturnStmt)
	if !ok || len(r.Results) == 0 {
		return false
	}
	switch last := r.Results[len(r.Results)-1].(type) {
	case *ast.UnaryExpr:
		made, ok := last.X.(*ast.CompositeLit)
		return ok && nameOf(made.Type) == "Error"
	case *ast.CallExpr:
		name := nameOf(last.Fun)
		return name == "Errorf" || name == "New" || name == "Join"
	}
	return false
}

// nameOf is the name of a type or a function, without its package.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
