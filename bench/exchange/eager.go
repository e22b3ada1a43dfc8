package main

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator/exchange"
	"github.com/disdel/disdel/runtime/engine"
)

// eagerGang is a gang whose steps begin with all that others have sent by then, on a clock: who is first is a matter of
// time there, so that learning and time are one simulation. Time is counted as clock counts it.
type eagerGang struct {
	clock
	trial
	l       *learning
	lot     *rand.Rand
	workers []*worker
	log     [][]sentStep // by worker and step
	seen    [][]int      // by worker: of each other one, the newest step that it has read
	ready   []float64    // when a worker has ended its last step
	server  float64      // when it is free
	spare   []exchange.Delta
}

// sentStep is what a worker sent of a step.
type sentStep struct {
	delta exchange.Delta
	bytes float64
	at    float64
}

// timed is the held-out loss at a time.
type timed struct{ at, loss float64 }

// trainEager learns until every worker has made the trial's steps, and returns the losses on the way.
func (l *learning) trainEager(ctx context.Context, t trial, k clock) (out []timed, err error) {
	k.slack = t.slack
	g := eagerGang{
		clock: k, trial: t, l: l, lot: rand.New(rand.NewPCG(k.seed, 5)), workers: make([]*worker, t.workers),
		log: make([][]sentStep, t.workers), seen: make([][]int, t.workers), ready: make([]float64, t.workers),
		spare: make([]exchange.Delta, t.workers),
	}
	defer func() {
		for _, w := range g.workers {
			if w != nil {
				w.engine.Close() //nolint:errcheck // memory alone
			}
		}
	}()
	start := flat(engine.InitWeights(l.graph, disdel.Init{Seed: t.seed}))
	for m := range g.workers {
		if g.workers[m], err = l.worker(ctx, t, m, start); err != nil {
			return nil, err
		}
		g.seen[m] = make([]int, t.workers)
	}
	for {
		w, at := g.next()
		if w < 0 {
			return out, nil
		}
		before := g.workers[0].replica.Folded()
		if err := g.step(w, at); err != nil {
			return nil, err
		}
		if now := g.workers[0].replica.Folded(); w == 0 && now/t.every > before/t.every {
			loss, err := l.evaluate(g.workers[0])
			if err != nil {
				return nil, err
			}
			out = append(out, timed{at, loss})
		}
	}
}

// next is the worker that can begin a step first, and when; -1 where all have made theirs.
func (g *eagerGang) next() (first int, at float64) {
	first, at = -1, math.Inf(1)
	for w := range g.workers {
		if begin := g.begins(w); begin < at {
			first, at = w, begin
		}
	}
	return first, at
}

// begins is when a worker can begin its next step: infinite while somebody has yet to make a step that it needs.
func (g *eagerGang) begins(w int) float64 {
	r := g.workers[w].replica
	if r.Made() == g.steps {
		return math.Inf(1)
	}
	at, needed := g.ready[w], r.Needed()
	if needed == 0 {
		return at
	}
	for _, sent := range g.log {
		if len(sent) < needed {
			return math.Inf(1)
		}
		at = max(at, sent[needed-1].at)
	}
	return at
}

// step has a worker read what is there, and make its step.
func (g *eagerGang) step(w int, at float64) error {
	r := g.workers[w].replica
	bytes, all := 0.0, r.Made()
	for v, sent := range g.log {
		if v == w {
			continue
		}
		for n := g.seen[w][v]; n < len(sent) && sent[n].at <= at; n++ {
			bytes += sent[n].bytes
			g.seen[w][v] = n + 1
		}
		all = min(all, g.seen[w][v])
	}
	g.server = max(g.server, at) + bytes/g.clock.rate
	for r.Folded() < all {
		for v := range g.spare {
			g.spare[v] = g.log[v][r.Folded()].delta
		}
		if err := r.Fold(r.Folded()+1, g.spare); err != nil {
			return err
		}
	}
	for v, newest := range g.seen[w] {
		for v != w && r.NewestStep(v) < newest {
			if err := r.AddEager(v, r.NewestStep(v)+1, g.log[v][r.NewestStep(v)].delta); err != nil {
				return err
			}
		}
	}
	d, _, err := g.workers[w].step(g.trial, w, r.Send)
	if err != nil {
		return err
	}
	g.ready[w] = g.server + math.Exp(g.spread*g.lot.NormFloat64())
	g.log[w] = append(g.log[w], sentStep{delta: d, bytes: float64(len(d.Append(nil))), at: g.ready[w]})
	return nil
}

// soonestBelow is when a loss was at most target first; infinite where it never was.
func soonestBelow(all []timed, target float64) float64 {
	for _, e := range all {
		if e.loss <= target {
			return e.at
		}
	}
	return math.Inf(1)
}
