package main

import (
	"context"
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// figure3 measures the memory of an action over batches, beside its estimate and the paper's.
func (b *bench) figure3(ctx context.Context, m *measured) error {
	return b.with(ctx, bounds{pool: doubledPool}, func(r *testbed) error {
		for _, batch := range []int{64, 128, 256, 512} {
			t := mobile(batch, 1)
			t.rows, t.workers = 1024, 1
			e, err := r.estimates(ctx, t, b.seed)
			if err != nil {
				return err
			}
			o, err := r.plain(ctx, envDefault, plainly{task: t, limits: r.atMost(e.Limit), batches: 2, seed: b.seed}, 0)
			if err != nil {
				return err
			}
			o.Expected = &e
			b.keep(m, o)
		}
		return nil
	})
}

// estimates are the planner's and the paper's of a job's train action, and the limit that follows from the former.
func (r *testbed) estimates(ctx context.Context, t task, seed int64) (e expected, err error) {
	if err := r.sources.add(ctx, r.parts.Data, t); err != nil {
		return e, err
	}
	job, err := t.parse(seed, disdel.SyncEnd)
	if err != nil {
		return e, err
	}
	known, err := controller.Resolve(ctx, job, r.parts.Data, t.id, nowhere, nil)
	if err != nil {
		return e, err
	}
	limits, err := r.parts.Executor.Limits(ctx)
	if err != nil {
		return e, err
	}
	plan, err := scheduler.NewPlan(scheduler.PlanInput{
		ID: r.next(), Job: job, Graph: known.Graph, Data: known.Data, Platform: limits,
		Estimator: estimator.Planned(backends.Standard(nil)), Processors: threads(),
	})
	if err != nil {
		return e, err
	}
	a, _ := plan.Action(disdel.TaskTrain)
	paper := estimator.Paper(estimator.Input{
		Graph: known.Graph, BatchSize: t.batch, Rows: known.Data.Train, SampleBytes: known.Data.SampleSize, Epochs: t.epochs,
	})
	return expected{
		Low: a.Estimate.Low, Likely: a.Estimate.Likely, High: a.Estimate.High, Limit: a.Limits.Memory, Paper: paper.Total,
	}, nil
}

func (p *page) figure3(m *measured) {
	p.section("Figure 3: memory over batches", "MobileNetV1. The table has the peak of a container that trains "+
		"two batches. Beside it are the planner's estimate with its 90 % interval, the limit that it set, and the estimate "+
		"of the paper's Eq. 1 to 5.")
	rows := [][]string{{"batch", "peak MB", "estimate MB", "off by", "limit MB", "paper's estimate MB", "off by"}}
	var off, theirs []float64
	inside := 0
	lines := map[string]*plot.Line{}
	for _, o := range m.Outcomes {
		e := o.Expected
		if e == nil {
			continue
		}
		if o.Passed && o.Action <= e.Limit {
			inside++
		}
		own, paper := offBy(o.Action, e.Likely), offBy(o.Action, e.Paper)
		off, theirs = append(off, own), append(theirs, paper)
		rows = append(rows, []string{
			fmt.Sprint(o.Batch), megabytes(o.Action),
			fmt.Sprintf("%s (%s to %s)", megabytes(e.Likely), megabytes(e.Low), megabytes(e.High)),
			fmt.Sprintf("%.1f %%", own), megabytes(e.Limit), megabytes(e.Paper), fmt.Sprintf("%.0f %%", paper),
		})
		x := plot.Span{Likely: float64(o.Batch)}
		add(lines, "peak", at(x.Likely, mb(o.Action)))
		add(lines, "the paper's estimate", at(x.Likely, mb(e.Paper)))
		y := plot.Span{Low: mb(e.Low), Likely: mb(e.Likely), High: mb(e.High)}
		add(lines, "estimate", plot.Point{Front: true, X: x, Y: y})
	}
	p.table(rows)
	p.figure("fig3_inside", float64(inside)/float64(max(1, len(off))), "x")
	p.figure("fig3_error_pct", rig.Median(off), "%")
	p.figure("fig3_paper_error_pct", rig.Median(theirs), "%")
	p.claim(claim{
		"3: memory grows with the batch", "a curve, without an error",
		fmt.Sprintf("%d of %d peaks inside their limits, estimates off by %.1f %% in the median (the paper's equations: "+
			"%.0f %%)", inside, len(off), rig.Median(off), rig.Median(theirs)),
		judged(rig.Median(off)+1000*float64(len(off)-inside), 5), "our own engine; the bound of 5 % is ours",
	})
	p.chart("fig3.svg", plot.Chart{
		Title: "Figure 3: memory of an action over batches", X: plot.Axis{Name: "rows of a batch", Whole: true},
		Y: plot.Axis{Name: "memory (MB)"}, Lines: drawn(lines),
	})
}

// offBy is how far an estimate is from a peak, in percent of the peak.
func offBy(peak, estimate disdel.Bytes) float64 {
	return 100 * math.Abs(float64(peak-estimate)) / float64(max(1, peak))
}
