package main

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// serversLike is how many servers like this machine the batch of eight is simulated on under several plans: as many as
// the paper has in the middle of its Fig. 13.
const serversLike = 4

// planned is a way to plan the jobs of a batch.
type planned struct {
	name, estimator, admission, policy string
	workers                            int // 0: the planner's
}

// ways are the plans that the table compares. Policies change workers while jobs run: no gang can be asked for then,
// and the platform queues.
func ways() []planned {
	out := []planned{
		{"one container a job", estimator.MethodPlanned, scheduler.AdmissionGang, "", 1},
		{"the paper's estimates, two workers", estimator.MethodPaper, scheduler.AdmissionGang, "", 2},
		{"our estimates, two workers", estimator.MethodPlanned, scheduler.AdmissionGang, "", 2},
		{"our estimates and workers", estimator.MethodPlanned, scheduler.AdmissionGang, "", 0},
	}
	for _, name := range []string{disdel.PolicyStatic, disdel.PolicyKubeML, disdel.PolicyElastic} {
		out = append(out, planned{name + ", unqueued", estimator.MethodPlanned, scheduler.AdmissionGreedy, name, 2})
	}
	return out
}

// plans simulates the batch of eight, with the speeds that its jobs had here one by one, on several machines like this
// one under several plans.
func (p *page) plans() {
	m := p.raw.Experiments["fig12"]
	if m == nil {
		return
	}
	jobs := traced(m)
	if len(jobs) == 0 {
		return
	}
	rows := [][]string{{"plan", "s until all had ended", "mean job, s", "GB-s", "failed or refused", "of the memory used"}}
	for _, w := range ways() {
		got, err := w.simulate(jobs, m.Sittings[0].Threads)
		if err != nil {
			p.fail(fmt.Errorf("%s: %w", w.name, err))
			return
		}
		rows = append(rows, []string{
			w.name, fmt.Sprintf("%.1f", got.Makespan.Seconds()), fmt.Sprintf("%.1f", got.Run.Mean.Seconds()),
			fmt.Sprintf("%.1f", got.CostGBs), fmt.Sprint(got.Failed + got.Refused + len(got.Stuck)),
			fmt.Sprintf("%.0f %%", 100*got.UsedShare),
		})
	}
	p.say("The batch of figure 12 under several plans, simulated on %d machines like this one with a pool of %v each, by "+
		"the speeds that its jobs had here one by one. GB-s are what activations held.", serversLike, batchPool)
	p.table(rows)
}

// simulate runs the jobs as they are planned this way.
func (w planned) simulate(jobs []sim.Job, processors int) (simulate.Result, error) {
	by, err := estimator.New(backends.Standard(nil), w.estimator, 0, nil)
	if err != nil {
		return simulate.Result{}, err
	}
	cfg := here(batchPool, processors)
	cfg.Cloud.Invokers, cfg.Admission, cfg.Estimator = serversLike, w.admission, by
	cfg.Beside = len(jobs) - 1
	lines := make([]sim.Job, len(jobs))
	for i, line := range jobs {
		line.Policy, line.Workers = w.policy, w.workers
		if w.policy != "" { // a round an epoch: else nothing could change
			line.Sync = disdel.SyncEpoch
		}
		lines[i] = line
	}
	return simulate.Run(cfg, lines)
}
