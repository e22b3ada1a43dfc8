package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// Comparison is several jobs side by side, and the document of compare -o json.
type Comparison struct {
	APIVersion string       `json:"apiVersion"`
	Jobs       []JobResult  `json:"jobs"`
	Differs    []Difference `json:"differs"` // fields of the jobs that are not the same in all, by their paths
	Curves     []Curve      `json:"curves"`  // of each job
}

// JobResult is the result of a job.
type JobResult struct {
	ID            disdel.JobID  `json:"id"`
	Name          string        `json:"name"`
	Status        disdel.Status `json:"status"`
	Verdict       string        `json:"verdict,omitempty"`  // see disdel.Record
	Model         string        `json:"model,omitempty"`    // NAME:vN
	Accuracy      *float64      `json:"accuracy,omitempty"` // held-out, of the model; nil: none was made
	Best          *float64      `json:"best,omitempty"`     // the highest of all evaluations
	Loss          *float64      `json:"loss,omitempty"`     // held-out, of the model
	disdel.Scores               // held-out, of the model
	Metric        string        `json:"metric"` // by which the job is compared, see disdel.Record.Metric
	Train         *float64      `json:"trainLoss,omitempty"`
	Trained       *float64      `json:"trainAccuracy,omitempty"` // of the model's round, on training rows as they were seen
	Rounds        int           `json:"rounds"`                  // that are over
	Workers       int           `json:"workers"`
	Duration      disdel.Millis `json:"durationMs"` // 0: it has not ended
	CostGBs       float64       `json:"costGBs"`
	Peak          disdel.Bytes  `json:"peakBytes"`  // the highest of its train actions; 0: not known
	Limit         disdel.Bytes  `json:"limitBytes"` // of a train action
	Labels        string        `json:"labels,omitempty"`
}

// Difference is a field that differs between jobs.
type Difference struct {
	Path   string   `json:"path"`   // as --set has it: training.batchSize
	Values []string `json:"values"` // by job; "": the job has no such field
}

// Curve is the values of a job by round; nil if a round has none.
type Curve struct {
	Job       disdel.JobID `json:"job"`
	Name      string       `json:"name"`
	Round     []int        `json:"round"` // from 1
	TrainLoss []*float64   `json:"trainLoss"`
	Loss      []*float64   `json:"loss"`
	Accuracy  []*float64   `json:"accuracy"`
	RMSE      []*float64   `json:"rmse,omitempty"` // of numbers
	// Metric names what Figure has: the metric by which the job is compared, if it is another one.
	Metric string     `json:"metric,omitempty"`
	Figure []*float64 `json:"figure,omitempty"`
}

// ComparedJob is the part of a record that a comparison needs.
type ComparedJob struct {
	JobResult JobResult
	Curve     Curve
	fields    map[string]string
}

// ComparedJobOf extracts it from a record, which stays unchanged.
func ComparedJobOf(r *disdel.Record) ComparedJob {
	return ComparedJob{JobResultOf(r), curve(r), JobSettings(r)}
}

// Thin reduces the curves to the points that a chart shows, for callers that keep many jobs.
func (p ComparedJob) Thin() ComparedJob {
	p.Curve = p.Curve.thin()
	return p
}

// Compare compares jobs in their order.
func Compare(list []disdel.Record) Comparison {
	parts := make([]ComparedJob, len(list))
	for i := range list {
		parts[i] = ComparedJobOf(&list[i])
	}
	return CompareJobs(parts)
}

// CompareJobs compares extracted jobs in their order.
func CompareJobs(parts []ComparedJob) Comparison {
	out := Comparison{APIVersion: disdel.APIVersion, Jobs: []JobResult{}, Curves: []Curve{}}
	fields := make([]map[string]string, len(parts))
	for i, p := range parts {
		out.Jobs, out.Curves, fields[i] = append(out.Jobs, p.JobResult), append(out.Curves, p.Curve), p.fields
	}
	out.Differs = differences(fields)
	return out
}

// StatusText is the status, and what is wrong with the result of a job that succeeded.
func (e *JobResult) StatusText() string { return e.Status.String() + withVerdict(e.Verdict) }

// Figures returns what held-out rows showed of the job's model.
func (e *JobResult) Figures() disdel.Figures {
	return disdel.Figures{Loss: e.Loss, Accuracy: e.Accuracy, Scores: e.Scores}
}

