package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// sorted is the keys of a map in order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// environments are those of the pairs, in the order of a turn. What only tells of memory, or beside the comparison,
// runs in the first turn alone.
func (b *bench) environments(turn int) []string {
	out := []string{envDefault, envBare, envEnd, envEpoch}
	if b.tensorflow {
		out = append(out, envDefaultTF, envBareTF)
	}
	if turn == 0 {
		out = append(out, envSlot, envPaper)
	}
	return out
}

// figure8 runs the eight pairs in every environment in turns. Figures 7 and 8 are made of the same runs.
func (b *bench) figure8(ctx context.Context, m *measured) error {
	return b.with(ctx, bounds{pool: doubledPool}, func(r *testbed) (err error) {
		return b.turns(func(n int) error {
			for _, t := range b.chosen() {
				if err := b.each(ctx, r, m, t, n, b.environments(n)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// baseline is what ratios are taken of: an environment, how figures name it, and what the paper prints of its own.
type baseline struct {
	env, name      string
	time           float64
	action, sum    float64
	saved, savedAt string
	why            string
}

// baselines are those of the pairs that ran.
func (t byJob) baselines() (out []baseline) {
	one := "one container of our own engine, which uses all processors as well as two containers do: dividing a job " +
		"saves no processor's time on one machine"
	all := []baseline{
		{env: envDefaultTF, name: "tf_default", why: "the paper's kind of baseline: TensorFlow in one container, with its " +
			"import and the tracing of its graph, which short jobs feel most"},
		{env: envBareTF, name: "tf_baremetal", why: "the same in one process, mirrored on a device for each processor"},
		{env: envDefault, name: "default", why: one},
		{env: envBare, name: "baremetal", why: "one process of our own engine with all processors, without a platform's " +
			"cost"},
		{env: envSlot, name: "default_slot", why: "one container with half of the processors, as many as each of disdel's " +
			"two has: what the paper's saving needs"},
	}
	for _, b := range all {
		if len(t[b.env]) == 0 {
			continue
		}
		b.time, b.action, b.sum = 0.54, 0.56, 1.089
		b.saved, b.savedAt = "-46 %", "-44 % an action (ResNet50, CIFAR10), +8.9 %"
		if b.env == envBare || b.env == envBareTF {
			b.time, b.action, b.sum, b.saved, b.savedAt = 0.60, 0.61, 1.115, "-40 %", "-39 % an action, +11.5 %"
		}
		out = append(out, b)
	}
	return out
}

// figure8 is the page's part of figures 7 and 8.
func (p *page) figure8(m *measured) {
	all := arranged(m.Outcomes)
	p.section("Figures 7 and 8: eight pairs of a network and a data set", fmt.Sprintf("Adam, and a batch of 64 that "+
		"disdel's workers share, in up to %d turns. Seconds and MB are those of an action: means over the turns with their "+
		"deviation.", m.turns()))
	p.pairs(all)
	p.memory(all)
	p.times(all)
	megabytes := func(of func(outcome) float64) func(outcome) float64 {
		return func(o outcome) float64 { return of(o) / float64(disdel.MB) }
	}
	p.bars(all, "fig7.svg", "Figure 7: memory of an action", "memory (MB)", megabytes(action))
	p.bars(all, "fig7-sum.svg", "Figure 7: memory of all actions at once", "memory (MB)", megabytes(atOnce))
	p.bars(all, "fig8.svg", "Figure 8: time of the eight pairs", "time (s)", wall)
}

// pairs writes every pair's times and peaks.
func (p *page) pairs(all byJob) {
	envs := all.environments()
	rows := [][]string{append([]string{"job"}, envs...)}
	for _, t := range pairs() {
		row := []string{fmt.Sprintf("%s %s, %s", t.id, t.network, t.data)}
		ran := false
		for _, env := range envs {
			runs := all[env][t.id]
			ran = ran || len(runs) > 0
			switch {
			case len(runs) == 0:
				row = append(row, "-")
			case !all.passed(t.id, env):
				row = append(row, "failed")
			default:
				s := spreadOf(valuesOf(runs, wall))
				row = append(row, fmt.Sprintf("%.1f ± %.1f s, %.0f MB", s.Mean, s.Deviation,
					spreadOf(valuesOf(runs, func(o outcome) float64 { return mb(o.Action) })).Mean))
			}
		}
		if ran {
			rows = append(rows, row)
		}
	}
	p.table(rows)
}

// memory is that of an action, and of all at once, over one container's.
func (p *page) memory(all byJob) {
	for _, b := range all.baselines() {
		if b.env == envSlot { // it has the memory of default
			continue
		}
		one, sum := all.over(envEnd, b.env, action, p.seed), all.over(envEnd, b.env, atOnce, p.seed)
		p.ratio("fig7_action_"+b.name, one)
		p.ratio("fig7_sum_"+b.name, sum)
		p.claim(claim{
			"7: memory over " + b.env, b.savedAt + " of all at once",
			fmt.Sprintf("an action %v, all at once %v", one, sum),
			pair(judged(one.Value, b.action), judged(sum.Value, b.sum)), memoryWhy(b),
		})
	}
}

// memoryWhy says what makes the difference in memory.
func memoryWhy(b baseline) string {
	if b.env == envDefaultTF || b.env == envBareTF {
		return "TensorFlow's memory against our engine's: what dividing the job saves is the smaller part"
	}
	return "our own engine; each worker has half of the batch and of the rows, and all of the weights"
}

// times is the time over one container's and over bare metal's.
func (p *page) times(all byJob) {
	for _, b := range all.baselines() {
		v, epoch := all.over(envEnd, b.env, wall, p.seed), all.over(envEpoch, b.env, wall, p.seed)
		p.ratio("fig8_time_"+b.name, v)
		p.ratio("fig8_time_"+b.name+"_epoch", epoch)
		here := fmt.Sprintf("%v; averaging after every epoch %v", v, epoch)
		if b.env == envDefaultTF || b.env == envBareTF {
			warm := all.overOf(envEnd, b.env, wall, warmed, p.seed)
			p.ratio("fig8_time_"+b.name+"_warm", warm)
			here += fmt.Sprintf("; without TensorFlow's import and its first step's tracing %v", warm)
		}
		p.claim(claim{"8: time over " + b.env, b.saved, here, judged(v.Value, b.time), b.why})
	}
}

// warmed is the time of a run without what TensorFlow takes before it computes.
func warmed(o outcome) float64 { return o.Wall - o.Begin }

// bars draws a value of all pairs by environment.
func (p *page) bars(all byJob, file, title, axis string, of func(outcome) float64) {
	var lines []plot.Line
	for _, env := range all.environments() {
		l := plot.Line{Name: env}
		for i, t := range pairs() {
			if all.passed(t.id, env) {
				l.Points = append(l.Points, at(float64(i+1), spreadOf(valuesOf(all[env][t.id], of)).Mean))
			}
		}
		if len(l.Points) > 0 {
			lines = append(lines, l)
		}
	}
	p.chart(file, plot.Chart{Title: title, X: plot.Axis{Name: "job", Whole: true}, Y: plot.Axis{Name: axis}, Lines: lines})
}

// byJob is outcomes by environment and job, those of a job in the order of turns.
type byJob map[string]map[string][]outcome

func arranged(all []outcome) byJob {
	t := byJob{}
	for _, o := range all {
		if t[o.Environment] == nil {
			t[o.Environment] = map[string][]outcome{}
		}
		t[o.Environment][o.Job] = append(t[o.Environment][o.Job], o)
	}
	return t
}

// environments are those that have outcomes, in the order of a turn.
func (t byJob) environments() (out []string) {
	for _, env := range []string{envDefault, envSlot, envBare, envEnd, envEpoch, envPaper, envDefaultTF, envBareTF} {
		if len(t[env]) > 0 {
			out = append(out, env)
		}
	}
	return out
}

// passed tells whether a job ran in environments and passed whenever it did.
func (t byJob) passed(job string, envs ...string) bool {
	return !slices.ContainsFunc(envs, func(env string) bool {
		return len(t[env][job]) == 0 || slices.ContainsFunc(t[env][job], func(o outcome) bool { return !o.Passed })
	})
}

// over is the mean ratio of an environment to another, over the jobs that passed in both.
func (t byJob) over(env, base string, of func(outcome) float64, seed uint64) interval {
	return t.overOf(env, base, of, of, seed)
}

// overOf is the same of another value of the other environment's.
func (t byJob) overOf(env, base string, of, baseOf func(outcome) float64, seed uint64) interval {
	var ours, theirs [][]float64
	for _, job := range sorted(t[env]) {
		if t.passed(job, env, base) {
			ours, theirs = append(ours, valuesOf(t[env][job], of)), append(theirs, valuesOf(t[base][job], baseOf))
		}
	}
	return ratio(ours, theirs, seed)
}

func valuesOf(runs []outcome, of func(outcome) float64) (out []float64) {
	for _, o := range runs {
		out = append(out, of(o))
	}
	return out
}

func wall(o outcome) float64   { return o.Wall }
func action(o outcome) float64 { return float64(o.Action) }
func atOnce(o outcome) float64 { return float64(o.Sum) }

// pair is both answers, or the one that both are.
func pair(a, b string) string {
	if a == b {
		return a
	}
	return a + ", " + b
}

func megabytesOr(v []float64) string {
	if m := spreadOf(v).Mean; m > 0 && !math.IsNaN(m) {
		return fmt.Sprintf("%.1f", m)
	}
	return "-"
}
