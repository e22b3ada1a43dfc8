package render

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/service/batch"
)

// What a page of a batch shows at most.
const (
	mostCurves   = 8
	mostGantt    = 40
	bytesOfAPlot = float64(disdel.MB)
)

// BatchPage is a page about a batch: its jobs, the pool over time, who waited and ran when, and how the best learned.
func BatchPage(s *batch.Summary) report.Sheet {
	out := report.Sheet{
		Title: "Batch of " + fmt.Sprint(len(s.Jobs)) + " jobs", State: disdel.StatusSucceeded.String(),
		About: "the best first, by " + string(s.By),
		Tiles: []report.Tile{
			{Name: "makespan", Value: s.Makespan.Text(), More: fmt.Sprintf("waited %s, ran %s on average", s.Waited.Text(),
				s.Ran.Text())},
			{Name: "jobs", Value: fmt.Sprintf("%d of %d succeeded", s.Succeeded, len(s.Jobs)), More: countsText(len(s.Jobs),
				&s.Counts)},
			{Name: "cost", Value: fmt.Sprintf("%.2f GB-s", s.CostGBs), More: fmt.Sprintf("and %.2f for evaluations",
				s.Evaluations)},
			{Name: "cold starts", Value: fmt.Sprintf("%.1f %%", 100*s.ColdShare()), More: fmt.Sprintf("%d of %d activations",
				s.Cold, s.Activations)},
			{Name: "pool", Value: s.Pool.MostReserved.String(), More: fmt.Sprintf("reserved at most; resident %v",
				s.Pool.MostResident)},
		},
		Figures: batchFigures(s),
	}
	if s.Failed > 0 {
		out.State = disdel.StatusFailed.String()
	} else if s.Canceled > 0 {
		out.State = disdel.StatusCanceled.String()
	}
	if best, ok := bestOf(s); ok {
		out.Notes = append(out.Notes, "The best is "+best)
	}
	for i := range s.Jobs {
		if why := whyText(&s.Jobs[i]); why != "" {
			out.Notes = append(out.Notes, s.Jobs[i].Name+": "+why)
		}
	}
	rows := batchRows(s)
	out.Tables = append(out.Tables, report.Table{Caption: "Jobs", Head: rows[0], Rows: rows[1:]})
	tenants := report.Table{
		Caption: "Tenants", Head: []string{"TENANT", "JOBS", "SUCCEEDED", "FAILED", "WAITED", "GB-S", "EVALUATIONS"},
	}
	for _, t := range s.Tenants {
		name := t.Name
		if name == "" {
			name = "of the home itself"
		}
		tenants.Rows = append(tenants.Rows, []string{
			name, fmt.Sprint(t.Jobs), fmt.Sprint(t.Succeeded), fmt.Sprint(t.Failed), t.Waited.Text(),
			fmt.Sprintf("%.2f", t.CostGBs), fmt.Sprintf("%.2f", t.Evaluations),
		})
	}
	out.Tables = append(out.Tables, tenants)
	return out
}

// batchFigures are the plots that there are figures for.
func batchFigures(s *batch.Summary) []report.Figure {
	var out []report.Figure
	if len(s.Pool.Samples) > 1 && s.Makespan > 0 {
		out = append(out, poolFigure(s))
	}
	if jobs := started(s); len(jobs) > 0 {
		out = append(out, ganttFigure(s, jobs))
	}
	if f, ok := curveFigure(s); ok {
		out = append(out, f)
	}
	return out
}

// poolFigure is the pool over time, in steps.
func poolFigure(s *batch.Summary) report.Figure {
	unit := TimeUnit(s.Makespan)
	p := &plot.Lines{
		Title: "Pool over time", XName: unit.Name + " since the batch began", YName: "MB", To: unit.Value(s.Makespan),
		Alt: fmt.Sprintf("At most %v were reserved and %v resident", s.Pool.MostReserved, s.Pool.MostResident),
	}
	for i, line := range []struct {
		name string
		of   func(batch.Sample) disdel.Bytes
	}{
		{"reserved by grants", func(v batch.Sample) disdel.Bytes { return v.Reserved }},
		{"limits of what runs", func(v batch.Sample) disdel.Bytes { return v.Held }},
		{"resident", func(v batch.Sample) disdel.Bytes { return v.Resident }},
	} {
		var dots []plot.Dot
		last := 0.0
		for _, v := range s.Pool.Samples {
			x, y := unit.Value(v.At), float64(line.of(v))/bytesOfAPlot
			if len(dots) > 0 && y != last {
				dots = append(dots, plot.Dot{X: x, Y: last})
			}
			dots, last = append(dots, plot.Dot{X: x, Y: y}), y
			p.Top = max(p.Top, 1.08*y)
		}
		p.Series = append(p.Series, plot.Series{Name: line.name, Class: fmt.Sprintf("s%d", i), Pieces: [][]plot.Dot{dots}})
	}
	return report.LinesFigure(p, "")
}

