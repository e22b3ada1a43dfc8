package main

import (
	"context"
	"fmt"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/sparse"
)

// speedFor is how long each speed is measured.
const speedFor = 3 * time.Second

// speed is rows a second of training on one processor, batches and all, and over what peers there are. Clicks are
// trained by Adam, as MLLess has it, and by plain gradients, as the peers do.
func speed(films, ads *learning, pythons []string) error {
	own := map[string]float64{}
	plain := disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.05}}
	for _, c := range []struct {
		l     *learning
		name  string
		by    disdel.Optimizer
		batch int
	}{
		{films, "pmf", films.optimizer, 250},
		{films, "pmf", films.optimizer, 6250},
		{ads, "logistic_adam", ads.optimizer, 125},
		{ads, "logistic_adam", ads.optimizer, 6250},
		{ads, "logistic_sgd", plain, 125},
		{ads, "logistic_sgd", plain, 6250},
	} {
		rows, err := c.l.rowsPerSecond(c.by, c.batch)
		if err != nil {
			return err
		}
		own[fmt.Sprintf("%s_%d", c.name, c.batch)] = rows
		rig.Figure(fmt.Sprintf("rows_per_s_%s_%d", c.name, c.batch), rows, "rows/s")
	}
	ratios(own, peers(pythons))
	return nil
}

func (l *learning) rowsPerSecond(by disdel.Optimizer, batch int) (float64, error) {
	shard, err := l.shard(context.Background(), 0, 1)
	if err != nil {
		return 0, err
	}
	e, err := sparse.Backend{}.New(engine.Spec{Graph: l.graph, BatchSize: batch, Training: true, Optimizer: by})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	if err := e.Init(disdel.Init{Seed: 1}); err != nil {
		return 0, err
	}
	b, order, rows, start := shard.NewBatch(batch), []int32(nil), 0, time.Now()
	for epoch := 0; time.Since(start) < speedFor; epoch++ {
		order = dataset.Order(order, 1, epoch, 0, shard.Len())
		for at := 0; at+batch <= len(order); at += batch {
			shard.Fill(&b, order[at:at+batch])
			if _, err := e.Step(b); err != nil {
				return 0, err
			}
			rows += batch
		}
	}
	return float64(rows) / time.Since(start).Seconds(), nil
}

// The trials of MLLess' size: 8 workers, 2,000 rows a step in all.
func pmfTrial(workers int, threshold float64, slack int, seed int64) trial {
	return trial{
		workers: workers, batch: 2000 / workers, threshold: threshold, slack: slack, steps: 600, seed: seed, every: 5,
		rate: 0.4 * 8 / float64(workers),
	}
}

func logisticTrial(threshold float64, seed int64) trial {
	return trial{workers: 8, batch: 125, threshold: threshold, steps: 600, seed: seed, every: 10}
}

// near is how near to the best held-out loss of bulk synchronous training a target is.
const near = 1.01

// significance is what the filter saves: bytes, and time where a step is four fifths communication, or nine tenths
// (_at_90).
func significance(films *learning) error {
	ctx := context.Background()
	bsp, err := films.train(ctx, pmfTrial(8, 0, 0, 1))
	if err != nil {
		return err
	}
	target := near * bsp.best()
	steps, _ := bsp.reaches(target)
	server, slow := clock{rate: rateAt(&bsp, 8, 0.8), seed: 1}, clock{rate: rateAt(&bsp, 8, 0.9), seed: 1}
	rig.Figure("bsp_heldout_loss", bsp.best(), "MSE")
	rig.Figure("bsp_steps", float64(steps), "steps")
	rig.Figure("bsp_bytes_per_step", bsp.sent(steps), "B")
	for _, c := range []struct {
		name   string
		v      float64
		values disdel.Wire
	}{
		{"_v0.1", 0.1, disdel.WireFloat32},
		{"", 0.7, disdel.WireFloat32},
		{"_bfloat16", 0.7, disdel.WireBfloat16},
		{"_int8", 0.7, disdel.WireInt8},
		{"_v2", 2, disdel.WireFloat32},
	} {
		t, name := pmfTrial(8, c.v, 0, 1), c.name
		t.values = c.values
		isp, err := films.train(ctx, t)
		if err != nil {
			return err
		}
		own, ok := isp.reaches(target)
		if !ok {
			rig.Figure("isp_heldout_loss"+name, isp.best(), "MSE")
			continue
		}
		rig.Figure("isp_steps"+name, float64(own), "steps")
		rig.Figure("virtual_bytes_ratio"+name, isp.sent(own)*float64(own)/(bsp.sent(steps)*float64(steps)), "ratio")
		rig.Figure("isp_over_bsp"+name, server.time(&bsp, steps)/server.time(&isp, own), "ratio")
		rig.Figure("isp_over_bsp"+name+"_at_90", slow.time(&bsp, steps)/slow.time(&isp, own), "ratio")
	}
	return nil
}

// gap is the held-out loss with the filter over that without, in the mean of seeds.
func gap(films, ads *learning, seeds int) error {
	ctx, all := context.Background(), 0.0
	for _, c := range []struct {
		l     *learning
		trial func(v float64, seed int64) trial
	}{
		{films, func(v float64, seed int64) trial { return pmfTrial(8, v, 0, seed) }},
		{ads, logisticTrial},
	} {
		sum, worst := 0.0, 0.0
		for seed := range seeds {
			plain, err := c.l.train(ctx, c.trial(0, int64(seed+1)))
			if err != nil {
				return err
			}
			filtered, err := c.l.train(ctx, c.trial(0.7, int64(seed+1)))
			if err != nil {
				return err
			}
			ratio := filtered.best() / plain.best()
			sum, worst = sum+ratio, max(worst, ratio)
		}
		rig.Figure("heldout_gap_"+c.l.name, sum/float64(seeds), "ratio")
		rig.Figure("heldout_gap_worst_"+c.l.name, worst, "ratio")
		all = max(all, sum/float64(seeds))
	}
	rig.Figure("heldout_gap", all, "ratio")
	return nil
}

// servers is what a second server brings 64 workers in lock-step: deltas lie on both in parts, so that each serves half
// of every one.
func servers(films *learning) error {
	t := pmfTrial(64, 0, 0, 1)
	t.steps, t.every = 100, 100
	c, err := films.train(context.Background(), t)
	if err != nil {
		return err
	}
	one := clock{rate: rateAt(&c, t.workers, 0.8), seed: 1}
	two := one
	two.rate *= 2
	rig.Figure("redis2", one.time(&c, t.steps)/two.time(&c, t.steps), "ratio")
	return nil
}
