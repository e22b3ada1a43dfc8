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
	kinds  map[string]*kind
}

// kind is jobs that are planned alike, and how long those took that have ended.
type kind struct {
	job  disdel.Job
	plan disdel.Plan
	err  error
	took []disdel.Millis // while they held their gang
}

// plan is that of a job, with a forecast by those of its kind that have ended.
func (p *planner) plan(line *sim.Job) (disdel.Plan, *kind, error) {
	alike := *line
	alike.ID, alike.At, alike.Tenant, alike.Priority, alike.Slower = "", 0, "", 0, 0
	key := fmt.Sprint(alike)
	k := p.kinds[key]
	if k == nil {
		k = &kind{}
		k.job, k.plan, k.err = p.fresh(line)
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

// fresh plans a job that none of its kind came before.
func (p *planner) fresh(line *sim.Job) (disdel.Job, disdel.Plan, error) {
	var job disdel.Job
	t := &job.Training
	t.Epochs, t.BatchSize, t.Loss, t.ValidateEvery = line.Epochs, line.BatchSize, "crossEntropy", 1
	t.Optimizer.Adam = &disdel.Adam{LearningRate: 0.001}
	job.Resources.Memory, job.Distribution.Workers = line.Memory, line.Workers
	job.Distribution.Sync = line.Sync
	if job.Distribution.Sync == "" {
		job.Distribution.Sync = disdel.SyncEpoch
	}
	if err := controller.CheckPlatform(job, p.limits); err != nil {
		return job, disdel.Plan{}, err
	}
	g, err := model.Build(disdel.Network{Name: line.Network, Input: line.Input, Classes: line.Classes})
	if err != nil {
		return job, disdel.Plan{}, err
	}
	bytes := 4 // a row as stored: float32
	for _, side := range line.Input {
		bytes *= side
	}
	plan, err := scheduler.NewPlan(scheduler.PlanInput{
		ID: line.ID, Job: job, Graph: g, Platform: p.limits, Estimator: p.by, Threads: p.threads,
		Processors: p.limits.Processors,
		Data: disdel.DataInfo{
			Name: line.Network, Train: line.Rows, HeldOut: line.HeldOut, Sample: line.Input, Classes: line.Classes,
			SampleSize: disdel.Bytes(bytes),
		},
	})
	return job, plan, err
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
