package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// timeoutRuns is how often each job runs: the first time at the platform's maximum, the others at timeouts from
// history.
const timeoutRuns = 3

// longEnough is the shortest activation whose timeout is compared with its duration: the Timeout Manager gives at least
// 3 s more than is likely, which below this is all that would be seen.
const longEnough = disdel.Millis(2 * time.Second)

// timeoutSuite is jobs whose train actions take 2 to 4 s on a core of their own.
func timeoutSuite() []trial {
	gray := []int{1, 28, 28}
	return []trial{
		newTrial("lenet5", gray, 64, "adam", rows(80_000), once),
		newTrial("lenet-kubeml", gray, 128, "momentum", rows(20_000), once),
		newTrial("resnet20-cifar", rgb(32), 32, "momentum", rows(1000), once),
		newTrial("mobilenetv1", rgb(32), 32, "adam", rows(2500), once),
		newTrial("vgg16-cifar", rgb(32), 64, "sgd", rows(192), once),
		newTrial("resnet18", rgb(32), 32, "adam", rows(1800), once),
	}
}

// timed is a job that ran, and the timeouts and the forecast that it had.
type timed struct {
	run    int // from 0
	record disdel.Record
}

// timeouts runs every job several times, each time with the records of all before.
func timeouts(ctx context.Context, program, only string) (err error) {
	r, err := newRig(ctx, program, relaxLimits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	var all []timed
	for run := range timeoutRuns {
		past := recordsOf(all)
		for _, t := range named(timeoutSuite(), only) {
			rec, err := r.submitLike(ctx, t, estimator.Planned(backends.Standard(nil)), past)
			if err != nil {
				return err
			}
			all = append(all, timed{run, *rec})
			tellTime(t, rec)
		}
	}
	printTimeouts(all)
	return load()
}

func recordsOf(all []timed) []disdel.Record {
	var out []disdel.Record
	for i := len(all) - 1; i >= 0; i-- { // newest first
		out = append(out, all[i].record)
	}
	return out
}

// submitLike is submit as the product does it: with what earlier jobs tell, and with plans that a failure may change.
func (r *rig) submitLike(ctx context.Context, t trial, e estimator.Estimator, past []disdel.Record) (*disdel.Record,
	error,
) {
	job, err := r.resolve(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	in := r.input(t, job, e)
	in.Past = past
	plan, err := scheduler.NewPlan(in)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	spec := r.spec(t, job, plan)
	spec.Replan = func(job disdel.Job) (disdel.Plan, error) {
		in.Job = job
		return scheduler.NewPlan(in)
	}
	return r.execute(ctx, r.run, spec, job.Data)
}

// load prints how many threads ran or wanted to over the last five minutes: times that were taken beside other
// programs' work say little.
func load() error {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	var one, five float64
	if _, err := fmt.Sscan(string(text), &one, &five); err != nil {
		return fmt.Errorf("/proc/loadavg: %w", err)
	}
	figure("load_average_5m", five, "threads")
	return nil
}

func wall(r *disdel.Record) float64 { return r.Ended.Sub(r.Created).Seconds() }

// tellTime says on standard error how a job went.
func tellTime(t trial, rec *disdel.Record) {
	train, _ := rec.Plan.Action(disdel.TaskTrain)
	fmt.Fprintf(os.Stderr, "%v: %v, %.2f s, timeout %v from %s, train", t, rec.Status, wall(rec), train.Limits.Timeout,
		rec.Plan.TimeoutSource)
	for _, a := range rec.Activations {
		if a.Task == disdel.TaskTrain {
			fmt.Fprintf(os.Stderr, " %.2f", a.Duration.Seconds())
		}
	}
	if f := rec.Plan.Forecast; f != nil {
		d := f.Duration
		fmt.Fprintf(os.Stderr, ", forecast %v (%v to %v)", d.Likely, d.Low, d.High)
	}
	fmt.Fprintln(os.Stderr)
	if rec.Failure != nil {
		fmt.Fprintln(os.Stderr, "  ", rec.Failure)
	}
}

// ended is how many activations came to an outcome.
func ended(records []disdel.Record, as disdel.Outcome) (n int) {
	for _, r := range records {
		for _, a := range r.Activations {
			if a.Outcome == as {
				n++
			}
		}
	}
	return n
}

// overActual is the timeouts of train activations that ended well and took at least so long, over what they took.
func overActual(records []disdel.Record, least disdel.Millis) []float64 {
	var out []float64
	for _, r := range records {
		for _, a := range r.Activations {
			if a.Task == disdel.TaskTrain && a.Outcome == disdel.OutcomeSuccess && a.Duration >= max(1, least) {
				out = append(out, a.Limits.Timeout.Seconds()/a.Duration.Seconds())
			}
		}
	}
	return out
}

// forecasts compares what was said of jobs with what they took: the share within the interval, and the errors of the
// likely duration in per cent. Jobs that failed or had no forecast are outside of the interval, by 100 %.
func forecasts(records []disdel.Record) (inside float64, errors []float64) {
	for i := range records {
		r := &records[i]
		if r.Plan.Forecast == nil || r.Status != disdel.StatusSucceeded {
			errors = append(errors, 100)
			continue
		}
		d, took := r.Plan.Forecast.Duration, wall(r)
		if took >= d.Low.Seconds() && took <= d.High.Seconds() {
			inside++
		}
		errors = append(errors, 100*math.Abs(d.Likely.Seconds()-took)/took)
	}
	return inside / math.Max(1, float64(len(errors))), errors
}

func printTimeouts(all []timed) {
	var withHistory []timed
	for _, t := range all {
		if t.run > 0 {
			withHistory = append(withHistory, t)
		}
	}
	every, later := recordsOf(all), recordsOf(withHistory)
	ratios := overActual(later, longEnough)
	figure("timeout_kills", float64(ended(every, disdel.OutcomeTimeout)), "activations")
	figure("timeout_pauses", float64(ended(every, disdel.OutcomePaused)), "activations")
	figure("timeout_activations", float64(len(ratios)), "activations")
	figure("timeout_over_actual_median", quantile(ratios, 0.5), "ratio")
	figure("timeout_over_actual_max", quantile(ratios, 1), "ratio")
	figure("timeout_over_actual_min", quantile(ratios, 0), "ratio")
	inside, errors := forecasts(later)
	figure("forecast_jobs", float64(len(errors)), "jobs")
	figure("forecast_inside_interval", inside, "share")
	figure("forecast_error_median_pct", quantile(errors, 0.5), "%")
	figure("forecast_error_max_pct", quantile(errors, 1), "%")
}
