package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// What a plot shows at most: more would make the page slow and the picture no clearer.
const (
	mostLines  = 8    // workers with a line of their own
	mostPoints = 400  // of one line
	mostRows   = 40   // of the Gantt chart
	mostBars   = 1500 // of the Gantt chart
)

// Figure is a plot with title, legend and a note about what it leaves out.
type Figure struct {
	Title  string
	Note   string
	Legend []plot.Key
	SVG    template.HTML
}

// present are the plots for which the record has values.
func present(list ...*Figure) []Figure {
	var out []Figure
	for _, f := range list {
		if f != nil {
			out = append(out, *f)
		}
	}
	return out
}

func figureOf(l *plot.Lines, note string) *Figure {
	return &Figure{Title: l.Title, Note: note, SVG: trusted(l.SVG()), Legend: l.Legend()}
}

// trusted marks a picture as HTML: package plot escapes every text and attribute.
func trusted(svg string) template.HTML { return template.HTML(svg) } //nolint:gosec // see above

// curve is a value by round. It skips rounds without the value.
func (r *Report) curve(name, class string, metric func(*disdel.Round) *float64) (plot.Series, float64) {
	s, maximum := plot.Series{Name: name, Class: class}, 0.0
	var line []plot.Dot
	places, _ := r.axis()
	for i := range r.Rounds {
		if v := metric(&r.Rounds[i]); finite(v) {
			line = append(line, plot.Dot{
				X: places[i], Y: *v, Note: fmt.Sprintf("%s in round %d: %.4f", name, r.Rounds[i].Round+1, *v),
			})
		}
	}
	drawn := r.visible(smoothed(line, r.CurveOptions.Smooth))
	if line = r.visible(line); len(line) > 0 {
		s.Pieces = [][]plot.Dot{thin(drawn, mostPoints)}
	}
	for _, d := range line {
		maximum = max(maximum, d.Y)
	}
	if line = thin(line, mostPoints); len(line) <= 60 {
		s.Dots = line
	}
	return s, maximum
}

// visible is the part of a line that the options show.
func (r *Report) visible(line []plot.Dot) []plot.Dot {
	return slices.DeleteFunc(slices.Clone(line), func(d plot.Dot) bool { return !r.CurveOptions.has(d.X) })
}

func (r *Report) lossPlot() *Figure {
	train, a := r.curve("training loss", "s0", func(v *disdel.Round) *float64 { return &v.TrainLoss })
	heldOut, b := r.curve("held-out loss", "s1", func(v *disdel.Round) *float64 { return v.Loss })
	if train.Empty() {
		return nil
	}
	p := r.roundPlot("Loss by round", "loss", 1.08*max(a, b))
	p.Alt = fmt.Sprintf("Training loss ends at %.4f", train.Last())
	p.Series = []plot.Series{train}
	if !heldOut.Empty() {
		p.Series = append(p.Series, heldOut)
		p.Alt += fmt.Sprintf(", held-out loss at %.4f", heldOut.Last())
	}
	r.CurveOptions.scale(p)
	return figureOf(p, r.CurveOptions.averageNote("; dots are the values"))
}

func (r *Report) accuracyPlot() *Figure {
	s, most := r.curve("held-out accuracy", "s2", func(v *disdel.Round) *float64 { return v.Accuracy })
	if s.Empty() {
		return nil
	}
	p := r.roundPlot("Accuracy by round", "share of right rows", 1)
	p.Alt = fmt.Sprintf("Accuracy ends at %.4f, best %.4f in round %d", s.Last(), r.Best.Accuracy, r.Best.Round+1)
	p.Series = []plot.Series{s}
	seen, ofSeen := r.curve("training accuracy", "s0", func(v *disdel.Round) *float64 { return v.TrainAccuracy })
	if !seen.Empty() {
		p.Series = append(p.Series, seen)
		p.Alt += fmt.Sprintf(", training accuracy at %.4f", seen.Last())
	}
	if r.CurveOptions.zoomed() {
		p.Low, p.Top = 0.98*least(p.Series), min(1, 1.02*max(most, ofSeen))
	}
	return figureOf(p, r.CurveOptions.averageNote("; dots are the values"))
}

