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
)

func main() {
	program := flag.String("program", "bin/disdel", "the built program")
	only := flag.String("only", "", "run trials whose name contains this")
	what := flag.String("parts", "memory,generated,timeouts,forecasts",
		"what to measure, of memory, generated, timeouts, forecasts and headline")
	seed := flag.Uint64("seed", 1, "of the jobs of the parts generated and forecasts")
	threads := flag.Int("burn", 0, "only keep so many threads busy")
	flag.Parse()
	if *threads > 0 {
		burning(*threads)
	}
	if err := bench(*program, *only, *what, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parts are the subjects that figures are taken of. only chooses trials by their name.
func parts(seed uint64) map[string]func(ctx context.Context, program, only string) error {
	return map[string]func(ctx context.Context, program, only string) error{
		"memory": func(ctx context.Context, program, only string) error {
			if err := speed(); err != nil {
				return err
			}
			return memoryPart(ctx, program, "", named(suite(), only))
		},
		"generated": func(ctx context.Context, program, only string) error {
			return memoryPart(ctx, program, "generated_", named(generate(seed, generatedJobs), only))
		},
		"timeouts":  timeouts,
		"forecasts": func(ctx context.Context, program, _ string) error { return forecastsPart(ctx, program, seed) },
		"headline":  headline,
	}
}

func bench(program, only, what string, seed uint64) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(what, ",") {
		part, ok := parts(seed)[name]
		if !ok {
			return fmt.Errorf("there is no part %q", name)
		}
		if err := part(context.Background(), program, only); err != nil {
			return err
		}
	}
	return nil
}

// memoryPart runs trials and prints their figures with prefix before the names.
func memoryPart(ctx context.Context, program, prefix string, trials []trial) (err error) {
	r, err := newRig(ctx, program, relaxLimits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return memory(ctx, r, prefix, trials)
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
