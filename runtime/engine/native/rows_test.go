package native

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// permuted returns rows in another order. Each row has per values.
func permuted[T any](order []int, per int, rows []T) []T {
	out := make([]T, 0, len(rows))
	for _, r := range order {
		out = append(out, rows[r*per:(r+1)*per]...)
	}
	return out
}

// drops reports whether a network draws what it drops: then the place of a row in its batch matters.
func drops(g *model.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(n model.Node) bool {
		return n.Op == model.OpDropout || n.Op == model.OpDropout2D || n.Op == model.OpDropPath
	})
}

// The order of a batch's rows changes no prediction by a bit. The mean loss and the trained weights are sums over rows:
// they differ only by rounding.
func TestTheOrderOfRowsChangesNothing(t *testing.T) {
	all := networks()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom(names).Draw(r, "network")
		g := build(t, name, all[name])
		rows := rapid.IntRange(2, 20).Draw(r, "rows")
		x, y := batch(g, rows, rapid.Uint64().Draw(r, "seed"))
		order := make([]int, rows)
		for i := range order {
			order[i] = i
		}
		order = rapid.Permutation(order).Draw(r, "order")
		px, py := permuted(order, g.Input().Len(), x), permuted(order, 1, y)

		e := initialized(t, g, engine.Spec{BatchSize: rows, Training: true, Optimizer: sgd1, Threads: 2})
		plain, err1 := enginetest.Predict(e, x, rows)
		other, err2 := enginetest.Predict(e, px, rows)
		if err1 != nil || err2 != nil {
			r.Fatal(err1, err2)
		}
		if !slices.Equal(permuted(order, len(plain)/rows, plain), other) {
			r.Errorf("%s: other predictions of the same rows", name)
		}
		loss, right, err1 := enginetest.Evaluate(e, x, y)
		pLoss, pRight, err2 := enginetest.Evaluate(e, px, py)
		if right != pRight || math.Abs(loss-pLoss) > 1e-6*max(1, loss) || err1 != nil || err2 != nil {
			r.Errorf("%s: loss %v and %d right, in another order %v and %d; %v, %v", name, loss, right, pLoss, pRight,
				err1, err2)
		}
		if drops(g) {
			return
		}
		sameButRounding(r, name, stepped(r, e, g, x, y), stepped(r, e, g, px, py))
	})
}

// stepped is the weights after one step from the same start.
func stepped(r *rapid.T, e *Engine, g *model.Graph, x []float32, y []int32) disdel.Weights {
	if err := engine.SetWeights(e, namedWeights(g)); err != nil {
		r.Fatal(err)
	}
	if _, err := enginetest.Train(e, x, y); err != nil {
		r.Fatal(err)
	}
	return engine.Weights(e)
}

func sameButRounding(r *rapid.T, name string, a, b disdel.Weights) {
	for i := range a {
		for k, v := range a[i].Data {
			if d := math.Abs(float64(v - b[i].Data[k])); !(d <= 2e-4*max(1, math.Abs(float64(v)))) {
				r.Fatalf("%s: %s[%d] is %v, and %v in another order", name, a[i].Name, k, v, b[i].Data[k])
			}
		}
	}
}
