package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/disdel/disdel"
	shared "github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// scale is what all times of the platform are divided by, in every way alike, so that a job need not run for minutes:
// OpenWhisk's default timeout of 60 s is 3 s here. Memory is not scaled.
const scale = 20

// standard is OpenWhisk's default limits.
var standard = disdel.Limits{Memory: 256 * disdel.MB, Timeout: disdel.Millis(time.Minute / scale)}

// retries are DiSDeL's Fig. 2 from the default limits on: 240 s more with every retry, and as much memory as the
// default. The bounds are the platform's, which let every job pass: the paper raised OpenWhisk's too, and its figure
// goes to 1,740 s.
var retries = shared.FixedStep{
	First: standard,
	Step:  disdel.Limits{Memory: standard.Memory, Timeout: disdel.Millis(4 * time.Minute / scale)},
	Most:  disdel.Limits{Memory: 2 * disdel.GB, Timeout: disdel.Millis(30 * time.Minute / scale)},
}

// scaled are the headline's bounds: a limit's minimum and default are OpenWhisk's.
func scaled(cfg *platform.Config) {
	cfg.PoolMemory = 4 * disdel.GB
	cfg.Limits.Memory.Max = retries.Most.Memory
	t := &cfg.Limits.Timeout
	t.Min, t.Default, t.Max = t.Min/scale, time.Duration(standard.Timeout), time.Duration(retries.Most.Timeout)
}

// twenty is the jobs of the headline. On a core each, thirteen pass at OpenWhisk's defaults, five need more memory and
// two more time.
func twenty() []trial {
	gray, digits := []int{1, 28, 28}, []int{1, 8, 8}
	return []trial{
		newTrial("softmax-regression", gray, 64, "sgd", rows(2000)),
		newTrial("softmax-regression", rgb(32), 128, "momentum", rows(2000)),
		newTrial("mlp", gray, 128, "adam", rows(2000)),
		newTrial("mlp", rgb(32), 64, "sgd", rows(500), clip),
		newTrial("digits-cnn", digits, 32, "adam", rows(720)),
		newTrial("digits-cnn", digits, 256, "momentum", rows(1000)),
		newTrial("lenet5", gray, 16, "sgd", rows(1000)),
		newTrial("lenet5", gray, 64, "adam", rows(4000)),
		newTrial("lenet5", gray, 256, "momentum", rows(4000)),
		newTrial("lenet-kubeml", gray, 64, "sgd", rows(1000)),
		newTrial("resnet20-cifar", rgb(32), 32, "sgd", rows(64)),
		newTrial("mobilenetv1", rgb(32), 32, "momentum", rows(128)),
		newTrial("resnet32-cifar", rgb(32), 16, "adam", rows(32)),
		// Memory.
		newTrial("resnet50", rgb(32), 32, "adam", rows(32)),
		newTrial("vgg16-cifar", rgb(32), 32, "adam", rows(32)),
		newTrial("inceptionv3", rgb(75), 8, "momentum", rows(8), one),
		newTrial("resnet152", rgb(32), 8, "sgd", rows(8), one),
		newTrial("resnet18", rgb(64), 48, "adam", rows(48)),
		// Time.
		newTrial("mobilenetv1", rgb(32), 32, "sgd", rows(4000), once),
		newTrial("resnet20-cifar", rgb(32), 32, "momentum", rows(1500), once),
	}
}

// way is one way of choosing limits, and what became of the jobs.
type way struct {
	name string
	jobs []tally
}

// headline runs the jobs in every way in turns, then again in disdel's with the records of the first time.
func headline(ctx context.Context, program, only string) (err error) {
	r, err := newRig(ctx, program, scaled)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	defaults, fixed, own, again := way{name: "default"}, way{name: "fixed"}, way{name: "disdel"},
		way{name: "disdel_history"}
	jobs, past := named(twenty(), only), []disdel.Record(nil)
	for _, t := range jobs {
		if err := r.defaults(ctx, t, &defaults); err != nil {
			return err
		}
		if err := r.steps(ctx, t, &fixed); err != nil {
			return err
		}
		rec, err := r.chosen(ctx, t, estimator.Planned(backends.Standard(nil)), nil, &own)
		if err != nil {
			return err
		}
		past = append([]disdel.Record{*rec}, past...)
	}
	learned, err := estimator.New(backends.Standard(nil), estimator.MethodLearned, 0, past)
	if err != nil {
		return err
	}
	for _, t := range jobs {
		if _, err := r.chosen(ctx, t, learned, past, &again); err != nil {
			return err
		}
	}
	ways := []way{defaults, fixed, own, again}
	printHeadline(ways)
	return errors.Join(load(), table(os.Stderr, ways))
}

// chosen runs a job at the limits that disdel chose, with its remedies.
func (r *rig) chosen(ctx context.Context, t trial, e estimator.Estimator, past []disdel.Record, w *way) (*disdel.Record,
	error,
) {
	rec, err := r.submitLike(ctx, t, e, past)
	if err != nil {
		return nil, err
	}
	w.add(t, tallyOf(*rec))
	return rec, nil
}

// defaults runs a job once at OpenWhisk's default limits.
func (r *rig) defaults(ctx context.Context, t trial, w *way) error {
	rec, err := r.plainly(ctx, t, standard)
	if err != nil {
		return err
	}
	w.add(t, tallyOf(*rec))
	return nil
}

// steps runs a job until it passes, from the start each time, with more memory and time after every failure.
func (r *rig) steps(ctx context.Context, t trial, w *way) error {
	var all []disdel.Record
	for i := 0; ; i++ {
		l := retries.Attempt(i)
		rec, err := r.plainly(ctx, t, l)
		if err != nil {
			return err
		}
		if all = append(all, *rec); rec.Status == disdel.StatusSucceeded || retries.Attempt(i+1) == l {
			break
		}
	}
	w.add(t, tallyOf(all...))
	return nil
}

func (w *way) add(t trial, n tally) {
	w.jobs = append(w.jobs, n)
	fmt.Fprintf(os.Stderr, "%-14s %v: passed %v, %d failed attempts, train at %v, %v, %.2f s, %.3f GB-s\n", w.name, t,
		n.passed, n.attempts, n.limits.Memory, n.limits.Timeout, n.wall, n.gbs)
	for _, why := range n.why {
		fmt.Fprintln(os.Stderr, "    ", why)
	}
}
