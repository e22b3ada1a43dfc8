package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// Action sums the activations of one worker, cluster or task.
type Action struct {
	Name     string       `json:"name"`
	Task     disdel.Task  `json:"task"`
	Level    int          `json:"level"`
	Member   int          `json:"member"`
	Runs     int          `json:"runs"`
	Failed   int          `json:"failed"`
	Cold     int          `json:"cold"`
	Estimate disdel.Bytes `json:"estimateBytes"` // expected peak of the activation that had the highest
	Peak     disdel.Bytes `json:"peakBytes"`     // highest; 0: unknown
	Limit    disdel.Bytes `json:"limitBytes"`    // of the activation that had the highest peak
	// of a GPU: the most that it had of it, and the share that it might have had; 0: nothing
	DevicePeak  disdel.Bytes `json:"devicePeakBytes,omitempty"`
	DeviceLimit disdel.Bytes `json:"deviceLimitBytes,omitempty"`
	// of the estimate of the successful activation with the highest peak
	ErrorPct *float64       `json:"errorPct,omitempty"`
	Timeout  disdel.Millis  `json:"timeoutMs"`
	Longest  disdel.Millis  `json:"longestMs"`
	Total    disdel.Millis  `json:"totalMs"`
	CostGBs  float64        `json:"costGBs"` // of its own activations, at their limits
	Outcome  disdel.Outcome `json:"outcome"` // of the newest activation

	needed disdel.Bytes // highest peak of an activation that succeeded: that of one cut short says little
}

// place names the work of an invocation: "train action of worker 2 in round 3". Rounds count from 1.
func place(i *disdel.Invocation) string {
	switch i.Task {
	case disdel.TaskTrain:
		return fmt.Sprintf("train action of worker %d in round %d", i.Member, i.Round+1)
	case disdel.TaskAggregate:
		return fmt.Sprintf("aggregate action %d of level %d in round %d", i.Member, i.Level, i.Round+1)
	default:
		return fmt.Sprintf("%s action in round %d", i.Task, i.Round+1)
	}
}

// ActionsOf sums the activations of each worker, cluster and task, in the order of a round. Every table of actions is
// made of it, so that all of them show the same estimates.
func ActionsOf(list []disdel.Activation) []Action {
	out := []Action{}
	for _, attempts := range disdel.BySlot(list) {
		slot := attempts[0].Slot()
		u := Action{Name: slot.Name(), Task: slot.Task, Level: slot.Level, Member: slot.Member}
		for _, a := range attempts {
			u.add(a)
		}
		out = append(out, u)
	}
	return out
}

func (u *Action) add(a *disdel.Activation) {
	u.Runs++
	if a.Outcome.Failed() {
		u.Failed++
	}
	if a.Cold {
		u.Cold++
	}
	if a.Peak >= u.Peak {
		u.Estimate, u.Peak, u.Limit = a.Expected(), a.Peak, a.Limits.Memory
	}
	u.DevicePeak, u.DeviceLimit = max(u.DevicePeak, a.DevicePeak), max(u.DeviceLimit, a.Limits.Device)
	u.Timeout, u.Outcome = a.Limits.Timeout, a.Outcome
	u.Longest, u.Total = max(u.Longest, a.Duration), u.Total+a.Duration
	u.CostGBs += a.HeldGBs()
	if a.Outcome == disdel.OutcomeSuccess && a.Peak >= u.needed {
		u.needed = a.Peak
		u.ErrorPct = errorPct(float64(a.Expected()), float64(a.Peak))
	}
}

func mb(b disdel.Bytes) float64 { return float64(b) / float64(disdel.MB) }

