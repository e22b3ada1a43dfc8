package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// place is a kind of text, which has limits of its own.
type place string

const (
	comments place = "comments"
	help     place = "help"
	docs     place = "docs"
)

// sentence is one sentence of a file.
type sentence struct {
	place place
	file  string
	line  int // 0: unknown
	text  string
	words int
}

// allSentences reads the sentences of comments and help in Go files without tests, and those of the docs.
func allSentences(root string, files []string) (all []sentence, err error) {
	for _, f := range files {
		path := filepath.Join(root, f)
		switch {
		case strings.HasSuffix(f, ".md") && (strings.HasPrefix(f, "docs/") || !strings.Contains(f, "/")):
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			all = append(all, split(docs, f, 0, prose(string(text)))...)
		case strings.HasSuffix(f, ".go") && !strings.HasSuffix(f, "_test.go"):
			found, err := ofGo(path, f)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// ofGo reads the comments of a Go file, and its help: the values of Usage and Description.
func ofGo(path, name string) (all []sentence, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	for _, group := range file.Comments {
		if group == preamble(file) {
			continue
		}
		text := indented.ReplaceAllString(group.Text(), "")
		all = append(all, split(comments, name, set.Position(group.Pos()).Line, text)...)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if key, ok := pair.Key.(*ast.Ident); ok && (key.Name == "Usage" || key.Name == "Description") {
			text := indented.ReplaceAllString(constant(pair.Value), "")
			all = append(all, split(help, name, set.Position(pair.Pos()).Line, text)...)
		}
		return true
	})
	return all, nil
}

// preamble is the C code before import "C", which is a comment to Go; nil if there is none.
func preamble(file *ast.File) *ast.CommentGroup {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || len(g.Specs) != 1 {
			continue
		}
		if spec, ok := g.Specs[0].(*ast.ImportSpec); ok && spec.Path.Value == `"C"` {
			return g.Doc
		}
	}
	return nil
}

// constant joins the string constants of an expression.
func constant(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value) // the parser took it
		return text
	case *ast.BinaryExpr:
		return constant(e.X) + constant(e.Y)
	default:
		return " "
	}
}

var (
	indented = regexp.MustCompile(`(?m)^(\t|   ).*$`) // code and examples
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	tables   = regexp.MustCompile(`(?m)^\|.*$`)
	headings = regexp.MustCompile(`(?m)^#+ .*$`)
	emphasis = regexp.MustCompile(`\*+\b|\b\*+|([.!?:])\*+`)
	links    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	items    = regexp.MustCompile(`(?m)^\s*([-*]|\d+\.) `)
	code     = regexp.MustCompile("`[^`]*`")
	ends     = regexp.MustCompile(`[.!?:]["')]?(\s+|$)|\n\s*\n`)
	word     = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
)

// prose is the running text of a page: no code, tables and headings; every item of a list is its own paragraph.
func prose(text string) string {
	text = fenced.ReplaceAllString(text, "\n\n")
	text = tables.ReplaceAllString(text, "\n\n")
	text = headings.ReplaceAllString(text, "\n\n")
	text = links.ReplaceAllString(text, "$1")
	text = emphasis.ReplaceAllString(text, "$1")
	return items.ReplaceAllString(text, "\n\n")
}

// split divides a text into sentences. Code in backticks counts as one word.
func split(p place, file string, line int, text string) (all []sentence) {
	text = code.ReplaceAllString(text, "Code")
	for _, part := range ends.Split(text, -1) {
		part = strings.Join(strings.Fields(part), " ")
		if n := len(word.FindAllString(part, -1)); n > 0 {
			all = append(all, sentence{p, file, line, part, n})
		}
	}
	return all
}
