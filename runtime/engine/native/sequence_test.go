package native

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// attending is a network of rows of so many tokens whose weights do not depend on how many.
func attending(t *testing.T, positions int) *model.Graph {
	t.Helper()
	b := model.NewBuilder("attending", model.Shape{positions})
	x := b.Positions("p", b.Embedding("e", 0, 9, 8, true), true)
	x = b.Transformer("t", x, model.Transformer{Attention: model.Attention{Heads: 2}, Hidden: 12})
	b.Dense("fc", b.TakePosition("mean", x, model.TakeMean), 3)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Padding changes no prediction, and neither loss nor gradient, but for the order of sums.
func TestPaddingChangesNothing(t *testing.T) {
	short, long := attending(t, 7), attending(t, 40)
	x, y := batch(short, 16, 3)
	for i := range x {
		x[i] = 1 + float32(int(x[i])%8) // no padding yet
	}
	padded := make([]float32, 0, 16*40)
	for r := range 16 {
		padded = append(append(padded, x[r*7:(r+1)*7]...), make([]float32, 33)...)
	}
	spec := engine.Spec{BatchSize: 16, Training: true, Optimizer: sgd1}
	a, b := initialized(t, short, spec), initialized(t, long, spec)
	want, err1 := enginetest.Predict(a, x, 16)
	got, err2 := enginetest.Predict(b, padded, 16)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	near(t, "outputs", want, got)
	lossA, err1 := enginetest.Train(a, x, y)
	lossB, err2 := enginetest.Train(b, padded, y)
	if err1 != nil || err2 != nil || math.Abs(lossA-lossB) > 1e-5 {
		t.Fatal(lossA, lossB, err1, err2)
	}
	after := engine.Weights(b)
	for i, v := range engine.Weights(a) {
		near(t, v.Name, v.Data, after[i].Data)
	}
}

func near(t *testing.T, what string, want, got []float32) {
	t.Helper()
	for i, v := range want {
		if math.Abs(float64(v-got[i])) > 1e-5 {
			t.Fatalf("%s[%d] is %v, and %v with padding", what, i, v, got[i])
		}
	}
}

// Values that are no tokens of the vocabulary are refused with their place, before a weight changes.
func TestValuesThatAreNoTokens(t *testing.T) {
	g := attending(t, 7)
	for _, odd := range []float32{-1, 9, 2.5, float32(math.NaN()), float32(math.Inf(1))} {
		x, y := batch(g, 4, 1)
		x[2*7+5] = odd
		e := initialized(t, g, engine.Spec{BatchSize: 4, Training: true, Optimizer: sgd1})
		before := engine.Weights(e)
		_, err := enginetest.Train(e, x, y)
		_, err2 := enginetest.Predict(e, x, 4)
		for _, err := range []error{err, err2} {
			if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "row 2 of the batch has") ||
				!strings.Contains(err.Error(), "at position 5") {
				t.Errorf("%v: %v", odd, err)
			}
		}
		sameBits(t, "weights", before, engine.Weights(e))
	}
}

// Only float32 trains sequences, and New says so.
func TestSequencesTrainWithFloat32(t *testing.T) {
	_, err := New(in16(engine.Spec{Graph: attending(t, 7), BatchSize: 4, Optimizer: sgd1}))
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "trained with float32") {
		t.Error(err)
	}
}

// An attention's memory beside its output is linear in the positions.
func TestAttentionIsLinearInPositions(t *testing.T) {
	var sizes []int
	for _, positions := range []int{64, 128, 192} {
		p, err := plan.New(attending(t, positions), plan.Spec{BatchSize: 16, Training: true})
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, p.Len)
	}
	if !slices.IsSorted(sizes) || sizes[2]-sizes[1] > (sizes[1]-sizes[0])*11/10 {
		t.Errorf("values of the plan: %v", sizes)
	}
}

// Few rows train as they do in an engine for many, whose positions each have a pixel of their own: to 1e-5, also where
// the batch is not full.
func TestFoldedSequencesTrainAsOthers(t *testing.T) {
	folds := map[int]bool{}
	for seed := range uint64(60) {
		g := drawSequences(t, 3600+seed)
		size := 1 + int(seed)%16
		rows := max(1, size-int(seed)%3)
		x, y := drawBatch(g, rows)
		var weights [2]disdel.Weights
		for i, batch := range []int{size, 17} {
			e := initialized(t, g, engine.Spec{BatchSize: batch, Optimizer: sgd1, Training: true, Threads: 1 + i})
			folds[e.plan.Fold] = true
			if _, err := enginetest.Train(e, x, y); err != nil {
				t.Fatal(err)
			}
			weights[i] = engine.Weights(e)
		}
		for i, p := range weights[0] {
			for k, v := range p.Data {
				if want := weights[1][i].Data[k]; math.Abs(float64(v-want)) > 1e-5*max(1, math.Abs(float64(want))) {
					t.Fatalf("%s, %d of %d rows: value %d of %s is %v, not %v", g.Name, rows, size, k, p.Name, v, want)
				}
			}
		}
	}
	if len(folds) < 4 {
		t.Errorf("folds are %v", folds)
	}
}