// errorPlot is the metric by which the job is compared, by round: for example the RMSE of numbers. The accuracy has a
// chart of its own.
func (r *Report) errorPlot() *Figure {
	metric := r.record.Metric()
	if metric.Name == disdel.MetricAccuracy {
		return nil
	}
	unit := metric.Title
	if metric.Name == disdel.MetricRMSE || metric.Name == disdel.MetricMAE {
		unit = "unit of the target"
	}
	value := func(v *disdel.Round) *float64 { return metric.Value(v.Figures()) }
	s, maximum := r.curve("held-out "+metric.Title, "s2", value)
	if s.Empty() {
		return nil
	}
	p := r.roundPlot(upperFirst(metric.Title)+" by round", unit, 1.08*maximum)
	p.Alt = fmt.Sprintf("Held-out %s ends at %s", metric.Title, metric.Number(s.Last()))
	p.Series = []plot.Series{s}
	r.CurveOptions.scale(p)
	return figureOf(p, r.CurveOptions.averageNote("; dots are the values"))
}

// epochPlot is the training accuracy by epoch, for jobs with several epochs a round.
func (r *Report) epochPlot() *Figure {
	s := plot.Series{Name: "training accuracy", Class: "s0"}
	var line []plot.Dot
	for i := range r.Rounds {
		for _, e := range r.Rounds[i].Trained {
			if finite(e.Accuracy) {
				line = append(line, plot.Dot{
					X: float64(e.Epoch), Y: *e.Accuracy, Note: fmt.Sprintf("%s in epoch %d: %.4f", s.Name, e.Epoch, *e.Accuracy),
				})
			}
		}
	}
	if len(line) < 2 {
		return nil
	}
	s.Pieces = [][]plot.Dot{thin(line, mostPoints)}
	first, last := line[0].X, line[len(line)-1].X
	return figureOf(&plot.Lines{
		Title: "Training accuracy by epoch", XName: "epoch", YName: "share of training rows", From: first, To: last, Top: 1,
		Whole: true, Series: []plot.Series{s}, Alt: fmt.Sprintf("Training accuracy ends at %.4f", line[len(line)-1].Y),
	}, "rows as each step saw them, before it")
}

func (r *Report) roundPlot(title, yName string, top float64) *plot.Lines {
	places, name := r.axis()
	first, last := places[0], places[len(places)-1]
	if o := &r.CurveOptions; o.zoomed() {
		first, last = max(first, o.From), min(last, o.To)
	}
	if last <= first {
		last = first + 1
	}
	if name != "round" {
		title = strings.TrimSuffix(title, " by round") + " over " + string(r.CurveOptions.Axis)
	}
	return &plot.Lines{
		Title: title, XName: name, YName: yName, From: first, To: last, Top: top, Whole: name == "round",
		Zoom: true,
	}
}

// clock converts times of the job into a plot's unit.
type clock struct {
	start time.Time
	unit  time.Duration
	name  string
}

func (c clock) at(t time.Time) float64 { return float64(t.Sub(c.start)) / float64(c.unit) }

// clock starts at the job's start, or at its first activation if the record has no start.
func (r *Report) clock() (c clock, end float64) {
	c = clock{start: r.Created, unit: time.Second, name: "seconds since the job began"}
	var last time.Time
	for i := range r.record.Activations {
		a := &r.record.Activations[i]
		if a.Start.IsZero() {
			continue
		}
		if invoked := a.Start.Add(-time.Duration(a.WaitTime)); c.start.IsZero() || invoked.Before(c.start) {
			c.start = invoked
		}
		if t := r.endOf(a); t.After(last) {
			last = t
		}
	}
	if last.IsZero() {
		return c, 0
	}
	switch all := last.Sub(c.start); {
	case all > 3*time.Hour:
		c.unit, c.name = time.Hour, "hours since the job began"
	case all > 10*time.Minute:
		c.unit, c.name = time.Minute, "minutes since the job began"
	}
	return c, c.at(last)
}

// endOf is the end of an activation. Without one it is the start plus the duration.
func (r *Report) endOf(a *disdel.Activation) time.Time {
	if a.End.After(a.Start) {
		return a.End
	}
	return a.Start.Add(time.Duration(a.Duration))
}

// section is one part of an activation's bar.
type section struct {
	class, name string
	from, to    time.Time
}

