package main

import (
	"fmt"
	"math/rand/v2"
)

// failureKinds are what a drawn job has too little of, in turn.
var failureKinds = []string{"memory", "timeout", "deadline", "pool", "budget", "store", "disk"}

// failing is a drawn job that is given too little of one thing.
type failing struct {
	kind  string // of failureKinds
	file  string // the job file
	args  []string
	fault fault
}

// fault is what happens to a job beside its own limits.
type fault int

const (
	noFault    fault = iota
	understate       // the history says that jobs like it needed half of the memory
	storeDies        // its Redis is killed while the job runs
	diskFills        // the disk of its home fills while the job runs
)

// failingJob draws the job with a number. All learn the handwritten digits.
func failingJob(seed uint64, number int) failing {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1<<40+uint64(number)))}
	f := failing{kind: failureKinds[number%len(failureKinds)]}
	j := drawnJob{
		name: fmt.Sprintf("advised-%d", number), network: g.digitsNetwork(), epochs: g.between(4, 12),
		batch: g.pickInt(8, 16, 32, 64, 128), workers: g.between(1, 3),
		optimizer: g.pickString("{sgd: {learningRate: 0.01}}", "{sgd: {learningRate: 0.01, momentum: 0.9}}",
			"{adam: {learningRate: 0.001}}"),
	}
	set := func(format string, value int) { f.args = append(f.args, "--set", fmt.Sprintf(format, value)) }
	switch f.kind {
	case "memory":
		g.tooLittleMemory(&f, &j)
	case "timeout":
		set("resources.timeout=%dms", g.between(100, 400))
	case "deadline":
		set("reliability.deadline=%dms", g.between(200, 1200))
	case "pool":
		f.args = []string{"--pool-memory", fmt.Sprintf("%dMB", g.between(128, 380))}
	case "budget":
		set("resources.maxCost=0.%03dGB-s", g.between(20, 200))
	case "store":
		f.fault, j.epochs = storeDies, g.between(60, 120)
	case "disk":
		f.fault, j.epochs = diskFills, g.between(60, 120)
	}
	f.file = j.text()
	return f
}

// tooLittleMemory is either a limit below the weights, which makes disdel refuse the job, or an estimate that is far
// too low, which gets an action killed.
func (g *generator) tooLittleMemory(f *failing, j *drawnJob) {
	j.epochs = 1
	if g.IntN(2) == 0 {
		j.network = fmt.Sprintf("{layers: [{dense: {units: %d, activation: relu}}, "+
			"{dense: {units: 10, activation: softmax}}]}", g.between(120_000, 250_000))
		f.args = []string{"--set", "resources.memory=128MB"}
		return
	}
	j.network = fmt.Sprintf("{layers: [{conv: {filters: %d, kernel: 1, activation: relu}}, "+
		"{dense: {units: 10, activation: softmax}}]}", g.between(750, 1100))
	j.batch, j.workers = g.between(430, 600), 1
	f.fault = understate
	f.args = []string{"--estimator", "learned", "--set", "reliability.retries.limit=0"}
}

func (g *generator) digitsNetwork() string {
	if g.IntN(3) == 0 {
		return "{name: digits-cnn}"
	}
	return fmt.Sprintf("{layers: [{conv: {filters: %d, kernel: 3, activation: relu}}, "+
		"{dense: {units: %d, activation: relu}}, {dense: {units: 10, activation: softmax}}]}",
		g.between(4, 24), g.between(16, 400))
}

// drawnJob is what a drawn job file says.
type drawnJob struct {
	name, network, optimizer string
	epochs, batch, workers   int
}

func (j drawnJob) text() string {
	return fmt.Sprintf(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: %s}
model: %s
data: {source: dataset://digits, split: {train: 0.8, validation: 0.2, seed: 1}}
training: {epochs: %d, batchSize: %d, optimizer: %s}
distribution: {workers: %d}
reliability: {retries: {limit: 1, backoff: {initial: 20ms, max: 100ms}}}
`, j.name, j.network, j.epochs, j.batch, j.optimizer, j.workers)
}
