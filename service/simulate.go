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

// Simulation describes a simulated cloud, and how jobs are admitted there.
type Simulation struct {
	Cloud     sim.Config                 `json:"cloud"`
	Admission string                     `json:"admission"`        // gang, fifo, greedy or ganglike; "": gang
	Estimator string                     `json:"estimator"`        // method that estimates memory; "": planned
	Quotas    map[string]scheduler.Quota `json:"quotas,omitempty"` // of tenants
	Told      float64                    `json:"told,omitempty"`   // of Compare: error factor of estimates; 0: none
	Errors    simulate.Errors            `json:"-"`                // of Compare: whose regrets are asked for
}

// Simulate runs the jobs of a trace in virtual time, with the planner, the managers and the admission of real jobs. It
// needs no Service. It returns Invalid for an unknown admission or estimator; the result says which jobs do not fit.
func Simulate(s Simulation, jobs []sim.Job) (simulate.Result, error) {
	by, err := estimator.New(backends.Standard(nil), s.Estimator, estimator.DefaultRisk, nil)
	if err != nil {
		return simulate.Result{}, err
	}
	return simulate.Run(simulate.Config{Cloud: s.Cloud, Admission: s.Admission, Estimator: by, Quotas: s.Quotas}, jobs)
}

// Compare runs the jobs of a trace in virtual time with each policy, each job alone on the cloud, and compares them
// with the best fixed number of workers. It does not use Admission and Quotas. Told is a factor of error: policies see
// the times of other numbers of workers multiplied by it. Compare returns Invalid for an unknown policy or estimator.
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

// roomyHost is the memory of a simulated host if that of the platform is unknown.
const roomyHost = 1024 * disdel.GB

// comparePolicies runs a job in virtual time with each policy. Its speed follows a law fitted to its forecasts for
// several numbers of workers. It returns NotFound if the speed is unknown.
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

// mostRounds bounds the rounds of a job that is simulated, which happens once for each number of workers.
const mostRounds = 2000

// mostSimulated bounds the workers of a simulated job without a bound of its own.
const mostSimulated = 32

// traceJob is a job as a job of a trace: the time of an epoch by the fitted law, and the loss curve of the newest
// earlier job that has one. ok is false if no time is known.
func traceJob(in scheduler.PlanInput, plan disdel.Plan) (line sim.Job, ok bool) {
	t, d := in.Job.Training, in.Job.Distribution
	maximum := min(cmp.Or(d.MaxWorkers, mostSimulated), max(1, t.MostWorkers(in.Data.Train)))
	grid := scheduler.Grid{}
	for n := max(1, d.MinWorkers); n < maximum; n *= 2 {
		grid.Workers = append(grid.Workers, n)
	}
	grid.Workers = append(grid.Workers, maximum)
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
	rounds := float64(max(1, plan.Rounds)) / float64(max(1, t.Epochs)) // rounds of an epoch
	ms := func(seconds float64) disdel.Millis { return disdel.Millis(seconds * 1e9) }
	line = sim.Job{
		ID: disdel.JobID(in.Job.Metadata.Name), Rows: in.Data.Train, BatchSize: max(1, t.JobBatch()), Epochs: t.Epochs,
		Workers: plan.Workers, MinWorkers: d.MinWorkers, MaxWorkers: maximum, Sync: d.Sync, HeldOut: in.Data.HeldOut,
		PerThousand: ms(work / float64(max(1, in.Data.Train)) * 1000), Round: ms(fixed / rounds),
		EachUpdate: ms(each / rounds),
		Losses:     lossesOf(in),
	}
	return line, true
}

// lossesOf is the loss curve of jobs like this one. Without one, it is a curve that halves in a few epochs.
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

// checkPolicies returns Invalid for an unknown policy.
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
