package gorgonia

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// perceptron is a user's graph: a hidden layer of gorgonia's own operations, batch norm of ours.
func perceptron(o *Ops) (*Program, error) {
	g := gorgonia.NewGraph()
	matrix := func(name string, init gorgonia.InitWFn, rows, columns int) *gorgonia.Node {
		n := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName(name), gorgonia.WithShape(rows, columns))
		if init != nil {
			gorgonia.WithInit(init)(n)
		}
		return n
	}
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("x"), gorgonia.WithShape(o.Rows(), 4))
	y := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("y"), gorgonia.WithShape(o.Rows(), 3))
	w1, w2 := matrix("w1", gorgonia.GlorotU(1), 4, 6), matrix("w2", nil, 6, 3)
	scale, shift := matrix("scale", gorgonia.Ones(), 1, 6), matrix("shift", gorgonia.Zeroes(), 1, 6)
	mean, variance := matrix("mean", gorgonia.Zeroes(), 1, 6), matrix("variance", gorgonia.Ones(), 1, 6)
	hidden, err := o.BatchNorm(gorgonia.Must(gorgonia.Mul(x, w1)), scale, shift, mean, variance, Norm{})
	if err != nil {
		return nil, err
	}
	out := gorgonia.Must(gorgonia.Mul(gorgonia.Must(gorgonia.Tanh(hidden)), w2))
	loss := gorgonia.Must(gorgonia.Mean(gorgonia.Must(gorgonia.Square(gorgonia.Must(gorgonia.Sub(out, y))))))
	return &Program{
		Graph: g, Input: x, Target: y, Output: out, Loss: loss,
		Params: gorgonia.Nodes{w1, scale, shift, w2}, State: gorgonia.Nodes{mean, variance},
	}, nil
}

var own1 = Network{Name: "perceptron", Sample: []int{4}, Classes: 3, Build: perceptron}

