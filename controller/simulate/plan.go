package simulate

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// planner plans jobs. Jobs of a kind, which differ only in name and times, share one plan.
type planner struct {
	by       estimator.Estimator
	cloud    sim.Config
	limits   disdel.PlatformLimits
	siblings int // jobs of a batch
	kinds    map[string]*kind
	inputs   map[disdel.JobID]scheduler.PlanInput
}

// kind is jobs with the same plan, and the durations of those that have ended.
type kind struct {
	input scheduler.PlanInput
	plan  disdel.Plan
	err   error
	took  []disdel.Millis // with their gang
}

// plan plans a job, with a forecast from ended jobs of its kind.
func (p *planner) plan(line *sim.Job) (disdel.Plan, *kind, error) {
	alike := *line
	alike.ID, alike.At, alike.Tenant, alike.Priority, alike.Slower = "", 0, "", 0, 0
	if _, own := p.inputs[line.ID]; own {
		alike.ID = line.ID
	}
	key := fmt.Sprint(alike)
	k := p.kinds[key]
	if k == nil {
		k = &kind{}
		k.input, k.err = p.input(line)
		if k.err == nil {
			k.plan, k.err = scheduler.NewPlan(k.input)
		}
		p.kinds[key] = k
	}
	if k.err != nil {
		return disdel.Plan{}, k, k.err
	}
	plan := k.plan
	plan.Actions = slices.Clone(plan.Actions)
	for i := range plan.Actions {
		plan.Actions[i].Name = disdel.ActionName(scheduler.Package(line.ID) + "/" + string(plan.Actions[i].Task))
	}
	plan.Forecast = k.forecast()
	return plan, k, nil
}

// input is the planner's input for a job.
func (p *planner) input(line *sim.Job) (scheduler.PlanInput, error) {
	if in, own := p.inputs[line.ID]; own {
		return rehearsed(in, line), nil
	}
	job := jobOf(line)
	if err := controller.CheckPlatform(job, p.limits); err != nil {
		return scheduler.PlanInput{}, err
	}
	g, err := model.Build(disdel.Network{Name: line.Network, Input: line.Input, Classes: line.Classes})
	if err != nil {
		return scheduler.PlanInput{}, err
	}
	bytes := 4 // of a stored float32 value
	for _, side := range line.Input {
		bytes *= side
	}
	return scheduler.PlanInput{
		ID: line.ID, Job: job, Graph: g, Platform: p.limits, Estimator: p.by, Threads: p.threads,
		Processors: p.limits.Processors, Siblings: p.siblings,
		Data: disdel.DataInfo{
			Name: line.Network, Train: line.Rows, HeldOut: line.HeldOut, Sample: line.Input, Classes: line.Classes,
			SampleSize: disdel.Bytes(bytes),
		},
	}, nil
}

// rehearsed is a real job's input for a simulation: with the workers and the policy of a line, without a past, since
// its times are the line's, and without conditions on its losses, which are unknown.
func rehearsed(in scheduler.PlanInput, line *sim.Job) scheduler.PlanInput {
	d := &in.Job.Distribution
	d.Workers, d.Policy, d.MinWorkers, d.MaxWorkers = line.Workers, line.Policy, line.MinWorkers, line.MaxWorkers
	in.Job.Training.EarlyStop, in.Job.Training.Goal, in.Job.Resources.Threads = nil, nil, 0
	in.Past, in.History, in.Rate, in.Threads = nil, nil, nil, nil
	return in
}

// jobOf is the job of a line of a trace.
func jobOf(line *sim.Job) disdel.Job {
	var job disdel.Job
	t, d := &job.Training, &job.Distribution
	t.Epochs, t.BatchSize, t.Loss, t.ValidateEvery = line.Epochs, line.BatchSize, "crossEntropy", 1
	t.Optimizer.Adam = &disdel.Adam{LearningRate: 0.001}
	job.Resources.Memory, job.Resources.MaxCost = line.Memory, line.MaxCost
	d.Workers, d.Policy, d.MinWorkers, d.MaxWorkers = line.Workers, line.Policy, line.MinWorkers, line.MaxWorkers
	if d.Sync = line.Sync; d.Sync == "" {
		d.Sync = disdel.SyncEpoch
	}
	return job
}

// threads is the number of a train action's threads if so many run at once. On one host they share its processors; on
// several each has one.
func (p *planner) threads(parallel int) int {
	if p.cloud.Invokers > 1 {
		return 1
	}
	return max(1, p.cloud.Processors/max(1, parallel))
}

// forecastJobs is how many jobs of a kind a forecast uses.
const forecastJobs = 16

// ended adds a finished job.
func (k *kind) ended(took disdel.Millis) {
	if k.took = append(k.took, took); len(k.took) > forecastJobs {
		k.took = k.took[1:]
	}
}

// forecast predicts the next job of the kind, with a margin; nil if none has ended.
func (k *kind) forecast() *disdel.Forecast {
	if len(k.took) == 0 {
		return nil
	}
	const margin = 1.25
	var sum disdel.Millis
	for _, d := range k.took {
		sum += d
	}
	return &disdel.Forecast{
		Source: "history", Samples: len(k.took), Measured: true,
		Duration: disdel.Interval[disdel.Millis]{
			Low: slices.Min(k.took), Likely: sum / disdel.Millis(len(k.took)),
			High: disdel.Millis(margin * float64(slices.Max(k.took))),
		},
	}
}