// Compared returns the metric by which the job is compared, and its value; nil: it was not measured.
func (e *JobResult) Compared() (m disdel.Metric, value *float64) {
	m, ok := disdel.FindMetric(e.Metric)
	if !ok {
		m, _ = disdel.FindMetric(disdel.MetricAccuracy)
	}
	return m, m.Value(e.Figures())
}

// Figure is the value by which the job is compared, in a table: an accuracy, or another value with its name.
func (e *JobResult) Figure() string {
	if m, v := e.Compared(); v != nil && m.Name != disdel.MetricAccuracy {
		return m.Text(*v)
	}
	return e.Figures().Text()
}

// number is Figure without the name.
func (e *JobResult) number() string {
	m, v := e.Compared()
	if v == nil {
		return "-"
	}
	return m.Number(*v)
}

// JobResultOf is the result of a job, as far as its record has it. Losses and accuracies are those of the round whose
// weights the model has.
func JobResultOf(r *disdel.Record) JobResult {
	e := JobResult{
		ID: r.ID, Name: r.Job.Metadata.Name, Status: r.Status, Verdict: r.Verdict(), Rounds: len(r.Rounds), Workers: r.Plan.Workers,
		CostGBs:  r.CostGBs,
		Duration: r.Phases.Total, Scores: r.Scores, Metric: r.Metric().Name,
	}
	if r.Model != nil {
		e.Model = fmt.Sprintf("%s:v%d", r.Model.Name, r.Model.Version)
	}
	if e.Duration == 0 && !r.Ended.IsZero() {
		e.Duration = disdel.Millis(max(0, r.Ended.Sub(r.Created)))
	}
	kept := len(r.ModelRounds())
	for i := range r.Rounds {
		v := &r.Rounds[i]
		if i < kept {
			e.Train, e.Trained = &v.TrainLoss, v.TrainAccuracy
			e.Loss, e.Accuracy = cmp.Or(v.Loss, e.Loss), cmp.Or(v.Accuracy, e.Accuracy)
		}
		if v.Accuracy != nil && (e.Best == nil || *v.Accuracy > *e.Best) {
			e.Best = v.Accuracy
		}
	}
	for _, v := range []**float64{&e.Train, &e.Trained, &e.Loss, &e.Accuracy, &e.Best} {
		*v = copied(*v)
	}
	for i := range r.Activations {
		if a := &r.Activations[i]; a.Task == disdel.TaskTrain {
			e.Peak = max(e.Peak, a.Peak)
		}
	}
	if train, ok := r.Plan.Action(disdel.TaskTrain); ok {
		e.Limit = train.Limits.Memory
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(r.Job.Metadata.Labels)) {
		labels = append(labels, key+"="+r.Job.Metadata.Labels[key])
	}
	e.Labels = strings.Join(labels, " ")
	return e
}

func curve(r *disdel.Record) Curve {
	c := Curve{
		Job: r.ID, Name: r.Job.Metadata.Name, Round: []int{}, TrainLoss: []*float64{}, Loss: []*float64{},
		Accuracy: []*float64{},
	}
	metric := r.Metric()
	if metric.Name != disdel.MetricAccuracy && metric.Name != disdel.MetricRMSE {
		c.Metric = metric.Name
	}
	for i := range r.Rounds {
		v := &r.Rounds[i]
		c.Round = append(c.Round, v.Round+1)
		c.TrainLoss, c.Loss, c.Accuracy = append(c.TrainLoss, &v.TrainLoss), append(c.Loss, v.Loss),
			append(c.Accuracy, v.Accuracy)
		if r.Data.Numbers() {
			rmse, _ := disdel.FindMetric(disdel.MetricRMSE)
			c.RMSE = append(c.RMSE, rmse.Value(v.Figures()))
		}
		if c.Metric != "" {
			c.Figure = append(c.Figure, metric.Value(v.Figures()))
		}
	}
	return c
}

// JobSettings is all fields of a job by their paths, and the checksum of its data.
func JobSettings(r *disdel.Record) map[string]string {
	out := r.Job.Fields()
	out["data.checksum"], out["plan.workers"] = r.Data.Checksum, fmt.Sprint(r.Plan.Workers)
	delete(out, "apiVersion")
	delete(out, "kind")
	maps.DeleteFunc(out, func(path, _ string) bool { // follows from the program, and is measured anew each time
		return strings.HasPrefix(path, "model.python.network.")
	})
	return out
}

