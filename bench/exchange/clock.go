package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// clock is how long the steps of a course take. A step of a worker that is no straggler takes 1 to compute, on every
// machine. Every worker reads the deltas of all others from one server, which serves one after the other.
type clock struct {
	rate   float64 // bytes that the server serves in the time of a step's computing
	spread float64 // sigma of the lognormal time of a worker's step
	slack  int
	seed   uint64
}

// rateAt is the rate of a server at which steps of a course are communication for so large a share, while everybody
// waits for everybody.
func rateAt(c *course, workers int, share float64) float64 {
	each := c.sent(len(c.bytes))
	return each * float64(workers*(workers-1)) * (1 - share) / share
}

// time is when everybody has ended a step and has what the others sent in it.
func (k clock) time(c *course, steps int) float64 {
	workers := len(c.bytes[0])
	rng := rand.New(rand.NewPCG(k.seed, 5))
	ready := make([]float64, workers) // when a worker can begin its next step but for what it reads
	ended := make([][]float64, steps) // by step and worker: when its delta was there
	server := 0.0
	order := make([]int, workers)
	read := func(w, step int) { // the others' deltas of a step
		all, bytes := 0.0, 0.0
		for v, at := range ended[step] {
			if v != w {
				all, bytes = max(all, at), bytes+c.bytes[step][v]
			}
		}
		begin := max(ready[w], all, server)
		server = begin + bytes/k.rate
		ready[w] = server
	}
	for step := range steps {
		ended[step] = make([]float64, workers)
		for w := range order {
			order[w] = w
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(math.Copysign(1, ready[a]-ready[b])) })
		for _, w := range order {
			if needed := step - k.slack - 1; needed >= 0 {
				read(w, needed)
			}
			ready[w] += math.Exp(k.spread * rng.NormFloat64())
			ended[step][w] = ready[w]
		}
	}
	for step := max(0, steps-k.slack-1); step < steps; step++ {
		for w := range order {
			read(w, step)
		}
	}
	return slices.Max(ready)
}
