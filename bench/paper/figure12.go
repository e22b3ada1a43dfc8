package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/internal/plot"
)

// batch is what a batch of eight came to.
type batch struct {
	Environment string  `json:"environment"`
	Turn        int     `json:"turn"`
	Makespan    float64 `json:"makespanS"` // until all had ended
	Mean        float64 `json:"meanS"`     // of the jobs
	Late        float64 `json:"p95S"`      // that all but one in twenty took no longer than
	Failures    int     `json:"failures"`  // activations, and jobs without one that failed
	Reserved    float64 `json:"reservedOverResident,omitempty"`
	Most        float64 `json:"mostMB"` // that all held at once
}

// eight are the jobs of Fig. 12 and 13.
func (b *bench) eight() (out []task) {
	p, last := pairs(), mobile(64, 3)
	for _, t := range []task{p[2], p[3], p[4], p[5], p[6], p[7], p[0], last} {
		t.rows /= batchShare
		out = append(out, b.size.task(t))
	}
	return out
}

// batchShare is how many times fewer rows the jobs of a batch have than the pairs: eight of them run at once.
const batchShare = 2

// figure12 sends eight jobs at once.
func (b *bench) figure12(ctx context.Context, m *measured) error {
	return b.turns(func(n int) error {
		for _, env := range b.crowds(n) {
			err := b.eightAtOnce(ctx, m, env, n)
			if slots(env) > 0 && disdel.KindOf(err) == disdel.Unavailable {
				continue // there are no quotas here
			}
			if err != nil {
				return fmt.Errorf("%s: %w", env, err)
			}
		}
		return nil
	})
}

// crowds are the environments of a turn of Fig. 12.
func (b *bench) crowds(turn int) []string {
	out := []string{envMax, envBare, envEnd, envEpoch}
	if b.tensorflow && (turn == 0 || b.share >= tensorFlowAgain) {
		out = append(out, envDefaultTF, envBareTF)
	}
	if turn == 0 {
		out = append(out, envMaxSlots, envEndSlots)
	}
	return out
}

// slots is the quota of each container of an environment, in thousandths of a processor; 0: it has none.
func slots(env string) int {
	if env == envMaxSlots || env == envEndSlots {
		return 1000 * threads() / 4
	}
	return 0
}

// tensorFlowAgain is the time of the figure from which TensorFlow's batch, which takes longer than all others together,
// runs in every turn.
const tensorFlowAgain = 10 * time.Minute

// eightAtOnce sends the batch in an environment and waits for all of it.
func (b *bench) eightAtOnce(ctx context.Context, m *measured, env string, turn int) error {
	var jobs []outcome
	out := batch{Environment: env, Turn: turn}
	err := b.with(ctx, bounds{pool: batchPool, slots: slots(env)}, func(r *testbed) (err error) {
		for _, t := range b.eight() { // the data is there before the jobs are
			if err := r.sources.add(ctx, r.parts.Data, t); err != nil {
				return err
			}
			if _, err := r.tfArguments(ctx, t, b.seed, 1); err != nil { // and as TensorFlow reads it
				return err
			}
		}
		begun := time.Now()
		jobs, err = b.all(ctx, r, env, turn)
		out.Makespan = time.Since(begun).Seconds()
		samples := r.since(begun)
		if out.Reserved, out.Most = held(samples); turn == 0 {
			m.Pools[env] = thin(samples)
		}
		return err
	})
	if err != nil {
		return err
	}
	walls := valuesOf(jobs, wall)
	slices.Sort(walls)
	out.Mean, out.Late = spreadOf(walls).Mean, walls[len(walls)*95/100]
	for _, o := range jobs {
		o.Beside, o.Activations = len(jobs)-1, nil
		b.keep(m, o)
		if out.Failures += o.Failed; !o.Passed && o.Failed == 0 {
			out.Failures++
		}
	}
	m.Batches = append(m.Batches, out)
	return nil
}

// all runs the batch's jobs at once.
func (b *bench) all(ctx context.Context, r *testbed, env string, turn int) ([]outcome, error) {
	list := b.eight()
	jobs, faults := make([]outcome, len(list)), make([]error, len(list))
	var wait sync.WaitGroup
	for i, t := range list {
		wait.Go(func() {
			if env == envDefaultTF { // in a container as large as default's
				jobs[i], faults[i] = r.tfDefault(ctx, t, turn, b.seed, r.atMost(largestAction))
				return
			}
			jobs[i], faults[i] = b.once(ctx, r, env, t, turn)
		})
	}
	wait.Wait()
	return jobs, errors.Join(faults...)
}

