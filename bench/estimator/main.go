package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/runtime/engine/backends"
)

// defaultSeed draws other jobs than those of the seeds 1 to 3, from which the estimator's residuals are.
const defaultSeed = 4

func main() {
	program := flag.String("program", "bin/disdel", "the built program")
	only := flag.String("only", "", "run trials whose name contains this")
	what := flag.String("parts", "generated,defaults,forecasts",
		"what to measure, of generated, defaults, forecasts, memory, timeouts, sequences, fitting, headline, "+
			"advice and calibration (of -records)")
	seed := flag.Uint64("seed", defaultSeed, "of drawn jobs")
	records := flag.String("records", "", "append the records of trials to this file, a line of JSON each")
	threads := flag.Int("burn", 0, "only keep so many threads busy")
	flag.Parse()
	if *threads > 0 {
		burning(*threads)
	}
	if err := bench(*what, subject{*program, *only, *records, *seed}); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// subject is what a part measures.
type subject struct {
	program string // the built one
	only    string // of trials: a part of their names
	records string // file that records of memory trials are added to; "": none
	seed    uint64 // of drawn trials
}

// parts are what can be measured.
func parts() map[string]func(context.Context, subject) error {
	return map[string]func(context.Context, subject) error{
		"memory": func(ctx context.Context, s subject) error {
			if err := speed(); err != nil {
				return err
			}
			return zooPart(ctx, s)
		},
		"generated": func(ctx context.Context, s subject) error {
			trials := append(generate(s.seed, generatedJobs-longJobs), long(s.seed)...)
			return drawnPart(ctx, s, "", leastMemory, trials)
		},
		"defaults": func(ctx context.Context, s subject) error {
			least := disdel.Bytes(platform.DefaultConfig().Limits.Memory.Min)
			return drawnPart(ctx, s, "_at_defaults", least, generate(s.seed, generatedJobs))
		},
		"timeouts":    func(ctx context.Context, s subject) error { return timeouts(ctx, s.program, s.only) },
		"sequences":   sequencesPart,
		"fitting":     fittingPart,
		"forecasts":   forecastsPart,
		"headline":    func(ctx context.Context, s subject) error { return headline(ctx, s.program, s.only) },
		"advice":      advicePart,
		"calibration": func(_ context.Context, s subject) error { return calibrationPart(s.records, os.Stdout) },
	}
}

func bench(what string, s subject) (err error) {
	if s.program, err = filepath.Abs(s.program); err != nil {
		return err
	}
	for name := range strings.SplitSeq(what, ",") {
		part, ok := parts()[name]
		if !ok {
			return fmt.Errorf("there is no part %q", name)
		}
		if err := part(context.Background(), s); err != nil {
			return err
		}
	}
	return nil
}

// withRig runs f with a rig whose platform has this least limit of memory, and no other bound that matters.
func withRig(ctx context.Context, s subject, least disdel.Bytes, f func(*rig) error) error {
	r, err := newRig(ctx, s.program, func(cfg *platform.Config) {
		relaxLimits(cfg)
		cfg.Limits.Memory.Min = least
	})
	if err != nil {
		return err
	}
	r.records = s.records
	return errors.Join(f(r), r.close())
}

// zooPart runs the zoo's suite and prints its figures, which begin with zoo_.
func zooPart(ctx context.Context, s subject) error {
	trials := named(suite(), s.only)
	return withRig(ctx, s, leastMemory, func(r *rig) error { return memory(ctx, r, "zoo_", trials) })
}

// drawnPart runs drawn trials once, planned without history, and prints their figures, which end in suffix.
func drawnPart(ctx context.Context, s subject, suffix string, least disdel.Bytes, trials []trial) error {
	return withRig(ctx, s, least, func(r *rig) error {
		records, err := pass(ctx, r, named(trials, s.only), estimator.Planned(backends.Standard(nil)))
		if err != nil {
			return err
		}
		printPeaks(func(name string, value float64, unit string) { figure(name+suffix, value, unit) }, records)
		return nil
	})
}

// named is the trials whose name contains part.
func named(all []trial, part string) []trial {
	return slices.DeleteFunc(all, func(t trial) bool { return !strings.Contains(t.String(), part) })
}

// pass runs all trials with one estimator, and tells on standard error how each went.
func pass(ctx context.Context, r *rig, trials []trial, e estimator.Estimator) ([]disdel.Record, error) {
	var out []disdel.Record
	for _, t := range trials {
		rec, err := r.submit(ctx, t, e)
		if err != nil {
			return nil, err
		}
		tell(t, rec)
		if err := keep(r.records, rec); err != nil {
			return nil, err
		}
		out = append(out, *rec)
		if err := r.clean(ctx, t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var tasks = []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate}

func tell(t trial, rec *disdel.Record) {
	fmt.Fprintf(os.Stderr, "%v: %v, %.1f s\n", t, rec.Status, rec.Ended.Sub(rec.Created).Seconds())
	if rec.Failure != nil {
		fmt.Fprintln(os.Stderr, "  ", rec.Failure)
	}
	for _, task := range tasks {
		a, _ := rec.Plan.Action(task)
		e := a.Estimate
		fmt.Fprintf(os.Stderr, "  %-9s likely %7.1f (%.1f to %.1f) limit %5d  fit %7.1f dta %5.1f mod %6.1f ratio %.3f  "+
			"peaks", task, mb(e.Likely), mb(e.Low), mb(e.High), a.Limits.Memory.MB(), mb(e.Training),
			mb(e.Shard), mb(e.Model), e.Ratio)
		for _, x := range rec.Activations {
			if x.Task == task {
				fmt.Fprintf(os.Stderr, " %.1f", mb(x.Peak))
			}
		}
		fmt.Fprintln(os.Stderr)
	}
}

func mb(b disdel.Bytes) float64 { return float64(b) / float64(disdel.MB) }

func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}

// quantile is the nearest rank of v; 0 of nothing.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[min(len(v)-1, int(q*float64(len(v))))]
}
