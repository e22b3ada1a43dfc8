package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/batch"
)

// PrintBatch prints the result of a batch: each job, the best first, then the totals.
func PrintBatch(w io.Writer, s *batch.Summary) {
	terminal.Table(w, terminal.Fitted(w, batchRows(s), "COLD", "MODEL", "PEAK", "WAITED", "LOSS", "GB-S", "EPOCHS")...)
	fmt.Fprintln(w)
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if why := whyText(r); why != "" {
			fmt.Fprintf(w, "%s: %s\n", r.Name, terminal.OneLine(why))
			if r.Failure != nil && r.Failure.Hint != "" && r.Behind == "" {
				fmt.Fprintf(w, "  %s\n", terminal.OneLine(r.Failure.Hint))
			}
		}
	}
	rows := batchTotals(s)
	for _, t := range s.Tenants {
		if len(s.Tenants) > 1 || t.Name != "" {
			rows = append(rows, []string{"tenant " + cmp.Or(t.Name, "-"), tenantText(&t)})
		}
	}
	terminal.Table(w, rows...)
}

// batchRows is the table of the jobs.
func batchRows(s *batch.Summary) [][]string {
	out := [][]string{append(append([]string{"JOB"}, choiceNames(s.Jobs)...), "STATUS", "METRIC", "LOSS", "EPOCHS",
		"WAITED", "TIME", "PEAK", "COLD", "GB-S", "MODEL", "ID")}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		p, _ := r.Result()
		out = append(out, append(append([]string{r.Name}, choiceValues(s.Jobs, r)...), batchStatus(r), p.Figures().Text(),
			optional(p.Loss), fmt.Sprint(p.Epochs), secondsText(r.Waited(r.Ended)), secondsText(r.Ran(r.Ended)), known(r.Peak),
			fmt.Sprintf("%d/%d", r.Cold, r.Activations), fmt.Sprintf("%.2f", r.CostGBs+r.Evaluations), cmp.Or(r.Model, "-"),
			cmp.Or(string(r.Job), "-")))
	}
	nameMetric(out, slices.Index(out[0], "METRIC"))
	return out
}

// batchTotals is what all jobs came to together, a line each.
func batchTotals(s *batch.Summary) [][]string {
	rows := [][]string{{"jobs", countsText(len(s.Jobs), &s.Counts)}}
	if best, ok := bestOf(s); ok {
		rows = append(rows, []string{"best", best})
	}
	return append(rows,
		[]string{"makespan", s.Makespan.Text()},
		[]string{"on average", fmt.Sprintf("waited %s, ran %s", s.Waited.Text(), s.Ran.Text())},
		[]string{"activations", fmt.Sprintf("%d: %.1f %% cold", s.Activations, 100*s.ColdShare())},
		[]string{"pool", poolOver(&s.Pool)},
		[]string{"cost", fmt.Sprintf("%.2f GB-s, and evaluations %.2f GB-s", s.CostGBs, s.Evaluations)})
}

// bestOf is the best job by the batch's metric; ok is false if none succeeded.
func bestOf(s *batch.Summary) (string, bool) {
	if s.Succeeded == 0 {
		return "", false
	}
	r := &s.Jobs[0]
	p, ok := r.Result()
	if !ok {
		return "", false
	}
	text := r.Name + prefixed(" ", choicesText(r))
	metric := metricOf(s)
	switch v := metric.Value(p.Figures()); {
	case v != nil && s.By != batch.ByLoss:
		text += ": " + metric.Text(*v)
	case p.Loss != nil:
		text += ": held-out loss " + optional(p.Loss)
	default:
		text += fmt.Sprintf(": train loss %.4f", p.TrainLoss)
	}
	return text + prefixed(", ", r.Model), true
}

// metricOf is the metric that a batch is compared by: of numbers the RMSE where it would be the accuracy.
func metricOf(s *batch.Summary) disdel.Metric {
	metric := s.By.Metric()
	for i := range s.Jobs {
		if p, ok := s.Jobs[i].Result(); ok && s.By == batch.ByAccuracy && p.RMSE != 0 {
			metric, _ = disdel.FindMetric(disdel.MetricRMSE)
		}
	}
	return metric
}

