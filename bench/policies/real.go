package main

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel/bench/rig"
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

// autos divides the time of auto by that of the best fixed number of workers. It measures the first job of a kind,
// which knows nothing, and the next one. Each time is the median of some runs. The figures are the median of the six
// jobs, and the worst of them.
func autos(o options) error {
	var first, second []float64
	err := o.eachJob("auto", func(t trial) error {
		t.epochs = o.whole(t.epochs)
		best, err := bestFixed(o, t)
		if err != nil {
			return err
		}
		t.policy = "auto"
		var ones, twos []float64
		for range o.seeds {
			one, two, err := twice(o, t)
			if err != nil {
				return err
			}
			ones, twos = append(ones, one/best), append(twos, two/best)
		}
		first, second = append(first, rig.Median(ones)), append(second, rig.Median(twos))
		rig.MedianFigure("auto_time_first_"+t.name, ones, "x")
		rig.MedianFigure("auto_time_"+t.name, twos, "x")
		return nil
	})
	if len(first) == 0 {
		return err
	}
	rig.Figure("auto_time_first_worst", slices.Max(first), "x")
	rig.Figure("auto_time_worst", slices.Max(second), "x")
	rig.MedianFigure("auto_time_first", first, "x")
	rig.MedianFigure("auto_time", second, "x")
	return err
}

// bestFixed is the least time of a job with a fixed number of workers, s.
func bestFixed(o options, t trial) (best float64, err error) {
	r, err := newRunner(o)
	if err != nil {
		return 0, err
	}
	defer r.close() //nolint:errcheck // a folder of its own
	best = math.Inf(1)
	for t.workers = 1; t.workers <= mostFixed; t.workers++ {
		took, err := r.seconds(t, o.seeds)
		if err != nil {
			return 0, err
		}
		best = min(best, took)
	}
	return best, nil
}

// twice runs a job in a home that knows nothing, and again.
func twice(o options, t trial) (first, second float64, err error) {
	r, err := newRunner(o)
	if err != nil {
		return 0, 0, err
	}
	defer r.close() //nolint:errcheck // a folder of its own
	if first, err = r.seconds(t, 1); err != nil {
		return 0, 0, err
	}
	second, err = r.seconds(t, 1)
	return first, second, err
}

// Times to accuracy: so many epochs for the plateau of one worker, and so many times those for two workers to come to
// a share of it. Two take half as many steps in an epoch.
const (
	ttaEpochs = 30
	ttaLonger = 4
	ttaShare  = 0.99
	ttaRate   = 0.05
)

// timesToAccuracy is KubeML's Fig. 4.2: the time until the held-out accuracy is 99 % of one worker's plateau. It
// divides the time of two workers that average after every batch by that of two workers that average once an epoch. It
// is the median over seeds of the weights and of the held-out rows.
func timesToAccuracy(o options) error {
	batches, _ := o.ofTTA() // they were checked
	var failed []error
	for _, batch := range batches {
		var ratios []float64
		err := o.each(fmt.Sprintf("tta, batch %d", batch), o.seeds, func(seed int) error {
			ratio, err := timeToAccuracy(o, batch, seed)
			if err == nil {
				ratios = append(ratios, ratio)
			}
			return err
		})
		if failed = append(failed, err); len(ratios) > 0 {
			rig.MedianFigure(fmt.Sprintf("kubeml_tta_b%d", batch), ratios, "ratio")
		}
	}
	return errors.Join(failed...)
}

// timeToAccuracy is the ratio for one seed. An arm that never comes to the target counts with all the time that it had.
func timeToAccuracy(o options, batch, seed int) (float64, error) {
	r, err := newRunner(o)
	if err != nil {
		return 0, err
	}
	defer r.close() //nolint:errcheck // a folder of its own
	t := trial{
		name: "plateau", model: "digits-cnn", epochs: o.whole(ttaEpochs), batch: batch, workers: 1, seed: seed,
		optimizer: fmt.Sprintf("{sgd: {learningRate: %g}}", ttaRate*math.Sqrt(float64(batch)/16)),
	}
	alone, err := r.job(t)
	if err != nil {
		return 0, err
	}
	for _, e := range evaluations(&alone) {
		t.target = max(t.target, ttaShare*e.accuracy)
	}
	t.workers, t.name, t.epochs = 2, "once-an-epoch", ttaLonger*t.epochs
	fast, err := r.timeTo(t)
	if err != nil {
		return 0, err
	}
	t.name, t.sync, t.evaluate = "every-batch", "{every: 1}", max(1, alone.Data.Train/2/batch)
	slow, err := r.timeTo(t)
	return slow / fast, err
}

// timeTo is how long a trial takes to come to its target, s. It says so where it does not.
func (r *runner) timeTo(t trial) (seconds float64, err error) {
	rec, err := r.job(t)
	if err != nil {
		return 0, err
	}
	for _, e := range evaluations(&rec) {
		if seconds = e.at.Seconds(); e.accuracy >= t.target {
			return seconds, nil
		}
	}
	fmt.Printf("%s, batch %d, seed %d: an accuracy of %.4f was not reached\n", t.name, t.batch, t.seed, t.target)
	return seconds, nil
}

// momentum is the final held-out accuracy with momentum whose velocities are averaged, less that without momentum, in
// points: the mean of seeds. KubeML starts velocities anew, which makes momentum worse than none.
func momentum(o options) error {
	arms := map[string][]float64{}
	err := o.each("momentum", o.seeds, func(seed int) error {
		points, err := accuracies(o, seed)
		if err != nil {
			return err
		}
		for name, v := range points {
			arms[name] = append(arms[name], v-points["plain"])
		}
		arms["accuracy"] = append(arms["accuracy"], points["plain"])
		return nil
	})
	if len(arms["average"]) == 0 {
		return err
	}
	rig.Figure("momentum_plain", rig.Mean(arms["accuracy"]), "%")
	rig.Figure("momentum_reset_points", rig.Mean(arms["reset"]), "points")
	rig.Figure("momentum_average_points", rig.Mean(arms["average"]), "points")
	rig.Figure("momentum_average_points_worst", slices.Min(arms["average"]), "points")
	return err
}

// momentumEpochs is how long each arm of the part momentum trains.
const momentumEpochs = 10

// accuracies are the final held-out ones of a seed, %, without momentum and with it. An error leaves all of them out.
func accuracies(o options, seed int) (map[string]float64, error) {
	r, err := newRunner(o)
	if err != nil {
		return nil, err
	}
	defer r.close() //nolint:errcheck // a folder of its own
	out := map[string]float64{}
	for _, arm := range []struct{ name, optimizer, moments string }{
		{"plain", "{sgd: {learningRate: 0.02}}", "reset"},
		{"reset", "{sgd: {learningRate: 0.02, momentum: 0.9}}", "reset"},
		{"average", "{sgd: {learningRate: 0.02, momentum: 0.9}}", "average"},
	} {
		rec, err := r.job(trial{
			name: arm.name, model: "digits-cnn", epochs: o.whole(momentumEpochs), batch: 32, workers: 2,
			optimizer: arm.optimizer, moments: arm.moments, seed: seed,
		})
		if err != nil {
			return nil, err
		}
		out[arm.name] = 100 * rec.Accuracy
	}
	return out, nil
}
