package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// simulated is figures 11, 12 and 13 at the paper's size, under both readings of Fig. 8.
func (p *page) simulated(*measured) {
	p.section("Figures 11, 12 and 13 at the paper's size, simulated", fmt.Sprintf("By `scheduler/sim`: servers of %d "+
		"processors and a pool of %v each, %v for an action of default serverless and %v for one of disdel's (its Fig. 11), "+
		"two actions a job, 2.8 %% deviation of every duration, %d seeds, whose 5th and 95th percentiles are the intervals; "+
		"containers are spread over the servers. Not simulated: the network between servers, and aggregation. Calibrated on "+
		"Fig. 8 alone, which can be read in two ways, and neither gives all that is printed.",
		serverCores, serverPool, actionOne, actionOurs, seeds))
	var lines []plot.Line
	for _, r := range []reading{
		{"one server", "", "both containers of a job on one server: more threads of one process gain little", calibrated()},
		{
			"own servers", "_spread", "each container on a server of its own, computing with all of its processors",
			spreadOut(),
		},
	} {
		lines = append(lines, p.reading(r)...)
	}
	p.check()
	p.chart("fig13.svg", plot.Chart{
		Title: "Figure 13: eight jobs over servers, simulated", X: plot.Axis{Name: "servers", Whole: true},
		Y: plot.Axis{Name: "time (s)"}, Lines: lines,
	})
}

// reading is a way to read Fig. 8, and how figures that follow from it are named.
type reading struct {
	name, suffix, text string
	c                  calibration
}

// reading is what one reading of Fig. 8 leads to.
func (p *page) reading(r reading) (lines []plot.Line) {
	c := r.c
	list := crews(c)
	one, bare, ours := list[0], list[1], list[2]
	p.say("**%s**: %s. A serial share of %.3f, %.0f s of one thread for a job, %.2f of one container's time on bare "+
		"metal and %.2f for disdel's actions together.", r.name, r.text, c.serial, c.work, c.bare, c.ours)
	span := func(w crew, jobs, nodes int, pool disdel.Bytes) func(*rand.Rand) float64 {
		return func(lot *rand.Rand) float64 { return w.makespan(c, jobs, nodes, pool, lot) }
	}
	over := func(figure, what, printed string, most float64, a, b func(*rand.Rand) float64) {
		v := overSeeds(func(lot *rand.Rand) float64 { return a(lot) / b(lot) })
		p.ratio(figure+r.suffix, v)
		p.claim(claim{
			what + ", simulated, " + r.name, printed, v.String(), judged(v.Value, most),
			"the paper's servers, calibrated on its Fig. 8 alone",
		})
	}
	four := ours
	four.actions = 4
	over("fig11_simulated", "11: pool of 140 GB over 70 GB", "0.477", 0.477, span(four, 1, 1, 140*disdel.GB),
		span(four, 1, 1, 70*disdel.GB))
	over("fig12_default_simulated", "12 over default", "0.45", 0.45, span(ours, 8, 1, serverPool), span(one, 8, 1,
		serverPool))
	over("fig12_baremetal_simulated", "12 over bare metal", "0.71", 0.71, span(ours, 8, 1, serverPool),
		span(bare, 8, 1, serverPool))
	over("fig13_8over4", "13: 8 servers over 4", "0.60", 0.60, span(ours, 8, 8, serverPool), span(ours, 8, 4, serverPool))
	over("fig13_8over4_default", "13: 8 servers over 4, default", "0.73", 0.73, span(one, 8, 8, serverPool),
		span(one, 8, 4, serverPool))
	rows := [][]string{{"servers", one.name, bare.name, ours.name}}
	for _, w := range list {
		lines = append(lines, plot.Line{Name: w.name + ", " + r.name})
	}
	for _, nodes := range []int{1, 4, 8} {
		row := []string{fmt.Sprint(nodes)}
		for i, w := range list {
			v := overSeeds(span(w, 8, nodes, serverPool))
			row = append(row, fmt.Sprintf("%.0f s (%.0f to %.0f)", v.Value, v.Low, v.High))
			lines[i].Points = append(lines[i].Points, at(float64(nodes), v.Value))
		}
		rows = append(rows, row)
	}
	p.table(rows)
	return lines
}

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
	got, err := simulate.Run(simulate.Config{
		Cloud: sim.Config{
			Invokers: 1, Memory: batchPool, Processors: m.Sittings[0].Threads, Cold: disdel.Millis(coldHere),
			Warm: disdel.Millis(5 * time.Millisecond),
		},
		Admission: scheduler.AdmissionGang, Estimator: estimator.Planned(backends.Standard(nil)),
	}, jobs)
	if err != nil {
		p.fail(err)
		return
	}
	run := median(runs)
	wrong := 100 * math.Abs(got.Makespan.Seconds()-run) / run
	p.figure("sim_error_pct", wrong, "%")
	p.claim(claim{
		"the simulator, on this machine's batch of eight", "-",
		fmt.Sprintf("%.1f s simulated, %.1f s run: off by %.0f %%", got.Makespan.Seconds(), run, wrong),
		judged(wrong, mostWrong), "by the speeds of its jobs one by one; the bound of 15 % is ours",
	})
	if wrong > mostWrong {
		p.say("**A warning**: the simulator is off by more than %d %% of what was run here. Take its figures for what they "+
			"are.", mostWrong)
	}
}

// coldHere is what a container takes to start here.
const coldHere = 50 * time.Millisecond

// traced is the batch as lines of a trace, with the speeds that the jobs had one by one, in which two actions of one
// thread each shared the rows. What is left of their time is aggregation's and evaluation's.
func traced(m *measured) (out []sim.Job) {
	tasks := map[string]task{}
	for _, t := range append(pairs(), mobile(64, 3)) {
		tasks[t.id] = t
	}
	for _, o := range m.of(envEnd) {
		t := tasks[o.Job]
		if o.Beside > 0 || !o.Passed || o.Workers == 0 || o.Rows == 0 || t.id == "" {
			continue
		}
		in := shapes[o.Data]
		side := in.sample[1]
		if t.resize > 0 {
			side = t.resize
		}
		each := o.Compute / float64(o.Rows*o.Epochs) * float64(o.Workers)
		rest := max(0, o.Wall-o.Prepare-o.Compute-3*coldHere.Seconds()) / 2
		out = append(out, sim.Job{
			ID: disdel.JobID(t.id), Network: t.network, Input: []int{in.sample[0], side, side}, Classes: in.classes,
			Rows: o.Rows, HeldOut: heldOut, BatchSize: (o.Batch + o.Workers - 1) / o.Workers, Epochs: o.Epochs,
			Sync: disdel.SyncEnd, Workers: o.Workers,
			PerThousand: disdel.Millis(1000 * each * float64(time.Second)),
			Load:        disdel.Millis(o.Prepare * float64(time.Second)),
			Aggregate:   disdel.Millis(rest * float64(time.Second)), Evaluate: disdel.Millis(rest * float64(time.Second)),
		})
	}
	return out
}