func countsText(all int, c *batch.Counts) string {
	var parts []string
	for _, n := range []struct {
		n    int
		what string
	}{{c.Succeeded, "succeeded"}, {c.Behind, "stopped early"}, {c.Failed, "failed"}, {c.Canceled, "canceled"}} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	return fmt.Sprintf("%d: %s", all, strings.Join(parts, ", "))
}

// poolOver says what a batch had of the pool.
func poolOver(p *batch.Pool) string {
	text := fmt.Sprintf("reserved %v at most", p.MostReserved)
	if p.Bytes > 0 {
		text += fmt.Sprintf(" of %v", p.Bytes)
	}
	text += fmt.Sprintf(", resident %v; over time %.2f and %.2f GB-s", p.MostResident, p.ReservedGBs, p.ResidentGBs)
	return text
}

func tenantText(t *batch.Tenant) string {
	return fmt.Sprintf("%s; waited %s on average; %.2f GB-s, and evaluations %.2f GB-s", countsText(t.Jobs, &t.Counts),
		t.Waited.Text(), t.CostGBs, t.Evaluations)
}

// started is the jobs of a summary that were in the queue, in the order in which they left it.
func started(s *batch.Summary) []batch.Row {
	out := slices.DeleteFunc(slices.Clone(s.Jobs), func(r batch.Row) bool { return r.Ended == 0 || r.Job == "" })
	slices.SortStableFunc(out, func(a, b batch.Row) int {
		return cmp.Or(cmp.Compare(begun(&a), begun(&b)), cmp.Compare(a.Submitted, b.Submitted))
	})
	return out
}

// begun is when a job began to run, or ended without.
func begun(r *batch.Row) disdel.Millis { return cmp.Or(r.Started, r.Ended) }

// BatchTable shows a running batch: on a terminal one table that is redrawn, elsewhere a line for each change of a job.
type BatchTable struct {
	picture
	last       time.Time
	newestLine map[int]string // by job: the newest line
}

// NewBatchTable is an empty table.
func NewBatchTable(u *terminal.UI) *BatchTable {
	return &BatchTable{picture: picture{ui: u}, newestLine: map[int]string{}}
}

// redrawEvery is the time between two pictures.
const redrawEvery = 100 * time.Millisecond

// Follow shows the current state of the batch.
func (t *BatchTable) Follow(v *batch.View) {
	switch {
	case t.ui.Quiet:
	case !t.ui.Live:
		t.say(v)
	case time.Since(t.last) >= redrawEvery:
		t.last = time.Now()
		t.erase()
		t.show(t.lines(v))
	}
}

// Done erases the last picture.
func (t *BatchTable) Done() { t.erase() }

// say writes the lines of jobs that have become something else.
func (t *BatchTable) say(v *batch.View) {
	for i := range v.Rows {
		r := &v.Rows[i]
		line := becameText(r, v.Now.At)
		if state := r.Status.String() + r.Behind; line != "" && t.newestLine[i] != state {
			t.newestLine[i] = state
			t.ui.Say("%s", line)
		}
	}
}

// becameText is the line for a job's new state, empty if it needs none.
func becameText(r *batch.Row, now disdel.Millis) string {
	name := r.Name + prefixed(" ", choicesText(r))
	switch {
	case r.Ended == 0 && r.Behind != "":
		return "" // it is about to end
	case r.Status == disdel.StatusQueued:
		return fmt.Sprintf("%s  queued as %s", name, r.Job)
	case r.Status == disdel.StatusAdmitted:
		return fmt.Sprintf("%s  starts after %s in the queue", name, seconds(time.Duration(r.Waited(now))))
	case r.Ended == 0:
		return ""
	}
	text := fmt.Sprintf("%s  %s after %s", name, batchStatus(r), seconds(time.Duration(r.Ran(now))))
	if p, ok := r.Result(); ok {
		text += fmt.Sprintf("  %s  train loss %.4f", disdel.Counted(p.Epochs, "epoch"), p.TrainLoss)
		if p.Accuracy != nil {
			text += fmt.Sprintf("  held-out loss %s  accuracy %s", optional(p.Loss), optional(p.Accuracy))
		} else if scores := p.Scores.Text(); scores != "" {
			text += fmt.Sprintf("  held-out loss %s  %s", optional(p.Loss), scores)
		}
	}
	return text + prefixed("  ", whyText(r))
}

