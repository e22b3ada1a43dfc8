package main

import (
	"context"
	"fmt"
	"time"

	"github.com/disdel/disdel/internal/plot"
)

// platformLimits are the default times of platforms that Fig. 1 has, from the shortest on.
var platformLimits = []struct {
	name string
	most time.Duration
}{
	{"OpenWhisk", 300 * time.Second},
	{"Google", 540 * time.Second},
	{"Azure", 600 * time.Second},
	{"AWS", 900 * time.Second},
}

// printed1 is what the paper says of two epochs of batch 64 in one container.
const printed1 = 282 * time.Second

// figure1 trains MobileNet in one container on a platform with the longest of the limits, and by disdel on one with the
// shortest. There are as many rows as have two epochs of batch 64 take the time that the paper's took.
func (b *bench) figure1(ctx context.Context, m *measured) error {
	like, err := b.asLong(ctx, 2, b.size.time(printed1))
	if err != nil {
		return err
	}
	longest := b.size.time(platformLimits[len(platformLimits)-1].most)
	err = b.with(ctx, bounds{pool: doubledPool, timeout: longest}, func(r *testbed) error {
		return b.motivations(ctx, r, m, like, envMax)
	})
	if err != nil {
		return err
	}
	return b.with(ctx, bounds{pool: doubledPool, timeout: b.size.time(platformLimits[0].most)}, func(r *testbed) error {
		return b.motivations(ctx, r, m, like, envEpoch)
	})
}

// motivations are the jobs of Fig. 1 in an environment.
func (b *bench) motivations(ctx context.Context, r *testbed, m *measured, like task, env string) error {
	for _, batch := range []int{64, 16} {
		for _, epochs := range []int{1, 2, 4, 8} {
			t := mobile(batch, epochs)
			t.rows = like.rows
			if err := b.each(ctx, r, m, t, 0, []string{env}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *page) figure1(m *measured) {
	size := m.Sittings[0].Scale
	p.section("Figure 1: platforms' time limits", "MobileNetV1 runs in one container, and by disdel under the shortest "+
		"limit, 300 s scaled. disdel's actions store their state before the limit, and the next ones continue. The number of "+
		"rows is chosen so that two epochs of batch 64 take the paper's 282 s, scaled. Accuracy is that of the training rows "+
		"in the last epoch.")
	head := []string{"batch", "epochs", "one container", "accuracy"}
	for _, l := range platformLimits {
		head = append(head, fmt.Sprintf("%s, %.0f s", l.name, l.most.Seconds()))
	}
	rows := [][]string{append(head, "disdel under 300 s", "accuracy", "activations that failed")}
	one, ours := m.of(envMax), m.of(envEpoch)
	killed, failed := 0, 0
	for i := range min(len(one), len(ours)) {
		a, o := one[i], ours[i]
		row := []string{fmt.Sprint(a.Batch), fmt.Sprint(a.Epochs), timeOr(a), lastOf(a)}
		for k, l := range platformLimits {
			ended := a.Passed && a.Wall <= size.time(l.most).Seconds()
			if row = append(row, endedOr(ended)); k == 0 && !ended {
				killed++
			}
		}
		if failed += o.Failed; !o.Passed {
			failed++
		}
		rows = append(rows, append(row, timeOr(o), lastOf(o), fmt.Sprint(o.Failed)))
	}
	p.table(rows)
	p.figure("fig1_default_killed", float64(killed)/float64(max(1, len(one))), "x")
	p.figure("fig1_disdel_failed", float64(failed), "activations and jobs")
	p.claim(claim{
		"1: jobs within 300 s", "batch 64 for two epochs passes, for more is killed; batch 16 is killed in its first",
		fmt.Sprintf("one container: %d of %d jobs killed; disdel: %d activations failed", killed, len(one), failed),
		judged(float64(failed), 0), "one container of our own engine, which loses less with small batches than TensorFlow",
	})
	p.charts1(append(one, ours...), size)
}

// charts1 draws time and accuracy by epochs.
func (p *page) charts1(all []outcome, size scale) {
	times, shares := map[string]*plot.Line{}, map[string]*plot.Line{}
	for _, o := range all {
		if name := fmt.Sprintf("%s, batch %d", o.Environment, o.Batch); o.Passed {
			add(times, name, at(float64(o.Epochs), o.Wall))
			if len(o.Seen) > 0 {
				add(shares, name, at(float64(o.Epochs), o.Seen[len(o.Seen)-1]))
			}
		}
	}
	var rules []plot.Rule
	for _, l := range platformLimits {
		name := fmt.Sprintf("%s %.0f s", l.name, l.most.Seconds())
		rules = append(rules, plot.Rule{Y: size.time(l.most).Seconds(), Name: name})
	}
	epochs := plot.Axis{Name: "epochs", Whole: true}
	p.chart("fig1.svg", plot.Chart{
		Title: "Figure 1: time by epochs, and platforms' limits", X: epochs, Y: plot.Axis{Name: "time (s)"},
		Lines: drawn(times), Rules: rules,
	})
	p.chart("fig1-accuracy.svg", plot.Chart{
		Title: "Figure 1: accuracy by epochs", X: epochs, Y: plot.Axis{Name: "share of training rows"}, Lines: drawn(shares),
	})
}

// add puts a point at the end of the line of a name.
func add(lines map[string]*plot.Line, name string, p plot.Point) {
	if lines[name] == nil {
		lines[name] = &plot.Line{Name: name}
	}
	lines[name].Points = append(lines[name].Points, p)
}

// drawn is the lines by name.
func drawn(lines map[string]*plot.Line) (out []plot.Line) {
	for _, name := range sorted(lines) {
		out = append(out, *lines[name])
	}
	return out
}

// timeOr is how long a run took, or that it did not come to its end.
func timeOr(o outcome) string {
	if !o.Passed {
		return "killed"
	}
	return fmt.Sprintf("%.1f s", o.Wall)
}

func endedOr(ended bool) string {
	if ended {
		return "ends"
	}
	return "killed"
}

// lastOf is the accuracy of the last epoch.
func lastOf(o outcome) string {
	if len(o.Seen) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", o.Seen[len(o.Seen)-1])
}
