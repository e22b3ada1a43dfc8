package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// mutant is one change of a file.
type mutant struct {
	file       string // below the repository
	line       int
	start, end int // bytes that are replaced
	old, new   string
}

func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s -> %s", m.file, m.line, m.old, m.new) }

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
	out  []mutant
}

// mutants returns the changes of a file in the order of its text. Some do not compile, since types are not looked at.
func mutants(file string, text []byte) ([]mutant, error) {
	f := finder{fset: token.NewFileSet(), file: file, text: text}
	tree, err := parser.ParseFile(f.fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(tree, f.visit)
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
	case *ast.GenDecl:
		return n.Tok != token.IMPORT
	}
	return true
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
	f.out = append(f.out, mutant{
		file: f.file, line: at.Line, start: at.Offset, end: end.Offset,
		old: string(f.text[at.Offset:end.Offset]), new: with,
	})
}
