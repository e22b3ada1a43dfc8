package native

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// speaker is a language model with layers from a draw.
func speaker(t *testing.T, rng *rand.Rand) *model.Graph {
	t.Helper()
	const vocabulary = 41
	heads := 1 << rng.IntN(3)
	width, positions := heads*2*(1+rng.IntN(12)), 1+rng.IntN(90)
	b := model.NewBuilder("speaker", model.Shape{positions})
	tokens := b.Embedding("e", 0, vocabulary, width, rng.IntN(2) == 0)
	x := tokens
	kind, theta := rng.IntN(3), 0.0
	if kind == 0 { // only rotary positions
		theta = []float64{model.UsualTheta, 20}[rng.IntN(2)]
	}
	if kind > 0 {
		x = b.Positions("p", x, kind == 1)
	}
	for i := range 1 + rng.IntN(2) {
		x = b.Transformer(fmt.Sprint("t", i), x, model.Transformer{
			Attention: model.Attention{
				Heads: heads, KVHeads: 1 << rng.IntN(1+int(math.Log2(float64(heads)))), Causal: true, Theta: theta,
			},
			Hidden: 1 + rng.IntN(70), PostNorm: rng.IntN(2) == 0, Dropout: 0.1 * float64(rng.IntN(2)),
			Activation: []model.Op{0, model.OpGELUTanh, model.OpSiLU, model.OpReLU}[rng.IntN(4)],
		})
	}
	if rng.IntN(2) == 0 { // as Llama has it
		y := b.MultiHeadAttention("l", b.LayerNorm("l.norm", x, model.OpRMSNorm, 0), model.Attention{
			Heads: heads, Causal: true, Theta: 500, NoBias: true,
		})
		gate := b.Same("silu", b.Dense("gate", y, 1+rng.IntN(40)), model.OpSiLU)
		x = b.Add("sum", x, b.Dense("down", b.Multiply("product", gate, b.Dense("up", y, b.Out(gate)[0])), width))
	}
	x = b.LayerNorm("n", x, []model.Op{model.OpLayerNorm, model.OpRMSNorm}[rng.IntN(2)], 0)
	if rng.IntN(2) == 0 {
		b.TiedDense("head", x, tokens)
	} else {
		b.Dense("head", x, vocabulary)
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// logits are the outputs before the softmax for the token behind a text of n tokens.
func logits(e *Engine, n int) []float32 {
	head := &e.layers[e.head]
	out, s := append([]float32(nil), head.out[:head.v.Image.C]...), head.sequence()
	for c := range out {
		if !e.plan.Spec.Text {
			out[c] = head.out[s.Index(n-1, c, 0)]
		}
	}
	return out
}

// A text that grows, changes and starts again gets the outputs that whole rows get, to 1e-5, and the same most probable
// token.
func TestKeptKeysAndValuesChangeNoText(t *testing.T) {
	paths(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(36, 1))
		for range 12 {
			g := speaker(t, rng)
			spec := engine.Spec{BatchSize: 1, Threads: 1 + rng.IntN(2)}
			whole := initialized(t, g, spec)
			spec.Continues = true
			kept := initialized(t, g, spec)
			if !kept.plan.Spec.Text || kept.plan.Len >= whole.plan.Len {
				t.Fatalf("%d values with keys and values kept, %d without", kept.plan.Len, whole.plan.Len)
			}
			var text []float32
			for range 12 {
				text = changed(text, g, rng)
				sameText(t, whole, kept, text)
			}
		}
	})
}

// changed cuts a text somewhere and adds tokens.
func changed(text []float32, g *model.Graph, rng *rand.Rand) []float32 {
	most := g.Input().Len()
	if len(text) == most || rng.IntN(4) == 0 {
		text = text[:rng.IntN(len(text)+1)]
	}
	for n := 1 + rng.IntN(3)*rng.IntN(most); n > 0 && len(text) < most; n-- {
		text = append(text, float32(1+rng.IntN(g.Vocabulary()-1)))
	}
	if len(text) == 0 {
		text = append(text, 1)
	}
	return text
}

func sameText(t *testing.T, whole, kept *Engine, text []float32) {
	t.Helper()
	row := dataset.Dense(1, text, nil)
	want, err1 := whole.Predict(row)
	got, err2 := kept.Predict(row)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if largest(want.Values) != largest(got.Values) {
		t.Errorf("after %d tokens comes %d, and with keys kept %d", len(text), largest(want.Values), largest(got.Values))
	}
	a, b := logits(whole, len(text)), logits(kept, len(text))
	scale := float64(max(1, slices.Max(a), -slices.Min(a)))
	for i := range a {
		if off := math.Abs(float64(a[i] - b[i])); !(off <= 1e-5*scale) {
			t.Fatalf("output %d behind %d of %d tokens is %v, and with keys kept %v", i, len(text), whole.g.Input().Len(), a[i],
				b[i])
		}
	}
}

// Other weights make other keys and values.
func TestNewWeightsForgetKeysAndValues(t *testing.T) {
	g := speaking(t, 9, false, true)
	kept := initialized(t, g, engine.Spec{BatchSize: 1, Continues: true})
	whole := initialized(t, g, engine.Spec{BatchSize: 1})
	text := []float32{3, 1, 4, 1, 5}
	sameText(t, whole, kept, text)
	w := namedWeights(g)
	for _, e := range []*Engine{kept, whole} {
		if err := engine.SetWeights(e, w); err != nil {
			t.Fatal(err)
		}
	}
	sameText(t, whole, kept, text)
}

// An engine that continues texts says what it does not do.
func TestTextsThatAreNone(t *testing.T) {
	e := initialized(t, speaking(t, 9, false, true), engine.Spec{BatchSize: 1, Continues: true})
	for _, b := range []dataset.Batch{
		dataset.Dense(2, []float32{1, 2}, nil), dataset.Dense(1, nil, nil), dataset.Dense(1, make([]float32, 10), nil),
		dataset.Dense(1, []float32{1, 37}, nil),
	} {
		if _, err := e.Predict(b); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%v: %v", b.Input, err)
		}
	}
	_, err := e.Evaluate(dataset.Dense(1, make([]float32, 9), []int32{0}))
	if disdel.KindOf(err) != disdel.Invalid || !strings.Contains(err.Error(), "continue texts") {
		t.Error(err)
	}
}

// Networks that are no causal language models are computed as whole rows.
func TestOnlyLanguageModelsKeepKeys(t *testing.T) {
	for name, g := range map[string]*model.Graph{
		"classifier": attending(t, 7), "images": testNetwork(t, "resnet8-test"),
		"recurrent": testNetwork(t, "recurrent-test"),
	} {
		if plan.ContinuesTexts(g) {
			t.Error(name)
		}
		p, err := PlanOf(engine.Spec{Graph: g, BatchSize: 1, Continues: true})
		if err != nil || p.Spec.Text {
			t.Error(name, err)
		}
	}
}
