package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/scheduler"
)

// six are the jobs of the real parts: networks, batches and optimisers of different weights.
func six() []trial {
	sgd, adam := "{sgd: {learningRate: 0.05}}", "{adam: {learningRate: 0.001}}"
	return []trial{
		{name: "mlp-16", model: "mlp", epochs: 12, batch: 16, optimizer: sgd},
		{name: "mlp-64", model: "mlp", epochs: 12, batch: 64, optimizer: adam},
		{name: "cnn-16", model: "digits-cnn", epochs: 12, batch: 16, optimizer: sgd},
		{name: "cnn-32", model: "digits-cnn", epochs: 12, batch: 32, optimizer: adam},
		{name: "cnn-64", model: "digits-cnn", epochs: 12, batch: 64, optimizer: sgd},
		{name: "mlp-every", model: "mlp", epochs: 6, batch: 32, optimizer: sgd, sync: "{every: 10}"},
	}
}

// mostFixed is the largest number of workers of the grid that auto is held against.
const mostFixed = 4

// autos is the time of auto, whose first job of a kind knows nothing, and of the next one, over the best fixed number
// of workers: in the median of the six jobs, and of the worst of them.
func autos(o options) error {
	var first, second []float64
	for _, t := range six() {
		r, err := newRig(o)
		if err != nil {
			return err
		}
		best := math.Inf(1)
		for n := 1; n <= mostFixed; n++ {
			fixed := t
			fixed.name, fixed.workers = fmt.Sprintf("%s-w%d", t.name, n), n
			rec, err := r.job(fixed)
			if err != nil {
				return err
			}
			best = min(best, whole(&rec))
		}
		if err := r.close(); err != nil { // auto is to know nothing of these
			return err
		}
		if r, err = newRig(o); err != nil {
			return err
		}
		t.policy = "auto"
		for _, ratios := range []*[]float64{&first, &second} {
			rec, err := r.job(t)
			if err != nil {
				return err
			}
			*ratios = append(*ratios, whole(&rec)/best)
		}
		if err := r.close(); err != nil {
			return err
		}
	}
	figure("auto_time_first_worst", slices.Max(first), "x")
	figure("auto_time_worst", slices.Max(second), "x")
	figure("auto_time_first", median(first), "x")
	figure("auto_time", median(second), "x")
	return nil
}

// Times to accuracy: two workers, and so many epochs for the plateau of one worker.
const (
	ttaEpochs = 30
	ttaShare  = 0.99
	ttaRate   = 0.05
)

// timesToAccuracy is KubeML's Fig. 4.2: the time until held-out accuracy is 99 % of the plateau that one worker comes
// to, with weights averaged after every batch over that with weights averaged once an epoch.
func timesToAccuracy(o options) error {
	for _, batch := range []int{16, 32, 128} {
		if err := timeToAccuracy(o, batch); err != nil {
			return err
		}
	}
	return nil
}

func timeToAccuracy(o options, batch int) error {
	r, err := newRig(o)
	if err != nil {
		return err
	}
	defer r.close() //nolint:errcheck // a folder of its own
	t := trial{
		name: "plateau", model: "digits-cnn", epochs: ttaEpochs, batch: batch, workers: 1,
		optimizer: fmt.Sprintf("{sgd: {learningRate: %g}}", ttaRate*math.Sqrt(float64(batch)/16)),
	}
	alone, err := r.job(t)
	if err != nil {
		return err
	}
	plateau := 0.0
	for _, e := range evaluations(&alone) {
		plateau = max(plateau, e.accuracy)
	}
	t.workers, t.name = 2, "once-an-epoch"
	epoch, err := r.job(t)
	if err != nil {
		return err
	}
	batches := max(1, alone.Data.Train/2/batch)
	t.name, t.sync, t.evaluate = "every-batch", "{every: 1}", batches
	every, err := r.job(t)
	if err != nil {
		return err
	}
	target := ttaShare * plateau
	slow, reached := until(evaluations(&every), target)
	fast, ok := until(evaluations(&epoch), target)
	name := fmt.Sprintf("kubeml_tta_b%d", batch)
	if !reached || !ok {
		fmt.Printf("%s: target %.4f was reached every batch: %v, once an epoch: %v\n", name, target, reached, ok)
	}
	if !ok {
		return nil
	}
	figure(name, slow/fast, "ratio")
	return nil
}

