package native

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// speaking is a language model of 37 tokens whose weights do not depend on the positions, tied or not.
func speaking(t *testing.T, positions int, padded, tied bool) *model.Graph {
	t.Helper()
	b := model.NewBuilder("speaking", model.Shape{positions})
	tokens := b.Embedding("e", 0, 37, 8, padded)
	x := b.Transformer("t", b.Positions("p", tokens, true), model.Transformer{
		Attention: model.Attention{Heads: 2, Causal: true}, Hidden: 12,
	})
	if x = b.LayerNorm("n", x, model.OpLayerNorm, 0); tied {
		b.TiedDense("head", x, tokens)
	} else {
		b.Dense("head", x, 37)
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The weights of a language model move by the difference quotient of its mean loss over all targets, with every path of
// kernels, tied or not, with padding, in whole batches and short ones.
func TestGradientsOfLanguageModels(t *testing.T) {
	race.SkipSequential(t)
	paths(t, func(t *testing.T) {
		for _, tied := range []bool{true, false} {
			for _, padded := range []bool{true, false} {
				for _, rows := range []int{16, 5} {
					checkGradient(t, speaking(t, 7, padded, tied), CrossEntropy, rows)
				}
			}
		}
	})
}

// Micro-batches of a language model give the gradient of the whole batch, however many targets each has.
func TestMicroBatchesOfLanguageModels(t *testing.T) {
	g := speaking(t, 7, true, true)
	x, y := batch(g, 16, 5)
	for i := range 20 {
		x[len(x)-1-i*5] = 0
	}
	spec := engine.Spec{BatchSize: 16, Training: true, Optimizer: sgd1}
	whole := initialized(t, g, spec)
	spec.MicroBatch = 6
	parts := initialized(t, g, spec)
	a, err1 := enginetest.Train(whole, x, y)
	b, err2 := enginetest.Train(parts, x, y)
	if err1 != nil || err2 != nil || math.Abs(a-b) > 1e-6 {
		t.Fatal(a, b, err1, err2)
	}
	after := engine.Weights(parts)
	for i, v := range engine.Weights(whole) {
		near(t, v.Name, v.Data, after[i].Data)
	}
}

// The loss is that of the definition: the mean, over all positions with a target, of the negative logarithm of what
// Predict says of the token behind them. Padding changes neither it nor a weight.
func TestLossOfLanguageModels(t *testing.T) {
	short, long := speaking(t, 7, true, true), speaking(t, 40, true, true)
	x, y := batch(short, 5, 3)
	for i := range x {
		x[i] = 1 + float32(int(x[i])%36)
	}
	padded := make([]float32, 0, 5*40)
	for r := range 5 {
		padded = append(append(padded, x[r*7:(r+1)*7]...), make([]float32, 33)...)
	}
	spec := engine.Spec{BatchSize: 5, Training: true, Optimizer: sgd1}
	a, b := initialized(t, short, spec), initialized(t, long, spec)
	var want float64
	for n := 1; n < 7; n++ { // of rows that end at position n-1
		rows := make([]float32, 5*40)
		for r := range 5 {
			copy(rows[r*40:], x[r*7:][:n])
		}
		p, err := enginetest.Predict(b, rows, 5)
		if err != nil {
			t.Fatal(err)
		}
		for r := range 5 {
			want -= math.Log(float64(p[r*37+int(x[r*7+n])])) / (5 * 6)
		}
	}
	m, err := b.Evaluate(dataset.Batch{
		Input: dataset.Matrix{Rows: 5, Values: padded}, Target: dataset.Target{Classes: y},
	})
	if err != nil || math.Abs(m.Loss-want) > 1e-5 || m.Targets != 30 {
		t.Fatal(m, want, err)
	}
	lossA, err1 := enginetest.Train(a, x, y)
	lossB, err2 := enginetest.Train(b, padded, y)
	if err1 != nil || err2 != nil || math.Abs(lossA-want) > 1e-5 || math.Abs(lossB-want) > 1e-5 {
		t.Fatal(lossA, lossB, want, err1, err2)
	}
	after := engine.Weights(b)
	for i, v := range engine.Weights(a) {
		near(t, v.Name, v.Data, after[i].Data)
	}
}

// A language model learns a sequence that repeats: the token behind each is the one after it.
func TestLanguageModelLearns(t *testing.T) {
	g := speaking(t, 12, false, true)
	e := initialized(t, g, engine.Spec{
		BatchSize: 16, Training: true, Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.02}},
	})
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float32, 16*12), make([]int32, 16)
	var loss float64
	for range 150 {
		for r := range 16 {
			at := rng.IntN(37)
			for i := range 12 {
				x[r*12+i] = float32((at + i*5) % 37)
			}
		}
		var err error
		if loss, err = enginetest.Train(e, x, y); err != nil {
			t.Fatal(err)
		}
	}
	m, err := e.Evaluate(dataset.Batch{Input: dataset.Matrix{Rows: 16, Values: x}, Target: dataset.Target{Classes: y}})
	if err != nil || loss > 0.5 || m.Correct < m.Targets*9/10 || m.Targets != 16*11 {
		t.Errorf("a loss of %.3f, %d of %d right, %v", loss, m.Correct, m.Targets, err)
	}
	row := x[:12]
	for n := 4; n <= 12; n++ { // a text that is shorter than a row
		p, err := e.Predict(dataset.Dense(1, row[:n], nil))
		if want := (int(row[n-1]) + 5) % 37; err != nil || largest(p.Values) != want {
			t.Errorf("after %v comes %d, want %d; %v", row[:n], largest(p.Values), want, err)
		}
	}
	for _, tokens := range [][]float32{nil, make([]float32, 13), {38}} {
		if _, err := e.Predict(dataset.Dense(1, tokens, nil)); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%v: %v", tokens, err)
		}
	}
}
