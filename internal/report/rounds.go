package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// stages are those of a job that did not stay as it was planned, each with what began it.
func (r *Report) stages() []string {
	var out []string
	for i := range r.record.Stages {
		out = append(out, r.record.Stages[i].Text())
	}
	refused := r.notGranted()
	if len(out) < 2 && len(refused) == 0 {
		return nil
	}
	return append(out, refused...)
}

// notGranted says which numbers of workers a policy wanted without room in the pool. Repeated wishes are one line, with
// the last shortage.
func (r *Report) notGranted() (out []string) {
	type refusal struct {
		first, last int
		disdel.Refusal
	}
	var all []refusal
	for _, d := range r.record.Decisions {
		for _, one := range d.NotGranted {
			i := slices.IndexFunc(all, func(a refusal) bool { return a.Workers == one.Workers && a.last+1 >= d.Round })
			if i < 0 {
				all = append(all, refusal{d.Round, d.Round, one})
				continue
			}
			all[i].last, all[i].Refusal = d.Round, one
		}
	}
	for _, a := range all {
		rounds := fmt.Sprintf("round %d", a.first+1)
		if a.last > a.first {
			rounds = fmt.Sprintf("rounds %d to %d", a.first+1, a.last+1)
		}
		out = append(out, rounds+": "+a.Text())
	}
	return out
}

// steps says where the time of steps went, for jobs whose workers exchange updates after each step.
func (r *Report) steps() []string {
	all := disdel.StepCourse{}
	rounds := 0
	for i := range r.Rounds {
		if c := r.Rounds[i].Steps; c != nil && len(c.Stretches) > 0 {
			rounds++
			all.Median += c.Median
			all.High = max(all.High, c.High)
			all.Stretches = append(all.Stretches, c.Stretches...)
		}
	}
	if rounds == 0 {
		return nil
	}
	times, bytes := all.Mean()
	var parts []string
	for k, part := range times.Parts() {
		parts = append(parts, fmt.Sprintf("%s %.2f", disdel.StepParts[k], part))
	}
	return []string{
		fmt.Sprintf("a step takes %.2f ms in the middle of them, 19 of 20 less than %.2f", all.Median/float64(rounds),
			all.High),
		fmt.Sprintf("in the mean %.2f ms: %s", times.Total(), strings.Join(parts, ", ")),
		fmt.Sprintf("%.0f %% of it is exchange; a worker sends %v a step", 100*exchanged(times), disdel.Bytes(bytes)),
	}
}

// exchanged is the share of a step's time outside the worker's own computing.
func exchanged(t disdel.StepTimes) float64 {
	if t.Total() == 0 {
		return 0
	}
	return 1 - (t.Fetch+t.Compute)/t.Total()
}

// stepPlot is the parts of a step's time, by the job's steps.
func (r *Report) stepPlot() *Figure {
	series := make([]plot.Series, len(disdel.StepParts))
	lines := make([][]plot.Dot, len(disdel.StepParts))
	before, top, last := 0, 0.0, 0
	for i := range r.Rounds {
		c := r.Rounds[i].Steps
		if c == nil {
			continue
		}
		for _, s := range c.Stretches {
			last = before + s.Last
			for k, part := range s.Parts() {
				top = max(top, part)
				lines[k] = append(lines[k], plot.Dot{
					X: float64(last), Y: part, Note: fmt.Sprintf("%s at step %d: %.3f ms", disdel.StepParts[k], last, part),
				})
			}
		}
		before = last
	}
	if len(lines[0]) < 2 || top == 0 {
		return nil
	}
	for k, name := range disdel.StepParts {
		series[k] = plot.Series{Name: name, Class: fmt.Sprintf("s%d", k), Pieces: [][]plot.Dot{thin(lines[k], mostPoints)}}
	}
	return figureOf(&plot.Lines{
		Title: "Time of a step", XName: "step", YName: "ms", From: lines[0][0].X, To: float64(last), Top: 1.08 * top,
		Whole: true, Series: series, Alt: fmt.Sprintf("Parts of the time of %d steps, up to %.2f ms", last, top),
	}, "in the mean of the workers")
}
