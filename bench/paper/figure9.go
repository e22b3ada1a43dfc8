package main

import (
	"context"
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// figure9 runs InceptionV3 on MNIST in each environment on its own platform. So the pool holds only its containers, and
// is sampled often.
func (b *bench) figure9(ctx context.Context, m *measured) error {
	envs := []string{envDefault, envBare, envEnd}
	if b.tensorflow {
		envs = append(envs, envDefaultTF, envBareTF)
	}
	t := b.size.task(pairs()[0])
	var limit disdel.Bytes // of default's one container, by a try on another platform, which leaves nothing on the others
	err := b.with(ctx, bounds{pool: doubledPool}, func(r *testbed) (err error) {
		limit, err = r.found(ctx, t, b.seed)
		return err
	})
	if err != nil {
		return err
	}
	return b.turns(func(n int) error {
		for _, env := range envs {
			err := b.with(ctx, bounds{pool: doubledPool, every: 10 * time.Millisecond}, func(r *testbed) error {
				r.limits[t.id] = limit
				o, err := b.once(ctx, r, env, t, n)
				if err != nil {
					return err
				}
				r.inPhases(&o)
				o.Activations = nil
				b.keep(m, o)
				return nil
			})
			if err != nil {
				return fmt.Errorf("%s: %w", env, err)
			}
		}
		return nil
	})
}

// inPhases fills in an action's memory at its beginning and when its data and its network were ready. It is the mean of
// all actions that ran at once, from the pool's samples. A process without a container says so itself.
func (r *testbed) inPhases(o *outcome) {
	if o.Environment != envDefault && o.Environment != envEnd || len(o.Activations) == 0 {
		return
	}
	begin, read, n := 0.0, 0.0, 0
	for _, a := range o.Activations {
		if a.Train {
			begin, read, n = max(begin, a.Start+a.Init), max(read, a.Start+a.Init+o.Prepare), n+1
		}
	}
	for _, s := range r.since(o.begun) {
		if s.At < begin || n == 0 {
			continue
		}
		each := s.Resident / disdel.Bytes(n)
		if o.Started == 0 {
			o.Started = each
		}
		if o.Prepared = each; s.At >= read {
			return
		}
	}
}

func (p *page) figure9(m *measured) {
	all := arranged(m.Outcomes)
	p.section("Figure 9: memory of InceptionV3 on MNIST in phases", "MB of one action or process: when it began, when "+
		"its data was read and its network built, and at its peak. The figure is the mean of those that ran at once. At the "+
		"beginning the paper's containers have loaded TensorFlow, and ours a runtime that serves requests.")
	rows := [][]string{{"environment", "at submission", "data prepared", "fitted (peak)", "s of preparing"}}
	lines := map[string]*plot.Line{}
	for _, env := range all.environments() {
		for _, job := range sorted(all[env]) {
			runs := all[env][job]
			started := valuesOf(runs, func(o outcome) float64 { return mb(o.Started) })
			prepared := valuesOf(runs, func(o outcome) float64 { return mb(o.Prepared) })
			fitted := valuesOf(runs, func(o outcome) float64 { return mb(o.Action) })
			rows = append(rows, []string{
				env, megabytesOr(started), megabytesOr(prepared), megabytesOr(fitted),
				fmt.Sprintf("%.2f", spreadOf(valuesOf(runs, func(o outcome) float64 { return o.Prepare })).Mean),
			})
			for i, v := range [][]float64{started, prepared, fitted} {
				add(lines, env, at(float64(i+1), spreadOf(v).Mean))
			}
		}
	}
	p.table(rows)
	begin := spreadOf(valuesOf(m.of(envEnd), func(o outcome) float64 { return mb(o.Started) })).Mean
	p.figure("fig9_started_mb", begin, "MB")
	p.claim(claim{
		"9: memory at submission", "about 280 MB in all environments", fmt.Sprintf("%.1f MB", begin), judged(begin, 280),
		"a static program instead of TensorFlow and its data sets",
	})
	for _, b := range all.baselines() {
		v := all.over(envEnd, b.env, action, p.seed)
		p.ratio("fig9_fitted_"+b.name, v)
		p.claim(claim{
			"9: fitted, over " + b.env, "a curve; less than one container", v.String(), judged(v.Value, b.action), memoryWhy(b),
		})
	}
	p.chart("fig9.svg", plot.Chart{
		Title: "Figure 9: memory at submission (1), prepared (2), fitted (3)", X: plot.Axis{Name: "phase", Whole: true},
		Y: plot.Axis{Name: "memory (MB)"}, Lines: drawn(lines),
	})
}
