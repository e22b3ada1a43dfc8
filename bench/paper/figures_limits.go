package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// with runs part of an experiment on a platform of its own, and keeps what its pool held under a name.
func (b *bench) with(ctx context.Context, name string, at bounds, do func(r *rig) error) (err error) {
	if b.page.raw.Pools == nil {
		b.page.raw.Pools = map[string][]platform.Sample{}
	}
	python := ""
	if b.runs("tensorflow") {
		python = b.python
	}
	r, err := newRig(ctx, b.sources(), at, python)
	if err != nil {
		return err
	}
	defer func() {
		b.page.raw.Pools[name] = thin(r.since(time.Time{}))
		err = errors.Join(err, r.close())
	}()
	return do(r)
}

// runs tells whether an engine's baselines are run.
func (b *bench) runs(engine string) bool {
	return slices.Contains(b.engines, engine)
}

// sources are those that all experiments share.
func (b *bench) sources() *sources {
	if b.data == nil {
		b.data = &sources{cifar: b.cifar}
	}
	return b.data
}

// mostSamples is how many samples of a pool are kept: a picture shows no more.
const mostSamples = 400

func thin(all []platform.Sample) []platform.Sample {
	if len(all) <= mostSamples {
		return all
	}
	out := make([]platform.Sample, mostSamples)
	for i := range out {
		out[i] = all[i*(len(all)-1)/(mostSamples-1)]
	}
	return out
}

