package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// sorted is the keys of a map in order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// table8 is what runs came to, by environment, job and turn.
type table8 map[string]map[string][]outcome

func (t table8) add(o outcome) {
	if t[o.Environment] == nil {
		t[o.Environment] = map[string][]outcome{}
	}
	t[o.Environment][o.Job] = append(t[o.Environment][o.Job], o)
}

// values are those of an environment by job and turn, of the jobs that passed in all of several environments.
func (t table8) values(env string, also []string, of func(outcome) float64) (out [][]float64, jobs []string) {
	for _, job := range sorted(t[env]) {
		if !t.passed(job, append([]string{env}, also...)) {
			continue
		}
		var turns []float64
		for _, o := range t[env][job] {
			turns = append(turns, of(o))
		}
		out, jobs = append(out, turns), append(jobs, job)
	}
	return out, jobs
}

func (t table8) passed(job string, envs []string) bool {
	for _, env := range envs {
		if len(t[env][job]) == 0 || slices.ContainsFunc(t[env][job], func(o outcome) bool { return !o.Passed }) {
			return false
		}
	}
	return true
}

// over is the mean ratio of an environment to another, over the jobs that passed in both.
func (t table8) over(env, base string, of func(outcome) float64, seed int64) interval {
	ours, _ := t.values(env, []string{base}, of)
	theirs, _ := t.values(base, []string{env}, of)
	return ratio(ours, theirs, uint64(seed))
}

func wall(o outcome) float64   { return o.Wall }
func action(o outcome) float64 { return float64(o.Action) }
func atOnce(o outcome) float64 { return float64(o.Sum) }

// environments are those that run, in the order of a turn.
func (b *bench) environments() []string {
	out := []string{envDefault, envBare, envEnd, envEpoch, envPaper}
	if b.runs("tensorflow") {
		out = append(out, envDefaultTF, envBareTF)
	}
	return out
}

// figure8 runs the eight pairs in every environment in turns. Figures 7, 8 and 9 are made of the same runs.
func (b *bench) figure8(ctx context.Context) error {
	all := table8{}
	turns, began := 0, disdel.Bytes(0)
	err := b.with(ctx, "figures 7, 8 and 9", bounds{pool: doubledPool}, func(r *rig) (err error) {
		limits := map[string]disdel.Bytes{}
		turns, err = b.turns(func(n int) error {
			for _, t := range b.chosen(pairs()) {
				for _, env := range b.environments() {
					o, err := b.once(ctx, r, env, t, n, limits)
					if err != nil {
						return fmt.Errorf("%s, %s: %w", t.id, env, err)
					}
					all.add(b.page.add(o))
				}
			}
			return nil
		})
		began = r.idle()
		return err
	})
	if err != nil {
		return err
	}
	b.page.section("Figures 7 and 8: eight pairs of a network and a data set", fmt.Sprintf("Adam, a batch of 64 that "+
		"disdel's "+
		"workers share; %d turns. Time in seconds and memory in MB, means over the turns.", turns))
	b.pairsTable(all)
	b.figure7(all)
	b.times8(all)
	b.figure9(all, began)
	return b.bars8(all)
}

// once runs a job in an environment.
func (b *bench) once(ctx context.Context, r *rig, env string, t task, turn int,
	limits map[string]disdel.Bytes,
) (outcome, error) {
	switch env {
	case envDefault:
		if limits[t.id] == 0 {
			found, err := r.found(ctx, t, b.seed)
			if err != nil {
				return outcome{}, err
			}
			limits[t.id] = found
		}
		return r.plain(ctx, env, plainly{
			task: t, limits: disdel.Limits{Memory: limits[t.id], Timeout: steps().Most.Timeout}, seed: b.seed,
		}, turn)
	case envBare:
		return r.bare(ctx, t, turn, b.seed)
	case envDefaultTF:
		return r.tfDefault(ctx, t, turn, b.seed)
	case envBareTF:
		return r.tfBare(ctx, b.python, t, turn, b.seed)
	default:
		return r.submit(ctx, env, t, turn, b.seed)
	}
}

// pairsTable writes every pair's times and peaks.
func (b *bench) pairsTable(all table8) {
	head := append([]string{"job"}, b.environments()...)
	rows := [][]string{head}
	for _, t := range b.chosen(pairs()) {
		row := []string{fmt.Sprintf("%s %s, %s", t.id, t.network, t.data)}
		for _, env := range b.environments() {
			runs := all[env][t.id]
			if !all.passed(t.id, []string{env}) {
				row = append(row, "failed")
				continue
			}
			var s, m []float64
			for _, o := range runs {
				s, m = append(s, o.Wall), append(m, mb(o.Action))
			}
			time := spreadOf(s)
			row = append(row, fmt.Sprintf("%.1f ± %.1f s, %.0f MB", time.Mean, time.Deviation, spreadOf(m).Mean))
		}
		rows = append(rows, row)
	}
	b.page.table(rows)
}