// differences are the fields that are not equal in all jobs.
func differences(fields []map[string]string) []Difference {
	paths := map[string]bool{}
	for _, f := range fields {
		for p := range f {
			paths[p] = true
		}
	}
	out := []Difference{}
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		d := Difference{Path: p}
		for _, f := range fields {
			d.Values = append(d.Values, f[p])
		}
		if slices.ContainsFunc(d.Values, func(v string) bool { return v != d.Values[0] }) {
			out = append(out, d)
		}
	}
	return out
}

// Print writes a column for each job: results first, then differences.
func (c *Comparison) Print(w io.Writer) {
	head := []string{"OF THE KEPT MODEL"}
	for i := range c.Jobs {
		head = append(head, fmt.Sprintf("%d %s", i+1, c.Jobs[i].Name))
	}
	rows := [][]string{head}
	for _, line := range c.Rows() {
		row := []string{line.Name}
		for i := range c.Jobs {
			row = append(row, line.Text(&c.Jobs[i]))
		}
		rows = append(rows, row)
	}
	terminal.Table(w, rows...)
	fmt.Fprintln(w)
	if len(c.Differs) == 0 {
		fmt.Fprintln(w, "nothing is different about them")
		return
	}
	head[0] = "DIFFERENT"
	rows = [][]string{head}
	for _, d := range c.Differs {
		rows = append(rows, append([]string{d.Path}, shown(d.Values)...))
	}
	terminal.Table(w, rows...)
}

// mostText is how much of a value is shown.
const mostText = 40

func shown(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		if out[i] = terminal.Cut(terminal.OneLine(v), mostText); v == "" {
			out[i] = "-"
		}
	}
	return out
}

// ComparisonRow is one value of all jobs.
type ComparisonRow struct {
	Name string
	Text func(*JobResult) string
}

// Rows are the values of a job, from top to bottom. The row of what the jobs are compared by is called by that metric,
// or "result" if the jobs differ in it.
func (c *Comparison) Rows() []ComparisonRow {
	rows := slices.Clone(comparisonRows)
	for i := range rows {
		if rows[i].Text == nil {
			rows[i] = c.resultRow()
		}
	}
	return rows
}

func (c *Comparison) resultRow() ComparisonRow {
	name := ""
	for i := range c.Jobs {
		m, v := c.Jobs[i].Compared()
		switch {
		case v == nil:
		case name == "" || name == m.Title:
			name = m.Title
		default:
			return ComparisonRow{"result", (*JobResult).Figure}
		}
	}
	return ComparisonRow{cmp.Or(name, "result"), (*JobResult).number}
}

// comparisonRows has no text for the row of the results.
var comparisonRows = []ComparisonRow{
	{"id", func(e *JobResult) string { return string(e.ID) }},
	{"status", func(e *JobResult) string { return e.StatusText() }},
	{"result", nil},
	{"best accuracy of a round", func(e *JobResult) string { return figure(e.Best) }},
	{"loss", func(e *JobResult) string { return figure(e.Loss) }},
	{"train accuracy", func(e *JobResult) string { return figure(e.Trained) }},
	{"train loss", func(e *JobResult) string { return figure(e.Train) }},
	{"rounds", func(e *JobResult) string { return fmt.Sprint(e.Rounds) }},
	{"workers", func(e *JobResult) string { return fmt.Sprint(e.Workers) }},
	{"time", func(e *JobResult) string { return textIf(e.Duration > 0, e.Duration.Text()) }},
	{"cost GB-s", func(e *JobResult) string { return fmt.Sprintf("%.2f", e.CostGBs) }},
	{"peak of limit", func(e *JobResult) string { return textIf(e.Peak > 0, peakOfLimit(e.Peak, e.Limit)) }},
	{"model", func(e *JobResult) string { return textIf(e.Model != "", e.Model) }},
	{"labels", func(e *JobResult) string { return textIf(e.Labels != "", e.Labels) }},
}

func peakOfLimit(peak, limit disdel.Bytes) string {
	if limit == 0 {
		return peak.String()
	}
	return fmt.Sprintf("%v of %v", peak, limit)
}

func textIf(known bool, text string) string {
	if !known {
		return "-"
	}
	return text
}

func figure(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *v)
}
