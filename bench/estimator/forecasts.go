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
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// forecastJobs is how many jobs' times are held against their forecasts, half of them beside other programs' load.
const forecastJobs = 60

// forecastKinds is how many networks with a data set each they are of.
const forecastKinds = 6

// loadCourse is when other programs' load is there.
type loadCourse int

// Half of the loads are there from before the plan to the end of the job. The others begin or end in mid-job, which no
// plan can know.
const (
	loadThroughout loadCourse = iota
	loadBegins
	loadEnds
)

// beside is a job and the load of other programs beside it.
type beside struct {
	trial   trial
	threads int // of other programs
	course  loadCourse
	change  time.Duration // after its submission, at which load begins or ends
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
			job.threads = 1 + random.IntN(3*runtime.NumCPU())
			job.course = []loadCourse{loadThroughout, loadThroughout, loadBegins, loadEnds}[i/2%4]
			job.change = time.Duration((0.2 + 1.8*random.Float64()) * float64(time.Second))
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
func forecastsPart(ctx context.Context, s subject) (err error) {
	r, err := newRig(ctx, s.program, relaxLimits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	first, later := forecastSuite(s.seed)
	var past []disdel.Record
	add := func(job beside) error {
		rec, err := r.submitBeside(ctx, job, past)
		if err == nil {
			past = append([]disdel.Record{*rec}, past...)
			fmt.Fprintf(os.Stderr, "%v, %.1f threads seen, ", job.load(), rec.Plan.Platform.Busy)
			tellTime(job.trial, rec)
			err = keep(s.records, rec)
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
		if job.threads == 0 {
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
	load := &burner{threads: job.threads}
	defer load.stop()
	if job.course != loadBegins {
		if err := load.start(); err != nil {
			return nil, err
		}
	}
	resolved, err := r.resolve(ctx, job.trial)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", job.trial, err)
	}
	in := r.input(job.trial, resolved, estimator.Planned(backends.Standard(nil)))
	in.Past, in.Processors, in.Platform.Busy = past, runtime.NumCPU(), platform.MachineLoad(ctx)
	in.Threads = func(parallel int) int { return max(1, runtime.NumCPU()/max(1, parallel)) }
	plan, err := scheduler.NewPlan(in)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", job.trial, err)
	}
	spec := r.spec(job.trial, resolved, plan)
	spec.Threads = plan.Threads
	defer job.changes(load).Stop()
	return r.execute(ctx, r.run, spec, resolved.Data)
}

// changes starts or ends the load when its time has come.
func (b beside) changes(load *burner) *time.Timer {
	change := map[loadCourse]func(){
		loadThroughout: func() {}, loadBegins: func() { _ = load.start() }, loadEnds: load.stop,
	}[b.course]
	return time.AfterFunc(b.change, change)
}

// load is what standard error says of the load beside a job.
func (b beside) load() string {
	switch {
	case b.threads == 0:
		return "no load"
	case b.course == loadBegins:
		return fmt.Sprintf("load %d after %.1f s", b.threads, b.change.Seconds())
	case b.course == loadEnds:
		return fmt.Sprintf("load %d for %.1f s", b.threads, b.change.Seconds())
	default:
		return fmt.Sprintf("load %d", b.threads)
	}
}

// burner is a program that keeps threads busy.
type burner struct {
	threads int
	mu      sync.Mutex
	program *exec.Cmd // guarded by mu; nil: it does not run
}

// start starts the program, and returns when its threads run.
func (b *burner) start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.threads == 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, "-burn", strconv.Itoa(b.threads))
	if err := c.Start(); err != nil {
		return err
	}
	b.program = c
	time.Sleep(200 * time.Millisecond)
	return nil
}

// stop ends the program, if it runs. It is not started again.
func (b *burner) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.threads = 0
	if b.program != nil {
		_ = b.program.Process.Kill()
		_ = b.program.Wait()
		b.program = nil
	}
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

// printForecasts prints how forecasts compare with what jobs took. A job that failed was not within its interval, and a
// forecast whose lower end is 0 has an interval without bounds.
func printForecasts(of string, records []disdel.Record) {
	inside, errors := forecasts(records)
	figure("time_"+of+"jobs", float64(len(records)), "jobs")
	figure("time_"+of+"inside_interval", inside, "share")
	figure("time_"+of+"error_median_pct", quantile(errors, 0.5), "%")
	figure("time_"+of+"high_over_low_median", quantile(widths(records), 0.5), "ratio")
}

// widths are the upper ends of the jobs' intervals over their lower ends; +Inf where nothing bounds them.
func widths(records []disdel.Record) (out []float64) {
	for _, r := range records {
		width := math.Inf(1)
		if f := r.Plan.Forecast; f != nil && f.Duration.Low > 0 {
			width = f.Duration.High.Seconds() / f.Duration.Low.Seconds()
		}
		out = append(out, width)
	}
	return out
}
