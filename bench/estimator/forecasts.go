package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// forecastJobs is how many jobs' times are held against their forecasts, half of them beside other programs' load.
const forecastJobs = 40

// forecastKinds is how many networks with a data set each they are of.
const forecastKinds = 6

// beside is a job and how many threads of other programs run beside it.
type beside struct {
	trial trial
	load  int
}

// forecastSuite is one job of every kind, from which the forecasts of the others come, and then jobs of these kinds in
// turns: half of them as the first one was, half with other workers, batches or epochs.
func forecastSuite(seed uint64) (first []trial, later []beside) {
	random := rand.New(rand.NewPCG(seed, 1))
	for _, k := range random.Perm(len(forecastNetworks))[:forecastKinds] {
		n := forecastNetworks[k]
		first = append(first, shaped(n, n.rows/2*(1+random.IntN(3)), 1+random.IntN(3), 32<<random.IntN(3), 1+random.IntN(3)))
	}
	for i := range forecastJobs {
		t := first[i%len(first)]
		all := t.rows * t.workers
		switch random.IntN(6) {
		case 0:
			t = shaped(timedNetwork{t.network, t.input, 0, t.optimize}, all, 1+random.IntN(4), t.batch, t.epochs)
		case 1:
			t = shaped(timedNetwork{t.network, t.input, 0, t.optimize}, all, t.workers, 32<<random.IntN(3), t.epochs)
		case 2:
			t.epochs = 1 + random.IntN(5)
		}
		job := beside{trial: t}
		if i%2 == 1 {
			job.load = 1 + random.IntN(3*runtime.NumCPU())
		}
		later = append(later, job)
	}
	random.Shuffle(len(later), func(i, k int) { later[i], later[k] = later[k], later[i] })
	return first, later
}

// timedNetwork is a network, its input, and rows that take about a second an epoch on one core.
type timedNetwork struct {
	network  string
	input    []int
	rows     int
	optimize string
}

var forecastNetworks = []timedNetwork{
	{"lenet5", []int{1, 28, 28}, 24_000, "adam"},
	{"lenet-kubeml", []int{1, 28, 28}, 10_000, "momentum"},
	{"mlp", []int{1, 28, 28}, 30_000, "sgd"},
	{"softmax-regression", []int{1, 28, 28}, 60_000, "adam"},
	{"digits-cnn", []int{1, 8, 8}, 40_000, "momentum"},
	{"resnet20-cifar", rgb(32), 512, "momentum"},
	{"mobilenetv1", rgb(32), 1024, "adam"},
	{"resnet18", rgb(32), 384, "sgd"},
}

// shaped is a trial of so many rows altogether, with a whole batch for every worker.
func shaped(k timedNetwork, all, workers, batch, epochs int) trial {
	all = max(all, workers*batch)
	return newTrial(k.network, k.input, batch, k.optimize, rows(all/workers),
		func(t *trial) { t.workers, t.epochs = workers, epochs })
}

// forecastsPart runs the suite, every job with the records of all before, as the program plans it.
func forecastsPart(ctx context.Context, program string, seed uint64) (err error) {
	r, err := newRig(ctx, program, relaxLimits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	first, later := forecastSuite(seed)
	var past []disdel.Record
	add := func(job beside) error {
		rec, err := r.submitBeside(ctx, job, past)
		if err == nil {
			past = append([]disdel.Record{*rec}, past...)
			fmt.Fprintf(os.Stderr, "load %d, %.1f threads seen, ", job.load, rec.Plan.Platform.Busy)
			tellTime(job.trial, rec)
		}
		return err
	}
	for _, t := range first {
		if err := add(beside{trial: t}); err != nil {
			return err
		}
	}
	var quiet, loaded []disdel.Record
	for _, job := range later {
		if err := add(job); err != nil {
			return err
		}
		if job.load == 0 {
			quiet = append(quiet, past[0])
		} else {
			loaded = append(loaded, past[0])
		}
	}
	printForecasts("quiet_", quiet)
	printForecasts("loaded_", loaded)
	printForecasts("", append(quiet, loaded...))
	return load()
}

// submitBeside runs a trial while other programs want the processors.
func (r *rig) submitBeside(ctx context.Context, job beside, past []disdel.Record) (*disdel.Record, error) {
	stop, err := burn(job.load)
	if err != nil {
		return nil, err
	}
	defer stop()
	resolved, err := r.resolve(ctx, job.trial)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", job.trial, err)
	}
	in := r.input(job.trial, resolved, estimator.Planned(backends.Standard(nil)))
	in.Past, in.Processors, in.Platform.Busy = past, runtime.NumCPU(), platform.Busy(ctx)
	in.Threads = func(parallel int) int { return max(1, runtime.NumCPU()/max(1, parallel)) }
	plan, err := scheduler.NewPlan(in)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", job.trial, err)
	}
	spec := r.spec(job.trial, resolved, plan)
	spec.Threads = plan.Threads
	return r.execute(ctx, r.run, spec, resolved.Data)
}

// burn starts a program that keeps so many threads busy, and returns what ends it.
func burn(threads int) (stop func(), err error) {
	if threads == 0 {
		return func() {}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, "-burn", strconv.Itoa(threads))
	if err := c.Start(); err != nil {
		return nil, err
	}
	time.Sleep(200 * time.Millisecond) // until its threads run
	return func() { _ = c.Process.Kill(); _ = c.Wait() }, nil
}

// burning never returns.
func burning(threads int) {
	runtime.GOMAXPROCS(threads)
	x := 1.0
	for range threads - 1 {
		go func() {
			y := 1.0
			for {
				y = math.Sqrt(y + 1)
			}
		}()
	}
	for {
		x = math.Sqrt(x + 1)
	}
}

func printForecasts(of string, records []disdel.Record) {
	inside, errors := forecasts(records)
	figure("time_"+of+"jobs", float64(len(errors)), "jobs")
	figure("time_"+of+"inside_interval", inside, "share")
	figure("time_"+of+"error_median_pct", quantile(errors, 0.5), "%")
	var widths []float64
	for _, r := range records {
		if f := r.Plan.Forecast; f != nil && f.Duration.Low > 0 {
			widths = append(widths, f.Duration.High.Seconds()/f.Duration.Low.Seconds())
		}
	}
	figure("time_"+of+"high_over_low_median", quantile(widths, 0.5), "ratio")
}
