package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// generatedJobs is how many jobs are drawn from a seed, and longJobs how many of the part generated have long rounds.
const generatedJobs, longJobs = 60, 2

// most is the values of the largest array that is drawn.
const most = 16_000_000

// generator draws jobs. The same seed draws the same jobs on any machine.
type generator struct {
	*rand.Rand
	classes int // of the job that is being drawn
}

func (g *generator) between(least, most int) int    { return least + g.IntN(most-least+1) }
func (g *generator) pick(of ...[]int) []int         { return of[g.IntN(len(of))] }
func (g *generator) pickInt(of ...int) int          { return of[g.IntN(len(of))] }
func (g *generator) pickString(of ...string) string { return of[g.IntN(len(of))] }
func (g *generator) activation() string {
	return g.pickString("relu", "relu", "tanh", "sigmoid", "relu6")
}
func (g *generator) optimizer() string { return g.pickString("sgd", "momentum", "adam", "adam") }
func (g *generator) logarithmic(least, most float64) int { // small ones as often as large ones
	return int(least * math.Pow(most/least, g.Float64()))
}

// kind is a sort of jobs that the suite of the zoo does not have.
type kind struct {
	name    string
	network func(*generator) network
	change  func(*generator, *trial)
}

// kinds are all that are drawn, in turn.
func kinds() []kind {
	return []kind{
		{"wide", (*generator).wide, func(*generator, *trial) {}},
		{"deep", (*generator).deep, func(g *generator, t *trial) { t.workers = g.between(1, 3) }},
		{"residual", func(g *generator) network { return g.residual(8, 40) }, func(*generator, *trial) {}},
		{"keras", (*generator).imported, func(*generator, *trial) {}},
		{"drawn", (*generator).any, func(g *generator, t *trial) { t.share = 0.5 + 0.5*g.Float64() }},
		{"small-rows", (*generator).tiny, smallRows},
		{
			"large-rows", (*generator).large,
			func(g *generator, t *trial) { t.batch = g.between(2, 24); t.rows = t.batch * g.between(1, 4) },
		},
		{"few-held", (*generator).any, func(g *generator, t *trial) {
			t.batch = g.between(64, 200)
			t.rows, t.held = t.batch, g.between(1, t.batch/2)
		}},
		{
			"arrays", func(g *generator) network { return g.residual(40, 90) },
			func(g *generator, t *trial) { t.batch = g.between(2, 16); t.rows = t.batch },
		},
		{"states", (*generator).any, states},
		{"narrow", (*generator).any, func(g *generator, t *trial) {
			t.wire, t.upkeep = g.pickString("int8", "bfloat16"), g.pickString("", "keep", "")
			t.saved = g.IntN(2) == 0
		}},
		{"moments", (*generator).any, func(g *generator, t *trial) {
			t.optimize, t.upkeep, t.saved = g.pickString("momentum", "adam"), g.pickString("keep", "average"), g.IntN(2) == 0
		}},
		{"resumed", (*generator).any, func(g *generator, t *trial) {
			t.epochs, t.saved, t.resumed, t.upkeep = 2, true, true, g.pickString("", "keep", "average")
		}},
		{"separable", (*generator).separable, func(g *generator, t *trial) { t.float = g.IntN(2) == 0 }},
		{"zoo", (*generator).known, func(g *generator, t *trial) { t.clip = g.IntN(2) == 0 }},
		{
			"gorgonia", func(g *generator) network { return g.among((*generator).plain, (*generator).tiny, small)() },
			func(g *generator, t *trial) {
				t.backend, t.rows = "gorgonia", t.batch*g.between(1, 6)
			},
		},
	}
}

// small is a few dense layers, or a zoo's network that gorgonia computes quickly.
func small(g *generator) network {
	return network{zoo: g.pickString("mlp", "lenet5", "digits-cnn", "softmax-regression"), input: []int{1, 28, 28}}
}