// bases are the baselines that ratios are taken of, and how figures name them.
func (b *bench) bases() [][2]string {
	out := [][2]string{{envDefault, "default"}, {envBare, "baremetal"}}
	if b.runs("tensorflow") {
		out = append(out, [2]string{envDefaultTF, "tf_default"}, [2]string{envBareTF, "tf_baremetal"})
	}
	return out
}

// figure7 is the memory of an action, and of all at once, over one container's.
func (b *bench) figure7(all table8) {
	printed := map[string][2]string{
		"default": {"-44 % an action, +8.9 % at once (ResNet50, CIFAR10)", "0.56 1.089"}, "baremetal": {
			"-39 %, +11.5 %",
			"0.61 1.115",
		},
	}
	for _, base := range b.bases() {
		one, sum := all.over(envEnd, base[0], action, b.seed), all.over(envEnd, base[0], atOnce, b.seed)
		b.page.ratio("fig7_action_"+base[1], one)
		b.page.ratio("fig7_sum_"+base[1], sum)
		p := printed[plainName(base[1])]
		var most, mostSum float64
		fmt.Sscan(p[1], &most, &mostSum) //nolint:errcheck // written above
		b.page.claims("7: memory over "+base[0], p[0], fmt.Sprintf("%v an action, %v at once", one, sum),
			pair(judged(one.Value, most), judged(sum.Value, mostSum)))
	}
}

// plainName is a baseline's name without its engine's.
func plainName(name string) string {
	if len(name) > 3 && name[:3] == "tf_" {
		return name[3:]
	}
	return name
}

// pair is both answers, or the one that both are.
func pair(a, b string) string {
	if a == b {
		return a
	}
	return a + ", " + b
}

// times8 is the time over one container's and over bare metal's.
func (b *bench) times8(all table8) {
	printed := map[string]float64{"default": 0.54, "baremetal": 0.60}
	for _, base := range b.bases() {
		for _, env := range []string{envEnd, envEpoch} {
			v := all.over(env, base[0], wall, b.seed)
			name := "fig8_time_" + base[1]
			if env == envEpoch {
				name += "_epoch"
			}
			b.page.ratio(name, v)
			if env == envEnd {
				most := printed[plainName(base[1])]
				b.page.claims("8: time over "+base[0], fmt.Sprintf("-%.0f %%", 100*(1-most)), v.String(), judged(v.Value, most))
			}
		}
	}
}

// figure9 is J1's memory at submission, when its data is prepared and after it was fitted.
func (b *bench) figure9(all table8, idle disdel.Bytes) {
	rows := [][]string{{"environment", "before the job", "prepared", "after fitting (peak)"}}
	for _, env := range b.environments() {
		var peak, prepared, started []float64
		for _, o := range all[env]["J1"] {
			peak, prepared, started = append(peak, mb(o.Action)), append(prepared, mb(o.Prepared)), append(started,
				mb(o.Started))
		}
		row := []string{env, megabytesOr(started), megabytesOr(prepared), megabytesOr(peak)}
		if env != envBare && env != envBareTF && env != envDefaultTF {
			row[1] = megabytes(idle)
		}
		rows = append(rows, row)
	}
	b.page.section("Figure 9: memory of InceptionV3 on MNIST in phases", "MB of one action or process. Before the job "+
		"a container "+
		"of disdel has a runtime that serves; the paper's has TensorFlow, about 280 MB.")
	b.page.table(rows)
	b.page.figure("fig9_started_mb", mb(idle), "MB")
	b.page.claims("9: memory before the job", "about 280 MB", fmt.Sprintf("%.1f MB", mb(idle)), judged(mb(idle), 280))
}

func megabytesOr(v []float64) string {
	if m := spreadOf(v).Mean; m > 0 {
		return fmt.Sprintf("%.1f", m)
	}
	return "-"
}

// bars8 draws the ratios of time by job.
func (b *bench) bars8(all table8) error {
	var lines []plot.Line
	for _, env := range b.environments() {
		l := plot.Line{Name: env}
		for i, t := range b.chosen(pairs()) {
			var v []float64
			for _, o := range all[env][t.id] {
				v = append(v, o.Wall)
			}
			if all.passed(t.id, []string{env}) {
				l.Points = append(l.Points, at(float64(i+1), spreadOf(v).Mean))
			}
		}
		if len(l.Points) > 0 {
			lines = append(lines, l)
		}
	}
	return b.chart("fig8.svg", plot.Chart{
		Title: "Figure 8: time of the eight pairs", X: plot.Axis{Name: "job", Whole: true}, Y: plot.Axis{Name: "time (s)"},
		Lines: lines,
	})
}

// idle is what a container holds that serves and has done nothing: the least that the pool held with containers in it,
// by container.
func (r *rig) idle() disdel.Bytes {
	least := disdel.Bytes(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.samples {
		n := s.Running + s.Ready + s.Paused
		if n == 0 || s.Resident == 0 {
			continue
		}
		if each := s.Resident / disdel.Bytes(n); least == 0 || each < least {
			least = each
		}
	}
	return least
}
