package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
	"github.com/disdel/disdel/service"
)

// budgeted is how many drawn jobs are given a budget.
const budgeted = 200

// budgets gives drawn jobs budgets from a tenth to one and a half times what they cost without one, under policies in
// turn, and says by how much any of them went past its own. None of them has a past to be forecast by.
func budgets() error {
	lot := rand.New(rand.NewPCG(16, 1))
	policies := []string{"static", "elastic", "coach", "auto", "mlless"}
	jobs := sim.Generate(sim.Draw{Jobs: budgeted, Seed: 16})
	var over []float64
	stopped, refused := 0, 0
	for i := range jobs {
		j := &jobs[i]
		j.At, j.Epochs, j.MaxWorkers, j.Noise = 0, 4+lot.IntN(12), 16, 0.05+0.2*lot.Float64()
		j.Policy = policies[i%len(policies)]
		free, err := alone(*j)
		if err != nil {
			return err
		}
		if free.Succeeded != 1 {
			return fmt.Errorf("%s without a budget: %v %v", j.ID, free.Jobs[0].Refused, free.Jobs[0].Failure)
		}
		j.MaxCost = free.CostGBs * (0.1 + 1.4*lot.Float64())
		kept, err := alone(*j)
		if err != nil {
			return err
		}
		stopped += kept.Failed
		refused += kept.Refused
		over = append(over, max(0, 100*(kept.CostGBs/j.MaxCost-1)))
	}
	figure("budget_jobs_stopped", float64(stopped), fmt.Sprintf("of %d", budgeted))
	figure("budget_jobs_refused", float64(refused), fmt.Sprintf("of %d", budgeted))
	figure("budget_overrun_median_pct", median(over), "%")
	figure("budget_overrun_pct", slices.Max(over), "%")
	return nil
}

// alone runs one job on the cloud.
func alone(line sim.Job) (simulate.Result, error) {
	return service.Simulate(service.Simulation{Cloud: cloud(), Admission: scheduler.AdmissionGreedy}, []sim.Job{line})
}