// lines is the table with a line for all jobs together. Where the terminal is too low for all jobs, those that run are
// in it first.
func (t *BatchTable) lines(v *batch.View) []string {
	columns, height := t.ui.Size()
	rows := slices.Clone(v.Rows)
	if height > 0 && len(rows) > height-4 {
		slices.SortStableFunc(rows, func(a, b batch.Row) int { return standing(&a) - standing(&b) })
	}
	cells := [][]string{append(append([]string{"JOB"}, choiceNames(rows)...), "STATUS", "ROUND", "LOSS", "METRIC",
		"WAITED", "TIME", "POOL")}
	for i := range rows {
		r := &rows[i]
		p, ok := r.Result()
		slots := "-"
		if r.Started > 0 && r.Ended == 0 {
			slots = r.Room.String()
		}
		cells = append(cells, append(append([]string{r.Name}, choiceValues(rows, r)...), batchStatus(r), roundText(r),
			fourDecimals(p.TrainLoss, ok), p.Figures().Text(), seconds(time.Duration(r.Waited(v.Now.At))),
			seconds(time.Duration(r.Ran(v.Now.At))), slots))
	}
	nameMetric(cells, slices.Index(cells[0], "METRIC"))
	page := &terminal.Page{Buffer: &bytes.Buffer{}, Columns: columns}
	terminal.Table(page, terminal.Fitted(page, cells, "WAITED", "POOL", "LOSS")...)
	out := strings.Split(strings.TrimRight(page.String(), "\n"), "\n")
	all := poolText(v)
	if height > 2 && len(out) > height-3 { // the last line is of all jobs
		remaining := len(out) - (height - 4)
		out = append(out[:height-4], fmt.Sprintf("and %d more", remaining))
	}
	return append(out, all)
}

// standing orders jobs: running, waiting, ended.
func standing(r *batch.Row) int {
	switch {
	case r.Ended > 0:
		return 2
	case r.Started > 0:
		return 0
	default:
		return 1
	}
}

// poolText is the line of all jobs together.
func poolText(v *batch.View) string {
	ended := 0
	for i := range v.Rows {
		if v.Rows[i].Ended > 0 {
			ended++
		}
	}
	text := fmt.Sprintf("%s: %d of %d have ended, %d run, %d wait; reserved %v", seconds(time.Duration(v.Now.At)), ended,
		len(v.Rows), v.Now.Running, v.Now.Waiting, v.Now.Reserved)
	if v.Pool > 0 {
		text += fmt.Sprintf(" of %v", v.Pool)
	}
	return text + fmt.Sprintf(", resident %v", v.Now.Resident)
}

// batchStatus is a job's state in few words.
func batchStatus(r *batch.Row) string {
	switch {
	case r.Refused:
		return "refused"
	case r.Behind != "":
		return "stopped"
	case r.Status == disdel.StatusUnknown:
		return "-"
	case r.Status == disdel.StatusQueued && r.Ahead > 0:
		return fmt.Sprintf("queued behind %d", r.Ahead)
	default:
		return r.Status.String() + prefixed(", ", r.Verdict)
	}
}

// whyText is why a job ended early, empty if it did not.
func whyText(r *batch.Row) string {
	switch {
	case r.Behind != "":
		return r.Behind
	case r.Status == disdel.StatusFailed && r.Failure != nil:
		return r.Failure.Error()
	default:
		return ""
	}
}

func roundText(r *batch.Row) string {
	if r.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.Rounds, r.Of)
}

