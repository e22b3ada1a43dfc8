package service

import (
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// Simulation is a cloud to simulate jobs on, and how they are admitted there.
type Simulation struct {
	Cloud     sim.Config                 `json:"cloud"`
	Admission string                     `json:"admission"`        // gang, fifo, greedy or ganglike; "": gang
	Estimator string                     `json:"estimator"`        // method that estimates memory; "": planned
	Quotas    map[string]scheduler.Quota `json:"quotas,omitempty"` // of tenants
	Told      float64                    `json:"told,omitempty"`   // of Compare: error of what policies are told; 0: none
	Errors    simulate.Errors            `json:"-"`                // of Compare: whose regrets are asked for
}

// Simulate runs the jobs of a trace in virtual time, with the planner, the managers and the admission that real jobs
// have. It needs no service, and nothing but the processor. It returns Invalid for an admission or an estimator that
// nobody has; a job that does not fit is told of in the result.
func Simulate(s Simulation, jobs []sim.Job) (simulate.Result, error) {
	by, err := estimator.New(backends.Standard(nil), s.Estimator, estimator.DefaultRisk, nil)
	if err != nil {
		return simulate.Result{}, err
	}
	return simulate.Run(simulate.Config{Cloud: s.Cloud, Admission: s.Admission, Estimator: by, Quotas: s.Quotas}, jobs)
}

// Compare runs the jobs of a trace in virtual time under each of the policies, each job alone on the cloud of the
// simulation, and holds them against the best fixed number of workers; Admission and Quotas are not used. With Told,
// policies are told times of other numbers of workers than a job began with that are wrong by that factor. It returns
// Invalid for a policy or an estimator that nobody has.
func Compare(s Simulation, jobs []sim.Job, policies []string) (simulate.Lab, error) {
	by, err := estimator.New(backends.Standard(nil), s.Estimator, estimator.DefaultRisk, nil)
	if err != nil {
		return simulate.Lab{}, err
	}
	cfg := simulate.Config{Cloud: s.Cloud, Estimator: by, Bias: s.Told}
	lab, err := simulate.Compare(cfg, jobs, policies)
	if err == nil {
		err = lab.Regrets(cfg, jobs, policies, s.Errors)
	}
	return lab, err
}
