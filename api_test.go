package disdel_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/test/golden"
)

var update = flag.Bool("update", false, "write the files of testdata/api anew")

// exposed are the folders of the packages that programs of others import, as the examples do, and the files of
// testdata/api with their exported names.
var exposed = map[string]string{
	".":                       "disdel.golden",
	"actions/custom":          "custom.golden",
	"controller/jobfile":      "jobfile.golden",
	"model":                   "model.golden",
	"runtime/engine/gorgonia": "gorgonia.golden",
	"scheduler":               "scheduler.golden",
	"scheduler/sim":           "sim.golden",
	"service":                 "service.golden",
	"service/api":             "api.golden",
	"service/batch":           "batch.golden",
	"service/infer":           "infer.golden",
	"service/queue":           "queue.golden",
	"service/tenant":          "tenant.golden",
}

// The exported names of these packages with their signatures, without comments:
// go test . -run TestExportedNamesStay -update
func TestExportedNamesStay(t *testing.T) {
	for folder, name := range exposed {
		text, err := exportedNames(folder)
		if err != nil {
			t.Fatal(err)
		}
		golden.Same(t, filepath.Join("testdata", "api", name), text, *update)
	}
}

// exportedNames is `go doc -all` of a folder's package without comments, on linux/amd64.
func exportedNames(folder string) (string, error) {
	target := build.Default
	target.GOOS, target.GOARCH, target.CgoEnabled = "linux", "amd64", false
	pkg, err := target.ImportDir(folder, 0)
	if err != nil {
		return "", err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(folder, name), nil, 0)
		if err != nil {
			return "", err
		}
		files = append(files, f)
	}
	d, err := doc.NewFromFiles(set, files, module)
	if err != nil {
		return "", err
	}
	p := &namesPrinter{set: set}
	fmt.Fprintf(&p.out, "package %s\n", d.Name)
	p.values(d.Consts)
	p.values(d.Vars)
	p.functions(d.Funcs)
	for _, t := range d.Types {
		p.node(t.Decl)
		p.values(t.Consts)
		p.values(t.Vars)
		p.functions(t.Funcs)
		p.functions(t.Methods)
	}
	return p.out.String(), p.err
}

type namesPrinter struct {
	set *token.FileSet
	out bytes.Buffer
	err error
}

func (p *namesPrinter) values(list []*doc.Value) {
	for _, v := range list {
		p.node(v.Decl)
	}
}

func (p *namesPrinter) functions(list []*doc.Func) {
	for _, f := range list {
		p.node(f.Decl)
	}
}

// node prints a declaration without empty lines and alignment, which depend on comments.
func (p *namesPrinter) node(n ast.Node) {
	var text bytes.Buffer
	if err := printer.Fprint(&text, p.set, n); err != nil && p.err == nil {
		p.err = err
	}
	for line := range strings.Lines(text.String()) {
		words := strings.Fields(line)
		if len(words) > 0 {
			indent := len(line) - len(strings.TrimLeft(line, "\t"))
			fmt.Fprintf(&p.out, "%s%s\n", strings.Repeat("\t", indent), strings.Join(words, " "))
		}
	}
}
