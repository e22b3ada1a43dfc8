package main

import (
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/medians"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// makespanJobs are those of a trace whose makespan is compared.
const makespanJobs = 12

// makespans prints the median of drawn traces of the makespan with gangs over that with greedy, on one host of two
// processors. Traces in which jobs do not come to an end with greedy have no ratio: they are counted apart.
func makespans(seeds int) error {
	var ratios []float64
	stuck := map[string]int{}
	for seed := range uint64(seeds) {
		took := map[string]float64{}
		for _, by := range []string{scheduler.AdmissionGang, scheduler.AdmissionGreedy} {
			r, err := simulate.Run(twoProcessors(by), makespanTrace(seed))
			if err != nil {
				return err
			}
			if took[by] = r.Makespan.Seconds(); len(r.Stuck)+r.Failed > 0 {
				stuck[by]++
				took[by] = 0
			}
		}
		if gang, greedy := took[scheduler.AdmissionGang], took[scheduler.AdmissionGreedy]; gang > 0 && greedy > 0 {
			ratios = append(ratios, gang/greedy)
		}
	}
	figure("gang_over_greedy_makespan", medians.Of(ratios), "ratio")
	figure("gang_over_greedy_traces", float64(len(ratios)), "that came to an end with both")
	figure("makespan_stuck_gang", float64(stuck[scheduler.AdmissionGang]), "traces in which a job waits for ever or fails")
	figure("makespan_stuck_greedy", float64(stuck[scheduler.AdmissionGreedy]), "traces, which have no ratio")
	return nil
}

func makespanTrace(seed uint64) []sim.Job {
	return sim.Generate(sim.Draw{Jobs: makespanJobs, Seed: seed, Every: disdel.Millis(5 * time.Second), Tenants: 3})
}

// twoProcessors is a host of the size that a small server has.
func twoProcessors(admission string) simulate.Config {
	return simulate.Config{
		Cloud: sim.Config{
			Memory: 8 * disdel.GB, Processors: 2, Cold: disdel.Millis(500 * time.Millisecond),
			Warm: disdel.Millis(5 * time.Millisecond),
		},
		Admission: admission, Estimator: estimator.Planned(backends.Standard(nil)),
	}
}
