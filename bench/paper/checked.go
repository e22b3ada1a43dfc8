package main

import (
	"fmt"
	"math"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// mostWrong is how far the simulator may be off, in percent, without a warning on the page.
const mostWrong = 15

// check simulates the real batch on this machine's processors and pool, by the speeds that were measured job by job,
// and holds it against what was measured.
func (p *page) check() {
	m := p.raw.Experiments["fig12"]
	if m == nil {
		return
	}
	var runs []float64
	for _, g := range m.Batches {
		if g.Environment == envEnd {
			runs = append(runs, g.Makespan)
		}
	}
	jobs := traced(m)
	if len(runs) == 0 || len(jobs) == 0 {
		return
	}
	got, err := simulate.Run(here(batchPool, m.Sittings[0].Threads), jobs)
	if err != nil {
		p.fail(err)
		return
	}
	wrong := p.beside(checkedRuns{
		"sim_error_pct", "batch of eight", "run", "by the speeds of its jobs one by one", got.Makespan, runs,
	})
	if wrong > mostWrong {
		p.say("**A warning**: the simulator is off by more than %d %% of what was run here. Take its figures for what they "+
			"are.", mostWrong)
	}
}

// here is a platform of this machine's, with the planner that the product has.
func here(pool disdel.Bytes, processors int) simulate.Config {
	return simulate.Config{
		Cloud: sim.Config{
			Invokers: 1, Memory: pool, Processors: processors, Cold: disdel.Millis(coldHere), Warm: disdel.Millis(warmHere),
		},
		Admission: scheduler.AdmissionGang, Estimator: estimator.Planned(backends.Standard(nil)),
	}
}

// coldHere is what a container takes to start here.
const coldHere = 50 * time.Millisecond

// warmHere is what one that is there takes to begin.
const warmHere = 5 * time.Millisecond

// traced is the batch as lines of a trace, with the speeds that the jobs had one by one, in which two actions of one
// thread each shared the rows.
func traced(m *measured) (out []sim.Job) {
	tasks := map[string]task{}
	for _, t := range append(pairs(), mobile(64, 3)) {
		tasks[t.id] = t
	}
	for _, o := range m.of(envEnd) {
		if t := tasks[o.Job]; o.Beside == 0 && o.Passed && o.Workers > 0 && o.Rows > 0 && t.id != "" {
			out = append(out, lineOf(o, t))
		}
	}
	return out
}

// lineOf is a run of a job as a line of a trace, whose work takes what it took there.
func lineOf(o outcome, t task) sim.Job {
	in := shapes[o.Data]
	side := in.sample[1]
	if t.resize > 0 {
		side = t.resize
	}
	each := o.Compute / float64(o.Rows*o.Epochs) * float64(o.Workers)
	// What is left of the run is aggregation and evaluation, whose containers are new as well: the simulator has each of
	// them load what a train action loads, which is part of what they took.
	rest := max(0, (o.Wall-o.Prepare-o.Compute-3*coldHere.Seconds())/2-o.Prepare)
	return sim.Job{
		ID: disdel.JobID(t.id), Network: t.network, Input: []int{in.sample[0], side, side}, Classes: in.classes,
		Rows: o.Rows, HeldOut: heldOut, BatchSize: (o.Batch + o.Workers - 1) / o.Workers, Epochs: o.Epochs,
		Sync: disdel.SyncEnd, Workers: o.Workers,
		PerThousand: disdel.Millis(1000 * each * float64(time.Second)),
		Load:        disdel.Millis(o.Prepare * float64(time.Second)),
		Aggregate:   disdel.Millis(rest * float64(time.Second)), Evaluate: disdel.Millis(rest * float64(time.Second)),
	}
}

// checkWide simulates the job of Fig. 11 in the smaller pool by the speed that it had in the larger one, where nobody
// waits, and holds that against what was measured in the smaller.
func (p *page) checkWide() {
	m := p.raw.Experiments["fig11"]
	if m == nil {
		return
	}
	var narrow []float64
	var line sim.Job
	for _, o := range m.Outcomes {
		switch {
		case !o.Passed:
		case o.Pool == widePool:
			narrow = append(narrow, o.Wall)
		case line.ID == "":
			line = lineOf(o, wide())
		}
	}
	if len(narrow) == 0 || line.ID == "" {
		return
	}
	line.Memory = wideAction
	// Each container has a quota, and the line has the speed of one: a processor for each that fits shares none.
	got, err := simulate.Run(here(widePool, int(widePool/wideAction)), []sim.Job{line})
	if err != nil {
		p.fail(err)
		return
	}
	p.beside(checkedRuns{
		"sim_wide_error_pct", "job of figure 11", "run in the smaller pool",
		"by the speed that the job had in the larger pool",
		got.Makespan, narrow,
	})
}

// checkedRuns is something that was simulated, and runs of it.
type checkedRuns struct {
	figure, what, how, by string
	simulated             disdel.Millis
	runs                  []float64 // s
}

// beside holds a simulation against the median of the runs, and returns how far it is off, in percent.
func (p *page) beside(h checkedRuns) (wrong float64) {
	simulated, run := h.simulated.Seconds(), median(h.runs)
	wrong = 100 * math.Abs(simulated-run) / run
	p.figure(h.figure, wrong, "%")
	p.claim(claim{
		"the simulator, on this machine's " + h.what, "-",
		fmt.Sprintf("%.1f s simulated, %.1f s %s: off by %.0f %%", simulated, run, h.how, wrong),
		judged(wrong, mostWrong), h.by + "; the bound of 15 % is ours",
	})
	return wrong
}
