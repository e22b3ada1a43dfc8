package main

import (
	"context"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// action is one action of a job that ran: what was expected of it, what it got, and the peaks of its activations that
// succeeded.
type action struct {
	task     disdel.Task
	estimate disdel.Estimate
	limit    disdel.Bytes
	peak     disdel.Bytes // the highest of peaks
	peaks    []disdel.Bytes
}

func (a *action) error() float64 {
	return 100 * math.Abs(float64(a.estimate.Likely)-float64(a.peak)) / float64(a.peak)
}

// inside tells whether a peak is in the estimate's interval of nine cases in ten.
func (a *action) inside(peak disdel.Bytes) bool {
	return peak >= a.estimate.Low && peak <= a.estimate.High
}

// actionsOf is the actions of records that measured a peak.
func actionsOf(records []disdel.Record) []action {
	var out []action
	for _, r := range records {
		for _, p := range r.Plan.Actions {
			a := action{task: p.Task, estimate: p.Estimate, limit: p.Limits.Memory}
			for _, x := range r.Activations {
				if x.Task == p.Task && x.Outcome == disdel.OutcomeSuccess && x.Peak > 0 {
					a.peaks, a.peak = append(a.peaks, x.Peak), max(a.peak, x.Peak)
				}
			}
			if a.peak > 0 {
				out = append(out, a)
			}
		}
	}
	return out
}

// kills counts the activations that were killed because they were out of memory.
func kills(records []disdel.Record) (n int) {
	for _, r := range records {
		for _, a := range r.Activations {
			if a.Outcome == disdel.OutcomeOutOfMemory {
				n++
			}
		}
	}
	return n
}

// failures counts the jobs that did not succeed, whatever ended them.
func failures(records []disdel.Record) (n int) {
	for _, r := range records {
		if r.Status != disdel.StatusSucceeded {
			n++
		}
	}
	return n
}

func each(actions []action, f func(*action) float64) []float64 {
	out := make([]float64, len(actions))
	for i := range actions {
		out[i] = f(&actions[i])
	}
	return out
}

// share is how many of the actions meet a condition.
func share(actions []action, is func(*action) bool) float64 {
	n := 0
	for i := range actions {
		if is(&actions[i]) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(actions)))
}

// insideInterval is how many of all peaks of the actions are in their intervals.
func insideInterval(actions []action) float64 {
	n, all := 0, 0
	for i := range actions {
		for _, peak := range actions[i].peaks {
			if all++; actions[i].inside(peak) {
				n++
			}
		}
	}
	return float64(n) / float64(max(1, all))
}

// of is the actions of a task.
func of(actions []action, task disdel.Task) []action {
	return slices.DeleteFunc(slices.Clone(actions), func(a action) bool { return a.task != task })
}

func overPeak(a *action) float64 { return float64(a.limit) / float64(a.peak) }

// printer writes a figure.
type printer func(name string, value float64, unit string)

func printErrors(print printer, name string, actions []action) {
	print("error_median"+name+"_pct", quantile(each(actions, (*action).error), 0.5), "%")
	print("error_p95"+name+"_pct", quantile(each(actions, (*action).error), 0.95), "%")
}

// printPeaks writes what estimates were beside the peaks of records.
func printPeaks(print printer, records []disdel.Record) {
	actions := actionsOf(records)
	print("jobs", float64(len(records)), "jobs")
	print("failed_jobs", float64(failures(records)), "jobs")
	print("actions", float64(len(actions)), "actions")
	printErrors(print, "", actions)
	for _, task := range tasks {
		printErrors(print, "_"+string(task), of(actions, task))
	}
	print("oom_kills", float64(kills(records)), "activations")
	for _, task := range tasks {
		print("inside_interval_"+string(task), insideInterval(of(actions, task)), "share")
	}
	print("inside_interval", insideInterval(actions), "share")
	print("limit_over_peak_median", quantile(each(actions, overPeak), 0.5), "ratio")
	print("limit_over_peak_max", quantile(each(actions, overPeak), 1), "ratio")
	print("limit_over_peak_min", quantile(each(actions, overPeak), 0), "ratio")
}

// memory runs trials twice: as planned, and with what the first time measured.
func memory(ctx context.Context, r *rig, prefix string, trials []trial) error {
	first, err := pass(ctx, r, trials, estimator.Planned(backends.Standard(nil)))
	if err != nil {
		return err
	}
	learned, err := estimator.New(backends.Standard(nil), estimator.MethodLearned, 0, first)
	if err != nil {
		return err
	}
	second, err := pass(ctx, r, trials, learned)
	if err != nil {
		return err
	}
	printPeaks(func(name string, value float64, unit string) { figure(prefix+name, value, unit) }, first)
	history := func(name string, value float64, unit string) { figure(prefix+"history_"+name, value, unit) }
	printPeaks(history, second)
	if err := strangers(ctx, r, trials, first); err != nil {
		return err
	}
	return peers(ctx, r, trials, first)
}

// strangers estimates every trial from the other trials' records: jobs whose kind has never run.
func strangers(ctx context.Context, r *rig, trials []trial, records []disdel.Record) error {
	var out []action
	for i, t := range trials {
		others := slices.Delete(slices.Clone(records), i, i+1)
		e, err := estimator.New(backends.Standard(nil), estimator.MethodLearned, 0, others)
		if err != nil {
			return err
		}
		a, err := planned(ctx, r, t, e, records[i])
		if err != nil {
			return err
		}
		out = append(out, a...)
	}
	printErrors(figure, "_left_out", out)
	return nil
}

// planned is the actions of a record with the estimates and limits that another estimator would have given them.
func planned(ctx context.Context, r *rig, t trial, e estimator.Estimator, record disdel.Record) ([]action, error) {
	_, plan, err := r.plan(ctx, t, e)
	record.Plan = plan
	return actionsOf([]disdel.Record{record}), err
}

// fixed is the limit of those who give every action the same: the most that OpenWhisk allows by default.
const fixed = 512 * disdel.MB

// peers is what the paper's equations and one fixed limit would have made of the measured peaks. An action is counted
// as killed where its peak is above the limit.
func peers(ctx context.Context, r *rig, trials []trial, records []disdel.Record) error {
	paper, err := estimator.New(backends.Standard(nil), estimator.MethodPaper, 0, nil)
	if err != nil {
		return err
	}
	var out []action
	for i, t := range trials {
		a, err := planned(ctx, r, t, paper, records[i])
		if err != nil {
			return err
		}
		out = append(out, a...)
	}
	killed := func(a *action) bool { return a.peak > a.limit }
	figure("paper_error_median_pct", quantile(each(out, (*action).error), 0.5), "%")
	figure("paper_limit_over_peak_median", quantile(each(out, overPeak), 0.5), "ratio")
	figure("paper_oom_kills", share(out, killed)*float64(len(out)), "actions")
	for i := range out {
		out[i].limit = fixed
	}
	figure("fixed_512_limit_over_peak_median", quantile(each(out, overPeak), 0.5), "ratio")
	figure("fixed_512_oom_kills", share(out, killed)*float64(len(out)), "actions")
	return nil
}
