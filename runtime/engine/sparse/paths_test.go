package sparse_test

import (
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/sparse"
)

// Steps come to the same bits by every path of kernels that this processor has, of ranks and batches that fill no
// vector.
func TestEveryPathComesToTheSameBits(t *testing.T) {
	for name, o := range map[string]disdel.Optimizer{
		"sgd":      {SGD: &disdel.SGD{LearningRate: 0.1, WeightDecay: 0.01}},
		"momentum": {SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9}},
		"nesterov": {SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9, Nesterov: true}},
		"adam":     {Adam: &disdel.Adam{LearningRate: 0.01}},
		"adamw":    {AdamW: &disdel.Adam{LearningRate: 0.01, WeightDecay: 0.1}},
		"rmsprop":  {RMSprop: &disdel.RMSprop{LearningRate: 0.001, Momentum: 0.5}},
		"adagrad":  {Adagrad: &disdel.Adagrad{LearningRate: 0.01, WeightDecay: 0.1}},
		"lion":     {Lion: &disdel.Lion{LearningRate: 0.001, WeightDecay: 0.1}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, rank := range []int{1, 5, 20, 31} {
				onEveryPath(t, enginetest.SparseGraph(t, "pmf", 40, 30, rank, 0), o)
			}
			for _, m := range []string{"logistic", "linear"} {
				onEveryPath(t, enginetest.SparseGraph(t, m, 0, 0, 0, 50), o)
			}
		})
	}
}

func onEveryPath(t *testing.T, g *model.Graph, o disdel.Optimizer) {
	t.Helper()
	var want []uint32
	for _, s := range kernel.Sets() {
		t.Setenv(kernel.Variable, s.Name)
		e, err := sparse.Backend{}.New(engine.Spec{Graph: g, BatchSize: 300, Training: true, ClipNorm: 0.5, Optimizer: o})
		if err != nil {
			t.Fatal(err)
		}
		if e.Kernels() != s.Name {
			t.Errorf("kernels %q, and %q was asked for", e.Kernels(), s.Name)
		}
		if err := e.Init(disdel.Init{Seed: 3}); err != nil {
			t.Fatal(err)
		}
		var got []uint32
		for i := range 6 {
			m, err := e.Step(enginetest.SparseBatch(g, 300-43*i, uint64(i))) // more ratings than go through together, and fewer
			if err != nil {
				t.Fatal(err)
			}
			loss := math.Float64bits(m.Loss)
			got = append(got, uint32(loss), uint32(loss>>32))
		}
		for _, v := range engine.Weights(e) {
			for _, x := range v.Data {
				got = append(got, math.Float32bits(x))
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s of rank %d: %s has other bits than %s", g.Name, g.Sparse().Rank, s.Name, kernel.Sets()[0].Name)
		}
	}
}

// A batch of more rows than go through a step together comes to what each of its rows comes to alone.
func TestManyRowsComeToWhatEachDoes(t *testing.T) {
	for _, name := range []string{"pmf", "logistic", "linear"} {
		g := enginetest.SparseGraph(t, name, 40, 30, 5, 50)
		e, err := sparse.Backend{}.New(engine.Spec{
			Graph: g, BatchSize: 300, Training: true, Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if err := e.Init(disdel.Init{Seed: 3}); err != nil {
			t.Fatal(err)
		}
		b := enginetest.SparseBatch(g, 300, 1)
		if _, err := e.Step(b); err != nil { // to weights other than zero
			t.Fatal(err)
		}
		before := engine.Weights(e)
		all, err := e.Evaluate(b)
		if err != nil {
			t.Fatal(err)
		}
		scores, sum := slices.Clone(all.Scores), make([][]float64, len(before))
		for r := range b.Input.Rows {
			one, err := e.Evaluate(only(b, r))
			if err != nil || one.Scores[0] != scores[r] {
				t.Fatalf("%s: row %d alone is predicted as %v, among others as %v: %v", name, r, one.Scores, scores[r], err)
			}
			e.SetRate(1. / 300)
			if _, err := e.Step(only(b, r)); err != nil {
				t.Fatal(err)
			}
			for i, v := range engine.Weights(e) {
				sum[i] = slices.Grow(sum[i], len(v.Data))[:len(v.Data)]
				for k, x := range v.Data {
					sum[i][k] += float64(x - before[i].Data[k])
				}
			}
			if err := engine.SetWeights(e, before); err != nil {
				t.Fatal(err)
			}
		}
		e.SetRate(1)
		if _, err := e.Step(b); err != nil {
			t.Fatal(err)
		}
		for i, v := range engine.Weights(e) {
			for k, x := range v.Data {
				if moved := float64(x - before[i].Data[k]); math.Abs(moved-sum[i][k]) > 2e-5 {
					t.Errorf("%s: %s %d moves by %v, and by %v of each row", name, v.Name, k, moved, sum[i][k])
				}
			}
		}
	}
}

// only is one row of a batch.
func only(b dataset.Batch, r int) dataset.Batch {
	from, to := b.Input.Start[r], b.Input.Start[r+1]
	one := dataset.Batch{Input: dataset.Matrix{
		Rows: 1, Columns: b.Input.Columns, Start: []int32{0, to - from}, Index: b.Input.Index[from:to],
	}}
	if b.Input.Values != nil {
		one.Input.Values = b.Input.Values[from:to]
	}
	one.Target.Values = b.Target.Values[r : r+1]
	return one
}
