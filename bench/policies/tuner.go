package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
	"github.com/disdel/disdel/service"
)

const (
	ms     = disdel.Millis(time.Millisecond)
	second = disdel.Millis(time.Second)
)

// cloud is two hosts of 16 processors, on which every train action has a thread of its own.
func cloud() sim.Config {
	return sim.Config{Invokers: 2, Memory: 32 * disdel.GB, Processors: 16, Cold: 500 * ms, Warm: 10 * ms}
}

// tuned are four jobs of twelve workers, who average their weights four times an epoch, and whose loss flattens: two
// that wait for their updates most of the time, one that does so half of it, and one that computes.
func tuned() []sim.Job {
	base := sim.Job{
		Network: "lenet5", Input: []int{1, 28, 28}, Classes: 10, Rows: 12000, HeldOut: 200, BatchSize: 50, Epochs: 40,
		Workers: 12, MaxWorkers: 16, Aggregate: 50 * ms, Evaluate: 20 * ms, Load: 100 * ms, Noise: 0.05,
		Losses: sim.Losses{First: 2.3, Floor: 0.3, Rate: 3}, Sync: disdel.SyncEvery(5),
	}
	job := func(id string, perThousand, each disdel.Millis) sim.Job {
		j := base
		j.ID, j.PerThousand, j.EachUpdate = disdel.JobID(id), perThousand, each
		return j
	}
	return []sim.Job{
		job("waits", 100*ms, 400*ms), job("waits-long", 200*ms, second),
		job("half", 2000*ms, 200*ms), job("computes", 8000*ms, 20*ms),
	}
}

// tuner is Perf/$ of MLLess' scale-in over that of no tuner, ours and as published, in jobs that average by rounds: the
// median of the seeds for each job, the best of these, and the worst of all. Waiting costs nothing in such jobs, so
// there is little to gain. bench/exchange has the jobs that exchange after every step, for which scale-in was made.
func tuner(seeds uint64) error {
	names := []string{"mlless", "mlless-published"}
	best, worst := make([][]float64, len(names)), []float64{math.Inf(1), math.Inf(1)}
	for _, j := range tuned() {
		ratios := make([][]float64, len(names))
		for seed := range seeds {
			line := j
			line.ID = disdel.JobID(fmt.Sprintf("%s-%d", j.ID, seed))
			static, err := price(line, "static")
			if err != nil {
				return err
			}
			for i, name := range names {
				tuned, err := price(line, name)
				if err != nil {
					return err
				}
				ratios[i] = append(ratios[i], static/tuned)
			}
		}
		for i, name := range names {
			rig.MedianFigure("tuner_"+name+"_"+string(j.ID), ratios[i], "x")
			best[i], worst[i] = higher(best[i], ratios[i]), min(worst[i], slices.Min(ratios[i]))
		}
	}
	for i, name := range []string{"tuner_rounds", "tuner_rounds_published"} {
		rig.MedianFigure(name+"_best", best[i], "x")
		rig.Figure(name+"_worst", worst[i], "x")
	}
	return nil
}

// price is the time of a job under a policy, times its cost.
func price(line sim.Job, policy string) (float64, error) {
	line.Policy = policy
	r, err := service.Simulate(service.Simulation{Cloud: cloud(), Admission: scheduler.AdmissionGreedy}, []sim.Job{line})
	if err != nil {
		return 0, err
	}
	if r.Succeeded != 1 {
		return 0, fmt.Errorf("%s: %v %v", line.ID, r.Jobs[0].Refused, r.Jobs[0].Failure)
	}
	return r.Run.Most.Seconds() * r.CostGBs, nil
}

// lab is six drawn jobs under every policy, on the cloud.
func lab() error {
	jobs := sim.Generate(sim.Draw{Jobs: 6, Seed: 5})
	for i := range jobs {
		j := &jobs[i]
		j.Epochs, j.Workers, j.MaxWorkers, j.Noise = 20, 2, 16, 0.05
		j.Losses = sim.Losses{First: 2.3, Floor: 0.3, Rate: 1}
		j.EachUpdate = j.Aggregate
	}
	r, err := service.Compare(service.Simulation{Cloud: cloud()}, jobs, scheduler.PolicyNames())
	if err != nil {
		return err
	}
	for _, s := range r.Policies {
		if s.Policy == simulate.Fixed {
			continue
		}
		rig.Figure("lab_"+s.Policy+"_time", s.Time, "x")
		rig.Figure("lab_"+s.Policy+"_cost", s.Cost, "x")
		rig.Figure("lab_"+s.Policy+"_succeeded", float64(s.Succeeded), "of 6")
	}
	for _, told := range []float64{0.25, 0.5, 2, 4} {
		wrong, err := service.Compare(service.Simulation{Cloud: cloud(), Told: told}, jobs, []string{"coach", "auto"})
		if err != nil {
			return err
		}
		for _, s := range wrong.Policies[1:] {
			i := slices.IndexFunc(r.Policies, func(t simulate.PolicySummary) bool { return t.Policy == s.Policy })
			rig.Figure(fmt.Sprintf("lab_%s_regret_%g", s.Policy, told), s.Time/r.Policies[i].Time, "x")
		}
	}
	return nil
}