// actionMemoryPlot is the memory of every action: its highest peak, its limit, and the interval of its task's estimate.
func (r *Report) actionMemoryPlot() *Figure {
	g := &plot.Gantt{Title: "Memory of every action", XName: "MB"}
	rows := r.Actions[:min(len(r.Actions), mostRows)]
	var fullest Action
	for i, a := range rows {
		g.Rows = append(g.Rows, a.Name)
		g.Right = max(g.Right, 1.05*mb(max(a.Peak, a.Limit)))
		g.Bars = append(g.Bars, plot.Bar{Row: i, Parts: r.memoryParts(a)})
		if a.Limit > 0 && (fullest.Limit == 0 || mb(a.Peak)/mb(a.Limit) > mb(fullest.Peak)/mb(fullest.Limit)) {
			fullest = a
		}
	}
	if fullest.Peak == 0 {
		return nil
	}
	g.Alt = fmt.Sprintf("%s came nearest to its limit: %v of %v; the table of actions has the same figures",
		fullest.Name, fullest.Peak, fullest.Limit)
	note := fmt.Sprintf("%s came nearest to its limit: %v of %v.", fullest.Name, fullest.Peak, fullest.Limit)
	if n := len(r.Actions) - len(rows); n > 0 {
		note += fmt.Sprintf(" The first %d actions are shown, %d are not.", mostRows, n)
	}
	return &Figure{Title: g.Title, Note: note, SVG: trusted(g.SVG()), Legend: []plot.Key{
		{Name: "highest peak", Class: "run", Shape: "box"},
		{Name: "estimate, nine of ten", Class: "interval", Shape: "box"},
		{Name: "limit", Class: "cap", Shape: "box"},
	}}
}

// memoryParts are the peak of an action, the interval of its estimate and its limit, as parts of one bar.
func (r *Report) memoryParts(a Action) []plot.Part {
	parts := []plot.Part{{Class: "run", Note: fmt.Sprintf("%s: highest peak %v", a.Name, a.Peak), To: mb(a.Peak)}}
	if planned, _ := r.record.Plan.Action(a.Task); planned.Estimate.High > planned.Estimate.Low {
		e := planned.Estimate
		parts = append(parts, plot.Part{
			Class: "interval", Note: fmt.Sprintf("%s: estimate %v to %v", a.Name, e.Low, e.High),
			From: mb(e.Low), To: mb(e.High),
		})
	}
	limit := mb(a.Limit)
	return append(parts, plot.Part{
		Class: "cap", Note: fmt.Sprintf("%s: limit %v", a.Name, a.Limit), From: 0.995 * limit, To: limit,
	})
}

// memoryPlot is the memory of the train actions over time, with limits and estimate.
func (r *Report) memoryPlot() *Figure {
	c, end := r.clock()
	p := &plot.Lines{Title: "Memory of the train actions", XName: c.name, YName: "MB", To: end}
	lines, remaining := r.memoryLines(c)
	if len(lines) == 0 || end == 0 {
		return nil
	}
	p.Series = lines
	limits, top := r.limitLines(c)
	p.Series = append(p.Series, limits...)
	train, _ := r.record.Plan.Action(disdel.TaskTrain)
	top = max(top, addEstimate(p, train.Estimate))
	var peak disdel.Bytes
	for i := range r.Actions {
		if r.Actions[i].Task == disdel.TaskTrain {
			peak = max(peak, r.Actions[i].Peak)
		}
	}
	p.Top = 1.08 * max(top, mb(peak))
	p.Alt = fmt.Sprintf("The highest peak is %v", peak)
	note := "Lines are heartbeats, dots the measured peak at the end of an activation."
	if remaining > 0 {
		note += fmt.Sprintf(" The %d workers with the highest peaks are shown, %d are not.", mostLines, remaining)
	}
	return figureOf(p, note)
}

// addEstimate adds the interval of an estimate and returns its top.
func addEstimate(p *plot.Lines, e disdel.Estimate) float64 {
	expected := e.Expected()
	if expected <= 0 {
		return 0
	}
	if e.High > e.Low && e.Low > 0 {
		p.Bands = append(p.Bands, plot.Band{
			Name: fmt.Sprintf("estimate, nine of ten: %d to %d MB", e.Low.MB(), e.High.MB()), Class: "interval", Low: mb(e.Low),
			High: mb(e.High),
		})
	}
	p.Series = append(p.Series, plot.Series{
		Name: fmt.Sprintf("estimate: %d MB", expected.MB()), Class: "expected",
		Pieces: [][]plot.Dot{{{X: p.From, Y: mb(expected)}, {X: p.To, Y: mb(expected)}}},
	})
	return mb(max(expected, e.High))
}

