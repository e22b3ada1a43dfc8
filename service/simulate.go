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
