package main

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// makespanJobs are those of a trace whose makespan is compared.
const makespanJobs = 60

// makespans prints the median of drawn traces of the makespan with gangs over that with greedy, on one host of two
// processors with 2 and 8 GB. The figure without a size is the larger one of both.
func makespans(seeds int) error {
	worst := 0.0
	for _, gb := range []int{2, 8} {
		ratio, err := makespanRatio(seeds, gb)
		if err != nil {
			return err
		}
		worst = max(worst, ratio)
	}
	rig.Figure("gang_over_greedy_makespan", worst, "ratio")
	return nil
}

// makespanRatio prints the figures of a host of so many GB, and returns the median ratio. Traces in which jobs do not
// come to an end have no ratio: they are counted apart.
func makespanRatio(seeds, gb int) (float64, error) {
	size := fmt.Sprintf("_%dgb", gb)
	var ratios []float64
	stuck := map[string]int{}
	for seed := range uint64(seeds) {
		took := map[string]float64{}
		for _, by := range []string{scheduler.AdmissionGang, scheduler.AdmissionGreedy} {
			r, err := simulate.Run(twoProcessors(by, gb), makespanTrace(seed))
			if err != nil {
				return 0, err
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
	rig.Figure("gang_over_greedy_makespan"+size, rig.Median(ratios), "ratio")
	rig.Figure("gang_over_greedy_traces"+size, float64(len(ratios)), "that came to an end with both")
	rig.Figure("makespan_stuck_gang"+size, float64(stuck[scheduler.AdmissionGang]),
		"traces in which a job waits for ever or fails")
	rig.Figure("makespan_stuck_greedy"+size, float64(stuck[scheduler.AdmissionGreedy]), "traces, which have no ratio")
	return rig.Median(ratios), nil
}

func makespanTrace(seed uint64) []sim.Job {
	return sim.Generate(sim.Draw{Jobs: makespanJobs, Seed: seed, Every: disdel.Millis(5 * time.Second), Tenants: 3})
}

// twoProcessors is a host of the size that a small server has.
func twoProcessors(admission string, gb int) simulate.Config {
	return simulate.Config{
		Cloud: sim.Config{
			Memory: disdel.Bytes(gb) * disdel.GB, Processors: 2, Cold: disdel.Millis(500 * time.Millisecond),
			Warm: disdel.Millis(5 * time.Millisecond),
		},
		Admission: admission, Estimator: estimator.Planned(backends.Standard(nil)),
	}
}
