package sparse_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/sparse"
)

func TestTheBackendKeepsItsPromises(t *testing.T) { enginetest.ExerciseSparse(t, sparse.Backend{}) }

// One step of a factorisation by hand: 2 users, 2 items, rank 1.
func TestAStepOfAFactorisationByHand(t *testing.T) {
	g := enginetest.SparseGraph(t, "pmf", 2, 2, 1, 0)
	e, err := sparse.Backend{}.New(engine.Spec{
		Graph: g, BatchSize: 2, Training: true,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.5, Momentum: 0.5, Nesterov: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	tensor := func(name string, shape []int, v ...float32) disdel.Tensor {
		return disdel.Tensor{Name: name, Shape: shape, Data: v}
	}
	err = engine.SetWeights(e, disdel.Weights{
		tensor("users.weight", []int{2, 1}, 1, 2), tensor("users.bias", []int{2}, 0.25, 0),
		tensor("items.weight", []int{2, 1}, 0.5, -1), tensor("items.bias", []int{2}, 0, 0.5),
	})
	if err != nil {
		t.Fatal(err)
	}
	// Both ratings are of user 0. The offset of the graph is 3.5: of item 0 it expects 3.5 + .25 + 0 + .5 = 4.25, of item
	// 1 3.5 + .25 + .5 - 1 = 3.25. With the targets 4 and 4 the differences are .25 and -.75, the slopes over two rows .25
	// and -.75, and the mean of the squares (.0625 + .5625) / 2.
	m, err := e.Step(dataset.Batch{
		Input:  dataset.Matrix{Rows: 2, Columns: 4, Start: []int32{0, 2, 4}, Index: []int32{0, 2, 0, 3}},
		Target: dataset.Target{Values: []float32{4, 4}},
	})
	if err != nil || m.Loss != 0.3125 {
		t.Fatalf("%+v, %v", m, err)
	}
	// A first step of Nesterov's is rate x (1 + momentum) = .75 of the gradient. That of user 0 is .25 x .5 + -.75 x -1 =
	// .875, of its bias -.5; of the items .25 x 1 and -.75 x 1, as of their biases. User 1 stays.
	want := [][]float32{{1 - 0.75*0.875, 2}, {0.25 + 0.75*0.5, 0}, {0.5 - 0.75*0.25, -1 + 0.75*0.75}, {-0.75 * 0.25, 0.5 + 0.75*0.75}}
	for i, v := range engine.Weights(e) {
		for k, x := range v.Data {
			if math.Abs(float64(x-want[i][k])) > 1e-6 {
				t.Errorf("%s is %v, want %v", v.Name, v.Data, want[i])
			}
		}
	}
}

// The loss goes by the sum, so that a prediction that is rounded to 0 or 1 has a finite loss and a slope.
func TestSureAndWrongPredictionsHaveAFiniteLoss(t *testing.T) {
	g := enginetest.SparseGraph(t, "logistic", 0, 0, 0, 1)
	e, err := sparse.Backend{}.New(engine.Spec{
		Graph: g, BatchSize: 1, Training: true, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for y, sum := range map[float32]float64{0: 400, 1: -400} {
		err := engine.SetWeights(e, disdel.Weights{
			{Name: "linear.weight", Shape: []int{1, 1}, Data: []float32{float32(sum)}},
			{Name: "linear.bias", Shape: []int{1}, Data: []float32{0}},
		})
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.Step(dataset.Batch{
			Input:  dataset.Matrix{Rows: 1, Columns: 1, Start: []int32{0, 1}, Index: []int32{0}},
			Target: dataset.Target{Values: []float32{y}},
		})
		moved := sum - float64(engine.Weights(e)[0].Data[0])
		if err != nil || m.Loss != 400 || math.Abs(moved) != 1 {
			t.Errorf("a target of %v at %v: %+v, moved by %v, %v", y, sum, m, moved, err)
		}
	}
}

// Plain gradients of a logistic regression move weights at once; a bound for the gradient's length that is never
// reached has them go by the gradient, to the same loss and nearly the same weights.
func TestPlainStepsComeToTheSame(t *testing.T) {
	g := enginetest.SparseGraph(t, "logistic", 0, 0, 0, 40)
	var at, around engine.Engine
	for _, c := range []struct {
		e     *engine.Engine
		bound float64
	}{{&at, 0}, {&around, 1e30}} {
		var err error
		*c.e, err = sparse.Backend{}.New(engine.Spec{
			Graph: g, BatchSize: 1000, Training: true, ClipNorm: c.bound,
			Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 3}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer (*c.e).Close()
	}
	for step := range 5 {
		b := enginetest.SparseBatch(g, 1000-300*(step%2), uint64(step)) // of more rows than one logarithm is taken of
		one, err1 := at.Step(b)
		other, err2 := around.Step(b)
		if err1 != nil || err2 != nil || math.Abs(one.Loss/other.Loss-1) > 1e-6 || one.Rows != other.Rows {
			t.Fatalf("step %d: %+v, %v; %+v, %v", step, one, err1, other, err2)
		}
	}
	for i, v := range engine.Weights(at) {
		for k, x := range v.Data {
			if y := engine.Weights(around)[i].Data[k]; math.Abs(float64(x-y)) > 1e-5 {
				t.Errorf("%s %d is %v, and %v by the gradient", v.Name, k, x, y)
			}
		}
	}
}

// Users and items that were made by known factors are found again: the loss falls far below that of guessing.
func TestFactorsAreFound(t *testing.T) {
	g := enginetest.SparseGraph(t, "pmf", 7, 9, 5, 0)
	e, err := sparse.Backend{}.New(engine.Spec{
		Graph: g, BatchSize: 63, Training: true,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.5, Momentum: 0.8, Nesterov: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	var all dataset.Batch // every cell of a matrix of rank 2
	all.Input = dataset.Matrix{Columns: 16, Start: []int32{0}}
	for u := range 7 {
		for i := range 9 {
			all.Input.Index = append(all.Input.Index, int32(u), int32(7+i))
			all.Input.Start = append(all.Input.Start, int32(len(all.Input.Index)))
			v := 3.5 + math.Sin(float64(u))*math.Cos(float64(i)) + 0.3*math.Cos(float64(2*u))*math.Sin(float64(i))
			all.Target.Values = append(all.Target.Values, float32(v))
			all.Input.Rows++
		}
	}
	var first, last float64
	for i := range 400 {
		m, err := e.Step(all)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = m.Loss
		}
		last = m.Loss
	}
	if last > first/100 {
		t.Errorf("the loss fell from %v to %v", first, last)
	}
}

func benchmark(b *testing.B, name string, rows int, o disdel.Optimizer) {
	g := enginetest.SparseGraph(b, name, 6040, 3706, 20, 100_000)
	e, err := sparse.Backend{}.New(engine.Spec{Graph: g, BatchSize: rows, Training: true, Optimizer: o})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Seed: 1}); err != nil {
		b.Fatal(err)
	}
	var batches []dataset.Batch
	for i := range 8 {
		small := g
		if g.Sparse().Users == 0 { // whose permutations take no longer than the steps
			small = enginetest.SparseGraph(b, name, 0, 0, 0, 1000)
		}
		x := enginetest.SparseBatch(small, rows, uint64(i))
		if g.Sparse().Users == 0 {
			for k := range x.Input.Index {
				x.Input.Index[k] = (x.Input.Index[k]*9973 + int32(i)*31) % 100_000
			}
		}
		batches = append(batches, x)
	}
	i := 0
	for b.Loop() {
		if _, err := e.Step(batches[i%len(batches)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkStep is of the path that DISDEL_KERNELS names: portable beside the default tells what kernels are worth.
func BenchmarkStep(b *testing.B) {
	nesterov := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1e-3, Momentum: 0.8, Nesterov: true}}
	adam := disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 1e-4}}
	b.Run("pmf/6040x3706/rank=20/batch=6250/nesterov", func(b *testing.B) { benchmark(b, "pmf", 6250, nesterov) })
	b.Run("pmf/6040x3706/rank=20/batch=250/nesterov", func(b *testing.B) { benchmark(b, "pmf", 250, nesterov) })
	plain := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1e-3}}
	b.Run("logistic/100000/entries=4/batch=6250/sgd", func(b *testing.B) { benchmark(b, "logistic", 6250, plain) })
	b.Run("logistic/100000/entries=4/batch=6250/adam", func(b *testing.B) { benchmark(b, "logistic", 6250, adam) })
}

func ExampleBackend() {
	m, _ := model.FindSparse("pmf")
	network := m.Describe(disdel.DataInfo{
		Sample: []int{5}, Classes: 1, Train: 4,
		Sparse: &disdel.SparseData{Entries: 8, Most: 2, Ones: true, Users: 2, Items: 3, Mean: 3},
	}, 4, disdel.Init{})
	g, err := model.Build(network)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := sparse.Backend{}.New(engine.Spec{
		Graph: g, BatchSize: 2, Training: true, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	// Users 0 and 1 rate item 2, whose column comes after those of the two users: with 5 and with 1.
	batch := dataset.Batch{
		Input:  dataset.Matrix{Rows: 2, Columns: 5, Start: []int32{0, 2, 4}, Index: []int32{0, 4, 1, 4}},
		Target: dataset.Target{Values: []float32{5, 1}},
	}
	before, _ := e.Step(batch)
	after, _ := e.Evaluate(batch)
	fmt.Printf("%d arrays, loss %.2f, then %.2f\n", len(engine.Weights(e)), before.Loss, after.Loss)
	// Output: 4 arrays, loss 4.00, then 3.24
}
