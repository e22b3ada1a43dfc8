package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/disdel/disdel"
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
	// then ran on servers of their own. Else they shared one, with as many threads each as there are processors for it
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
