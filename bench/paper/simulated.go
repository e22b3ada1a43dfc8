package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// The paper's machines, and what it prints of InceptionV3 on MNIST (Fig. 8): the seconds of an action of DiSDeL, those
// of preparing data in each environment, and the mean savings.
const (
	serverCores  = 24
	actionTook   = 143.7
	prepareOurs  = 16.0
	prepareOne   = 20.0
	prepareBare  = 30.0
	overDefault  = 0.54
	overBare     = 0.60
	serverPool   = 190 * disdel.GB
	actionOurs   = 32 * disdel.GB // Fig. 11's
	actionOne    = 70 * disdel.GB
	cold         = 1.5 // seconds until a new container takes requests
	runDeviation = 0.028
)

// calibration is what Fig. 8 alone fixes: how badly TensorFlow's threads share one container's work, the work itself,
// and what a process without a container saves of it.
type calibration struct {
	serial float64 // share of a step that more threads do not speed up: S(p) = p / (1 + serial (p - 1))
	work   float64 // seconds of one thread for the job
	bare   float64 // of computing, over one container's
	ours   float64 // the same of disdel's actions together
	// a process computes with as many threads as a server has processors, however many others do: containers of Fig. 8
	// then
	// ran on servers of their own. Else they shared one, with as many threads each as there are processors for it
	spread bool
}

// speedup is how much faster p threads are than one.
func (c calibration) speedup(p float64) float64 { return p / (1 + c.serial*(p-1)) }

// spreadOut is the other reading of Fig. 8: two actions on two servers, where what is above a half is what dividing
// costs.
func spreadOut() calibration {
	one := actionTook/overDefault - prepareOne
	return calibration{
		spread: true, work: one * serverCores, bare: (actionTook/overBare - prepareBare) / one,
		ours: 2 * (actionTook - prepareOurs) / one,
	}
}

// threads are those of an action where so many share a server.
func (c calibration) threads(atOnce int) int {
	if c.spread {
		return serverCores
	}
	return max(1, serverCores/atOnce)
}

// calibrated finds the serial share by bisection: two actions of half of the cores and of the rows take overDefault of
// what one container takes with all of them.
func calibrated() calibration {
	at := func(serial float64) (calibration, float64) {
		c := calibration{serial: serial, ours: 1}
		c.work = 2 * (actionTook - prepareOurs) * c.speedup(serverCores/2)
		one := prepareOne + c.work/c.speedup(serverCores)
		return c, actionTook / one
	}
	low, high := 0.0, 1.0
	for range 60 {
		middle := (low + high) / 2
		if _, got := at(middle); got > overDefault { // the more is serial, the better are two containers
			low = middle
		} else {
			high = middle
		}
	}
	c, _ := at((low + high) / 2)
	c.bare = (actionTook/overBare - prepareBare) / (c.work / c.speedup(serverCores))
	return c
}

// crew is how an environment runs a job on a server: so many actions of so much memory, and how many of them fit.
type crew struct {
	name    string
	actions int
	memory  disdel.Bytes
	prepare float64
	compute float64 // over one container's
	waves   bool    // the platform's pool decides who runs; else all run at once
}

func crews(c calibration) []crew {
	return []crew{
		{"default", 1, actionOne, prepareOne, 1, true},
		{"baremetal", 1, 0, prepareBare, c.bare, false},
		{"disdel", 2, actionOurs, prepareOurs, c.ours, true},
	}
}

// atOnce is how many actions share a server.
func (w crew) atOnce(jobs, nodes int, pool disdel.Bytes) int {
	n := (jobs*w.actions + nodes - 1) / nodes
	if w.waves && w.memory > 0 {
		n = min(n, int(pool/w.memory))
	}
	return max(1, n)
}

// makespan is the time until so many jobs have ended that come at once to so many servers.
func (w crew) makespan(c calibration, jobs, nodes int, pool disdel.Bytes, lot *rand.Rand) float64 {
	var clock sim.Clock
	memory := pool
	if !w.waves {
		memory = disdel.GB << 10
	}
	servers := make([]*sim.Cloud, nodes) // Kubernetes spreads containers over them
	for i := range servers {
		servers[i] = sim.NewCloud(&clock, sim.Config{
			Memory: memory, Processors: serverCores, Cold: disdel.Millis(cold * float64(time.Second)),
			Warm: disdel.Millis(10 * time.Millisecond),
		})
	}
	threads := c.threads(w.atOnce(jobs, nodes, pool))
	each := w.prepare + w.compute*c.work/float64(w.actions)/c.speedup(float64(threads))
	var last disdel.Millis
	for j := range jobs {
		for a := range w.actions {
			took := each * math.Exp(runDeviation*lot.NormFloat64())
			servers[(j*w.actions+a)%nodes].Call(sim.Call{
				Namespace: fmt.Sprintf("user-%d", j), Action: fmt.Sprintf("job-%d/train-%d", j, a), Memory: max(w.memory,
					disdel.MB),
				Threads: threads, Work: disdel.Millis(took * float64(time.Second)),
			}, func(sim.Reply) { last = clock.Now() })
		}
	}
	for clock.Step() {
	}
	return last.Seconds()
}

// seeds are how often everything is drawn anew.
const seeds = 200

// over is the median of a ratio over the seeds, with the interval of nine in ten.
func overSeeds(of func(lot *rand.Rand) float64) interval {
	v := make([]float64, seeds)
	for s := range v {
		v[s] = of(rand.New(rand.NewPCG(uint64(s), 13)))
	}
	slices.Sort(v)
	return interval{v[seeds/2], v[seeds/20], v[seeds-1-seeds/20]}
}

