package actions

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel"
)

// Tokens come as often as temperature, top-k and top-p have it.
func TestTokensAreDrawnByTheirProbabilities(t *testing.T) {
	all := []float32{0.1, 0.4, 0.2, 0.3}
	for name, c := range map[string]struct {
		how    disdel.Continuation
		padded bool
		want   []float64
	}{
		"greedy":      {disdel.Continuation{}, false, []float64{0, 1, 0, 0}},
		"as it says":  {disdel.Continuation{Temperature: 1}, false, []float64{0.1, 0.4, 0.2, 0.3}},
		"no padding":  {disdel.Continuation{Temperature: 1}, true, []float64{0, 0.4 / 0.9, 0.2 / 0.9, 0.3 / 0.9}},
		"top-k":       {disdel.Continuation{Temperature: 1, TopK: 2}, false, []float64{0, 0.4 / 0.7, 0, 0.3 / 0.7}},
		"top-p":       {disdel.Continuation{Temperature: 1, TopP: 0.75}, false, []float64{0, 4. / 9, 2. / 9, 3. / 9}},
		"temperature": {disdel.Continuation{Temperature: 0.5}, false, []float64{0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3}},
		"cold":        {disdel.Continuation{Temperature: 1e-4}, false, []float64{0, 1, 0, 0}},
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