// memoryLines is a line for each worker. remaining is the number of workers without a line.
func (r *Report) memoryLines(c clock) (out []plot.Series, remaining int) {
	var workers []Action
	for _, a := range r.Actions {
		if a.Task == disdel.TaskTrain && a.Peak > 0 {
			workers = append(workers, a)
		}
	}
	if remaining = len(workers) - mostLines; remaining > 0 {
		slices.SortStableFunc(workers, func(a, b Action) int { return cmp.Compare(b.Peak, a.Peak) })
		workers = workers[:mostLines]
	}
	for i, w := range workers {
		s := plot.Series{Name: fmt.Sprintf("worker %d", w.Member), Class: fmt.Sprintf("s%d", i)}
		for k := range r.record.Activations {
			if a := &r.record.Activations[k]; a.Task == disdel.TaskTrain && a.Member == w.Member && !a.Start.IsZero() {
				addMemory(&s, a, c, r.endOf(a))
			}
		}
		if len(s.Pieces) > 0 {
			each := max(2, mostPoints*4/len(s.Pieces))
			for k := range s.Pieces {
				s.Pieces[k] = thin(s.Pieces[k], each)
			}
		}
		s.Dots = thin(s.Dots, mostPoints)
		out = append(out, s)
	}
	return out, max(0, remaining)
}

func addMemory(s *plot.Series, a *disdel.Activation, c clock, end time.Time) {
	var line []plot.Dot
	for _, b := range a.Beats {
		at := a.Start.Add(time.Duration(b.At - a.WaitTime))
		line = append(line, plot.Dot{X: c.at(at), Y: mb(b.Resident)})
	}
	if len(line) > 1 {
		s.Pieces = append(s.Pieces, line)
	}
	if a.Peak > 0 {
		s.Dots = append(s.Dots, plot.Dot{X: c.at(end), Y: mb(a.Peak), Note: fmt.Sprintf("%s, attempt %d: peak %v of %v, %s",
			place(&a.Invocation), max(1, a.Attempt), a.Peak, a.Limits.Memory, words(a.Outcome.String()))})
	}
}

// limitLines is a line for every limit of the train actions, from its first to its last use.
func (r *Report) limitLines(c clock) (out []plot.Series, top float64) {
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
		out = append(out, plot.Series{
			Name: fmt.Sprintf("limit: %d MB", limit.MB()), Class: "limit",
			Pieces: [][]plot.Dot{{{X: u.from, Y: mb(limit)}, {X: u.to, Y: mb(limit)}}},
		})
		top = max(top, mb(limit))
	}
	slices.SortFunc(out, func(a, b plot.Series) int { return cmp.Compare(a.Pieces[0][0].Y, b.Pieces[0][0].Y) })
	return out, top
}

// failurePlot is the memory of the activation that ended the job, with its limit.
func (r *Report) failurePlot() *Figure {
	f := r.Failure
	if f == nil || f.activation == nil || len(f.Beats) < 2 {
		return nil
	}
	a := f.activation
	p := &plot.Lines{
		Title: "Memory of the " + place(&a.Invocation), XName: "seconds since its invocation", YName: "MB",
		To: time.Duration(max(ended(a), f.LastBeat.At)).Seconds(),
	}
	resident, peaks := plot.Series{Name: "resident", Class: "s0"}, plot.Series{Name: "peak so far", Class: "s1"}
	var low, high []plot.Dot
	for _, b := range thin(f.Beats, mostPoints) {
		t := time.Duration(b.At).Seconds()
		low = append(low, plot.Dot{X: t, Y: mb(b.Resident), Note: fmt.Sprintf("at %s: %s", span(b.At), beatText(&b))})
		high = append(high, plot.Dot{X: t, Y: mb(b.Peak)})
	}
	resident.Pieces, peaks.Pieces = [][]plot.Dot{low}, [][]plot.Dot{high}
	if len(low) <= 60 {
		resident.Dots = low
	}
	p.Series = []plot.Series{resident, peaks}
	if f.Limit > 0 {
		p.Series = append(p.Series, plot.Series{
			Name: fmt.Sprintf("limit: %d MB", f.Limit.MB()), Class: "limit",
			Pieces: [][]plot.Dot{{{X: 0, Y: mb(f.Limit)}, {X: p.To, Y: mb(f.Limit)}}},
		})
	}
	top := mb(max(f.Limit, f.Peak))
	plan := r.record.PlanOf(&a.Invocation)
	if planned, ok := plan.Action(a.Task); ok {
		top = math.Max(top, addEstimate(p, planned.Estimate))
	}
	p.Top = 1.08 * top
	p.Alt = fmt.Sprintf("It ended as %s at %s with a peak of %v of %v", words(f.Outcome.String()), span(ended(a)), f.Peak,
		f.Limit)
	return figureOf(p, fmt.Sprintf("The last heartbeat came %s before the end.", span(f.BeatAge)))
}

