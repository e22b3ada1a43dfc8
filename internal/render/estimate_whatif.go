package render

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
)

// whatIf is a job at every point of a grid, as it is printed.
type whatIf struct{ *service.WhatIf }

// timed tells whether any cell has a forecast.
func (v whatIf) timed() bool {
	return slices.ContainsFunc(v.Cells, func(c scheduler.Cell) bool { return c.Forecast != nil })
}

// note is how much other programs slow the job down, "" where they do not.
func (v whatIf) note() string {
	for _, c := range v.Cells {
		if c.Forecast != nil {
			return c.Forecast.Note
		}
	}
	return ""
}

// measured tells whether the peak of any cell is known.
func (v whatIf) measured() bool {
	return slices.ContainsFunc(v.Cells, func(c scheduler.Cell) bool { return c.Limit == 0 || c.Memory.Likely > 0 })
}

// shared tells whether the workers of the cells share a batch.
func (v whatIf) shared() bool {
	return slices.ContainsFunc(v.Cells, func(c scheduler.Cell) bool { return c.WorkerBatchSize > 0 })
}

func (v whatIf) unit() timeUnit {
	if !v.timed() {
		return timeUnit{}
	}
	var longest disdel.Millis
	for _, c := range v.Cells {
		if c.Forecast != nil {
			longest = max(longest, c.Forecast.Duration.High)
		}
	}
	return unitFor(longest)
}

func printWhatIf(w io.Writer, v whatIf, name string) {
	u := v.unit()
	fmt.Fprintln(w)
	rows := [][]string{{
		"WORKERS", "BATCH", "MEMORY MB", "LIMIT", strings.TrimSpace("TIME " + u.Name), "COST GB-S", "",
		"",
	}}
	if v.timed() {
		rows[0][6] = "BASIS"
	}
	for _, c := range v.Cells {
		rows = append(rows, row(c, u))
	}
	columns(w, rows)
	v.printDevices(w)
	paragraph(w, "note", "low/likely/high: nine of ten cases are between low and high; memory is the peak of one train "+
		"action")
	if !v.measured() {
		paragraph(w, "", "memory -: disdel cannot find the program's memory; the limit is resources.memory for every batch")
	}
	if v.shared() {
		paragraph(w, "", "batch: rows of the job, and of each of its workers")
	}
	if v.timed() {
		paragraph(w, "", "front: no other line is both faster and of less %s", v.Against)
		paragraph(w, "", "basis: measured where a job of just these workers and batch ran; else extrapolated from others, "+
			"or a probe's rate")
		if note := v.note(); note != "" {
			paragraph(w, "", "%s", note)
		}
		return
	}
	paragraph(w, "time", "-: nothing is known of this job's speed yet; run it once (%s submit %s), or measure it with "+
		"--probe", terminal.Program(), name)
}

// printDevices writes what a train action takes of a GPU, by batch: the number of workers does not matter.
func (v whatIf) printDevices(w io.Writer) {
	var parts []string
	last := ""
	for _, c := range v.Cells {
		rows := c.BatchSize
		if c.WorkerBatchSize > 0 {
			rows = c.WorkerBatchSize
		}
		if text := fmt.Sprintf("%d MB with batches of %d", c.Device.MB(), rows); c.Device > 0 && text != last {
			parts, last = append(parts, text), text
		}
	}
	if len(parts) > 0 {
		paragraph(w, "gpu", "a train action takes of a GPU's memory: %s", strings.Join(parts, ", "))
	}
}