func smallRows(g *generator, t *trial) {
	t.workers, t.batch = g.between(1, 4), g.between(64, 1024)
	t.rows = g.logarithmic(300_000, 2_000_000) / t.workers
	t.epochs = 1
	if g.IntN(3) > 0 {
		t.share = 0.6 + 0.4*g.Float64()
	}
	t.float = g.IntN(4) == 0
}

// states are jobs whose workers store what they are inside a round, as in rounds longer than 20 s. They are made short
// by storing it far more often.
func states(g *generator, t *trial) {
	t.saved, t.saves, t.rows = true, disdel.Millis(50_000_000), t.batch*g.between(3, 8)
	t.upkeep = g.pickString("", "", "keep")
}

// generate draws n jobs.
func generate(seed uint64, n int) []trial {
	all := kinds()
	out := make([]trial, 0, n)
	for i := range n {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		k := all[i%len(all)]
		out = append(out, g.trial(fmt.Sprintf("%d.%d-%s", seed, i, k.name), k))
	}
	return out
}

// trial draws one job of a kind: a quarter second of work or so, as a step takes the memory of every other.
func (g *generator) trial(name string, k kind) trial {
	g.classes = g.pickInt(2, 3, 10, 10, 20, 100)
	n := k.network(g)
	if n.keras == "" && n.zoo == "" {
		n.dense(g.classes, "softmax")
	}
	t := trial{
		name: name, network: n.zoo, layers: n.layers, keras: n.keras, input: n.input, classes: g.classes,
		batch: g.logarithmic(4, 200), workers: g.between(1, 3), epochs: g.between(1, 3), threads: 1, optimize: g.optimizer(),
	}
	t.rows = t.batch*g.between(1, 4) + g.IntN(t.batch)
	k.change(g, &t)
	t.bound()
	if t.workers == 1 && t.backend == "" && g.IntN(2) == 0 {
		t.threads = 2
	}
	return t
}

// work is the multiplications that a job may take.
const work = 2_000_000_000

// bound makes the batch and then the rows of a job smaller until it is done in seconds.
func (t *trial) bound() {
	g, err := t.graph()
	if err != nil {
		panic(fmt.Sprintf("bench: %v: %v", t.name, err)) // a test draws networks of many seeds
	}
	macs := max(1, 3*g.Count().MACs)
	for t.batch > 2 && int64(t.batch*t.workers*t.epochs)*macs > work {
		t.batch = (t.batch + 1) / 2
	}
	for t.rows > t.batch && int64(t.rows*t.workers*t.epochs)*macs > work {
		t.rows = max(t.batch, t.rows/2)
	}
	if t.share > 0 { // a batch is no larger than what is left of a worker's rows to train on
		t.batch = max(1, min(t.batch, int(t.share*float64(t.rows))-1))
	}
}

// long is two jobs whose rounds take longer than the 20 s between states on a core of a server.
func long(seed uint64) []trial {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1<<32)), classes: 10}
	one, two := network{input: []int{3, 32, 32}}, network{input: []int{1, 28, 28}}
	one.dense(g.between(2500, 4000), "relu")
	one.dense(g.between(500, 1500), "relu")
	one.dense(10, "softmax")
	two.dense(g.between(3000, 8000), "relu")
	two.dense(10, "softmax")
	first := trial{
		name: fmt.Sprintf("%d.long-a", seed), layers: one.layers, input: one.input, optimize: "adam", batch: 64,
		rows: 9000, workers: 2,
	}
	second := trial{
		name: fmt.Sprintf("%d.long-b", seed), layers: two.layers, input: two.input, optimize: "momentum",
		batch: 32, rows: 20_000, workers: 2, upkeep: "keep",
	}
	out := []trial{first, second}
	for i := range out {
		out[i].classes, out[i].epochs, out[i].threads, out[i].saved = 10, 1, 1, true
	}
	return out
}

// graph is the network as the job builds it.
func (t *trial) graph() (*model.Graph, error) {
	n := disdel.Network{Name: t.network, Input: t.input, Classes: t.classCount()}
	file, err := t.parse()
	if err != nil {
		return nil, err
	}
	n.Layers = file.Job.Model.Layers
	return model.Build(n)
}