// GPUText is the GPU memory that a job's train actions used, empty if none.
func GPUText(r *disdel.Record) string {
	var took, share disdel.Bytes
	for i := range r.Activations {
		if a := &r.Activations[i]; a.Task == disdel.TaskTrain {
			took, share = max(took, a.DevicePeak), max(share, a.Limits.Device)
		}
	}
	plan, _ := r.Plan.Action(disdel.TaskTrain)
	if share = max(share, plan.Limits.Device); share == 0 {
		return ""
	}
	text := fmt.Sprintf("a train action has %v of a GPU", share)
	if deviceMemory := r.Plan.Platform.MaxDevice; deviceMemory > 0 {
		text += fmt.Sprintf(" of %v", deviceMemory)
	}
	if took > 0 {
		text += fmt.Sprintf(", and took %v at most", took)
	}
	return text
}

// gpus is GPUText of the report's job, as a list.
func (r *Report) gpus() []string {
	if text := GPUText(r.record); text != "" {
		return []string{text}
	}
	return nil
}

// layers says which layers each stage of the network has and how much memory it took; nil for a job without stages.
func (r *Report) layers() []string {
	var out []string
	n := len(r.record.Plan.Stages)
	uses := r.stageUses()
	for k, s := range r.record.Plan.Stages {
		parts := []string{fmt.Sprintf("stage %d: layers %s to %s", k+1, s.First, s.Last)}
		if s.Weights > 0 {
			parts = append(parts, fmt.Sprintf("weights %v", s.Weights))
		}
		parts = append(parts, fmt.Sprintf("estimate %v", s.Memory))
		parts = append(parts, r.measured(k, n)...)
		if u := uses[k]; u.wait > 0 {
			parts = append(parts, fmt.Sprintf("waited %s for other stages, computed %s", span(u.wait), span(u.compute)))
		}
		out = append(out, strings.Join(parts, ", "))
	}
	return out
}

// stageUse is what the actions of one stage of the network used.
type stageUse struct {
	estimate, limit, peak disdel.Bytes
	// Times of all activations. wait is for other stages, compute without it.
	queue, start, compute, wait, push, all disdel.Millis
}

// stageUses sums the train activations of each stage; nil for a job without stages.
func (r *Report) stageUses() []stageUse {
	stages := r.record.Plan.Stages
	out := make([]stageUse, len(stages))
	for k := range stages {
		out[k].estimate = stages[k].Memory
	}
	for i := range r.record.Activations {
		a := &r.record.Activations[i]
		if a.Task != disdel.TaskTrain || len(stages) == 0 || a.Member < 0 {
			continue
		}
		u := &out[a.Member%len(stages)]
		u.limit, u.peak = max(u.limit, a.Limits.Memory), max(u.peak, a.Peak)
		u.queue, u.all = u.queue+a.WaitTime, u.all+a.Duration
		u.start += a.InitTime + a.Phases["load"] + a.Phases["fetch"]
		u.wait, u.push = u.wait+a.Phases["wait"], u.push+a.Phases["push"]
		u.compute += max(0, a.Phases["compute"]-a.Phases["wait"])
	}
	return out
}