// held returns the pool's reserved memory divided by that of its containers, over the time in which there were any. It
// also returns the most that containers and processes held at once, in MB.
func held(samples []sample) (share, most float64) {
	var reserved, resident float64
	for _, s := range samples {
		if most = max(most, mb(s.Resident+s.Bare)); s.Resident > 0 {
			reserved, resident = reserved+float64(s.Reserved), resident+float64(s.Resident)
		}
	}
	if resident == 0 {
		return 0, most
	}
	return reserved / resident, most
}

func (p *page) figure12(m *measured) {
	p.section("Figure 12: eight jobs at once", fmt.Sprintf("Six of the pairs, the InceptionV3 of figure 9 and "+
		"MobileNetV1, with 1/%d of their rows, in one pool of %v. *default-max* gives each job a container of "+
		"%v, so that two run at a time, with all processors. Bare metal is eight processes. In *-slots* each container has "+
		"a quota of a quarter of the processors.", batchShare, batchPool, largestAction))
	rows := [][]string{{
		"environment", "turn", "s until all had ended", "mean job, s", "95th percentile, s", "failures",
		"most held at once, MB", "reserved over resident",
	}}
	spans, shares := map[string][]float64{}, map[string][]float64{}
	failures, tfFailures := 0, 0
	for _, g := range m.Batches {
		spans[g.Environment] = append(spans[g.Environment], g.Makespan)
		shares[g.Environment] = append(shares[g.Environment], g.Reserved)
		switch g.Environment {
		case envEnd, envEpoch, envEndSlots:
			failures += g.Failures
		case envDefaultTF:
			tfFailures += g.Failures
		}
		rows = append(rows, []string{
			g.Environment, fmt.Sprint(g.Turn + 1), fmt.Sprintf("%.1f", g.Makespan), fmt.Sprintf("%.1f", g.Mean),
			fmt.Sprintf("%.1f", g.Late), fmt.Sprint(g.Failures), fmt.Sprintf("%.0f", g.Most),
			fmt.Sprintf("%.2f", g.Reserved),
		})
	}
	p.table(rows)
	p.makespans(spans, tfFailures)
	p.figure("fig12_failures", float64(failures), "activations")
	p.figure("fig12_reserved_over_resident", rig.Median(shares[envEnd]), "x")
	p.claim(claim{"12: failures", "0", fmt.Sprint(failures), judged(float64(failures), 0), "of disdel, in both its forms"})
	lines := map[string]*plot.Line{}
	for _, env := range sorted(m.Pools) {
		for _, s := range m.Pools[env] {
			add(lines, env, at(s.At, mb(s.Resident+s.Bare)))
		}
	}
	p.chart("fig12.svg", plot.Chart{
		Title: "Figure 12: memory that a batch of eight holds", X: plot.Axis{Name: "time (s)"},
		Y: plot.Axis{Name: "resident memory (MB)"}, Lines: drawn(lines),
	})
}

// makespans are the ratios of the time until all jobs of a batch had ended.
func (p *page) makespans(spans map[string][]float64, tfFailures int) {
	busy := "no processor is idle in either on one machine with two: the paper's saving is of processors that its " +
		"default leaves idle"
	for _, b := range []struct {
		env, ours, name, printed string
		most                     float64
		why                      string
	}{
		{
			envDefaultTF, envEnd, "tf_default", "0.45 (-55 %)", 0.45,
			fmt.Sprintf("TensorFlow in containers of %v; %d of them failed", largestAction, tfFailures),
		},
		{
			envBareTF, envEnd, "tf_baremetal", "0.71 (-29 %)", 0.71,
			"eight processes of TensorFlow, each mirrored on all processors",
		},
		{envMax, envEnd, "default", "0.45 (-55 %)", 0.45, busy},
		{
			envMaxSlots, envEndSlots, "default_slots", "0.45 (-55 %)", 0.45,
			"both with a quota of a quarter of the processors for each container: two of the largest leave half of them idle",
		},
		{
			envBare, envEnd, "baremetal", "0.71 (-29 %)", 0.71,
			busy + "; bare metal has no platform, aggregation or evaluation to pay",
		},
	} {
		if len(spans[b.env]) == 0 {
			continue
		}
		of := func(env string) [][]float64 { return [][]float64{spans[env]} }
		v := ratio(of(b.ours), of(b.env), p.seed)
		p.ratio("fig12_"+b.name, v)
		here := v.String()
		if b.ours == envEnd {
			epoch := ratio(of(envEpoch), of(b.env), p.seed)
			p.ratio("fig12_"+b.name+"_epoch", epoch)
			here += fmt.Sprintf("; averaging after every epoch %v", epoch)
		}
		p.claim(claim{"12: batch of eight over " + b.env, b.printed, here, judged(v.Value, b.most), b.why})
	}
}
