package actions

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// continueTexts adds tokens to each text of a request. A language model reads as many of the last tokens as a row has.
func continueTexts(ctx context.Context, e engine.Engine, g *model.Graph, req disdel.InferRequest) (
	res disdel.InferResult, err error,
) {
	for i, text := range req.Texts {
		// A text has draws of its own: its continuation does not depend on the texts beside it.
		s := sampler{Continuation: req.Continuation, padded: g.HasPadding()}
		s.random = rand.New(rand.NewPCG(uint64(req.Continuation.Seed), uint64(i))) //nolint:gosec // it is no secret
		var row []float32
		for _, token := range text {
			row = append(row, float32(token))
		}
		added := []int32{}
		for len(added) < req.Continuation.Tokens && ctx.Err() == nil {
			read := row[max(0, len(row)-g.Input().Len()):]
			p, err := e.Predict(dataset.Dense(1, read, nil))
			if err != nil {
				return res, err
			}
			token := s.draw(p.Values)
			if s.End != nil && token == *s.End {
				break
			}
			added, row = append(added, token), append(row, float32(token))
		}
		res.Continued = append(res.Continued, added)
	}
	return res, ctx.Err()
}

// sampler draws tokens.
type sampler struct {
	disdel.Continuation
	padded bool // token 0 fills rows, and is no token of a text
	random *rand.Rand
	order  []int32 // the tokens, the most probable first
}

// draw draws a token by the probabilities of all, which it changes.
func (s *sampler) draw(p []float32) int32 {
	if s.padded {
		p[0] = 0
	}
	if s.Temperature == 0 {
		return int32(disdel.Largest(p)) //nolint:gosec // a token
	}
	s.order = s.order[:0]
	for token := range p {
		s.order = append(s.order, int32(token)) //nolint:gosec // a token
	}
	slices.SortFunc(s.order, func(a, b int32) int { return cmp.Or(cmp.Compare(p[b], p[a]), cmp.Compare(a, b)) })
	kept := s.order
	if s.TopK > 0 {
		kept = kept[:min(s.TopK, len(kept))]
	}
	weights, sum := make([]float64, len(kept)), 0.0
	for i, token := range kept { // of the largest: a small temperature makes no sum of zeros
		weights[i] = math.Pow(float64(p[token])/float64(p[kept[0]]), 1/s.Temperature)
		sum += weights[i]
	}
	if s.TopP > 0 {
		share, n := 0.0, 0
		for n == 0 || n < len(kept) && share < s.TopP*sum { // at least one, also where no token is probable
			share += weights[n]
			n++
		}
		kept, sum = kept[:n], share
	}
	at := s.random.Float64() * sum
	for i, token := range kept {
		if at -= weights[i]; at < 0 {
			return token
		}
	}
	return kept[0] // rounding left a little
}