// figure1 trains MobileNet in one container under the longest times that platforms allow, and by disdel under the same.
func (b *bench) figure1(ctx context.Context) error {
	b.page.section("Figure 1: platforms' time limits", "MobileNetV1 on images of CIFAR's shape in one container, ended "+
		"at the "+
		"platform's limit (300 s / 60), and by disdel under the same limit, whose actions store their state before it and "+
		"go on.")
	rows := [][]string{{"batch", "epochs", "one container", "disdel", "disdel's activations that failed"}}
	killed, failed, jobs := 0, 0, 0
	limit := 300 * time.Second / timeScale
	lines := map[string]*plot.Line{}
	err := b.with(ctx, "figure 1", bounds{pool: doubledPool, timeout: limit}, func(r *rig) error {
		for _, batch := range []int{16, 64} {
			for _, epochs := range []int{1, 2, 4, 8} {
				t := mobile(batch, epochs).shrunk(b.shrink)
				plain, err := r.plain(ctx, envDefault, plainly{task: t, limits: disdel.Limits{
					Memory: largestAction, Timeout: disdel.Millis(limit),
				}, seed: b.seed}, 0)
				if err != nil {
					return err
				}
				ours, err := r.submit(ctx, envEpoch, t, 0, b.seed)
				if err != nil {
					return err
				}
				b.page.add(plain)
				b.page.add(ours)
				jobs++
				if !plain.Passed {
					killed++
				}
				if !ours.Passed {
					failed++
				}
				rows = append(rows, []string{
					fmt.Sprint(batch), fmt.Sprint(epochs), timeOr(plain), timeOr(ours), fmt.Sprint(ours.Failed),
				})
				for _, o := range []outcome{plain, ours} {
					name := fmt.Sprintf("%s, batch %d", o.Environment, batch)
					if lines[name] == nil {
						lines[name] = &plot.Line{Name: name}
					}
					if o.Passed {
						lines[name].Points = append(lines[name].Points, at(float64(epochs), o.Wall))
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.page.table(rows)
	b.page.figure("fig1_default_killed", float64(killed)/float64(jobs), "x")
	b.page.figure("fig1_disdel_failed", float64(failed), "jobs")
	b.page.claims("1: jobs ended at 300 s", "batch 16 in its first epoch, batch 64 after the second",
		fmt.Sprintf("one container %d of %d; disdel %d", killed, jobs, failed), judged(float64(failed), 0))
	return b.chart("fig1.svg", plot.Chart{
		Title: "Figure 1: time by epochs, under a limit of " + limit.String(), X: plot.Axis{Name: "epochs", Whole: true},
		Y: plot.Axis{Name: "time (s)"}, Lines: drawn(lines), Rules: []plot.Rule{{Y: limit.Seconds(), Name: "limit"}},
	})
}

// timeOr is how long a run took, or that it did not come to its end.
func timeOr(o outcome) string {
	if !o.Passed {
		return "killed"
	}
	return fmt.Sprintf("%.1f s", o.Wall)
}

// drawn is the lines that have points, by name.
func drawn(lines map[string]*plot.Line) (out []plot.Line) {
	for _, name := range sorted(lines) {
		if len(lines[name].Points) > 0 {
			out = append(out, *lines[name])
		}
	}
	return out
}

// steps are the retries of Fig. 2, scaled: 300 s, then 240 s more each time.
func steps() estimator.FixedStep {
	return estimator.FixedStep{
		First: disdel.Limits{Memory: largestAction, Timeout: disdel.Millis(300 * time.Second / timeScale)},
		Step:  disdel.Limits{Timeout: disdel.Millis(240 * time.Second / timeScale)},
		Most:  disdel.Limits{Memory: largestAction, Timeout: disdel.Millis(120 * time.Minute / timeScale)},
	}
}

// printed2 is what Fig. 2 prints: attempts and seconds lost, by batch.
var printed2 = map[int][2]float64{64: {7, 5400}, 128: {5, 2640}, 256: {4, 1620}, 512: {4, 1620}}

// figure2 trains with a timeout that grows by fixed steps until the job passes, from the start each time, and by
// disdel.
func (b *bench) figure2(ctx context.Context) error {
	b.page.section("Figure 2: fixed-step retries", "MobileNetV1, one container, from the start again with 240 s / 60 "+
		"more after "+
		"every failure; rows are chosen so that the job of batch 64 takes what the paper's took (1,740 s / 60) in one "+
		"container, "+
		"and are the same for all batches. disdel was told of no limit but the platform's.")
	rows := [][]string{{"batch", "printed: attempts, s lost", "attempts", "s lost", "disdel: attempts", "disdel: s lost"}}
	attempts, lost := 0.0, 0.0
	most := 0.0
	err := b.with(ctx, "figure 2", bounds{pool: doubledPool}, func(r *rig) error {
		t, err := b.asLong(ctx, r, 1650*time.Second/timeScale)
		if err != nil {
			return err
		}
		for _, batch := range []int{64, 128, 256, 512} {
			t.batch, t.id = batch, fmt.Sprintf("J9-b%d", batch)
			n, gone, err := b.retried(ctx, r, t)
			if err != nil {
				return err
			}
			ours, err := r.submit(ctx, envEpoch, t, 0, b.seed)
			if err != nil {
				return err
			}
			b.page.add(ours)
			attempts, lost, most = max(attempts, float64(1+ours.Failed)), lost+ours.Lost, max(most, gone)
			p := printed2[batch]
			rows = append(rows, []string{
				fmt.Sprint(batch), fmt.Sprintf("%.0f, %.0f / 60 = %.0f", p[0], p[1], p[1]/timeScale), fmt.Sprint(n),
				fmt.Sprintf("%.0f", gone), fmt.Sprint(1 + ours.Failed), fmt.Sprintf("%.0f", ours.Lost),
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.page.table(rows)
	b.page.figure("fig2_lost_s", lost, "s")
	b.page.figure("fig2_attempts", attempts, "attempts")
	b.page.figure("fig2_retries_lost_s", most, "s")
	b.page.claims("2: time lost to retries", "5,400 to 1,620 s in 7 to 4 attempts",
		fmt.Sprintf("disdel %.0f s in %.0f; the steps up to %.0f s", lost, attempts, most), judged(lost+attempts, 1))
	return nil
}

// asLong is the motivation's job with as many rows as take so long in one container, by a try of one epoch.
func (b *bench) asLong(ctx context.Context, r *rig, want time.Duration) (task, error) {
	t := mobile(64, 15)
	t.rows = 1024
	one := t
	one.epochs = 1
	o, err := r.plain(ctx, envDefault, plainly{task: one, limits: steps().Most, seed: b.seed}, 0)
	if err != nil || !o.Passed {
		return t, errors.Join(err, errors.New(o.Why))
	}
	each := o.Compute / float64(one.rows*one.epochs)
	n := want.Seconds() / each / float64(t.epochs) / float64(b.shrink)
	t.rows = max(512, int(n)/512*512)
	return t, nil
}

// retried is a job in one container, whose timeout grows until it passes.
func (b *bench) retried(ctx context.Context, r *rig, t task) (attempts int, lost float64, err error) {
	by := steps()
	for {
		l := by.Attempt(attempts)
		attempts++
		o, err := r.plain(ctx, envDefault, plainly{task: t, limits: l, seed: b.seed}, attempts-1)
		if err != nil {
			return attempts, lost, err
		}
		b.page.add(o)
		if o.Passed || by.Attempt(attempts) == l {
			return attempts, lost, nil
		}
		lost += o.Lost
	}
}

// figure3 measures the memory of an action over batches, beside its estimate and the paper's.
func (b *bench) figure3(ctx context.Context) error {
	b.page.section("Figure 3: memory over batches", "MobileNetV1 on images of CIFAR's shape; the peak of a container "+
		"that trains "+
		"two batches, the planner's estimate for it with the interval of nine cases in ten, its limit, and the paper's "+
		"Eq. 1 to 5.")
	rows := [][]string{{"batch", "peak MB", "estimate MB", "limit MB", "paper's estimate MB"}}
	var errs []float64
	inside, all := 0, 0
	measured, planned := plot.Line{Name: "peak"}, plot.Line{Name: "estimate"}
	err := b.with(ctx, "figure 3", bounds{pool: doubledPool}, func(r *rig) error {
		for _, batch := range []int{64, 128, 256, 512} {
			t := mobile(batch, 1)
			t.rows, t.workers = 1024, 1
			e, limit, paper, err := r.estimates(ctx, t, b.seed)
			if err != nil {
				return err
			}
			o, err := r.plain(ctx, envDefault, plainly{
				task: t, limits: disdel.Limits{Memory: limit, Timeout: steps().Most.Timeout}, batches: 2, seed: b.seed,
			}, 0)
			if err != nil {
				return err
			}
			b.page.add(o)
			if all++; o.Passed && o.Action <= limit {
				inside++
			}
			errs = append(errs, 100*math.Abs(float64(o.Action-e.Likely))/float64(o.Action))
			rows = append(rows, []string{
				fmt.Sprint(batch), megabytes(o.Action), fmt.Sprintf("%s (%s to %s)", megabytes(e.Likely), megabytes(e.Low),
					megabytes(e.High)),
				megabytes(limit), megabytes(paper.Total),
			})
			measured.Points = append(measured.Points, at(float64(batch), mb(o.Action)))
			planned.Points = append(planned.Points, plot.Point{
				X: plot.Span{Likely: float64(batch)}, Y: plot.Span{Low: mb(e.Low), Likely: mb(e.Likely), High: mb(e.High)},
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.page.table(rows)
	b.page.figure("fig3_inside", float64(inside)/float64(all), "x")
	b.page.figure("fig3_error_pct", median(errs), "%")
	b.page.claims("3: memory grows with the batch", "a curve, without an error", fmt.Sprintf("estimates off by %.1f %% "+
		"in the "+
		"median, %d of %d peaks inside their limits", median(errs), inside, all), judged(median(errs), 5))
	return b.chart("fig3.svg", plot.Chart{
		Title: "Figure 3: memory of an action over batches", X: plot.Axis{Name: "rows of a batch", Whole: true},
		Y: plot.Axis{Name: "memory (MB)"}, Lines: []plot.Line{measured, planned},
	})
}

// estimates are the planner's and the paper's of a job's train action, and the limit that follows from the former.
func (r *rig) estimates(ctx context.Context, t task, seed int64) (own disdel.Estimate, limit disdel.Bytes,
	paper disdel.Estimate, err error,
) {
	if err := r.sources.add(ctx, r.parts.Data, t); err != nil {
		return own, 0, paper, err
	}
	job, err := t.parse(seed, disdel.SyncEnd)
	if err != nil {
		return own, 0, paper, err
	}
	known, err := controller.Resolve(ctx, job, r.parts.Data, t.id, nowhere, nil)
	if err != nil {
		return own, 0, paper, err
	}
	limits, err := r.parts.Executor.Limits(ctx)
	if err != nil {
		return own, 0, paper, err
	}
	by := estimator.Planned(backends.Standard(nil))
	plan, err := scheduler.NewPlan(scheduler.PlanInput{
		ID: r.next(), Job: job, Graph: known.Graph, Data: known.Data, Platform: limits, Estimator: by, Processors: threads(),
	})
	if err != nil {
		return own, 0, paper, err
	}
	a, _ := plan.Action(disdel.TaskTrain)
	paper = estimator.Paper(estimator.Input{
		Graph: known.Graph, BatchSize: t.batch, Rows: known.Data.Train, SampleBytes: known.Data.SampleSize, Epochs: t.epochs,
	})
	return a.Estimate, a.Limits.Memory, paper, nil
}

func mb(n disdel.Bytes) float64 { return float64(n) / float64(disdel.MB) }

func megabytes(n disdel.Bytes) string { return fmt.Sprintf("%.1f", mb(n)) }
