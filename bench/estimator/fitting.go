package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// fittedJobs is how many jobs of the part fitting are drawn from a seed.
const fittedJobs = 30

// tight is a drawn job whose limit is too small for it as it is.
type tight struct {
	trial
	share  float64 // of the job's own memory, without the program's and the rows', that the limit leaves
	stages int     // that the job file gives; 0: the plan chooses
}

// fittedKinds are images, tokens and tables, in turn.
func fittedKinds() []kind {
	one := func(g *generator, t *trial) { t.workers, t.epochs = g.between(1, 2), g.between(1, 2) }
	table := func(g *generator) network {
		n := network{input: []int{1, 1, g.between(4, 300)}}
		for range g.between(2, 5) {
			n.dense(g.between(200, 2000), g.activation())
		}
		return n
	}
	tokens := func(g *generator, t *trial) {
		t.tokens, t.batch, t.epochs = true, g.between(8, 64), 1
		t.rows = t.batch * g.between(2, 4)
	}
	return []kind{
		{"plain", (*generator).plain, one},
		{"tokens", (*generator).sequence, tokens},
		{"table", table, one},
		{"residual", func(g *generator) network { return g.residual(4, 20) }, one},
		{"large-rows", (*generator).large, func(g *generator, t *trial) {
			t.batch, t.epochs = g.between(2, 24), 1
			t.rows = t.batch * g.between(1, 3)
		}},
		{"wide", (*generator).wide, one},
		{"separable", (*generator).separable, one},
		{"keras", (*generator).imported, one},
		{"known", (*generator).known, one},
		{"deep", (*generator).deep, one},
	}
}

// generateTight draws n jobs with limits; every fifth gives its stages.
func generateTight(seed uint64, n int) (out []tight) {
	all := fittedKinds()
	for i := range n {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1<<34+uint64(i)))}
		k := all[i%len(all)]
		j := tight{trial: g.trial(fmt.Sprintf("%d.%d-%s", seed, i, k.name), k), share: 0.15 + 0.75*g.Float64()}
		if i%5 == 4 {
			j.stages = g.between(2, 4)
		}
		out = append(out, j)
	}
	return out
}

// fits counts how drawn jobs were made to fit.
type fits struct {
	rig      *rig
	memory   estimator.Estimator
	records  []disdel.Record
	refused  int // jobs that have no plan
	wrongly  int // of these, jobs that a listed way makes fit
	misled   int // of these, jobs whose error names a change that does not fit
	inStages int // jobs that were trained in stages
}

// fittingPart asks for a plan of drawn jobs under limits that are too small, and trains them at the limits of it.
func fittingPart(ctx context.Context, s subject) error {
	return withRig(ctx, s, leastMemory, func(r *rig) error {
		f := fits{rig: r, memory: estimator.Planned(backends.Standard(nil))}
		jobs := generateTight(s.seed, fittedJobs)
		count := 0
		for _, t := range jobs {
			if len(named([]trial{t.trial}, s.only)) == 0 {
				continue
			}
			count++
			if err := f.fit(ctx, t); err != nil {
				return fmt.Errorf("%v: %w", t, err)
			}
		}
		f.print(count)
		return nil
	})
}

func (f *fits) print(jobs int) {
	actions := of(actionsOf(f.records), disdel.TaskTrain)
	figure("fit_jobs", float64(jobs), fmt.Sprintf(
		"drawn jobs with a limit below their need, %d trained, %d of them in stages",
		len(f.records), f.inStages))
	figure("fit_oom_kills", float64(kills(f.records)), "activations")
	figure("fit_refused", float64(f.refused), "jobs without a plan")
	figure("fit_refused_wrongly", float64(f.wrongly), "jobs without a plan that a listed way fits")
	figure("fit_misled", float64(f.misled), "refusals that name a change that does not fit")
	figure("fit_failed_jobs", float64(failures(f.records)), "jobs")
	figure("fit_limit_over_peak_median", quantile(each(actions, overPeak), 0.5), "limit over peak of train actions")
}

// fit plans one job within its limit and trains it.
func (f *fits) fit(ctx context.Context, t tight) error {
	job, err := f.rig.resolve(ctx, t.trial)
	if err != nil {
		return err
	}
	job.Job.Training.Fit = disdel.FitNone
	whole, err := scheduler.NewPlan(f.rig.input(t.trial, job, f.memory))
	if err != nil {
		return err
	}
	train, _ := whole.Action(disdel.TaskTrain)
	e := train.Estimate
	limit := e.Total - disdel.Bytes((1-t.share)*float64(e.Training+e.Model))
	job.Job.Training.Fit, job.Job.Resources.MaxMemory = "", disdel.Bytes(limit.MB())*disdel.MB
	job.Job.Distribution.Stages = min(t.stages, len(job.Graph.Cuts())+1)
	in := f.rig.input(t.trial, job, f.memory)
	in.Suggest = true
	plan, err := scheduler.NewPlan(in)
	if err != nil {
		return errors.Join(f.turnedDown(ctx, t, job, in, err), f.rig.clean(ctx, t.trial))
	}
	return errors.Join(f.train(ctx, t, job, plan), f.rig.clean(ctx, t.trial))
}

