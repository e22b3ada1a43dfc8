package service

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
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
	cfg := simulate.Config{Cloud: s.Cloud, Estimator: by, Told: s.Told}
	lab, err := simulate.Compare(cfg, jobs, policies)
	if err == nil {
		err = lab.Regrets(cfg, jobs, policies, s.Errors)
	}
	return lab, err
}

// roomyHost is the memory of a simulated host where nobody knows the platform's.
const roomyHost = 1024 * disdel.GB

// comparePolicies runs a job in virtual time under each of the policies, by the law of its forecasts for several numbers
// of workers. It returns NotFound where nothing is known of its speed.
func comparePolicies(in scheduler.PlanInput, plan disdel.Plan, policies []string) (*simulate.Lab, error) {
	if plan.Rounds > mostRounds {
		return nil, &disdel.Error{
			Kind: disdel.OverLimit, Op: "compare policies", Job: in.ID,
			Msg:  fmt.Sprintf("%d rounds are too many to simulate: at most %d", plan.Rounds, mostRounds),
			Hint: "--set training.epochs=20 tells nearly as much",
		}
	}
	line, ok := traceJob(in, plan)
	if !ok {
		return nil, &disdel.Error{
			Kind: disdel.NotFound, Op: "compare policies", Job: in.ID, Msg: "nothing is known of this job's speed yet",
			Hint: "run it once, or measure it with --probe",
		}
	}
	cfg := simulate.Config{
		Cloud: sim.Config{
			Memory: cmp.Or(in.Platform.Pool, roomyHost), Concurrent: in.Platform.Concurrent, PerMinute: in.Platform.PerMinute,
		},
		Estimator: in.Estimator, Inputs: map[disdel.JobID]scheduler.PlanInput{line.ID: in},
	}
	lab, err := simulate.Compare(cfg, []sim.Job{line}, policies)
	if err != nil {
		return nil, err
	}
	return &lab, nil
}

// mostRounds is how long a job may be that is simulated under policies, once for each number of workers.
const mostRounds = 2000

// mostRehearsed is the most workers that a job is looked at with, where it has no bound of its own.
const mostRehearsed = 32

// traceJob is a job as a trace has it: what an epoch takes with so many workers by the law of its forecasts, and how its
// loss falls by the newest earlier job that says so. ok is false where no time is known.
func traceJob(in scheduler.PlanInput, plan disdel.Plan) (line sim.Job, ok bool) {
	t, d := in.Job.Training, in.Job.Distribution
	most := min(cmp.Or(d.MaxWorkers, mostRehearsed), max(1, t.MostWorkers(in.Data.Train)))
	grid := scheduler.Grid{}
	for n := max(1, d.MinWorkers); n < most; n *= 2 {
		grid.Workers = append(grid.Workers, n)
	}
	grid.Workers = append(grid.Workers, most)
	seconds := map[int]float64{}
	for _, c := range scheduler.WhatIf(in, grid, scheduler.AgainstCost) {
		if c.Forecast != nil && c.BatchSize == t.JobBatch() {
			seconds[c.Workers] = c.Forecast.Duration.Likely.Seconds() / float64(max(1, t.Epochs))
		}
	}
	fixed, work, each, ok := scheduler.FitLaw(seconds)
	if !ok {
		return sim.Job{}, false
	}
	rounds := float64(max(1, plan.Rounds)) / float64(max(1, t.Epochs)) // of an epoch
	ms := func(seconds float64) disdel.Millis { return disdel.Millis(seconds * 1e9) }
	line = sim.Job{
		ID: disdel.JobID(in.Job.Metadata.Name), Rows: in.Data.Train, BatchSize: max(1, t.JobBatch()), Epochs: t.Epochs,
		Workers: plan.Workers, MinWorkers: d.MinWorkers, MaxWorkers: most, Sync: d.Sync, HeldOut: in.Data.HeldOut,
		PerThousand: ms(work / float64(max(1, in.Data.Train)) * 1000), Round: ms(fixed / rounds),
		EachUpdate: ms(each / rounds),
		Losses:     lossesOf(in),
	}
	return line, true
}

// lossesOf is how the loss of jobs like this one falls; one that halves in a few epochs where none says so.
func lossesOf(in scheduler.PlanInput) sim.Losses {
	past := in.Past
	if past == nil {
		past = in.History
	}
	for i := range past {
		r := &past[i]
		if r.Status != disdel.StatusSucceeded || !r.Data.Same(in.Data) {
			continue
		}
		var points []estimator.LossPoint
		for _, round := range r.Rounds {
			points = append(points, estimator.LossPoint{Epoch: r.EpochsAfter(round), Loss: round.TrainLoss})
		}
		if c, ok := estimator.FitLosses(points); ok && c.Start > 0 {
			return sim.Losses{First: c.Floor + 1/c.Start, Floor: c.Floor, Rate: c.Rate}
		}
	}
	return sim.Losses{First: 2, Floor: 0.1, Rate: 0.3}
}

// checkPolicies returns Invalid for a policy that nobody has.
func checkPolicies(names []string) error {
	if all := scheduler.PolicyNames(); len(names) > len(all) {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "compare policies",
			Msg: fmt.Sprintf("%d policies were named, and there are %d", len(names), len(all)),
		}
	}
	for _, name := range names {
		if !slices.Contains(scheduler.PolicyNames(), name) {
			_, err := scheduler.PolicyOf(disdel.Job{Distribution: disdel.Distribution{Policy: name}})
			return err
		}
	}
	return nil
}
