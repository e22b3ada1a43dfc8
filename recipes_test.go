package disdel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// Tables of layers: a file, and the Ops that it leaves out. CONTRIBUTING's recipe for a layer names the same files.
var (
	notDense    = []string{"OpUnknown", "OpCustom", "OpLinear", "OpFactors"} // of no network that engines plan
	notComputed = append([]string{"OpInput", "OpSoftmax"}, notDense...)      // the data; what the loss computes
	layerTables = map[string][]string{
		"model/graph.go":                      nil,
		"runtime/engine/native/plan/kinds.go": notDense,
		"runtime/engine/native/kinds.go":      notComputed,
		"runtime/engine/cuda/kinds.go":        notComputed,
		"runtime/engine/gorgonia/graph.go":    notDense,
		"internal/export/onnx.go":             notDense,
	}
)

// uses counts how often a file names each identifier.
func uses(t *testing.T, file string) map[string]int {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			count[id.Name]++
		}
		return true
	})
	return count
}

func textOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every Op has its row in the table of every engine, and every activation is known to PyTorch's import.
func TestEveryLayerIsInEveryTable(t *testing.T) {
	var ops []string
	for name := range uses(t, "model/graph.go") {
		if kind, ok := strings.CutPrefix(name, "Op"); ok && kind != "" {
			ops = append(ops, name)
		}
	}
	slices.Sort(ops)
	if len(ops) < 20 {
		t.Fatalf("Ops %v", ops)
	}
	recipes := textOf(t, "CONTRIBUTING.md")
	for file, without := range layerTables {
		if !strings.Contains(recipes, "`"+file+"`") {
			t.Errorf("CONTRIBUTING.md: the recipe for a layer does not name %s", file)
		}
		times, named := 1, uses(t, file)
		if file == "model/graph.go" {
			times = 2 // the constant, and its row
		}
		for _, op := range ops {
			if named[op] < times && !slices.Contains(without, op) {
				t.Errorf("%s has no row for %s", file, op)
			}
		}
	}
	torch := textOf(t, "clients/python/src/disdel/_torch.py")
	for _, name := range model.Activations() {
		if !strings.Contains(torch, `"`+name+`"`) {
			t.Errorf("clients/python/src/disdel/_torch.py does not take the activation %s over", name)
		}
	}
}

// Every optimiser is in the table of every engine, in the job file and in the documentation.
func TestEveryOptimizerIsInEveryTable(t *testing.T) {
	recipes := textOf(t, "CONTRIBUTING.md")
	texts := map[string]string{
		"controller/jobfile/fields.yaml": "training.optimizer.%:", "docs/reference/training.md": "| `%`",
	}
	tables := []string{
		"training.go", "runtime/engine/native/kernel/optimizers.go", "runtime/engine/gorgonia/optimizer.go",
		"runtime/engine/cuda/update.go",
	}
	optimizer := reflect.TypeFor[disdel.Optimizer]()
	for i := range optimizer.NumField() {
		field := optimizer.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "own" { // a Python program computes it, and no job file names it
			continue
		}
		for _, file := range tables {
			if uses(t, file)[field.Name] == 0 {
				t.Errorf("%s has nothing for the optimiser %s", file, name)
			}
		}
		for file, form := range texts {
			if want := strings.ReplaceAll(form, "%", name); !strings.Contains(textOf(t, file), want) {
				t.Errorf("%s has no %s", file, want)
			}
		}
		one := disdel.Optimizer{}
		reflect.ValueOf(&one).Elem().Field(i).Set(reflect.New(field.Type.Elem()))
		if one.Name() != name || one.WithRate(3).Rate() != 3 || one.Rate() != 0 {
			t.Errorf("the row of %s: %+v", name, one)
		}
	}
	for _, file := range tables {
		if !strings.Contains(recipes, "`"+file+"`") {
			t.Errorf("CONTRIBUTING.md: the recipe for an optimiser does not name %s", file)
		}
	}
}