// sections divides an activation into its phases. Only heartbeats show when computing began.
func (r *Report) sections(a *disdel.Activation) []section {
	start, end := a.Start, r.endOf(a)
	var out []section
	if a.WaitTime > 0 {
		out = append(out, section{"queue", "queue", start.Add(-time.Duration(a.WaitTime)), start})
	}
	if a.InitTime > 0 {
		warm := start.Add(time.Duration(min(a.InitTime, disdel.Millis(end.Sub(start)))))
		out = append(out, section{"cold", "cold start", start, warm})
		start = warm
	}
	for _, b := range a.Beats {
		first := a.Start.Add(time.Duration(b.At - a.WaitTime))
		if b.Batch == 0 {
			continue
		}
		if first.After(start) && first.Before(end) {
			out = append(out, section{"load", "load", start, first})
			start = first
		}
		break
	}
	return append(out, section{"run", "run", start, end})
}

// gantt is the chart of activations over time.
func (r *Report) gantt() *Figure {
	c, end := r.clock()
	rows := r.Actions[:min(len(r.Actions), mostRows)]
	if end == 0 || len(rows) == 0 {
		return nil
	}
	row := map[string]int{}
	for i, a := range rows {
		row[a.Name] = i
	}
	g := &plot.Gantt{Title: "Activations over time", XName: c.name, Right: end, Zoom: true}
	if o := &r.CurveOptions; o.zoomed() && o.From < end && o.To > 0 {
		g.Left, g.Right = max(0, o.From), min(end, o.To)
	}
	g.Alt = fmt.Sprintf("%d activations of %d actions; the table of activations has the same figures",
		len(r.record.Activations), len(r.Actions))
	for _, a := range rows {
		g.Rows = append(g.Rows, a.Name)
	}
	seen := map[string]bool{}
	bars := r.bars(row)
	for _, a := range bars {
		g.Bars = append(g.Bars, r.bar(a, c, row[a.Slot().Name()], seen))
	}
	f := &Figure{Title: g.Title, SVG: trusted(g.SVG()), Legend: ganttLegend(seen)}
	if n := len(r.Actions) - len(rows); n > 0 {
		f.Note = fmt.Sprintf("The first %d actions are shown, %d are not. ", mostRows, n)
	}
	if len(bars) == mostBars {
		f.Note += fmt.Sprintf("%d activations are shown, at even steps.", mostBars)
	}
	return f
}

// bars are the activations to draw.
func (r *Report) bars(row map[string]int) []*disdel.Activation {
	var out []*disdel.Activation
	for i := range r.record.Activations {
		a := &r.record.Activations[i]
		if _, shown := row[a.Slot().Name()]; shown && !a.Start.IsZero() {
			out = append(out, a)
		}
	}
	return thin(out, mostBars)
}

// bar is one activation, in its parts.
func (r *Report) bar(a *disdel.Activation, c clock, row int, seen map[string]bool) plot.Bar {
	note := fmt.Sprintf("%s, attempt %d: %s", place(&a.Invocation), max(1, a.Attempt), words(a.Outcome.String()))
	b := plot.Bar{Row: row, Note: note, Failed: a.Outcome.Failed(), Later: a.Attempt > 1}
	seen["bad"], seen["cap"] = seen["bad"] || b.Failed, seen["cap"] || b.Later
	for _, s := range r.sections(a) {
		seen[s.class] = true
		b.Parts = append(b.Parts, plot.Part{
			Class: s.class, Note: fmt.Sprintf("%s, %s %s", note, s.name, span(disdel.Millis(s.to.Sub(s.from)))),
			From: c.at(s.from), To: c.at(s.to),
		})
	}
	return b
}

func ganttLegend(seen map[string]bool) []plot.Key {
	var out []plot.Key
	for _, k := range []plot.Key{
		{Name: "queue", Class: "queue", Shape: "box"},
		{Name: "cold start", Class: "cold", Shape: "box"},
		{Name: "load: until the first batch", Class: "load", Shape: "box"},
		{Name: "run", Class: "run", Shape: "box"},
		{Name: "failed", Class: "bad", Shape: "box"},
		{Name: "retry", Class: "cap", Shape: "box"},
	} {
		if seen[k.Class] {
			out = append(out, k)
		}
	}
	return out
}
