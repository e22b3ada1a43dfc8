package actions

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// Tokens come as often as temperature, top-k and top-p have it.
func TestTokensAreDrawnByTheirProbabilities(t *testing.T) {
	all := []float32{0.1, 0.4, 0.2, 0.3}
	for name, c := range map[string]struct {
		how    disdel.Continuation
		padded bool
		want   []float64
	}{
		"greedy":     {disdel.Continuation{}, false, []float64{0, 1, 0, 0}},
		"as it says": {disdel.Continuation{Temperature: 1}, false, []float64{0.1, 0.4, 0.2, 0.3}},
		"no padding": {disdel.Continuation{Temperature: 1}, true, []float64{0, 0.4 / 0.9, 0.2 / 0.9, 0.3 / 0.9}},
		"top-k":      {disdel.Continuation{Temperature: 1, TopK: 2}, false, []float64{0, 0.4 / 0.7, 0, 0.3 / 0.7}},
		"top-p":      {disdel.Continuation{Temperature: 1, TopP: 0.75}, false, []float64{0, 4. / 9, 2. / 9, 3. / 9}},
		"temperature": {
			disdel.Continuation{Temperature: 0.5}, false, []float64{0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3},
		},
		"cold": {disdel.Continuation{Temperature: 1e-4}, false, []float64{0, 1, 0, 0}},
		"hot": {
			disdel.Continuation{Temperature: 1e9, TopK: 3}, false, []float64{0, 1. / 3, 1. / 3, 1. / 3},
		},
	} {
		s := sampler{Continuation: c.how, padded: c.padded, random: rand.New(rand.NewPCG(7, 0))}
		const draws = 20_000
		counts := make([]float64, len(all))
		for range draws {
			counts[s.draw(append([]float32(nil), all...))]++
		}
		for token, want := range c.want {
			if got := counts[token] / draws; math.Abs(got-want) > 0.015 || want == 0 && got > 0 {
				t.Errorf("%s: token %d in %.4f of the draws, want %.4f", name, token, got, want)
			}
		}
	}
}

// A model that is sure of the padding, which is no token of a text, still gets a token.
func TestNoTokenIsProbable(t *testing.T) {
	s := sampler{Continuation: disdel.Continuation{Temperature: 1, TopP: 0.5}, padded: true}
	s.random = rand.New(rand.NewPCG(7, 0))
	if token := s.draw([]float32{1, 0, 0}); token < 0 || token > 2 {
		t.Errorf("token %d", token)
	}
}

// counting is a language model that counts: the token behind n is most probably n + 1, and else n + 2.
type counting struct {
	engine.Engine
	longest int
}

func (c *counting) Predict(b dataset.Batch) (dataset.Matrix, error) {
	c.longest = max(c.longest, len(b.Input.Values))
	p := make([]float32, 20)
	last := int(b.Input.Values[len(b.Input.Values)-1])
	p[(last+1)%20], p[(last+2)%20] = 0.75, 0.25
	return dataset.Matrix{Rows: 1, Columns: 20, Values: p}, nil
}

// A text grows by its own last tokens until it is long enough or ends. What is beside it changes nothing.
func TestTextsAreContinuedToTheirEnd(t *testing.T) {
	g, err := model.NewBuilder("row", model.Shape{4}).Graph()
	if err != nil {
		t.Fatal(err)
	}
	e, end := &counting{}, int32(9)
	ask := func(how disdel.Continuation, texts ...[]int32) [][]int32 {
		t.Helper()
		res, err := continueTexts(t.Context(), e, g, disdel.InferRequest{Texts: texts, Continuation: how})
		if err != nil {
			t.Fatal(err)
		}
		return res.Continued
	}
	got := ask(disdel.Continuation{Tokens: 5, End: &end}, []int32{1}, []int32{2, 3, 4, 5, 6}, []int32{8})
	for i, want := range [][]int32{{2, 3, 4, 5, 6}, {7, 8}, {}} {
		if !slices.Equal(got[i], want) {
			t.Errorf("text %d is continued with %v, want %v", i, got[i], want)
		}
	}
	if e.longest != 4 {
		t.Errorf("the model read %d tokens at once, and its rows have 4", e.longest)
	}
	drawn := disdel.Continuation{Tokens: 40, Temperature: 1, Seed: 3}
	alone, beside := ask(drawn, []int32{1})[0], ask(drawn, []int32{1}, []int32{5})
	if !slices.Equal(alone, beside[0]) {
		t.Errorf("alone %v, beside another one %v", alone, beside[0])
	}
	if drawn.Seed = 4; slices.Equal(alone, ask(drawn, []int32{1})[0]) {
		t.Error("another seed draws the same tokens")
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := continueTexts(stopped, e, g, disdel.InferRequest{Texts: [][]int32{{1}}, Continuation: drawn}); err == nil {
		t.Error("a canceled action says nothing")
	}
}
