package cli

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// direct is the functions that write to the terminal or to standard output without package terminal, which completes
// commands. What they write is data for programs, or lines of progress and of other programs.
var direct = []string{
	"internal/cli/app.go newApp", "internal/cli/config.go newLog", "internal/cli/dataset.go datasetSample",
	"internal/cli/detach.go detach", "internal/cli/platform_up.go detachFailed",
	"internal/cli/platform_up.go requestLogger",
	"internal/cli/report.go showReport", "internal/cli/lab.go simulateCommand",
	"internal/cli/file_flags.go newFile", "internal/cli/init.go initialize", "internal/cli/report.go writePage",
	"internal/cli/infer.go inferToOutput",
	"internal/cli/job.go followLogs", "internal/cli/completion.go completeCommand",
	"internal/fullscreen/watch.go Watch", "internal/render/follower.go progress", "internal/render/follower.go erase",
	"internal/render/follower.go show",
}

// Everything else that a person is shown goes through package terminal, so that no printed command lacks the flags of
// its place.
func TestTextReachesTheTerminalThroughOnePackage(t *testing.T) {
	root := filepath.Join("..", "..")
	var found []string
	for _, dir := range []string{"internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, filepath.Join("internal", "terminal")) {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && writesDirectly(f) {
					found = append(found, fmt.Sprintf("%s %s", filepath.ToSlash(name), f.Name.Name))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range found {
		if !slices.Contains(direct, f) {
			t.Errorf("%s writes past package terminal", f)
		}
	}
	for _, f := range direct {
		if !slices.Contains(found, f) {
			t.Errorf("%s does not write past package terminal", f)
		}
	}
}

// writesDirectly finds the streams of a UI in a function: u.Err, u.Out, x.UI.Out, f.ui.Err.
func writesDirectly(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != "Err" && s.Sel.Name != "Out" {
			return true
		}
		switch of := s.X.(type) {
		case *ast.Ident:
			found = found || of.Name == "u" || of.Name == "ui"
		case *ast.SelectorExpr:
			found = found || of.Sel.Name == "ui" || of.Sel.Name == "UI"
		}
		return true
	})
	return found
}
