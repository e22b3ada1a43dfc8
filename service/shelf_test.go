package service

import (
	"testing"

	"github.com/disdel/disdel"
)

// A model's epochs are those of its job: rounds may be parts of an epoch, and rounds before a resume be missing in the
// record.
func TestEpochsOfAModel(t *testing.T) {
	rounds := func(indices ...int) (out []disdel.Round) {
		for _, i := range indices {
			out = append(out, disdel.Round{Round: i})
		}
		return out
	}
	for name, c := range map[string]struct {
		plan disdel.Plan
		done []disdel.Round
		want int
	}{
		"a round an epoch":      {disdel.Plan{Rounds: 5, Epochs: 1}, rounds(0, 1, 2, 3, 4), 5},
		"one round":             {disdel.Plan{Rounds: 1, Epochs: 3}, rounds(0), 3},
		"every four batches":    {disdel.Plan{Rounds: 15, Epochs: 1, Batches: 4}, rounds(0, 1, 14), 3},
		"stopped in the second": {disdel.Plan{Rounds: 15, Epochs: 1, Batches: 4}, rounds(0, 5), 2},
		"resumed":               {disdel.Plan{Rounds: 5, Epochs: 1}, rounds(1, 2, 3, 4), 5},
		"nothing":               {disdel.Plan{Rounds: 5, Epochs: 1}, nil, 0},
	} {
		r := disdel.Record{Plan: c.plan, Rounds: c.done}
		r.Job.Training.Epochs = 3
		if got := epochs(&r); got != c.want {
			t.Errorf("%s: %d epochs, want %d", name, got, c.want)
		}
	}
}
