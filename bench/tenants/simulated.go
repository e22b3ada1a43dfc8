package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
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
// knows of it: how long it takes on an idle machine, and how long processors compute for it, in all processes. Then
// they run in pairs, which tells how much this machine's processors slow each other down. What eight of them come to on
// one pool is its own.
func simulated(ctx context.Context, list []task, ran measured) error {
	w := planned()
	w.name, w.apart = "apart", 1
	alone, err := w.run(ctx, list)
	if err != nil {
		return err
	}
	w.name, w.apart = "pairs", 2
	pairs, err := w.run(ctx, list)
	if err != nil {
		return err
	}
	m := machine(len(list))
	m.Cloud.Crowding = crowding(alone.parts, pairs.parts)
	figure("batch8_crowding", m.Cloud.Crowding, "of a thread's time alone, when all processors are busy")
	figure("batch8_apart_cpu_s", alone.cpu.Seconds(), "s of processors")
	figure("batch8_cpu_ratio", ran.cpu.Seconds()/alone.cpu.Seconds(), "of one after another")
	var jobs []sim.Job
	apart := 0.0
	for i, t := range list {
		one := alone.parts[i]
		apart += one.took[0].Seconds()
		j := t.simulated(one.cpu)
		if err := calibrate(m, &j, one.took[0]); err != nil {
			return err
		}
		at := slices.IndexFunc(ran.Jobs, func(r batch.Row) bool { return r.Name == t.name })
		j.At = ran.Jobs[at].Submitted
		jobs = append(jobs, j)
	}
	r, err := simulate.Run(m, jobs)
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

// alone holds the simulator against one batch, and leaves out what others would come to.
func alone(ctx context.Context, shrink int) error {
	list := mixed(shrink)
	ran, err := planned().run(ctx, list)
	if err != nil {
		return err
	}
	tell("batch8_shared_disdel", ran)
	return simulated(ctx, list, ran)
}

// crowding is how much more processors compute for jobs in pairs than for each of them alone, of what they compute
// while both are there.
func crowding(alone, pairs []part) float64 {
	var single, both, more time.Duration
	for i, p := range pairs {
		cpu := alone[2*i].cpu + alone[2*i+1].cpu
		together := 2 * min(p.took[0], p.took[1])
		single += cpu
		both += time.Duration(float64(cpu) * float64(together) / float64(p.took[0]+p.took[1]))
		more += p.cpu
	}
	return max(0, float64(more-single)/float64(max(1, both)))
}

// machine is this one, simulated, for jobs of a batch of so many.
func machine(jobs int) simulate.Config {
	return simulate.Config{
		Cloud: sim.Config{
			Memory: pool, Processors: runtime.NumCPU(), Cold: disdel.Millis(30 * time.Millisecond),
			Warm: disdel.Millis(5 * time.Millisecond),
		},
		Estimator: estimator.Planned(backends.Standard(nil)),
		Beside:    jobs - 1,
	}
}

// What an aggregation and an evaluation of these jobs compute, beside which their training is long.
const (
	aggregates = 20 * time.Millisecond
	evaluates  = 20 * time.Millisecond
)

// simulated is a task as the simulator has it, if so much is computed for it; calibrate finds what its containers wait
// for beside that.
func (t task) simulated(cpu time.Duration) sim.Job {
	training := cpu - time.Duration(t.epochs)*(aggregates+evaluates)
	thousands := float64(t.rows*t.epochs) / 1000
	return sim.Job{
		ID: disdel.JobID("sim-" + t.name), Network: t.network, Input: t.input, Classes: classes, Rows: t.rows, HeldOut: held,
		BatchSize: t.batch, Epochs: t.epochs,
		PerThousand: disdel.Millis(max(float64(time.Microsecond), float64(training)/thousands)),
		Aggregate:   disdel.Millis(aggregates), Evaluate: disdel.Millis(evaluates),
	}
}

// calibrate finds how long the first work of every container waits, so that a job takes so long alone, planned as one
// of a batch. One that computes longer than that, on several processors, does not wait.
func calibrate(m simulate.Config, j *sim.Job, took disdel.Millis) error {
	low, high := disdel.Millis(0), took
	for high-low > disdel.Millis(100*time.Microsecond) {
		j.Load = (low + high) / 2
		r, err := simulate.Run(m, []sim.Job{*j})
		if err != nil {
			return err
		}
		if r.Failed+r.Refused+len(r.Stuck) > 0 {
			return fmt.Errorf("%s alone: %+v", j.ID, r.Jobs)
		}
		if r.Makespan < took {
			low = j.Load
		} else {
			high = j.Load
		}
	}
	return nil
}