// train trains a job by its plan.
func (f *fits) train(ctx context.Context, t tight, job controller.Resolved, plan disdel.Plan) error {
	spec := f.rig.spec(t.trial, job, plan)
	rec, err := f.rig.execute(ctx, f.rig.run, spec, job.Data)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%v, at most %v: %s\n", t, job.Job.Resources.MaxMemory, plan.SavedBy())
	tell(t.trial, rec)
	f.records = append(f.records, *rec)
	if len(plan.Stages) > 0 {
		f.inStages++
	}
	return keep(f.rig.records, rec)
}

// turnedDown looks for a listed way to fit a job that has no plan, and trains it that way.
func (f *fits) turnedDown(
	ctx context.Context, t tight, job controller.Resolved, in scheduler.PlanInput, why error,
) error {
	f.refused++
	fmt.Fprintf(os.Stderr, "%v, at most %v: refused: %v\n", t, in.Job.Resources.MaxMemory, why)
	in.Suggest = false
	if advice := disdel.AsError(why).Changes; len(advice) > 0 && !f.helps(ctx, t, in, advice[len(advice)-1]) {
		f.misled++
		fmt.Fprintf(os.Stderr, "  the change does not fit: %v\n", advice)
	}
	var last error
	for way := range listed(in) {
		plan, err := scheduler.NewPlan(way)
		if err != nil {
			last = err
			continue
		}
		f.wrongly++
		fmt.Fprintf(os.Stderr, "  refused wrongly: %s fits\n", plan.SavedBy())
		return f.train(ctx, t, job, plan)
	}
	fmt.Fprintf(os.Stderr, "  the last listed way: %v\n", last)
	return nil
}

// helps tells whether a job has a plan with a change that an error names.
func (f *fits) helps(ctx context.Context, t tight, in scheduler.PlanInput, sets []string) bool {
	file, err := jobfile.ParseWith(t.String(), []byte(t.job()), sets, func(string) ([]byte, error) {
		return []byte(t.keras), nil
	})
	if err != nil {
		return false
	}
	changed, err := controller.Resolve(ctx, file.Job, f.rig.data, t.String(), file.Locate, nil)
	if err != nil {
		return false
	}
	if !slices.ContainsFunc(sets, func(s string) bool { return strings.HasPrefix(s, "distribution.stages=") }) {
		changed.Job.Distribution.Stages = in.Job.Distribution.Stages
	}
	if changed.Job.Resources.MaxMemory == 0 {
		changed.Job.Resources.MaxMemory = in.Job.Resources.MaxMemory
	}
	_, err = scheduler.NewPlan(f.rig.input(t.trial, changed, f.memory))
	return err == nil
}

// listed are the ways to save memory that the documents list, each by hand: all that a plan tries, with each other.
func listed(in scheduler.PlanInput) func(func(scheduler.PlanInput) bool) {
	in.Job.Training.Fit = disdel.FitNone
	batch := in.Job.Training.WorkerBatch(max(1, in.Job.Distribution.Workers))
	stages := []int{in.Job.Distribution.Stages}
	for n := 2; n <= len(in.Graph.Cuts())+1 && n <= 8 && stages[0] == 0; n++ {
		stages = append(stages, n)
	}
	formats := []disdel.StateFormat{""}
	if in.Job.Training.Optimizer.Moments() > 0 {
		formats = append(formats, disdel.StateInt8, disdel.StatePaged)
	}
	var steps []disdel.StepMemory
	for rows := batch; rows >= 1; rows /= 2 {
		for _, again := range []disdel.Recompute{disdel.RecomputeNone, disdel.RecomputeAuto} {
			for _, state := range formats {
				steps = append(steps, disdel.StepMemory{MicroBatch: rows, Recompute: again, StateFormat: state})
			}
		}
	}
	return func(yield func(scheduler.PlanInput) bool) {
		for _, n := range stages {
			for _, keep := range []string{disdel.KeepMemory, disdel.KeepDisk} {
				for _, in.Job.Training.StepMemory = range steps {
					in.Job.Distribution.Stages, in.Job.Data.Keep = n, keep
					if !yield(in) {
						return
					}
				}
			}
		}
	}
}