// until is the time to a target, and to the end where it was not reached.
func until(all []evaluated, target float64) (seconds float64, ok bool) {
	for _, e := range all {
		seconds = e.at.Seconds()
		if e.accuracy >= target {
			return seconds, true
		}
	}
	return seconds, false
}

// momentum is the final held-out accuracy with momentum whose velocities are averaged, less that without momentum, in
// points: the mean of seeds. KubeML starts velocities anew, which makes momentum worse than none.
func momentum(o options) error {
	sums := map[string]float64{}
	for seed := range o.seeds {
		r, err := newRig(o)
		if err != nil {
			return err
		}
		for _, arm := range []struct{ name, optimizer, moments string }{
			{"plain", "{sgd: {learningRate: 0.02}}", "reset"},
			{"reset", "{sgd: {learningRate: 0.02, momentum: 0.9}}", "reset"},
			{"average", "{sgd: {learningRate: 0.02, momentum: 0.9}}", "average"},
		} {
			rec, err := r.job(trial{
				name: arm.name, model: "digits-cnn", epochs: 10, batch: 32, workers: 2, optimizer: arm.optimizer,
				moments: arm.moments, seed: seed,
			})
			if err != nil {
				return err
			}
			sums[arm.name] += 100 * rec.Accuracy / float64(o.seeds)
		}
		if err := r.close(); err != nil {
			return err
		}
	}
	figure("momentum_plain", sums["plain"], "%")
	figure("momentum_reset_points", sums["reset"]-sums["plain"], "points")
	figure("momentum_average_points", sums["average"]-sums["plain"], "points")
	return nil
}

// speedError is how far the time of an epoch with 3 and with 4 workers is off what 1 and 2 say, by the law of policies,
// with no more processors than there are: the worse of the two, in the median of the six jobs.
func speedError(o options) error {
	var off []float64
	for _, t := range six() {
		r, err := newRig(o)
		if err != nil {
			return err
		}
		seconds := map[int]float64{}
		for n := 1; n <= 4; n++ {
			t.workers = n
			rec, err := r.job(t)
			if err != nil {
				return err
			}
			var epochs []float64
			for _, round := range rec.Rounds {
				epochs = append(epochs, round.Duration.Seconds())
			}
			seconds[n] = median(epochs) * float64(len(epochs)) / float64(t.epochs)
		}
		fixed, work, each, _ := scheduler.FitLaw(map[int]float64{1: seconds[1], 2: seconds[2]})
		worst := 0.0
		for n := 3; n <= 4; n++ {
			said := fixed + work/float64(min(n, runtime.NumCPU())) + each*float64(n)
			worst = max(worst, 100*math.Abs(said/seconds[n]-1))
		}
		off = append(off, worst)
		if err := r.close(); err != nil {
			return err
		}
	}
	figure("speed_error_w4_worst_pct", slices.Max(off), "%")
	figure("speed_error_w4_pct", median(off), "%")
	return nil
}

// simulated is how far the lab's simulated times of six jobs under three policies are off what they take when they run:
// the median of the jobs' medians. Each job runs once before, so that there is a forecast to simulate it by.
func simulated(o options) error {
	var off []float64
	for _, t := range six() {
		r, err := newRig(o)
		if err != nil {
			return err
		}
		t.workers = 2
		if _, err := r.job(t); err != nil {
			return err
		}
		t.workers = 1
		if _, err := r.job(t); err != nil {
			return err
		}
		file := filepath.Join(r.Home, "job.yaml")
		if err := os.WriteFile(file, r.file(t), 0o644); err != nil {
			return err
		}
		out, err := r.Run(nil, "lab", file, "--policies", "static,elastic,auto", "--run", "-o", "json")
		if err != nil {
			return err
		}
		var lab simulate.Lab
		if err := json.Unmarshal(out, &lab); err != nil {
			return err
		}
		figure("sim_error_"+t.name+"_pct", lab.SimError, "%")
		off = append(off, lab.SimError)
		if err := r.close(); err != nil {
			return err
		}
	}
	figure("sim_error_pct", median(off), "%")
	return nil
}
