package render

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
)

// JobList is a list of jobs, newest first, with what a table needs beyond their records.
type JobList struct {
	Records  []disdel.Record
	Columns  []string                    // names of columns, or fields of the job file; nil: the usual ones
	Status   func(*disdel.Record) string // of a job
	Tags     func(disdel.JobID) []string // of a job
	Now      time.Time                   // ages are counted to it
	Filtered bool                        // jobs may have been left out
	Batches  map[string][]*disdel.Record // jobs of a batch that have one line together; nil: each job has its own
}

// jobColumn is a column of a list of jobs.
type jobColumn struct {
	name, head string
	text       func(l *JobList, r *disdel.Record) string
	number     func(r *disdel.Record) (v float64, ok bool) // what lists are sorted by; nil: the text
}

// jobColumns are the columns of a list of jobs.
var jobColumns = []jobColumn{
	{"job", "JOB", func(_ *JobList, r *disdel.Record) string { return string(r.ID) }, nil},
	{"name", "NAME", func(_ *JobList, r *disdel.Record) string { return r.Job.Metadata.Name }, nil},
	{"status", "STATUS", func(l *JobList, r *disdel.Record) string { return statusText(r, l.Status(r)) }, nil},
	{"age", "AGE", func(l *JobList, r *disdel.Record) string { return AgeText(l.Now.Sub(r.Created)) }, ageNumber},
	{"created", "CREATED", func(_ *JobList, r *disdel.Record) string {
		return r.Created.Local().Format("2006-01-02 15:04:05")
	}, func(r *disdel.Record) (float64, bool) { return float64(r.Created.UnixMilli()), true }},
	{
		"time", "TIME", func(_ *JobList, r *disdel.Record) string { return secondsText(r.Phases.Total) },
		func(r *disdel.Record) (float64, bool) { return float64(r.Phases.Total), r.Phases.Total > 0 },
	},
	{
		"rounds", "ROUNDS", func(_ *JobList, r *disdel.Record) string { return fmt.Sprint(len(r.Rounds)) },
		func(r *disdel.Record) (float64, bool) { return float64(len(r.Rounds)), true },
	},
	{"model", "MODEL", func(_ *JobList, r *disdel.Record) string { return modelText(&r.Job.Model) }, nil},
	{"dataset", "DATA", func(_ *JobList, r *disdel.Record) string { return r.Data.Name }, nil},
	{"accuracy", "METRIC", func(_ *JobList, r *disdel.Record) string {
		return heldOutFigures(r).Text()
	}, func(r *disdel.Record) (float64, bool) {
		accuracy, _, ok := heldOutScores(r)
		return accuracy, ok && !r.Data.Numbers()
	}},
	{"loss", "LOSS", func(_ *JobList, r *disdel.Record) string {
		_, loss, ok := heldOutScores(r)
		return fourDecimals(loss, ok)
	}, func(r *disdel.Record) (float64, bool) {
		_, loss, ok := heldOutScores(r)
		return loss, ok
	}},
	{"peak", "PEAK/LIMIT", func(_ *JobList, r *disdel.Record) string {
		peak, limit := highestPeak(r)
		return fmt.Sprintf("%d/%d MB", peak.MB(), limit.MB())
	}, func(r *disdel.Record) (float64, bool) {
		peak, _ := highestPeak(r)
		return float64(peak), peak > 0
	}},
	{
		"cost", "GB-S", func(_ *JobList, r *disdel.Record) string { return fmt.Sprintf("%.1f", r.CostGBs) },
		func(r *disdel.Record) (float64, bool) { return r.CostGBs, true },
	},
	{"tags", "TAGS", func(l *JobList, r *disdel.Record) string { return strings.Join(l.Tags(r.ID), " ") }, nil},
	{"labels", "LABELS", func(_ *JobList, r *disdel.Record) string { return report.JobResultOf(r).Labels }, nil},
	{"batch", "BATCH", func(_ *JobList, r *disdel.Record) string { return r.Job.Metadata.Labels[disdel.BatchLabel] }, nil},
}

