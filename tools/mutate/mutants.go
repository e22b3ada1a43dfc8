package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// mutant is one change of a file.
type mutant struct {
	file       string // below the repository
	line, col  int
	within     [2]int // first and last line of the declaration around it
	start, end int    // bytes that are replaced
	old, new   string
	source     string // the line, without space around it
}

func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s -> %s", m.file, m.line, m.old, m.new) }

//go:embed equal.txt
var equalText string

// equalChanges returns why each change of equal.txt has no effect, by the change's key.
func equalChanges() map[string]string {
	why := map[string]string{}
	for entry := range strings.SplitSeq(equalText, "\n\n") {
		if lines := strings.SplitN(strings.TrimSpace(entry), "\n", 4); len(lines) == 4 {
			why[strings.Join(lines[:3], "\n")] = lines[3]
		}
	}
	return why
}

// key is the entry of the change in equal.txt, without the reason. It has the line's text, since numbers of lines move.
func (m mutant) key() string { return m.file + "\n" + m.source + "\n" + m.old + " -> " + m.new }

func (m mutant) apply(text []byte) []byte {
	out := append([]byte(nil), text[:m.start]...)
	return append(append(out, m.new...), text[m.end:]...)
}

// swaps are the operators that replace each operator: the nearest bound, and the opposite.
var swaps = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
	token.INC: {token.DEC}, token.DEC: {token.INC},
}

// finder collects the changes of a file.
type finder struct {
	fset *token.FileSet
	file string
	text []byte
	decl ast.Decl // that is visited
	out  []mutant
}

// mutants returns the changes of a file in the order of its text. Some do not compile, since types are not looked at.
func mutants(file string, text []byte) ([]mutant, error) {
	f := finder{fset: token.NewFileSet(), file: file, text: text}
	tree, err := parser.ParseFile(f.fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, f.decl = range tree.Decls {
		ast.Inspect(f.decl, f.visit)
	}
	return f.out, nil
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.swap(n.OpPos, n.Op)
	case *ast.AssignStmt:
		f.swap(n.TokPos, n.Tok)
	case *ast.IncDecStmt:
		f.swap(n.TokPos, n.Tok)
	case *ast.IfStmt:
		f.replace(n.Cond, "!("+f.source(n.Cond)+")")
	case *ast.ReturnStmt:
		f.dropError(n)
	case *ast.CallExpr:
		return !f.onlySpeed(n)
	case *ast.GenDecl:
		return n.Tok != token.IMPORT
	}
	return true
}

// onlySpeed tells whether a call's numbers change speed only: those of a slice or map that is made to grow.
func (f *finder) onlySpeed(c *ast.CallExpr) bool {
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		if fun.Name != "make" || len(c.Args) < 2 {
			return false
		}
		if _, isMap := c.Args[0].(*ast.MapType); isMap {
			return true
		}
		zero, ok := c.Args[1].(*ast.BasicLit)
		return len(c.Args) == 3 && ok && zero.Value == "0"
	case *ast.SelectorExpr:
		return fun.Sel.Name == "Grow"
	}
	return false
}

func (f *finder) swap(at token.Pos, op token.Token) {
	for _, to := range swaps[op] {
		f.add(at, at+token.Pos(len(op.String())), to.String())
	}
}

// dropError returns nil where an error is returned last.
func (f *finder) dropError(r *ast.ReturnStmt) {
	if len(r.Results) == 0 {
		return
	}
	last := r.Results[len(r.Results)-1]
	if id, ok := last.(*ast.Ident); ok && strings.HasSuffix(strings.ToLower(id.Name), "err") {
		f.replace(last, "nil")
	}
}

func (f *finder) replace(n ast.Node, with string) { f.add(n.Pos(), n.End(), with) }

func (f *finder) source(n ast.Node) string {
	return string(f.text[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

func (f *finder) add(from, to token.Pos, with string) {
	at, end := f.fset.Position(from), f.fset.Position(to)
	source, _, _ := strings.Cut(string(f.text[at.Offset-at.Column+1:]), "\n")
	f.out = append(f.out, mutant{
		file: f.file, line: at.Line, col: at.Column, start: at.Offset, end: end.Offset,
		within: [2]int{f.fset.Position(f.decl.Pos()).Line, f.fset.Position(f.decl.End()).Line},
		old:    string(f.text[at.Offset:end.Offset]), new: with, source: strings.TrimSpace(source),
	})
}
