package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/service"
)

// figure10 is accuracy by epoch, from the same seed in every environment.
func (b *bench) figure10(ctx context.Context) error {
	b.page.section("Figure 10: accuracy by epoch", "Share of training rows that were right as each step saw them, and "+
		"of held-out "+
		"rows at the end, from the same seed. With several workers each sees a part of the rows.")
	envs := []string{envBare, envEpoch, envEnd}
	rows := [][]string{{"job", "environment", "training, last epoch", "held-out"}}
	gap, best := math.Inf(1), 0.0
	var lines []plot.Line
	err := b.with(ctx, "figure 10", bounds{pool: doubledPool, timeout: 120 * time.Minute}, func(r *rig) error {
		for _, t := range accurate() {
			t = t.shrunk(b.shrink)
			held := map[string]float64{}
			for _, env := range envs {
				o, err := b.once(ctx, r, env, t, 0, nil)
				if err != nil {
					return err
				}
				b.page.add(o)
				if !o.Passed || o.HeldOut == nil || len(o.Seen) == 0 {
					return fmt.Errorf("%s in %s did not come to an accuracy: %s", t.id, env, o.Why)
				}
				held[env] = *o.HeldOut
				rows = append(rows, []string{
					t.id, env, fmt.Sprintf("%.4f", o.Seen[len(o.Seen)-1]), fmt.Sprintf("%.4f", *o.HeldOut),
				})
				lines = append(lines, curveOf(t.id+", "+env, o.Seen))
			}
			gap = min(gap, 100*(held[envEpoch]-held[envBare]))
			if t.data == "mnist" {
				best = held[envEpoch]
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.page.table(rows)
	b.page.figure("fig10_gap_points", gap, "points")
	b.page.figure("fig10_mnist", best, "x")
	b.page.claims("10: accuracy", "98.7 % (VGG-16, CIFAR10), bare metal 98.0 %",
		fmt.Sprintf("held-out %.2f points over bare metal's at worst; LeNet-5 on %s %.4f", gap, b.sources().notes["mnist"],
			best),
		pair(judged(-gap, 0.5), judged(0.987, best)))
	return b.chart("fig10.svg", plot.Chart{
		Title: "Figure 10: accuracy of training rows", X: plot.Axis{Name: "epoch", Whole: true},
		Y: plot.Axis{Name: "share of rows"}, Lines: lines,
	})
}

func curveOf(name string, seen []float64) plot.Line {
	l := plot.Line{Name: name}
	for i, v := range seen {
		l.Points = append(l.Points, at(float64(i+1), v))
	}
	return l
}

// figure11 runs four actions in a pool that holds two of them, then in one that holds all.
func (b *bench) figure11(ctx context.Context) error {
	b.page.section("Figure 11: a pool of twice the memory", "ResNet-152 on images of DMLAB's shape, four actions, each "+
		"of which "+
		"takes 0.46 of the smaller pool; every container has a quota of half a processor, where this machine keeps quotas.")
	slots := 1000 * threads() / 4
	walls := map[disdel.Bytes][]float64{}
	rows := [][]string{{"pool", "turn", "at once", "time"}}
	for _, pool := range []disdel.Bytes{smallPool, doubledPool} {
		name := fmt.Sprintf("figure 11, pool of %v", pool)
		err := b.with(ctx, name, bounds{pool: pool, slots: slots, timeout: 30 * time.Minute}, func(r *rig) error {
			for n := range b.repeat {
				o, most, err := b.wideOnce(ctx, r, n)
				if err != nil {
					return err
				}
				walls[pool] = append(walls[pool], o.Wall)
				rows = append(rows, []string{pool.String(), fmt.Sprint(n + 1), fmt.Sprint(most), fmt.Sprintf("%.1f s", o.Wall)})
			}
			return nil
		})
		if disdel.KindOf(err) == disdel.Unavailable && slots > 0 {
			b.page.claims("11: pool of 140 GB over 70 GB", "-52.3 %", "not run: this machine keeps no quotas of processors",
				"not comparable")
			return nil
		}
		if err != nil {
			return err
		}
	}
	v := ratio([][]float64{walls[doubledPool]}, [][]float64{walls[smallPool]}, uint64(b.seed))
	b.page.table(rows)
	b.page.ratio("fig11_ratio", v)
	b.page.claims("11: pool of 140 GB over 70 GB", "0.477 (-52.3 %; two waves into one save half at most)", v.String(),
		judged(v.Value, 0.477))
	return nil
}

// wideOnce runs the job of Fig. 11, whose actions get 0.46 of the smaller pool, and says how many ran at once.
func (b *bench) wideOnce(ctx context.Context, r *rig, turn int) (outcome, int, error) {
	t := wide().shrunk(b.shrink)
	if err := r.sources.add(ctx, r.parts.Data, t); err != nil {
		return outcome{}, 0, err
	}
	job, err := t.parse(b.seed, disdel.SyncEnd)
	if err != nil {
		return outcome{}, 0, err
	}
	job.Resources.Memory = smallPool * 46 / 100 / disdel.MB * disdel.MB
	job.Resources.Threads = 1
	o, err := r.submitJob(ctx, envEnd, t, turn, service.Request{Job: job})
	if err == nil && !o.Passed {
		err = errors.New(o.Why)
	}
	b.page.add(o)
	return o, together(o, "train"), err
}

// together is how many activations whose names contain a word ran at once.
func together(o outcome, word string) (most int) {
	for i, a := range o.Activations {
		n := 0
		for j, other := range o.Activations {
			if strings.Contains(a.Name, word) && strings.Contains(other.Name, word) && (i == j || other.Start <= a.Start &&
				a.Start < other.End) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// batch is what a batch of eight came to.
type batch struct {
	makespan float64
	jobs     []outcome
	samples  []platform.Sample
	failures int
}

// figure12 sends eight jobs at once.
func (b *bench) figure12(ctx context.Context) error {
	b.page.section("Figure 12: eight jobs at once", "In one pool of 190 GB / 35, every job as it comes. Reserved and "+
		"resident "+
		"memory are the pool's over time.")
	envs := []string{envMax, envBare, envEnd, envEpoch}
	rows := [][]string{{
		"environment", "turn", "until all had ended", "mean job", "activations that failed",
		"reserved over resident",
	}}
	spans := map[string][]float64{}
	failures := 0
	shares := map[string][]float64{}
	lines := map[string]*plot.Line{}
	if err := b.alone(ctx); err != nil {
		return err
	}
	turns, err := b.turns(func(n int) error {
		for _, env := range envs {
			got, err := b.eightAtOnce(ctx, env, n)
			if err != nil {
				return err
			}
			spans[env] = append(spans[env], got.makespan)
			share := reservedShare(got.samples)
			shares[env] = append(shares[env], share)
			if env == envEnd || env == envEpoch {
				failures += got.failures
			}
			rows = append(rows, []string{
				env, fmt.Sprint(n + 1), fmt.Sprintf("%.1f s", got.makespan), fmt.Sprintf("%.1f s", meanWall(got.jobs)),
				fmt.Sprint(got.failures), fmt.Sprintf("%.2f", share),
			})
			if n == 0 {
				lines[env] = poolLine(env, got.samples)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.page.table(rows)
	of := func(env string) [][]float64 { return [][]float64{spans[env]} }
	overMax, overBare := ratio(of(envEnd), of(envMax), uint64(b.seed)), ratio(of(envEnd), of(envBare), uint64(b.seed))
	b.page.ratio("fig12_default", overMax)
	b.page.ratio("fig12_baremetal", overBare)
	b.page.figure("fig12_failures", float64(failures), "activations")
	b.page.figure("fig12_reserved_over_resident", median(shares[envEnd]), "x")
	b.page.figure("fig12_turns", float64(turns), "turns")
	b.page.claims("12: batch of eight over default", "0.45 (-55 %)", overMax.String(), judged(overMax.Value, 0.45))
	b.page.claims("12: batch of eight over bare metal", "0.71 (-29 %)", overBare.String(), judged(overBare.Value, 0.71))
	b.page.claims("12: failures", "0", fmt.Sprint(failures), judged(float64(failures), 0))
	b.real = median(spans[envEnd])
	return b.chart("fig12.svg", plot.Chart{
		Title: "Figure 12: memory that the pool held", X: plot.Axis{Name: "time (s)"}, Y: plot.Axis{Name: "resident " +
			"memory (MB)"},
		Lines: drawn(lines),
	})
}

// alone runs those jobs of the batch one by one of which figure 8 has not told how fast they are: the simulator's
// check goes
// by that.
func (b *bench) alone(ctx context.Context) error {
	var unknown []task
	for _, t := range b.chosen(eight()) {
		if each, _ := b.speedOf(t); each == 0 {
			unknown = append(unknown, t)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return b.with(ctx, "figure 12, one by one", bounds{pool: batchPool, timeout: 30 * time.Minute}, func(r *rig) error {
		for _, t := range unknown {
			o, err := r.submit(ctx, envEnd, t, 0, b.seed)
			if err != nil {
				return err
			}
			b.page.add(o)
		}
		return nil
	})
}

// eightAtOnce sends the batch in an environment and waits for all of it.
func (b *bench) eightAtOnce(ctx context.Context, env string, turn int) (out batch, err error) {
	name := fmt.Sprintf("figure 12, %s, turn %d", env, turn+1)
	err = b.with(ctx, name, bounds{pool: batchPool, timeout: 30 * time.Minute}, func(r *rig) error {
		for _, t := range b.chosen(eight()) { // the data is there before the jobs are
			if err := r.sources.add(ctx, r.parts.Data, t); err != nil {
				return err
			}
		}
		begun := time.Now()
		out.jobs, err = b.all(ctx, r, env, turn)
		out.makespan = time.Since(begun).Seconds()
		out.samples = r.since(begun)
		return err
	})
	for _, o := range out.jobs {
		o.Beside = len(out.jobs) - 1
		b.page.add(o)
		if out.failures += o.Failed; !o.Passed && o.Failed == 0 {
			out.failures++
		}
	}
	return out, err
}

// all runs the batch's jobs at once.
func (b *bench) all(ctx context.Context, r *rig, env string, turn int) ([]outcome, error) {
	list := b.chosen(eight())
	jobs, faults := make([]outcome, len(list)), make([]error, len(list))
	var wait sync.WaitGroup
	var ids sync.Mutex
	for i, t := range list {
		wait.Go(func() {
			switch env {
			case envMax:
				ids.Lock() // of the jobs
				p := plainly{
					task: t, limits: disdel.Limits{Memory: largestAction, Timeout: disdel.Millis(30 * time.Minute)},
					seed: b.seed,
				}
				inv, err := r.invocation(ctx, p)
				ids.Unlock()
				if err == nil {
					jobs[i], err = r.invoked(ctx, env, p, turn, inv)
				}
				faults[i] = err
			case envBare:
				jobs[i], faults[i] = r.bare(ctx, t, turn, b.seed)
			default:
				jobs[i], faults[i] = r.submit(ctx, env, t, turn, b.seed)
			}
		})
	}
	wait.Wait()
	return jobs, errors.Join(faults...)
}

func meanWall(jobs []outcome) float64 {
	var v []float64
	for _, o := range jobs {
		v = append(v, o.Wall)
	}
	return spreadOf(v).Mean
}

// reservedShare is what the pool had reserved over what its containers held, over the time in which there were any.
func reservedShare(samples []platform.Sample) float64 {
	var reserved, resident float64
	for _, s := range samples {
		if s.Resident > 0 {
			reserved, resident = reserved+float64(s.Used), resident+float64(s.Resident)
		}
	}
	if resident == 0 {
		return 0
	}
	return reserved / resident
}

func poolLine(name string, samples []platform.Sample) *plot.Line {
	l := &plot.Line{Name: name}
	for _, s := range thin(samples) {
		l.Points = append(l.Points, at(s.At.Sub(samples[0].At).Seconds(), mb(s.Resident)))
	}
	if !slices.ContainsFunc(samples, func(s platform.Sample) bool { return s.Resident > 0 }) {
		l.Points = nil
	}
	return l
}