// usualColumns are the columns of a list of jobs that names none.
var usualColumns = []string{
	"job", "name", "status", "age", "time", "rounds", "model", "dataset", "accuracy", "loss", "peak", "cost",
}

// JobColumns are the names of all columns of a list of jobs.
func JobColumns() (names []string) {
	for _, c := range jobColumns {
		names = append(names, c.name)
	}
	return names
}

// columnOf is the column of a name. A name with a dot is a field of the job file, such as training.batchSize.
func columnOf(name string) (jobColumn, bool) {
	for _, c := range jobColumns {
		if c.name == name {
			return c, true
		}
	}
	field := func(_ *JobList, r *disdel.Record) string { return report.JobSettings(r)[name] }
	return jobColumn{name, lastName(name), field, nil}, strings.Contains(name, ".")
}

// CheckJobColumn returns Invalid for a name that is no column of a list of jobs.
func CheckJobColumn(flag, name string) error {
	if _, ok := columnOf(name); ok {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Msg: fmt.Sprintf("%s: a list of jobs has no column %q", flag, name),
		Hint: "use " + strings.Join(JobColumns(), ", ") + ", or a field of the job file such as training.batchSize",
	}
}

// SortJobs sorts a list by a column, smallest first; "-" before its name means largest first. Jobs without a value are
// last.
func (l *JobList) SortJobs(column string) {
	name, down := strings.CutPrefix(column, "-")
	by, _ := columnOf(name)
	slices.SortStableFunc(l.Records, func(a, b disdel.Record) int {
		order := l.compare(by, &a, &b)
		if down && math.Abs(float64(order)) == 1 {
			order = -order
		}
		return order
	})
}

// withoutValue is how compare orders two jobs of which one has no value.
const withoutValue = 2

func (l *JobList) compare(by jobColumn, a, b *disdel.Record) int {
	x, known := l.sortedBy(by, a)
	y, too := l.sortedBy(by, b)
	if by.number == nil && !known && !too {
		return strings.Compare(by.text(l, a), by.text(l, b))
	}
	switch {
	case known && too:
		return cmp.Compare(x, y)
	case known:
		return -withoutValue
	case too:
		return withoutValue
	default:
		return 0
	}
}

// sortedBy is the number by which a column sorts a job; ok is false if the job has none.
func (l *JobList) sortedBy(by jobColumn, r *disdel.Record) (v float64, ok bool) {
	if by.number != nil {
		return by.number(r)
	}
	v, err := strconv.ParseFloat(by.text(l, r), 64)
	return v, err == nil
}

// PrintJobs prints a table of jobs.
func PrintJobs(w io.Writer, l *JobList) {
	switch {
	case len(l.Records) == 0 && l.Filtered:
		fmt.Fprintln(w, "no job matches; disdel jobs lists all")
		return
	case len(l.Records) == 0:
		fmt.Fprintln(w, "no jobs yet: disdel quickstart")
		return
	}
	var columns []jobColumn
	for _, name := range l.columnNames() {
		c, _ := columnOf(name)
		columns = append(columns, c)
	}
	rows := [][]string{{}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.head)
	}
	printed, batch := map[string]bool{}, ""
	for i := range l.Records {
		r := &l.Records[i]
		name := r.Job.Metadata.Labels[disdel.BatchLabel]
		if jobs := l.Batches[name]; len(jobs) > 1 {
			if !printed[name] {
				rows = append(rows, l.batchRow(name, jobs, columns))
			}
			printed[name], batch = true, cmp.Or(batch, name)
			continue
		}
		rows = append(rows, l.row(r, columns))
	}
	nameMetric(rows, slices.IndexFunc(columns, func(c jobColumn) bool { return c.name == "accuracy" }))
	terminal.Table(w, l.fitted(w, rows)...)
	if batch != "" {
		fmt.Fprintf(w, "\nA batch has one line. Its jobs: disdel jobs --batch %s\n", batch)
	}
}

