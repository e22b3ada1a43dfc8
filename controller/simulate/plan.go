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

// planner plans jobs. Those of a kind, which differ in their names and times alone, have one plan.
type planner struct {
	by     estimator.Estimator
	cloud  sim.Config
	limits disdel.PlatformLimits
	beside int // jobs of a batch
	kinds  map[string]*kind
	inputs map[disdel.JobID]scheduler.PlanInput
}

// kind is jobs that are planned alike, and how long those took that have ended.
type kind struct {
	input scheduler.PlanInput
	plan  disdel.Plan
	err   error
	took  []disdel.Millis // while they held their gang
}

// plan is that of a job, with a forecast by those of its kind that have ended.
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

// input is what a job is planned by.
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
	bytes := 4 // a row as stored: float32
	for _, side := range line.Input {
		bytes *= side
	}
	return scheduler.PlanInput{
		ID: line.ID, Job: job, Graph: g, Platform: p.limits, Estimator: p.by, Threads: p.threads,
		Processors: p.limits.Processors, Beside: p.beside,
		Data: disdel.DataInfo{
			Name: line.Network, Train: line.Rows, HeldOut: line.HeldOut, Sample: line.Input, Classes: line.Classes,
			SampleSize: disdel.Bytes(bytes),
		},
	}, nil
}

// rehearsed is what a real job is planned by for a simulation: with the workers and the policy of a line, without a
// past, since its times are the line's, and without what its losses would end, which nobody knows.
func rehearsed(in scheduler.PlanInput, line *sim.Job) scheduler.PlanInput {
	d := &in.Job.Distribution
	d.Workers, d.Policy, d.MinWorkers, d.MaxWorkers = line.Workers, line.Policy, line.MinWorkers, line.MaxWorkers
	in.Job.Training.EarlyStop, in.Job.Training.Goal, in.Job.Resources.Threads = nil, nil, 0
	in.Past, in.History, in.Rate, in.Threads = nil, nil, nil, nil
	return in
}

// jobOf is the job file that a line of a trace stands for.
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

// threads are those of a train action where so many run at once. On one host they share its processors; on several
// each has one.
func (p *planner) threads(parallel int) int {
	if p.cloud.Invokers > 1 {
		return 1
	}
	return max(1, p.cloud.Processors/max(1, parallel))
}

// lately is how many jobs of a kind a forecast goes by.
const lately = 16

// ended adds a job that came to its end.
func (k *kind) ended(took disdel.Millis) {
	if k.took = append(k.took, took); len(k.took) > lately {
		k.took = k.took[1:]
	}
}

// forecast is what the next job of the kind is expected to take, with a margin; nil where none has ended.
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
