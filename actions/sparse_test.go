package actions

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
)

// The chance that a row of 1 is above one of 0, against counting all pairs.
func TestRankedRowsGiveTheAreaUnderTheCurve(t *testing.T) {
	for name, c := range map[string]struct{ scores, targets []float32 }{
		"apart":     {[]float32{0.1, 0.2, 0.8, 0.9}, []float32{0, 0, 1, 1}},
		"wrong way": {[]float32{0.1, 0.2, 0.8, 0.9}, []float32{1, 1, 0, 0}},
		"equal":     {[]float32{0.5, 0.5, 0.5}, []float32{1, 0, 1}},
		"mixed":     {[]float32{0.3, 0, 0.3, 0.7, 1, 0.7, 0}, []float32{1, 0, 0, 1, 0, 1, 1}},
	} {
		req := disdel.EvaluateRequest{Network: disdel.Network{Sparse: &disdel.SparseNetwork{}, Classes: 2}}
		r := rankedFor(req, len(c.scores))
		r.add(c.scores[:2], c.targets[:2])
		r.add(c.scores[2:], c.targets[2:])
		won, pairs := 0.0, 0.0
		for i, y := range c.targets {
			for k, z := range c.targets {
				if y != 1 || z != 0 {
					continue
				}
				pairs++
				switch {
				case c.scores[i] > c.scores[k]:
					won++
				case c.scores[i] == c.scores[k]:
					won += 0.5
				}
			}
		}
		if got := r.scores(req, 0.3); math.Abs(got.AUC-won/pairs) > 1e-12 || got.RMSE != 0 {
			t.Errorf("%s: %+v, want an AUC of %v", name, got, won/pairs)
		}
	}
	one := rankedFor(disdel.EvaluateRequest{Network: disdel.Network{Sparse: &disdel.SparseNetwork{}, Classes: 2}}, 1)
	one.add([]float32{0.5}, []float32{1})
	if got := one.auc(); got != 0 {
		t.Errorf("rows of one class have an AUC of %v", got)
	}
}

// Networks have neither score, and numbers have the root of the loss.
func TestOtherEvaluationsHaveTheirOwnScores(t *testing.T) {
	network := disdel.EvaluateRequest{Network: disdel.Network{Classes: 2}}
	numbers := disdel.EvaluateRequest{Network: disdel.Network{Sparse: &disdel.SparseNetwork{}, Classes: 1}}
	for req, want := range map[*disdel.EvaluateRequest]disdel.Scores{&network: {}, &numbers: {RMSE: 0.5}} {
		r := rankedFor(*req, 3)
		r.add([]float32{1, 2}, []float32{1, 2})
		if got := r.scores(*req, 0.25); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
