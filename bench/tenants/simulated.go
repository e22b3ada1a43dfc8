package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler/sim"
	"github.com/disdel/disdel/service/batch"
)

// simulated holds the simulator against a batch that was run. Each job runs alone first, which is what the simulator
// knows of it: how long its work takes on an idle machine. What eight of them come to on one pool is its own.
func simulated(ctx context.Context, list []task, ran measured) error {
	w := planned()
	w.name, w.apart = "apart", true
	alone, err := w.run(ctx, list)
	if err != nil {
		return err
	}
	figure("batch8_apart_cpu_s", alone.cpu.Seconds(), "s of processors")
	figure("batch8_cpu_ratio", ran.cpu.Seconds()/alone.cpu.Seconds(), "of one after another")
	var jobs []sim.Job
	apart := 0.0
	for i, t := range list {
		one := alone.alone[i].Jobs[0]
		apart += one.Ran(one.Ended).Seconds()
		j := t.simulated()
		if err := calibrate(&j, one.Ran(one.Ended)); err != nil {
			return err
		}
		at := slices.IndexFunc(ran.Jobs, func(r batch.Row) bool { return r.Name == t.name })
		j.At = ran.Jobs[at].Submitted
		jobs = append(jobs, j)
	}
	r, err := simulate.Run(machine(), jobs)
	if err != nil {
		return err
	}
	if len(r.Stuck)+r.Failed+r.Refused > 0 {
		return fmt.Errorf("of the simulated batch %d jobs are stuck, %d failed and %d are refused", len(r.Stuck), r.Failed,
			r.Refused)
	}
	figure("batch8_apart_s", apart, "s one after another")
	figure("batch8_simulated_s", r.Makespan.Seconds(), "s")
	figure("sim_error_pct", 100*math.Abs(r.Makespan.Seconds()/ran.Makespan.Seconds()-1), "of the makespan that was run")
	for _, o := range r.Jobs {
		at := slices.IndexFunc(ran.Jobs, func(r batch.Row) bool { return "sim-"+r.Name == string(o.ID) })
		fmt.Fprintf(os.Stderr, "bench: %-20s simulated %6.2f to %6.2f s, ran %6.2f to %6.2f s\n", o.ID, o.Started.Seconds(),
			o.Ended.Seconds(), ran.Jobs[at].Started.Seconds(), ran.Jobs[at].Ended.Seconds())
	}
	return nil
}

// machine is this one, simulated.
func machine() simulate.Config {
	return simulate.Config{
		Cloud: sim.Config{
			Memory: pool, Processors: 2, Cold: disdel.Millis(30 * time.Millisecond), Warm: disdel.Millis(5 * time.Millisecond),
		},
		Estimator: estimator.Planned(backends.Standard(nil)),
		Share:     1000, // the service lets jobs share processors as they are
	}
}

// simulated is a task as the simulator has it, at a speed that calibrate finds.
func (t task) simulated() sim.Job {
	return sim.Job{
		ID: disdel.JobID("sim-" + t.name), Network: t.network, Input: t.input, Classes: classes, Rows: t.rows, HeldOut: held,
		BatchSize: t.batch, Epochs: t.epochs, PerThousand: disdel.Millis(time.Second),
		Aggregate: disdel.Millis(20 * time.Millisecond), Evaluate: disdel.Millis(20 * time.Millisecond),
		Load: disdel.Millis(30 * time.Millisecond),
	}
}

// calibrate finds how long a thousand rows of a job take, if it takes so long alone.
func calibrate(j *sim.Job, took disdel.Millis) error {
	low, high := disdel.Millis(0), disdel.Millis(10*time.Minute)
	for high-low > disdel.Millis(100*time.Microsecond) {
		j.PerThousand = (low + high) / 2
		r, err := simulate.Run(machine(), []sim.Job{*j})
		if err != nil {
			return err
		}
		if r.Failed+r.Refused+len(r.Stuck) > 0 {
			return fmt.Errorf("%s alone: %+v", j.ID, r.Jobs)
		}
		if r.Makespan < took {
			low = j.PerThousand
		} else {
			high = j.PerThousand
		}
	}
	return nil
}