// nameMetric names the column of results after their metric, below the first row; at is -1 if there is none.
func nameMetric(rows [][]string, at int) {
	if at < 0 {
		return
	}
	cells := make([]string, len(rows)-1)
	for i, row := range rows[1:] {
		cells[i] = row[at]
	}
	head, cells := disdel.MetricColumn(cells)
	rows[0][at] = strings.ToUpper(head)
	for i, cell := range cells {
		rows[i+1][at] = cell
	}
}

func (l *JobList) columnNames() []string {
	if l.Columns == nil {
		return usualColumns
	}
	return l.Columns
}

// fitted leaves out columns that the page has no room for, unless the user chose the columns.
func (l *JobList) fitted(w io.Writer, rows [][]string) [][]string {
	if l.columnNames()[0] == "job" {
		rows = terminal.ShortIDs(w, rows)
	}
	if l.Columns != nil {
		return rows
	}
	return terminal.Fitted(w, rows, "LOSS", "PEAK/LIMIT", "GB-S", "ROUNDS", "TIME", "DATA", "MODEL", "AGE")
}

func (l *JobList) row(r *disdel.Record, columns []jobColumn) (cells []string) {
	for _, c := range columns {
		cells = append(cells, cmp.Or(c.text(l, r), "-"))
	}
	return cells
}

// batchRow is the line of a batch: what its jobs have in common, how many ended in which way, and the best accuracy.
func (l *JobList) batchRow(name string, jobs []*disdel.Record, columns []jobColumn) (cells []string) {
	best, metric := jobs[0], jobs[0].Metric()
	rank := func(r *disdel.Record) float64 { return metric.Rank(metric.Value(heldOutFigures(r))) }
	for _, r := range jobs {
		if rank(r) < rank(best) {
			best = r
		}
	}
	for _, c := range columns {
		text := c.text(l, jobs[0])
		switch c.name {
		case "job":
			text = name
		case "name":
			text = disdel.Counted(len(jobs), "job")
		case "status":
			text = l.batchStatus(jobs)
		case "age", "created":
		case "accuracy":
			text = c.text(l, best)
		default:
			if slices.ContainsFunc(jobs, func(r *disdel.Record) bool { return c.text(l, r) != text }) {
				text = "-"
			}
		}
		cells = append(cells, cmp.Or(text, "-"))
	}
	return cells
}

// batchStatus counts the jobs of a batch by their status.
func (l *JobList) batchStatus(jobs []*disdel.Record) string {
	counts, order := map[string]int{}, []string{}
	for _, r := range jobs {
		text := statusText(r, l.Status(r))
		if counts[text]++; counts[text] == 1 {
			order = append(order, text)
		}
	}
	for i, text := range order {
		order[i] = fmt.Sprintf("%d %s", counts[text], text)
	}
	return strings.Join(order, "; ")
}

// notOfAChoice are fields that differ between the jobs of a batch but that nobody chose.
var notOfAChoice = []string{"metadata.name", "output.model", "data.checksum"}

// BatchColumns are the columns for the jobs of one batch: the fields that differ between them come before the results.
func BatchColumns(list []disdel.Record) []string {
	var differ []string
	compared := report.Compare(list)
	for _, d := range compared.Differs {
		if !slices.Contains(notOfAChoice, d.Path) {
			differ = append(differ, d.Path)
		}
	}
	return slices.Concat([]string{"job", "name"}, differ, []string{"status", "accuracy", "loss", "time", "peak", "cost"})
}

// modelText is the network that a job trains.
func modelText(m *disdel.Model) string {
	return cmp.Or(m.NetworkName(), disdel.Counted(len(m.Layers), "layer"))
}

// highestPeak is the highest peak of memory of a job's actions, and the limit of that action.
func highestPeak(r *disdel.Record) (peak, limit disdel.Bytes) {
	for i := range r.Activations {
		if a := &r.Activations[i]; a.Peak >= peak {
			peak, limit = a.Peak, a.Limits.Memory
		}
	}
	return peak, limit
}

func ageNumber(r *disdel.Record) (float64, bool) { return -float64(r.Created.UnixMilli()), true }

const day = 24 * time.Hour

// AgeText is how long ago something happened, in its largest unit: 40s, 12m, 5h or 3d.
func AgeText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(max(0, d).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d/day))
	}
}
