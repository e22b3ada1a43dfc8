package estimatetext

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
)

// WritePlot draws the grid: time against the objective, or where no time is known, memory over workers.
func WritePlot(e *service.Estimation, name string, format plot.Format) error {
	chart := memoryChart(e)
	if (whatIf{e.WhatIf}).timed() {
		chart = timeChart(e)
	}
	return WriteChart(chart, name, format)
}

// WriteChart draws a chart to a file. It returns Invalid where that cannot be written.
func WriteChart(c plot.Chart, name string, format plot.Format) error {
	var b bytes.Buffer
	if err := c.Write(&b, format); err != nil {
		return err
	}
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "write " + name, Err: files.Plain(err),
			Hint: "name a file in a folder you can write to",
		}
	}
	return nil
}

// lines is one line a batch, with the cells that point makes a point of.
func (v whatIf) lines(point func(c scheduler.Cell) (plot.Point, bool)) []plot.Line {
	var out []plot.Line
	for i, c := range v.Cells {
		if i == 0 || c.BatchSize != v.Cells[i-1].BatchSize {
			out = append(out, plot.Line{Name: fmt.Sprintf("batch %d", c.BatchSize)})
		}
		if p, ok := point(c); ok {
			l := &out[len(out)-1]
			l.Points = append(l.Points, p)
		}
	}
	return slices.DeleteFunc(out, func(l plot.Line) bool { return len(l.Points) == 0 })
}

func timeChart(e *service.Estimation) plot.Chart {
	v := whatIf{e.WhatIf}
	u := v.unit()
	c := plot.Chart{
		Title: terminal.Clean(e.Job.Metadata.Name) + ": time against " + string(v.Against) + ", points labelled by workers",
		X:     plot.Axis{Name: "cost of the job (GB-s)"}, Y: plot.Axis{Name: "time of the job (" + u.Name + ")"},
		Front: "Pareto front", Own: "job file",
	}
	if v.Against == scheduler.AgainstMemory {
		c.X.Name = "likely peak memory of a train action (MB)"
	}
	c.Lines = v.lines(func(c scheduler.Cell) (plot.Point, bool) {
		if c.Forecast == nil {
			return plot.Point{}, false
		}
		d, cost := c.Forecast.Duration, c.Forecast.Cost
		p := plot.Point{
			X:     plot.Span{Low: cost.Low, Likely: cost.Likely, High: cost.High},
			Y:     plot.Span{Low: u.Value(d.Low), Likely: u.Value(d.Likely), High: u.Value(d.High)},
			Label: fmt.Sprint(c.Workers), Front: c.Pareto, Own: c.InFile,
		}
		if v.Against == scheduler.AgainstMemory {
			p.X = plot.Span{Likely: inMB(c.Memory.Likely)}
		}
		return p, true
	})
	return c
}

func memoryChart(e *service.Estimation) plot.Chart {
	c := plot.Chart{
		Title: terminal.Clean(e.Job.Metadata.Name) + ": memory of a train action",
		X:     plot.Axis{Name: "workers", Whole: true}, Y: plot.Axis{Name: "peak memory (MB)"}, Own: "job file",
	}
	mb := inMB
	var most disdel.Bytes
	c.Lines = whatIf{e.WhatIf}.lines(func(c scheduler.Cell) (plot.Point, bool) {
		m := c.Memory
		most = max(most, m.Likely, m.High)
		return plot.Point{
			X: plot.Span{Likely: float64(c.Workers)},
			Y: plot.Span{Low: mb(m.Low), Likely: mb(m.Likely), High: mb(m.High)}, Own: c.InFile,
		}, m.Likely > 0
	})
	if limit := e.WhatIf.Ceiling; most > limit/2 && limit > 0 {
		c.Rules = []plot.Rule{{Y: mb(limit), Name: fmt.Sprintf("%s, %d MB", e.WhatIf.Whose, limit.MB())}}
	}
	return c
}

func inMB(b disdel.Bytes) float64 { return float64(b) / float64(disdel.MB) }