func customEngine(t *testing.T, cfg engine.Spec) *Engine {
	t.Helper()
	e, err := FromGraph(own1, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if err := e.Init(disdel.Init{Seed: 5}); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAUsersGraphIsDescribed(t *testing.T) {
	d, err := Describe(own1)
	if err != nil {
		t.Fatal(err)
	}
	zero, one := new(float32), new(float32)
	*one = 1
	want := disdel.CustomNetwork{Name: "perceptron", Input: []int{4}, Classes: 3, Params: []disdel.CustomParam{
		{Name: "w1", Shape: []int{4, 6}, Trainable: true},
		{Name: "scale", Shape: []int{1, 6}, Trainable: true, Fill: one},
		{Name: "shift", Shape: []int{1, 6}, Trainable: true, Fill: zero},
		{Name: "w2", Shape: []int{6, 3}, Trainable: true},
		{Name: "mean", Shape: []int{1, 6}, Fill: zero},
		{Name: "variance", Shape: []int{1, 6}, Fill: one},
	}}
	want.Activations = 6 + 6 + 6 + 3 + 3 + 3 // two products, batch norm, tanh, difference, square
	want.Backward = d.Backward
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d.Backward < d.Activations/2 || d.Backward > 5*d.Activations {
		t.Errorf("%d values backward, %d forward", d.Backward, d.Activations)
	}
	g, err := model.Build(disdel.Network{Custom: &d, Input: []int{4}, Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	e := customEngine(t, engine.Spec{BatchSize: 3})
	if err := engine.SetWeights(e, engine.InitWeights(g, disdel.Init{Seed: 1})); err != nil {
		t.Errorf("first weights do not fit the graph: %v", err)
	}
	before := engine.Weights(e)
	if err := e.Init(disdel.Init{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	same(t, before, engine.Weights(e))
	for _, w := range engine.Weights(e) {
		if (w.Name == "scale" || w.Name == "variance") && w.Data[0] != 1 {
			t.Errorf("%s starts from %v", w.Name, w.Data[0])
		}
	}
}

// Short batches and single rows train a user's graph as they train any other: weights move by the mean gradient.
func TestAUsersGraphTrains(t *testing.T) {
	e := customEngine(t, engine.Spec{
		BatchSize: 9, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.05}},
		Training: true,
	})
	rows := func(n int) ([]float32, []int32) {
		x, y := make([]float32, 4*n), make([]int32, n)
		for i := range n {
			y[i] = int32(i % 3)
			for k := range 4 {
				x[4*i+k] = float32(math.Sin(float64(3*i+k))) / 4
			}
			x[4*i+int(y[i])] += 2
		}
		return x, y
	}
	for step := range 60 {
		x, y := rows([]int{9, 4}[step%2])
		if _, err := enginetest.Train(e, x, y); err != nil {
			t.Fatal(err)
		}
	}
	x, y := rows(9)
	loss, correct, err := enginetest.Evaluate(e, x, y)
	if err != nil || correct != 9 || loss > 9*0.05 {
		t.Errorf("%d of 9 right, loss %v; %v", correct, loss, err)
	}
	for _, w := range engine.Weights(e) {
		if w.Name == "mean" && w.Data[0] == 0 {
			t.Error("the running mean did not move")
		}
	}
}

func TestUnfitGraphsAreRefused(t *testing.T) {
	change := func(f func(p *Program)) Network {
		n := own1
		n.Build = func(o *Ops) (*Program, error) {
			p, err := perceptron(o)
			if err == nil {
				f(p)
			}
			return p, err
		}
		return n
	}
	calls := 0
	for name, n := range map[string]Network{
		"no name":   {Sample: []int{4}, Classes: 3, Build: perceptron},
		"no loss":   change(func(p *Program) { p.Loss = nil }),
		"classes":   {Name: "n", Sample: []int{4}, Classes: 5, Build: perceptron},
		"sample":    {Name: "n", Sample: []int{5}, Classes: 3, Build: perceptron},
		"wide loss": change(func(p *Program) { p.Loss = p.Output }),
		"twice":     change(func(p *Program) { p.Params = append(p.Params, p.Params[0]) }),
		"no input":  change(func(p *Program) { p.Params[0] = p.Output }),
		"panic":     change(func(*Program) { panic("shape") }),
		"no gradient": change(func(p *Program) {
			p.Params = append(p.Params,
				gorgonia.NewVector(p.Graph, tensor.Float32, gorgonia.WithName("lost"), gorgonia.WithShape(2)))
		}),
		"other names": change(func(p *Program) {
			calls++
			gorgonia.WithName(fmt.Sprint("w", calls))(p.Params[0])
		}),
	} {
		e, err := FromGraph(n, engine.Spec{BatchSize: 3, Training: true})
		if err == nil && name == "other names" {
			_, _, err = enginetest.Evaluate(e, make([]float32, 8), make([]int32, 2))
		}
		if !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}

// A binary computes its own network only, as it was when the job was planned.
func TestAnotherNetworkIsRefused(t *testing.T) {
	d, err := Describe(own1)
	if err != nil {
		t.Fatal(err)
	}
	own := Backend{Own: &own1}
	ask := func(b Backend, d disdel.CustomNetwork) (fromNew, fromSupports error) {
		g, err := model.Build(disdel.Network{Custom: &d, Input: d.Input, Classes: d.Classes})
		if err != nil {
			t.Fatal(err)
		}
		e, err := b.New(engine.Spec{Graph: g, BatchSize: 2})
		if e != nil {
			e.Close()
		}
		return err, b.Supports(g)
	}
	if err, supports := ask(own, d); err != nil || supports != nil {
		t.Errorf("%v, %v", err, supports)
	}
	other, changed := d, d
	other.Name = "other"
	changed.Params = d.Params[1:]
	for name, c := range map[string]struct {
		b Backend
		d disdel.CustomNetwork
	}{"none": {Backend{}, d}, "other": {own, other}, "changed": {own, changed}} {
		if err, supports := ask(c.b, c.d); !errors.Is(err, disdel.Invalid) || !errors.Is(supports, disdel.Invalid) {
			t.Errorf("%s: New returns %v and Supports %v, want Invalid", name, err, supports)
		}
	}
}
