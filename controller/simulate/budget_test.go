package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/scheduler/sim"
)

// No drawn job passes its budget, whatever its policy and however far its times are from the usual: most of them stop
// there, and those that have enough come to their end.
func TestNoJobPassesItsBudget(t *testing.T) {
	lot := rand.New(rand.NewPCG(24, 1))
	policies := []string{"static", "elastic", "coach", "auto", "mlless", "path"}
	jobs := sim.Generate(sim.Draw{Jobs: 48, Seed: 24})
	stopped, ended := 0, 0
	for i := range jobs {
		j := &jobs[i]
		j.At, j.Epochs, j.MaxWorkers, j.Noise, j.Policy = 0, 3+lot.IntN(6), 8, 0.3*lot.Float64(), policies[i%len(policies)]
		free := one(t, *j)
		j.MaxCost = free.CostGBs * (0.05 + 2*lot.Float64())
		kept := one(t, *j)
		if kept.CostGBs > j.MaxCost {
			t.Errorf("%s under %s: %g GB-s of %g", j.ID, j.Policy, kept.CostGBs, j.MaxCost)
		}
		stopped, ended = stopped+kept.Failed, ended+kept.Succeeded
		if j.Policy == "static" && j.MaxCost > 1.5*free.CostGBs && kept.Succeeded != 1 {
			t.Errorf("%s: %v with %g GB-s, where %g are enough", j.ID, kept.Jobs[0].Failure, j.MaxCost, free.CostGBs)
		}
	}
	if stopped == 0 || ended == 0 {
		t.Errorf("%d stopped, %d ended", stopped, ended)
	}
}

func one(t *testing.T, line sim.Job) simulate.Result {
	t.Helper()
	r, err := simulate.Run(roomy(), []sim.Job{line})
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", line.ID, err))
	}
	return r
}
