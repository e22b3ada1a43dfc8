package sparse_test

import (
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/enginetest"
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
