package engine_test

import (
	"fmt"
	"log"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// trained is an engine that has made a step with Adam.
func trained() engine.Engine {
	backend, err := backends.Standard(nil).Find(disdel.BackendNative, graph(digits))
	if err != nil {
		log.Fatal(err)
	}
	e, err := backend.New(engine.Spec{
		Graph: graph(digits), BatchSize: 2, Training: true,
		Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Init(disdel.Init{Seed: 1}); err != nil {
		log.Fatal(err)
	}
	if _, err := e.Step(dataset.Dense(2, make([]float32, 2*64), []int32{3, 5})); err != nil {
		log.Fatal(err)
	}
	return e
}

// Weights returns copies of an engine's weights and statistics, in the order of the graph's Params and PyTorch's
// layouts.
func ExampleWeights() {
	e := trained()
	defer e.Close()
	w := engine.Weights(e)
	fmt.Println(len(w), "arrays, the first", w[0].Name, w[0].Shape)
	w[0].Data[0] = 0.5
	if err := engine.SetWeights(e, w); err != nil {
		log.Fatal(err)
	}
	fmt.Println(engine.Weights(e)[0].Data[0])
	fmt.Println(engine.SetWeights(e, w[1:]))
	// Output:
	// 8 arrays, the first conv1.weight [16 1 3 3]
	// 0.5
	// set weights: 7 tensors, and the network has 8
}

// An array that an engine keeps in PyTorch's layout is read where it is. Of another one, View makes a copy.
func ExampleArray_View() {
	kept, other := engine.Floats{1, 2, 3, 4}, reversed{5, 6}
	a := engine.NewFloatArray("w", []int{2, 2}, engine.Weight, kept)
	b := engine.NewArray("b", []int{2}, engine.Weight, other)
	v, copied := a.View(), b.View()
	kept[0], other[0] = 9, 9
	fmt.Println(v.Name, v.Shape, v.Data, copied.Data)
	// Output: w [2 2] [9 2 3 4] [6 5]
}

// Floats are read and written in their own order.
func ExampleFloats() {
	f := engine.Floats{1, 2, 3}
	f.WriteAt([]float32{7}, 1)
	two := make([]float32, 2)
	f.ReadAt(two, 1)
	fmt.Println(two)
	// Output: [7 3]
}

// The update that a worker pushes is read from the engine where it can be.
func ExampleTrainedViews() {
	e := trained()
	defer e.Close()
	for _, w := range engine.TrainedViews(e)[:2] {
		fmt.Println(w.Name, w.Shape)
	}
	// Output:
	// conv1.weight [16 1 3 3]
	// conv1.bias [16]
}

// An update has what training changes: not the arrays of frozen layers, which Weights has.
func ExampleTrained() {
	g := graph(digits)
	if err := g.Freeze(disdel.Init{Freeze: "conv*"}); err != nil {
		log.Fatal(err)
	}
	backend, err := backends.Standard(nil).Find(disdel.BackendNative, g)
	if err != nil {
		log.Fatal(err)
	}
	e, err := backend.New(engine.Spec{
		Graph: g, BatchSize: 2, Training: true, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.01}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	w := engine.Trained(e)
	fmt.Println(len(w), "of", len(engine.Weights(e)), "arrays, the first", w[0].Name)
	fmt.Println(engine.SetTrained(e, w))
	// Output:
	// 4 of 8 arrays, the first fc1.weight
	// <nil>
}

// The optimiser's state goes with a worker to where it goes on: its moments, and how many steps it has made.
func ExampleMoments() {
	from, to := trained(), trained()
	defer from.Close()
	defer to.Close()
	m := engine.Moments(from)
	fmt.Println(m[0].Name == engine.StepCount, m[0].Data)
	m[0].Data[0] = 17
	if err := engine.SetMoments(to, m); err != nil {
		log.Fatal(err)
	}
	fmt.Println(engine.Moments(to)[0].Data)
	// Output:
	// true [1]
	// [17]
}

// The arrays of a role, and copies of them.
func ExampleOf() {
	e := trained()
	defer e.Close()
	for _, role := range []engine.Role{engine.Weight, engine.Statistic, engine.Moment} {
		arrays := engine.Of(e.State(), role)
		fmt.Println(role, len(arrays), len(engine.Copies(arrays)))
	}
	// Output:
	// weight 8 8
	// statistic 0 0
	// moment 17 17
}

// reversed lies in a slice with its last value first: a backend keeps arrays in whatever layout it computes in.
type reversed []float32

func (v reversed) ReadAt(dst []float32, at int) {
	for i := range dst {
		dst[i] = v[len(v)-1-at-i]
	}
}

func (v reversed) WriteAt(src []float32, at int) {
	for i, x := range src {
		v[len(v)-1-at-i] = x
	}
}

// A backend's own array only says how values are read and written; that ranges fit is checked before.
func ExampleNewArray() {
	a := engine.NewArray("fc.bias", []int{3}, engine.Weight, reversed{3, 2, 1})
	fmt.Println(a.Copy().Data, a.Len())
	fmt.Println(a.WriteAt(make([]float32, 2), 2))
	// Output:
	// [1 2 3] 3
	// access state: values 2 to 4 of fc.bias, which has 3
}

// An engine without room for a second copy of its weights draws them one value at a time.
func ExampleDraws() {
	g := graph(digits)
	want := engine.InitWeights(g, disdel.Init{Seed: 3})
	draws, same := engine.NewDraws(g, disdel.Init{Seed: 3}), true
	for i, p := range g.Params() {
		next := draws.Of(p)
		for _, v := range want[i].Data {
			same = same && v == next()
		}
	}
	fmt.Println("the same values as of InitWeights:", same)
	// Output: the same values as of InitWeights: true
}

// Batch norms that have not seen a row yet have mean 0 and variance 1.
func ExampleStartOf() {
	g := graph(disdel.Network{Input: []int{1, 8, 8}, Classes: 2, Layers: []disdel.Layer{
		{Kind: "conv", Filters: 2, Kernel: 3}, {Kind: "batchNorm", Name: "bn"}, {Kind: "dense", Units: 2},
	}})
	for _, p := range g.Params() {
		if !p.Trainable {
			fmt.Println(p.Name, engine.StartOf(g, p))
		}
	}
	// Output:
	// bn.running_mean 0
	// bn.running_var 1
}

// stored is an array that an engine of one's own keeps as it is.
type stored []float32

func (s stored) ReadAt(dst []float32, at int)  { copy(dst, s[at:]) }
func (s stored) WriteAt(src []float32, at int) { copy(s[at:], src) }

// An engine of one's own lists its arrays by saying where each lies.
func ExampleStateOf() {
	g, err := model.Build(disdel.Network{Name: "softmax-regression", Input: []int{1, 2, 2}, Classes: 3})
	if err != nil {
		log.Fatal(err)
	}
	s := engine.Spec{Graph: g, Training: true, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{Momentum: 0.9}}}
	steps := 7
	for _, a := range engine.StateOf(&s, &steps, func(param, _ int) engine.Values {
		return make(stored, g.Params()[param].Len())
	}) {
		fmt.Println(a.Name, a.Shape, a.Role)
	}
	count := make([]float32, 1)
	engine.StepValues(&steps).ReadAt(count, 0)
	fmt.Println(count, s.Optimizer.MomentNames())
	// Output:
	// fc.weight [3 4] weight
	// fc.bias [3] weight
	// step [1] moment
	// fc.weight.momentum [3 4] moment
	// fc.bias.momentum [3] moment
	// [7] [momentum]
}
