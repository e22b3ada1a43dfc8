package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel/scheduler"
)

func TestFiguresAreReadAndPutBesideTheirClaims(t *testing.T) {
	got := read("# a comment\nfigure fig8_time_default 0.61 x\nfigure short\nother fig12_default 3 x\n")
	if len(got) != 1 || got["fig8_time_default"] != "0.61 x" {
		t.Fatalf("%v", got)
	}
	text := page(map[string]map[string]string{"paper": got})
	if !strings.Contains(text, "`fig8_time_default` 0.61 x") || !strings.Contains(text, "`fig12_default` -") {
		t.Error(text)
	}
}

// Every figure that a headline names is one that its bench can print: the name's fixed parts stand in a call of the
// bench that prints a figure, and what is put between them is a text of the bench or the name of a policy.
func TestHeadlinesNameFiguresOfTheirBenches(t *testing.T) {
	can := map[string]*regexp.Regexp{}
	for name := range benches {
		can[name] = printed(t, filepath.Join("..", name))
	}
	for _, h := range headlines {
		if can[h.command] == nil {
			t.Errorf("%s: there is no bench %q", h.claim, h.command)
			continue
		}
		for _, name := range h.figures {
			if !can[h.command].MatchString(name) {
				t.Errorf("%s, %s: bench/%s prints no figure %s", h.system, h.claim, h.command, name)
			}
		}
	}
	for name, wrong := range map[string]string{
		"paper": "fig8_time_kubeml", "policies": "convergence_law_third", "aggregator": "vs_coach", "tenants": "stuck_kubeml",
	} {
		if can[name].MatchString(wrong) {
			t.Errorf("bench/%s prints no figure %s, and that passes", name, wrong)
		}
	}
}

// word is a text that part of a figure's name can be.
var word = regexp.MustCompile("^_?[a-z0-9][a-z0-9_-]*$")

// printed is the names of the figures that a bench's program can print.
func printed(t *testing.T, folder string) *regexp.Regexp {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", folder, err)
	}
	names, words := map[string]bool{}, map[string]bool{}
	if words[""] = true; strings.HasSuffix(folder, "policies") {
		for _, p := range scheduler.PolicyNames() {
			words[regexp.QuoteMeta(p)] = true
		}
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if prints(n) {
					names[pattern(n.Args[0])] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && word.MatchString(text) {
					words[regexp.QuoteMeta(text)] = true
				}
			}
			return true
		})
	}
	all := strings.Join(slices.Sorted(maps.Keys(names)), "|")
	some := "(?:" + strings.Join(slices.Sorted(maps.Keys(words)), "|") + ")"
	return regexp.MustCompile("^(?:" + strings.ReplaceAll(all, anything, some) + ")$")
}

// prints tells whether a call prints a figure: that of a function or method named so, or of a ratio.
func prints(call *ast.CallExpr) bool {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	return slices.Contains([]string{"Figure", "MedianFigure", "figure", "ratio"}, name) && len(call.Args) > 1
}

// anything stands for what is no fixed part of a name.
const anything = "\x00"

// pattern is what an expression of a text can come to.
func pattern(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return regexp.QuoteMeta(text)
		}
	case *ast.BinaryExpr:
		return pattern(e.X) + pattern(e.Y)
	case *ast.CallExpr: // of Sprintf
		if len(e.Args) < 2 {
			break
		}
		if text, ok := e.Args[0].(*ast.BasicLit); ok {
			return regexp.MustCompile("%[a-z]").ReplaceAllString(pattern(text), anything)
		}
	}
	return anything
}