// ganttFigure is when each job waited and ran.
func ganttFigure(s *batch.Summary, jobs []batch.Row) report.Figure {
	unit, note := TimeUnit(s.Makespan), ""
	if len(jobs) > mostGantt {
		note = fmt.Sprintf("The first %d of %d jobs are shown.", mostGantt, len(jobs))
		jobs = jobs[:mostGantt]
	}
	g := &plot.Gantt{
		Title: "Jobs over time", XName: unit.Name + " since the batch began", Right: unit.Value(s.Makespan),
		Alt: fmt.Sprintf("%d jobs; the table of jobs has the same figures", len(jobs)),
	}
	for i := range jobs {
		r := &jobs[i]
		bar := plot.Bar{Row: i, Note: r.Name + ": " + batchStatus(r), Failed: r.Status != disdel.StatusSucceeded}
		part := func(class string, from, to disdel.Millis) {
			bar.Parts = append(bar.Parts, plot.Part{
				Class: class, From: unit.Value(from), To: unit.Value(to),
				Note: fmt.Sprintf("%s, %s %s", r.Name, map[string]string{"queue": "waited", "run": "ran"}[class],
					(to - from).Text()),
			})
		}
		part("queue", r.Submitted, begun(r))
		if r.Started > 0 {
			part("run", r.Started, r.Ended)
		}
		g.Rows, g.Bars = append(g.Rows, r.Name), append(g.Bars, bar)
	}
	return report.GanttFigure(g, note, []plot.Key{
		{Name: "waited", Class: "queue", Shape: "box"},
		{Name: "ran", Class: "run", Shape: "box"},
		{Name: "did not succeed", Class: "bad", Shape: "box"},
	})
}

// curveFigure is how the best jobs learned, false where none was evaluated.
func curveFigure(s *batch.Summary) (report.Figure, bool) {
	name, of := "held-out accuracy", func(p batch.Point) *float64 { return p.Accuracy }
	if s.By == batch.ByLoss {
		name, of = "held-out loss", func(p batch.Point) *float64 { return p.Loss }
	}
	p := &plot.Lines{Title: strings.ToUpper(name[:1]) + name[1:] + " by epoch", XName: "epoch", YName: name, Whole: true}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		var dots []plot.Dot
		for _, point := range r.Curve {
			if v := of(point); v != nil {
				dots = append(dots, plot.Dot{
					X: float64(point.Epochs), Y: *v, Note: fmt.Sprintf("%s after %d epochs: %.4f", r.Name, point.Epochs, *v),
				})
				p.To, p.Top = max(p.To, float64(point.Epochs)), max(p.Top, *v)
			}
		}
		if len(dots) == 0 || len(p.Series) == mostCurves {
			continue
		}
		p.Series = append(p.Series, plot.Series{
			Name: r.Name + prefixed(" ", choicesText(r)), Class: fmt.Sprintf("s%d", len(p.Series)), Pieces: [][]plot.Dot{dots},
			Dots: dots,
		})
	}
	if len(p.Series) == 0 {
		return report.Figure{}, false
	}
	p.From, p.To = min(1, p.To), max(p.To, 2)
	if s.By == batch.ByAccuracy {
		p.Top = 1
	}
	p.Alt = fmt.Sprintf("%d jobs, the best of which ends at %.4f", len(p.Series), p.Series[0].Last())
	note := ""
	if len(s.Jobs) > len(p.Series) {
		note = fmt.Sprintf("The best %d of %d jobs are shown.", len(p.Series), len(s.Jobs))
	}
	return report.LinesFigure(p, note), true
}