// simulated is figures 11, 12 and 13 at the paper's size, under both readings of Fig. 8.
func (b *bench) simulated(context.Context) error {
	b.page.section("Figures 11, 12 and 13 at the paper's size, simulated", fmt.Sprintf("By `scheduler/sim`: servers of "+
		"%d "+
		"processors and a pool of %v each, %v for an action of default serverless and %v for one of disdel's (its Fig. "+
		"11), two "+
		"actions a job, 2.8 %% deviation of every duration, %d seeds; containers are spread over the servers. Not "+
		"simulated: the "+
		"network between servers, and aggregation. Calibrated on Fig. 8 alone, which can be read in two ways, and neither "+
		"gives "+
		"all that the paper prints.", serverCores, serverPool, actionOne, actionOurs, seeds))
	lines := []plot.Line{}
	for _, r := range []struct {
		name, suffix, text string
		c                  calibration
	}{
		{"one server", "", "both containers of a job on one server: more threads of one process gain little", calibrated()},
		{
			"own servers", "_spread", "each container on a server of its own, computing with all of its processors",
			spreadOut(),
		},
	} {
		lines = append(lines, b.reading(r.c, r.name, r.suffix, r.text)...)
	}
	if err := b.check(); err != nil {
		return err
	}
	return b.chart("fig13.svg", plot.Chart{
		Title: "Figure 13: eight jobs over servers, simulated", X: plot.Axis{Name: "servers", Whole: true},
		Y: plot.Axis{Name: "time (s)"}, Lines: lines,
	})
}

// reading is what one reading of Fig. 8 leads to.
func (b *bench) reading(c calibration, name, suffix, text string) (lines []plot.Line) {
	list := crews(c)
	one, bare, ours := list[0], list[1], list[2]
	fmt.Fprintf(&b.page.out, "\n**%s**: %s. A serial share of %.3f, %.0f s of one thread for a job, %.2f of one "+
		"container's time on "+
		"bare metal and %.2f for disdel's actions together.\n", name, text, c.serial, c.work, c.bare, c.ours)
	span := func(w crew, jobs, nodes int, pool disdel.Bytes) func(*rand.Rand) float64 {
		return func(lot *rand.Rand) float64 { return w.makespan(c, jobs, nodes, pool, lot) }
	}
	over := func(figure, what, printed string, most float64, a, b2 func(*rand.Rand) float64) {
		v := overSeeds(func(lot *rand.Rand) float64 { return a(lot) / b2(lot) })
		b.page.ratio(figure+suffix, v)
		b.page.claims(what+", simulated, "+name, printed, v.String(), judged(v.Value, most))
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
		lines = append(lines, plot.Line{Name: w.name + ", " + name})
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
	b.page.table(rows)
	return lines
}

// check simulates the real batch on this machine's processors and pool, by the speeds that were measured job by job,
// and
// holds it against what was measured.
func (b *bench) check() error {
	if b.real == 0 {
		return nil
	}
	jobs := b.traced()
	if len(jobs) == 0 {
		return nil
	}
	got, err := simulate.Run(simulate.Config{
		Cloud: sim.Config{
			Invokers: 1, Memory: batchPool, Processors: threads(), Cold: disdel.Millis(200 * time.Millisecond),
			Warm: disdel.Millis(5 * time.Millisecond),
		},
		Admission: scheduler.AdmissionGang, Estimator: estimator.Planned(backends.Standard(nil)),
	}, jobs)
	if err != nil {
		return err
	}
	wrong := 100 * math.Abs(got.Makespan.Seconds()-b.real) / b.real
	b.page.figure("sim_error_pct", wrong, "%")
	b.page.claims("the simulator, on this machine's batch of eight", "-", fmt.Sprintf("%.0f s simulated, %.0f s run: "+
		"off by %.0f %%",
		got.Makespan.Seconds(), b.real, wrong), judged(wrong, 15))
	if wrong > 15 {
		b.page.section("A warning", "The simulator is off by more than 15 % of what was run here: take its figures for "+
			"what they are.")
	}
	return nil
}

// traced is the batch as lines of a trace, with the speeds that the jobs had one by one (figure 8). A job that did not
// run alone is left out, and with it the check.
func (b *bench) traced() (out []sim.Job) {
	for _, t := range b.chosen(eight()) {
		in := shapes[t.data]
		side := in.sample[1]
		if t.resize > 0 {
			side = t.resize
		}
		each, load := b.speedOf(t)
		if each == 0 {
			return nil
		}
		out = append(out, sim.Job{
			ID: disdel.JobID(t.id), Network: t.network, Input: []int{in.sample[0], side, side}, Classes: in.classes,
			Rows:    t.rows,
			HeldOut: heldOut, BatchSize: t.batch, Epochs: t.epochs, Sync: disdel.SyncEnd, Workers: 2, PerThousand: each,
			Load: load, Aggregate: disdel.Millis(200 * time.Millisecond), Evaluate: disdel.Millis(300 * time.Millisecond),
		})
	}
	return out
}

// speedOf is how long one processor takes for 1,000 rows of a job, and what a new container takes before, by the runs
// of
// it alone, in which two actions of one thread each shared the rows; 0 where there was none.
func (b *bench) speedOf(t task) (each, load disdel.Millis) {
	var rates, loads []float64
	for _, o := range b.page.raw.Outcomes {
		if o.Environment == envEnd && o.Job == t.id && o.Passed && o.Workers > 0 && o.Beside == 0 {
			rows := float64(t.rows*t.epochs) / float64(o.Workers)
			rates, loads = append(rates, o.Compute/rows*1000), append(loads, o.Prepare)
		}
	}
	if len(rates) == 0 {
		return 0, 0
	}
	return disdel.Millis(median(rates) * float64(time.Second)), disdel.Millis(median(loads) * float64(time.Second))
}