func optional(v *float64) string {
	if v == nil {
		return "-"
	}
	return fourDecimals(*v, true)
}

// choicePaths are the fields that the matrix set in some jobs, in the order of the jobs.
func choicePaths(rows []batch.Row) (out []string) {
	for i := range rows {
		for _, c := range rows[i].Choices {
			if !slices.Contains(out, c.Path) {
				out = append(out, c.Path)
			}
		}
	}
	return out
}

// choiceNames is the last names of these fields, where they tell them apart.
func choiceNames(rows []batch.Row) []string {
	out := choicePaths(rows)
	seen := map[string]int{}
	for _, path := range out {
		seen[lastName(path)]++
	}
	for i, path := range out {
		if seen[lastName(path)] == 1 {
			out[i] = lastName(path)
		}
	}
	return out
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// choiceValues is a job's values of these fields.
func choiceValues(rows []batch.Row, r *batch.Row) []string {
	out := choicePaths(rows)
	for i, path := range out {
		out[i] = "-"
		for _, c := range r.Choices {
			if c.Path == path {
				out[i] = c.Value
			}
		}
	}
	return out
}

// choicesText is what a matrix gave a job: "(batchSize 32, epochs 3)".
func choicesText(r *batch.Row) string {
	parts := make([]string, len(r.Choices))
	for i, c := range r.Choices {
		parts[i] = lastName(c.Path) + " " + c.Value
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// What a page of a batch shows at most.
const (
	mostCurves   = 8
	mostGantt    = 40
	bytesOfAPlot = float64(disdel.MB)
)

// BatchPage is a page about a batch: jobs, the pool over time, waiting and running times, and the curves of the best
// jobs.
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
	unit := unitFor(s.Makespan)
	p := &plot.Lines{
		Title: "Pool over time", XName: unit.Name + " since the batch began", YName: "MB", To: unit.Value(s.Makespan),
		Alt: fmt.Sprintf("At most %v were reserved and %v resident", s.Pool.MostReserved, s.Pool.MostResident),
	}
	for i, line := range []struct {
		name   string
		metric func(batch.Sample) disdel.Bytes
	}{
		{"reserved by grants", func(v batch.Sample) disdel.Bytes { return v.Reserved }},
		{"limits of what runs", func(v batch.Sample) disdel.Bytes { return v.Held }},
		{"resident", func(v batch.Sample) disdel.Bytes { return v.Resident }},
	} {
		var dots []plot.Dot
		last := 0.0
		for _, v := range s.Pool.Samples {
			x, y := unit.Value(v.At), float64(line.metric(v))/bytesOfAPlot
			if len(dots) > 0 && y != last {
				dots = append(dots, plot.Dot{X: x, Y: last})
			}
			dots, last = append(dots, plot.Dot{X: x, Y: y}), y
			p.Top = max(p.Top, 1.08*y)
		}
		p.Series = append(p.Series, plot.Series{Name: line.name, Class: fmt.Sprintf("s%d", i), Pieces: [][]plot.Dot{dots}})
	}
	return report.FigureOf(p, "")
}

// ganttFigure is when each job waited and ran.
func ganttFigure(s *batch.Summary, jobs []batch.Row) report.Figure {
	unit, note := unitFor(s.Makespan), ""
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
	metric := metricOf(s)
	name := "held-out " + metric.Title
	p := &plot.Lines{Title: strings.ToUpper(name[:1]) + name[1:] + " by epoch", XName: "epoch", YName: name, Whole: true}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		var dots []plot.Dot
		for _, point := range r.Curve {
			if v := metric.Value(point.Figures()); v != nil {
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
	if metric.Larger {
		p.Top = 1
	}
	p.Alt = fmt.Sprintf("%d jobs, the best of which ends at %.4f", len(p.Series), p.Series[0].Last())
	note := ""
	if len(s.Jobs) > len(p.Series) {
		note = fmt.Sprintf("The best %d of %d jobs are shown.", len(p.Series), len(s.Jobs))
	}
	return report.FigureOf(p, note), true
}