// StageFigures are the memory and the time of each stage of the network.
func (v view) StageFigures() []Figure {
	memory := &plot.Gantt{Title: "Memory of every stage", XName: "MB"}
	times := &plot.Gantt{Title: "Time of every stage, all activations", XName: "seconds"}
	for k, u := range v.stageUses() {
		name := fmt.Sprintf("stage %d", k+1)
		memory.Rows, times.Rows = append(memory.Rows, name), append(times.Rows, name)
		memory.Right = max(memory.Right, 1.05*mb(max(u.limit, u.peak, u.estimate)))
		memory.Bars = append(memory.Bars, plot.Bar{Row: k, Parts: u.memoryParts(name)})
		bar := plot.Bar{Row: k, Parts: u.timeParts(name)}
		for _, part := range bar.Parts {
			times.Right = max(times.Right, 1.05*part.To)
		}
		times.Bars = append(times.Bars, bar)
	}
	var out []Figure
	if memory.Right > 0 {
		memory.Alt = "The table of stages has the same figures"
		out = append(out, GanttFigure(memory, "", []plot.Key{
			{Name: "highest peak", Class: "run", Shape: "box"},
			{Name: "estimate", Class: "cold", Shape: "box"},
			{Name: "limit", Class: "cap", Shape: "box"},
		}))
	}
	if times.Right > 0 {
		times.Alt = memory.Alt
		out = append(out, GanttFigure(times, "Older records count waits for other stages as computing.",
			[]plot.Key{
				{Name: "queue", Class: "queue", Shape: "box"},
				{Name: "start and fetch", Class: "load", Shape: "box"},
				{Name: "compute", Class: "run", Shape: "box"},
				{Name: "wait for others", Class: "interval", Shape: "box"},
				{Name: "push", Class: "cold", Shape: "box"},
			}))
	}
	return out
}

// memoryParts are the peak, the estimate and the limit of a stage, as parts of one bar.
func (u *stageUse) memoryParts(name string) []plot.Part {
	end := func(class, what string, b disdel.Bytes) plot.Part {
		return plot.Part{Class: class, Note: fmt.Sprintf("%s: %s %v", name, what, b), From: 0.99 * mb(b), To: mb(b)}
	}
	peak := end("run", "highest peak", u.peak)
	peak.From = 0
	return []plot.Part{peak, end("cold", "estimate", u.estimate), end("cap", "limit", u.limit)}
}

// timeParts are the phases of a stage, one after another. A record without phases has only the time of all.
func (u *stageUse) timeParts(name string) (parts []plot.Part) {
	compute := u.compute
	if compute == 0 {
		compute = max(0, u.all-u.start-u.push)
	}
	at := 0.0
	for _, p := range []struct {
		class, what string
		took        disdel.Millis
	}{
		{"queue", "queue", u.queue},
		{"load", "start and fetch", u.start},
		{"run", "compute", compute},
		{"interval", "wait for others", u.wait},
		{"cold", "push", u.push},
	} {
		if p.took > 0 {
			note := fmt.Sprintf("%s: %s %s", name, p.what, span(p.took))
			parts = append(parts, plot.Part{Class: p.class, Note: note, From: at, To: at + p.took.Seconds()})
			at += p.took.Seconds()
		}
	}
	return parts
}

// StageTables is the table of the stages of the network; there is none without stages.
func (v view) StageTables() []Table {
	plan := &v.record.Plan
	if len(plan.Stages) == 0 {
		return nil
	}
	t := Table{
		Caption: "Stages of the network",
		Head: []string{
			"STAGE", "LAYERS", "WEIGHTS", "PASSES ON", "ESTIMATE", "PEAK", "LIMIT", "QUEUE", "COMPUTE", "WAIT", "TIME",
		},
	}
	if n := plan.StepMemory.MicroBatch; n > 0 {
		t.Caption += fmt.Sprintf(", which train micro-batches of %d rows", n)
	}
	for k, u := range v.stageUses() {
		s, passes := &plan.Stages[k], "-"
		if s.Passes > 0 {
			passes = fmt.Sprintf("%v a row", s.Passes)
		}
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(k + 1), s.First + " to " + s.Last, memory(s.Weights), passes, memory(u.estimate), memory(u.peak),
			memory(u.limit), span(u.queue), span(u.compute), span(u.wait), span(u.all),
		})
	}
	return []Table{t}
}

// measured are the limit, the peaks and the longest time of a stage's actions, one peak for each network that is
// trained.
func (r *Report) measured(stage, stages int) (out []string) {
	var peaks []string
	var limit disdel.Bytes
	var longest disdel.Millis
	for _, a := range r.Actions {
		if a.Task != disdel.TaskTrain || a.Member%stages != stage {
			continue
		}
		limit, longest = max(limit, a.Limit), max(longest, a.Longest)
		peaks = append(peaks, memory(a.Peak))
	}
	if len(peaks) == 0 {
		return nil
	}
	return []string{
		"limit " + memory(limit), "peak " + strings.Join(peaks, " and "), "longest activation " + span(longest),
	}
}
