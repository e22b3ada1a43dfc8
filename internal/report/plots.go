package report

import (
	"fmt"
	"html/template"
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

// Figure is a plot with its title, legend and what it leaves out.
type Figure struct {
	Title  string
	Note   string
	Legend []plot.Key
	SVG    template.HTML
}

// figures are the plots that the record has the figures for.
func (r *Report) figures() []Figure {
	var out []Figure
	for _, f := range []*Figure{r.lossPlot(), r.accuracyPlot(), r.epochPlot(), r.stepPlot(), r.memoryPlot(), r.gantt()} {
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

// curve is a value by round; rounds without it are passed over.
func (r *Report) curve(name, class string, of func(*disdel.Round) *float64) (plot.Series, float64) {
	s, most := plot.Series{Name: name, Class: class}, 0.0
	var line []plot.Dot
	for i := range r.Rounds {
		if v := of(&r.Rounds[i]); finite(v) {
			most = max(most, *v)
			line = append(line, plot.Dot{
				X: float64(r.Rounds[i].Round + 1), Y: *v, Note: fmt.Sprintf("%s in round %d: %.4f", name, r.Rounds[i].Round+1, *v),
			})
		}
	}
	line = thin(line, mostPoints)
	if len(line) > 0 {
		s.Pieces = [][]plot.Dot{line}
	}
	if len(line) <= 60 {
		s.Dots = line
	}
	return s, most
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
	return figureOf(p, "")
}

func (r *Report) accuracyPlot() *Figure {
	s, _ := r.curve("held-out accuracy", "s2", func(v *disdel.Round) *float64 { return v.Accuracy })
	if s.Empty() {
		return nil
	}
	p := r.roundPlot("Accuracy by round", "share of held-out rows", 1)
	p.Alt = fmt.Sprintf("Accuracy ends at %.4f, best %.4f in round %d", s.Last(), r.Best.Accuracy, r.Best.Round+1)
	p.Series = []plot.Series{s}
	seen, _ := r.curve("training accuracy", "s0", func(v *disdel.Round) *float64 { return v.TrainAccuracy })
	if !seen.Empty() {
		p.Series = append(p.Series, seen)
		p.Alt += fmt.Sprintf(", training accuracy at %.4f", seen.Last())
	}
	return figureOf(p, "")
}

// epochPlot is the accuracy of the training rows as they were seen, by epoch, of a job whose rounds have several.
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
	last := r.Rounds[len(r.Rounds)-1].Round + 1
	first := r.Rounds[0].Round + 1
	return &plot.Lines{
		Title: title, XName: "round", YName: yName, From: float64(first), To: float64(max(first+1, last)),
		Top: top, Whole: true,
	}
}

// clock turns times of the job into a plot's unit.
type clock struct {
	start time.Time
	unit  time.Duration
	name  string
}

func (c clock) at(t time.Time) float64 { return float64(t.Sub(c.start)) / float64(c.unit) }

// clock starts with the job, or with its first activation in records that do not say when that was.
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

// endOf is when an activation ended; one without an end is taken to have run for its duration.
func (r *Report) endOf(a *disdel.Activation) time.Time {
	if a.End.After(a.Start) {
		return a.End
	}
	return a.Start.Add(time.Duration(a.Duration))
}
