package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/service"
)

// figure11 runs four actions in a pool that holds two of them, and in one that holds all, in turns.
func (b *bench) figure11(ctx context.Context, m *measured) error {
	return b.turns(func(n int) error {
		for _, pool := range []disdel.Bytes{widePool, wideDoubled} {
			err := b.with(ctx, bounds{pool: pool, slots: 1000 * threads() / 4}, func(r *testbed) error {
				o, err := b.wideOnce(ctx, r, n)
				if err != nil {
					return err
				}
				if b.keep(m, o); n == 0 {
					m.Pools[poolName(pool)] = thin(r.since(o.begun))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func poolName(pool disdel.Bytes) string { return fmt.Sprintf("pool of %v", pool) }

// wideOnce runs the job of Fig. 11, whose actions get 0.46 of the smaller pool.
func (b *bench) wideOnce(ctx context.Context, r *testbed, turn int) (outcome, error) {
	t := b.size.task(wide())
	if err := r.sources.add(ctx, r.parts.Data, t); err != nil {
		return outcome{}, err
	}
	job, err := t.parse(b.seed, disdel.SyncEnd)
	if err != nil {
		return outcome{}, err
	}
	job.Resources.Memory = wideAction
	job.Resources.Threads = 1
	o, err := r.submitJob(ctx, envEnd, t, turn, service.Request{Job: job})
	if err == nil && !o.Passed {
		err = errors.New(o.Why)
	}
	o.Pool = r.bounds.pool
	return o, err
}

// together is how many train activations ran at once.
func together(o outcome) (most int) {
	for i, a := range o.Activations {
		n := 0
		for j, other := range o.Activations {
			if a.Train && other.Train && (i == j || other.Start <= a.Start && a.Start < other.End) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func (p *page) figure11(m *measured) {
	p.section("Figure 11: a pool of twice the memory", fmt.Sprintf("Memory / %d. ResNet-152 on images of DMLAB's "+
		"shape, four actions, each of which takes 0.46 of the smaller pool. Every container has a quota of a quarter of the "+
		"processors, so that four containers do not share a processor, as in the paper.", wideScale))
	rows := [][]string{{"pool", "turn", "train actions at once", "s", "who ran when (s)"}}
	walls, spans := map[disdel.Bytes][]float64{}, map[disdel.Bytes][]float64{}
	for _, o := range m.Outcomes {
		walls[o.Pool], spans[o.Pool] = append(walls[o.Pool], o.Wall), append(spans[o.Pool], trained(o))
		rows = append(rows, []string{
			o.Pool.String(), fmt.Sprint(o.Turn + 1), fmt.Sprint(together(o)), fmt.Sprintf("%.1f", o.Wall), stretches(o),
		})
	}
	p.table(rows)
	over := func(of map[disdel.Bytes][]float64) interval {
		return ratio([][]float64{of[wideDoubled]}, [][]float64{of[widePool]}, p.seed)
	}
	v, train := over(walls), over(spans)
	p.ratio("fig11_ratio", v)
	p.ratio("fig11_train_ratio", train)
	p.claim(claim{
		"11: pool of 140 GB over 70 GB", "0.477 (-52.3 %)", fmt.Sprintf("%v; of the training alone %v", v, train),
		judged(v.Value, 0.477), "two waves in one save half at most: what is beyond it are the paper's cold starts; " +
			"aggregation and evaluation are in ours, in both",
	})
	lines := map[string]*plot.Line{}
	for _, name := range sorted(m.Pools) {
		for _, s := range m.Pools[name] {
			add(lines, name+", reserved", at(s.At, mb(s.Reserved)))
		}
	}
	p.chart("fig11.svg", plot.Chart{
		Title: "Figure 11: memory that the pool has reserved", X: plot.Axis{Name: "time (s)"},
		Y: plot.Axis{Name: "memory (MB)"}, Lines: drawn(lines),
	})
}

// trained is how long the train actions of a job took together.
func trained(o outcome) float64 {
	first, last := o.Wall, 0.0
	for _, a := range o.Activations {
		if a.Train {
			first, last = min(first, a.Start), max(last, a.End)
		}
	}
	return last - first
}

// stretches is when each train action ran.
func stretches(o outcome) string {
	var out []string
	for _, a := range o.Activations {
		if a.Train {
			out = append(out, fmt.Sprintf("%.1f to %.1f", a.Start, a.End))
		}
	}
	return strings.Join(out, ", ")
}