// row is the cells of a line. One that cannot be planned ends in its note.
func row(c scheduler.Cell, u timeUnit) []string {
	out := []string{fmt.Sprint(c.Workers), batchText(c), megabytes(c.Memory)}
	if c.Limit == 0 {
		return append(out, strings.TrimPrefix(c.Note, "train ")+mark(c, "; "))
	}
	out = append(out, fmt.Sprint(c.Limit.MB()))
	if f := c.Forecast; f == nil {
		out = append(out, "-", "-", "")
	} else {
		out = append(out, between(u.Text(f.Duration.Low), u.Text(f.Duration.Likely), u.Text(f.Duration.High)),
			between(twoDigits(f.Cost.Low), twoDigits(f.Cost.Likely), twoDigits(f.Cost.High)), c.Basis())
	}
	return append(out, mark(c, ""))
}

// batchText is a cell's batch, with the share of a worker where they share it.
func batchText(c scheduler.Cell) string {
	if c.WorkerBatchSize == 0 {
		return fmt.Sprint(c.BatchSize)
	}
	return fmt.Sprintf("%d/%d", c.BatchSize, c.WorkerBatchSize)
}

// mark tells what is special about a cell.
func mark(c scheduler.Cell, before string) string {
	var out []string
	if c.InFile {
		out = append(out, "<- in file")
	}
	if c.Pareto {
		out = append(out, "front")
	}
	for _, set := range c.StepMemory.Sets() {
		out = append(out, strings.TrimPrefix(set, "training."))
	}
	if c.Stages > 0 {
		out = append(out, fmt.Sprintf("stages=%d", c.Stages))
	}
	if c.OnDisk {
		out = append(out, "keep=disk")
	}
	if len(out) == 0 {
		return ""
	}
	return before + strings.Join(out, ", ")
}

func megabytes(m disdel.Interval[disdel.Bytes]) string {
	switch {
	case m.Likely == 0:
		return "-"
	case m.High == 0:
		return between("-", fmt.Sprint(m.Likely.MB()), "-")
	default:
		return between(fmt.Sprint(m.Low.MB()), fmt.Sprint(m.Likely.MB()), fmt.Sprint(m.High.MB()))
	}
}

func between(low, likely, high string) string { return low + "/" + likely + "/" + high }

// columns writes aligned columns as table does, except that the last cell of a short row goes over those it leaves out.
func columns(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r[:len(r)-1] {
			widths[i] = max(widths[i], len(c))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, c := range r {
			fmt.Fprintf(&line, "%-*s  ", widths[i], terminal.Clean(c))
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// setArguments is a list of --set, quoted for a shell where it must be.
func setArguments(sets []string) string {
	out := make([]string, len(sets))
	for i, s := range sets {
		if strings.ContainsAny(s, " {}*'\"$") {
			s = "'" + s + "'"
		}
		out[i] = "--set " + s
	}
	return strings.Join(out, " ")
}

// WriteEstimatePlot draws the grid: time against the objective, or where no time is known, memory over workers.
func WriteEstimatePlot(e *service.Estimation, name string, format plot.Format) error {
	chart := memoryChart(e)
	if (whatIf{e.WhatIf}).timed() {
		chart = timeChart(e)
	}
	return writeChart(chart, name, format)
}

// writeChart draws a chart to a file. It returns Invalid where that cannot be written.
func writeChart(c plot.Chart, name string, format plot.Format) error {
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
	var maximum disdel.Bytes
	c.Lines = whatIf{e.WhatIf}.lines(func(c scheduler.Cell) (plot.Point, bool) {
		m := c.Memory
		maximum = max(maximum, m.Likely, m.High)
		return plot.Point{
			X: plot.Span{Likely: float64(c.Workers)},
			Y: plot.Span{Low: mb(m.Low), Likely: mb(m.Likely), High: mb(m.High)}, Own: c.InFile,
		}, m.Likely > 0
	})
	if limit := e.WhatIf.Ceiling; maximum > limit/2 && limit > 0 {
		c.Rules = []plot.Rule{{Y: mb(limit), Name: fmt.Sprintf("%s, %d MB", e.WhatIf.Whose, limit.MB())}}
	}
	return c
}

func inMB(b disdel.Bytes) float64 { return float64(b) / float64(disdel.MB) }
