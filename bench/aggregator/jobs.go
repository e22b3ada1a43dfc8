package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
)

// trainer runs whole jobs through the built program, on embedded servers.
type trainer struct{ rig.Program }

// job is what differs from one measured job to the next.
type job struct {
	set     string // data set
	network string
	workers int
	epochs  int
	batch   int
	sync    string
	more    string // of distribution.aggregation
}

func (j job) text() []byte {
	return fmt.Appendf(nil, `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: bench}
model: {name: %s, init: {seed: 42}}
data: {source: "dataset://%s"}
training: {epochs: %d, batchSize: %d, validateEvery: 0, optimizer: {adam: {learningRate: 0.0015}}}
distribution: {workers: %d, sync: %s, aggregation: {%s}}
`, j.network, j.set, j.epochs, j.batch, j.workers, j.sync, j.more)
}

func fashion(workers, epochs int, sync, more string) job {
	return job{
		set: "fashion-mnist", network: "lenet5", workers: workers, epochs: epochs, batch: 32, sync: sync,
		more: more,
	}
}

func (t trainer) run(j job) (disdel.Record, error) { return t.Job(j.text(), "submit", "-") }

// The epochs of the comparisons: of wire formats, and of numbers of workers, which takes as many as one worker needs to
// learn nothing more.
const (
	wireEpochs   = 5
	workerEpochs = 15
)

// jobs measures what only whole jobs tell. Without Fashion-MNIST on the machine its part is left out, with a line.
func jobs(t trainer) error {
	if _, err := t.Run(nil, "dataset", "add", "digits", "-q"); err != nil {
		return err
	}
	if err := t.warmRounds(); err != nil {
		return err
	}
	if _, err := t.Run(nil, "dataset", "add", "fashion-mnist", "-q"); err != nil {
		fmt.Fprintf(os.Stderr, "skipped: accuracy on Fashion-MNIST (Debian's dataset-fashion-mnist is not installed): %v\n",
			err)
		return nil
	}
	return errors.Join(t.wires(), t.workers())
}

// warmRounds is a round of a job with eight processes, from the last round's end to its own: invocations, one batch of
// 16 in every worker, transfers, aggregation, no evaluation, no checkpoint of its own beside.
func (t trainer) warmRounds() error {
	rec, err := t.run(job{set: "digits", network: "digits-cnn", workers: 8, epochs: 4, batch: 16, sync: "{every: 1}"})
	if err != nil {
		return err
	}
	var took []float64
	for _, r := range rec.Rounds[min(5, len(rec.Rounds)-1):] { // the first ones are cold
		took = append(took, 1000*time.Duration(r.Duration).Seconds())
	}
	rig.Figure("job_round_p50_ms", rig.Median(took), "ms")
	return nil
}

// wires is the held-out accuracy of each wire format.
func (t trainer) wires() error {
	var plain float64
	for _, wire := range []disdel.Wire{disdel.WireFloat32, disdel.WireBfloat16, disdel.WireInt8} {
		rec, err := t.run(fashion(2, wireEpochs, "epoch", "wire: "+string(wire)))
		if err != nil {
			return err
		}
		rig.Figure(string(wire)+"_accuracy", rec.Accuracy, "share")
		if wire == disdel.WireFloat32 {
			plain = rec.Accuracy
			continue
		}
		rig.Figure(string(wire)+"_accuracy_lost", 100*(plain-rec.Accuracy), "points")
	}
	return nil
}

// workers is the held-out accuracy by number of workers, and by what becomes of the optimiser's state.
func (t trainer) workers() error {
	var alone float64
	for _, n := range []int{1, 2, 4, 8} {
		rec, err := t.run(fashion(n, workerEpochs, "epoch", ""))
		if err != nil {
			return err
		}
		rig.Figure(fmt.Sprintf("workers_%d_accuracy", n), rec.Accuracy, "share")
		if n == 1 {
			alone = rec.Accuracy
			continue
		}
		rig.Figure(fmt.Sprintf("workers_%d_accuracy_lost", n), 100*(alone-rec.Accuracy), "points")
	}
	for _, n := range []int{2, 4, 8} {
		rec, err := t.run(fashion(n, workerEpochs, "end", ""))
		if err != nil {
			return err
		}
		rig.Figure(fmt.Sprintf("workers_%d_sync_end_accuracy", n), rec.Accuracy, "share")
	}
	for _, upkeep := range []disdel.StatePolicy{disdel.StateReset, disdel.StateAverage, disdel.StateKeep} {
		rec, err := t.run(fashion(4, wireEpochs, "epoch", "optimizer: "+string(upkeep)))
		if err != nil {
			return err
		}
		rig.Figure("optimizer_"+string(upkeep)+"_accuracy", rec.Accuracy, "share")
	}
	return nil
}
