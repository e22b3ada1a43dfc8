package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/disdel/disdel"
)

func mb(b disdel.Bytes) float64 { return float64(b) / float64(disdel.MB) }

// memoryPlot is the memory of the train actions over time, under their limits and on their estimate.
func (r *Report) memoryPlot() *figure {
	c, end := r.clock()
	p := &plot{title: "Memory of the train actions", xName: c.name, yName: "MB", x1: end}
	lines, left := r.memoryLines(c)
	if len(lines) == 0 || end == 0 {
		return nil
	}
	p.series = lines
	limits, top := r.limitLines(c)
	p.series = append(p.series, limits...)
	train, _ := r.record.Plan.Action(disdel.TaskTrain)
	top = max(top, p.estimate(train.Estimate))
	var peak disdel.Bytes
	for i := range r.Actions {
		if r.Actions[i].Task == disdel.TaskTrain {
			peak = max(peak, r.Actions[i].Peak)
		}
	}
	p.y1 = 1.08 * max(top, mb(peak))
	p.alt = fmt.Sprintf("The highest peak is %v", peak)
	note := "Lines are heartbeats, dots the measured peak at the end of an activation."
	if left > 0 {
		note += fmt.Sprintf(" The %d workers with the highest peaks are shown, %d are not.", mostLines, left)
	}
	return p.figure(note)
}

// estimate adds the interval of an estimate and returns its top.
func (p *plot) estimate(e disdel.Estimate) float64 {
	expected := cmp.Or(e.Likely, e.Total)
	if expected <= 0 {
		return 0
	}
	if e.High > e.Low && e.Low > 0 {
		p.bands = append(p.bands, band{fmt.Sprintf("estimate, nine of ten: %d to %d MB", e.Low.MB(), e.High.MB()), "interval", mb(e.Low), mb(e.High)})
	}
	p.series = append(p.series, series{
		name: fmt.Sprintf("estimate: %d MB", expected.MB()), class: "expected",
		pieces: [][]point{{{x: p.x0, y: mb(expected)}, {x: p.x1, y: mb(expected)}}},
	})
	return mb(max(expected, e.High))
}

// memoryLines has a line for each worker; left is how many workers there was no room for.
func (r *Report) memoryLines(c clock) (out []series, left int) {
	var workers []Action
	for _, a := range r.Actions {
		if a.Task == disdel.TaskTrain && a.Peak > 0 {
			workers = append(workers, a)
		}
	}
	if left = len(workers) - mostLines; left > 0 {
		slices.SortStableFunc(workers, func(a, b Action) int { return cmp.Compare(b.Peak, a.Peak) })
		workers = workers[:mostLines]
	}
	for i, w := range workers {
		s := series{name: fmt.Sprintf("worker %d", w.Member), class: fmt.Sprintf("s%d", i)}
		for k := range r.record.Activations {
			if a := &r.record.Activations[k]; a.Task == disdel.TaskTrain && a.Member == w.Member && !a.Start.IsZero() {
				s.addMemory(a, c, r.endOf(a))
			}
		}
		if len(s.pieces) > 0 {
			each := max(2, mostPoints*4/len(s.pieces))
			for k := range s.pieces {
				s.pieces[k] = thin(s.pieces[k], each)
			}
		}
		s.marks = thin(s.marks, mostPoints)
		out = append(out, s)
	}
	return out, max(0, left)
}

func (s *series) addMemory(a *disdel.Activation, c clock, end time.Time) {
	var line []point
	for _, b := range a.Beats {
		at := a.Start.Add(time.Duration(b.At - a.WaitTime))
		line = append(line, point{x: c.at(at), y: mb(b.Resident)})
	}
	if len(line) > 1 {
		s.pieces = append(s.pieces, line)
	}
	if a.Peak > 0 {
		s.marks = append(s.marks, point{c.at(end), mb(a.Peak), fmt.Sprintf("%s, attempt %d: peak %v of %v, %s",
			place(&a.Invocation), max(1, a.Attempt), a.Peak, a.Limits.Memory, words(a.Outcome.String()))})
	}
}

// limitLines has a line for every limit that the train actions had, from its first to its last use.
func (r *Report) limitLines(c clock) (out []series, top float64) {
	type use struct{ from, to float64 }
	uses := map[disdel.Bytes]use{}
	for i := range r.record.Activations {
		a := &r.record.Activations[i]
		if a.Task != disdel.TaskTrain || a.Start.IsZero() || a.Limits.Memory <= 0 {
			continue
		}
		from, to := c.at(a.Start), c.at(r.endOf(a))
		if u, ok := uses[a.Limits.Memory]; ok {
			from, to = min(from, u.from), max(to, u.to)
		}
		uses[a.Limits.Memory] = use{from, to}
	}
	for limit, u := range uses {
		out = append(out, series{
			name: fmt.Sprintf("limit: %d MB", limit.MB()), class: "limit",
			pieces: [][]point{{{x: u.from, y: mb(limit)}, {x: u.to, y: mb(limit)}}},
		})
		top = max(top, mb(limit))
	}
	slices.SortFunc(out, func(a, b series) int { return cmp.Compare(a.pieces[0][0].y, b.pieces[0][0].y) })
	return out, top
}

// failurePlot is the memory of the activation that the job ended for, against its limit.
func (r *Report) failurePlot() *figure {
	f := r.Failure
	if f == nil || f.activation == nil || len(f.Beats) < 2 {
		return nil
	}
	a := f.activation
	p := &plot{
		title: "Memory of the " + place(&a.Invocation), xName: "seconds since its invocation", yName: "MB",
		x1: time.Duration(max(ended(a), f.LastBeat.At)).Seconds(),
	}
	resident, peaks := series{name: "resident", class: "s0"}, series{name: "peak so far", class: "s1"}
	var low, high []point
	for _, b := range thin(f.Beats, mostPoints) {
		t := time.Duration(b.At).Seconds()
		low = append(low, point{t, mb(b.Resident), fmt.Sprintf("at %s: %s", span(b.At), beatText(&b))})
		high = append(high, point{x: t, y: mb(b.Peak)})
	}
	resident.pieces, peaks.pieces = [][]point{low}, [][]point{high}
	if len(low) <= 60 {
		resident.marks = low
	}
	p.series = []series{resident, peaks}
	if f.Limit > 0 {
		p.series = append(p.series, series{
			name: fmt.Sprintf("limit: %d MB", f.Limit.MB()), class: "limit",
			pieces: [][]point{{{x: 0, y: mb(f.Limit)}, {x: p.x1, y: mb(f.Limit)}}},
		})
	}
	top := mb(max(f.Limit, f.Peak))
	plan := r.record.PlanOf(&a.Invocation)
	if planned, ok := plan.Action(a.Task); ok {
		top = math.Max(top, p.estimate(planned.Estimate))
	}
	p.y1 = 1.08 * top
	p.alt = fmt.Sprintf("It ended as %s at %s with a peak of %v of %v", words(f.Outcome.String()), span(ended(a)), f.Peak, f.Limit)
	return p.figure(fmt.Sprintf("The last heartbeat came %s before the end.", span(f.BeatAge)))
}
