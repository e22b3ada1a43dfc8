package engine_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/runtime/engine/footprint"
)

func graph(n disdel.Network) *model.Graph {
	g, err := model.Build(n)
	if err != nil {
		panic(err)
	}
	return g
}

var digits = disdel.Network{Name: "digits-cnn", Input: []int{1, 8, 8}, Classes: 10}

// A program looks its backends up in a table, asks what an engine will take, makes it, and trains batch by batch.
func Example() {
	table := backends.Standard(nil)
	spec := engine.Spec{
		Graph: graph(digits), BatchSize: 4, Training: true, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}},
	}
	backend, err := table.Find("", spec.Graph) // none by name
	if err != nil {
		fmt.Println(err)
		return
	}
	needs, err := backend.Footprint(spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := backend.New(spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Seed: 1}); err != nil {
		fmt.Println(err)
		return
	}
	batch := dataset.Dense(4, make([]float32, 4*64), []int32{0, 1, 2, 3})
	first, err := e.Step(batch)
	if err != nil {
		fmt.Println(err)
		return
	}
	then, err := e.Evaluate(batch)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(backend.Name(), "has less loss after a step:", then.Loss < first.Loss)
	fmt.Println("what it said that it takes:", e.Footprint().Total() == needs.Total(), needs.In(footprint.Device),
		"on a device")
	// Output:
	// native has less loss after a step: true
	// what it said that it takes: true 0 B on a device
}

// A worker's state goes array by array to another engine, which may be another backend's.
func ExampleArray() {
	table := backends.Standard(nil)
	var engines []engine.Engine
	for _, name := range []string{disdel.BackendNative, disdel.BackendGorgonia} {
		backend, err := table.Find(name, graph(digits))
		if err != nil {
			fmt.Println(err)
			return
		}
		e, err := backend.New(engine.Spec{
			Graph: graph(digits), BatchSize: 1, Training: true,
			Optimizer: disdel.Optimizer{Adam: &disdel.Adam{}},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer e.Close()
		engines = append(engines, e)
	}
	from, to := engines[0], engines[1].State()
	if err := from.Init(disdel.Init{Seed: 1}); err != nil {
		fmt.Println(err)
		return
	}
	buffer := make([]float32, 1000)
	for i, a := range from.State() {
		for at := 0; at < a.Len(); at += len(buffer) {
			part := buffer[:min(len(buffer), a.Len()-at)]
			if err := errors.Join(a.ReadAt(part, at), to[i].WriteAt(part, at)); err != nil {
				fmt.Println(err)
				return
			}
		}
	}
	a, b := engine.Weights(from), engine.Weights(engines[1])
	fmt.Println(a[0].Name, a[0].Shape, slices.Equal(a[0].Data, b[0].Data))
	fmt.Println(to[len(to)-1].Name, "is a", to[len(to)-1].Role)
	// Output:
	// conv1.weight [16 1 3 3] true
	// fc2.bias.exp_avg_sq is a moment
}

// All workers of a job draw the same first weights, whatever backend they have.
func ExampleInitWeights() {
	w := engine.InitWeights(graph(digits), disdel.Init{Seed: 3, Scheme: "he"})
	again := engine.InitWeights(graph(digits), disdel.Init{Seed: 3, Scheme: "he"})
	fmt.Println(len(w), "arrays, the same again:", slices.Equal(w[0].Data, again[0].Data))
	// Output: 8 arrays, the same again: true
}

// A table answers by name, and says what there is.
func ExampleTable_Find() {
	table := backends.Standard(nil)
	_, err := table.Find("cuda", graph(digits))
	fmt.Println(err)
	fmt.Println(disdel.AsError(err).Hint)
	own := disdel.Network{Custom: &disdel.CustomNetwork{
		Name: "mine", Input: []int{1, 8, 8}, Classes: 10, Params: []disdel.CustomParam{{Name: "w", Shape: []int{64, 10}}},
	}, Input: []int{1, 8, 8}, Classes: 10}
	backend, err := table.Find("", graph(own))
	fmt.Println(backend.Name(), err)
	fmt.Println(backend.Supports(graph(own)))
	// Output:
	// make engine: there is no backend "cuda"
	// use native or gorgonia or sparse: --backend NAME
	// gorgonia <nil>
	// make engine: this binary has no network "mine"
}

// lies is an array that lies in a slice.
type lies []float32

func (v lies) ReadAt(dst []float32, at int)  { copy(dst, v[at:]) }
func (v lies) WriteAt(src []float32, at int) { copy(v[at:], src) }

// An array takes what is its own, and all of it or nothing.
func TestArraysRefuseWhatIsNotTheirs(t *testing.T) {
	values := lies{1, 2, 3, 4}
	a := engine.NewArray("w", []int{2, 2}, engine.Weight, values)
	for name, c := range map[string]struct {
		err  error
		want disdel.Kind
	}{
		"before":   {a.ReadAt(make([]float32, 1), -1), disdel.Invalid},
		"behind":   {a.WriteAt(make([]float32, 3), 2), disdel.Invalid},
		"far off":  {a.ReadAt(nil, math.MaxInt), disdel.Invalid},
		"infinite": {a.WriteAt([]float32{9, float32(math.Inf(-1))}, 0), disdel.Diverged},
		"name":     {a.Set(disdel.Tensor{Name: "v", Shape: []int{2, 2}, Data: make([]float32, 4)}), disdel.Corrupt},
		"shape":    {a.Set(disdel.Tensor{Name: "w", Shape: []int{4}, Data: make([]float32, 4)}), disdel.Corrupt},
		"length":   {a.Set(disdel.Tensor{Name: "w", Shape: []int{2, 2}, Data: make([]float32, 3)}), disdel.Corrupt},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	if !slices.Equal(values, lies{1, 2, 3, 4}) {
		t.Errorf("what was refused was written: %v", values)
	}
	if err := a.WriteAt([]float32{7}, 3); err != nil || values[3] != 7 {
		t.Errorf("%v, %v", values, err)
	}
	if got := fmt.Sprint(engine.Local, engine.Residual, engine.Role(0)); got != "local residual unknown role" {
		t.Error(got)
	}
}

// A table without backends computes nothing, and says so.
func TestAnEmptyTableIsRefused(t *testing.T) {
	var none engine.Table
	if _, err := none.Footprint("", engine.Spec{Graph: graph(digits), BatchSize: 1}); !errors.Is(err, disdel.Invalid) {
		t.Errorf("%v, want Invalid", err)
	}
}

// Running variances are found by their name.
func ExampleIsVariance() {
	fmt.Println(engine.IsVariance("norm.running_var"), engine.IsVariance("norm.weight"))
	// Output: true false
}
