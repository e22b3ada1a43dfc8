package disdel

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Metric is a figure of an evaluation on held-out rows, with its direction.
type Metric struct {
	Name   string // in job files, flags and JSON
	Title  string // in sentences and tables
	Larger bool   // a larger value is better
	value  func(Figures) *float64
}

// The metrics of an evaluation. EarlyStop and Goal name them.
const (
	MetricLoss       = "loss"
	MetricValLoss    = "valLoss"
	MetricAccuracy   = "accuracy"
	MetricRMSE       = "rmse"
	MetricMAE        = "mae"
	MetricR2         = "r2"
	MetricPerplexity = "perplexity"
	MetricF1         = "f1"
	MetricMicroF1    = "microF1"
	MetricTop5       = "top5"
)

// TopClasses is how many of the most probable classes MetricTop5 takes. It needs more classes than that.
const TopClasses = 5

// metrics is the table of metrics.
var metrics = []Metric{
	{MetricAccuracy, "accuracy", true, func(f Figures) *float64 { return f.Accuracy }},
	{MetricTop5, "top-5 accuracy", true, func(f Figures) *float64 { return f.Top5 }},
	{MetricLoss, "loss", false, func(f Figures) *float64 { return f.Loss }},
	{MetricRMSE, "RMSE", false, func(f Figures) *float64 { return f.error(f.RMSE) }},
	{MetricMAE, "MAE", false, func(f Figures) *float64 { return f.error(f.MAE) }},
	{MetricR2, "R2", true, func(f Figures) *float64 { return f.R2 }},
	{MetricPerplexity, "perplexity", false, func(f Figures) *float64 {
		if f.Perplexity == 0 {
			return nil
		}
		return &f.Perplexity
	}},
	{MetricF1, "F1", true, func(f Figures) *float64 { return f.F1 }},
	{MetricMicroF1, "micro F1", true, func(f Figures) *float64 {
		if f.F1 == nil {
			return nil
		}
		return &f.MicroF1
	}},
}

// CountTop5 returns how many rows have their label among the TopClasses largest outputs, the first of equal ones. Rows
// of outputs lie one behind another.
func CountTop5(outputs []float32, labels []int32) (count int) {
	if len(labels) == 0 {
		return 0
	}
	row := len(outputs) / len(labels)
	for i, label := range labels {
		values, larger := outputs[i*row:(i+1)*row], 0
		for k, v := range values {
			if v > values[label] || v == values[label] && k < int(label) {
				larger++
			}
		}
		if larger < TopClasses {
			count++
		}
	}
	return count
}

// FindMetric returns the metric of a name, ok is false for an unknown name. MetricValLoss is the held-out loss.
func FindMetric(name string) (m Metric, ok bool) {
	if name == MetricValLoss {
		name = MetricLoss
	}
	for _, m := range metrics {
		if m.Name == name {
			return m, true
		}
	}
	return m, false
}

// Figures are the results of an evaluation on held-out rows. nil: not measured.
type Figures struct {
	Loss     *float64
	Accuracy *float64
	Scores
}

// error returns an error of predicted numbers, nil if none was measured. A perfect model has an error of 0.
func (f Figures) error(v float64) *float64 {
	if v == 0 && f.R2 == nil {
		return nil
	}
	return &v
}

// Value returns the metric's value among the figures, nil if it was not measured.
func (m Metric) Value(f Figures) *float64 {
	if m.value == nil {
		return nil
	}
	return m.value(f)
}

// Rank turns a value into a number that is lower for better values. NaN and nil are the worst.
func (m Metric) Rank(v *float64) float64 {
	switch {
	case v == nil || math.IsNaN(*v):
		return math.Inf(1)
	case m.Larger:
		return -*v
	default:
		return *v
	}
}

// Text formats a value with its title, such as "accuracy 0.9312" or "RMSE 41.27".
func (m Metric) Text(v float64) string { return m.Title + " " + m.Number(v) }

// Number formats a value: four decimals of an accuracy or a loss, and five digits of an error, which has a unit,
// and of a perplexity.
func (m Metric) Number(v float64) string {
	if m.Name == MetricRMSE || m.Name == MetricMAE || m.Name == MetricPerplexity {
		return fmt.Sprintf("%.5g", v)
	}
	return fmt.Sprintf("%.4f", v)
}

// Text is a cell of a table: the accuracy of classes, the RMSE of numbers, the F1 of labels or the perplexity of texts
// with its name, or "-".
func (f Figures) Text() string {
	if f.F1 != nil {
		m, _ := FindMetric(MetricF1)
		return m.Text(*f.F1)
	}
	if v := f.error(f.RMSE); v != nil {
		m, _ := FindMetric(MetricRMSE)
		return m.Text(*v)
	}
	if f.Perplexity > 0 {
		m, _ := FindMetric(MetricPerplexity)
		return m.Text(f.Perplexity)
	}
	if f.Accuracy == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *f.Accuracy)
}

// MetricColumn returns the head and the cells of a table's column of results. The given cells are as Figures.Text
// writes them. If all are of one metric, the head is its title and the cells are numbers. Otherwise the head is
// "metric", and each cell names its own.
func MetricColumn(cells []string) (head string, out []string) {
	named, head, mixed := slices.Clone(cells), "", false
	for i, cell := range cells {
		if cell == "" || cell == "-" { // no result
			out = append(out, cell)
			continue
		}
		title, number := "accuracy", cell
		if at := strings.LastIndexByte(cell, ' '); at >= 0 {
			title, number = cell[:at], cell[at+1:]
		}
		named[i], out = title+" "+number, append(out, number)
		mixed = mixed || head != "" && head != title
		head = title
	}
	if mixed || head == "" {
		return "metric", named
	}
	return head, out
}

// Figures returns the round's evaluation.
func (r *Round) Figures() Figures { return Figures{r.Loss, r.Accuracy, r.Scores} }

// Figures returns the evaluation whose weights are kept.
func (b *Best) Figures() Figures { return Figures{&b.Loss, &b.Accuracy, b.Scores} }

// Figures returns the evaluation of the observed round.
func (o *Observation) Figures() Figures { return Figures{o.HeldOut, o.Accuracy, o.Scores} }

// Metric returns the figure by which the job and its model are compared with others: the one that the job stops by,
// unless that is a loss, else that of its data.
func (r *Record) Metric() Metric {
	if m := r.Job.Training.Stop().Of(); m.Name != MetricLoss {
		return m
	}
	return r.Data.Metric(r.Job.Training.Loss)
}

// Target is a number that every row of a data set of dense rows has, and that networks learn to predict. Networks
// learn it standardised, so that one learning rate suits targets of any unit. A label of several is a target, too: it
// is 1 for yes and 0 for no, it is learned as it is, and a network's output is its probability.
type Target struct {
	Name      string  `json:"name"`
	Mean      float64 `json:"mean"`      // of the training rows
	Deviation float64 `json:"deviation"` // standard deviation of the training rows, above 0
	Low       float64 `json:"low"`       // the least of the training rows
	High      float64 `json:"high"`      // the largest of the training rows
	// Label says that the target is yes or no, with Mean 0 and Deviation 1. All targets of a data set are labels, or none.
	Label bool `json:"label,omitempty"`
}

// LabelThreshold is the probability from which on a label of several is answered with yes.
const LabelThreshold = 0.5

// multiLabel tells whether targets are labels, each yes or no.
func multiLabel(list []Target) bool { return len(list) > 0 && list[0].Label }

// MultiLabel tells whether rows have several labels, each yes or no.
func (d DataInfo) MultiLabel() bool { return multiLabel(d.Targets) }

// TargetWord is what one of the targets is: "label" or "number".
func (d DataInfo) TargetWord() string {
	if d.MultiLabel() {
		return "label"
	}
	return "number"
}

// MultiLabel tells whether the network gives each label a probability of its own.
func (n *Network) MultiLabel() bool { return multiLabel(n.Targets) }

// LabelsOf returns the names of the labels that a row of probabilities answers with yes, see LabelThreshold.
func (n *Network) LabelsOf(probabilities []float32) []string {
	out := []string{}
	for k, p := range probabilities {
		if p >= LabelThreshold {
			out = append(out, n.Targets[k].Name)
		}
	}
	return out
}

// Standard converts a value in the target's unit to the number that networks learn: less Mean, over Deviation.
func (t Target) Standard(value float64) float32 { return float32((value - t.Mean) / t.Deviation) }

// Value converts a network's output to the target's unit. It is the inverse of Standard.
func (t Target) Value(output float32) float64 { return float64(output)*t.Deviation + t.Mean }

// Numbers tells whether the targets are numbers to predict, which have no accuracy. Labels have one.
func (d DataInfo) Numbers() bool {
	return len(d.Targets) > 0 && !d.MultiLabel() || d.Sparse != nil && d.Classes < 2
}

// Numbers tells whether the network predicts numbers, which have no accuracy.
func (n *Network) Numbers() bool {
	return len(n.Targets) > 0 && !n.MultiLabel() || n.Sparse != nil && n.Classes < 2
}

// Values converts a row of outputs to the units of the targets.
func (n *Network) Values(outputs []float32) []float64 {
	out := make([]float64, len(n.Targets))
	for k, t := range n.Targets {
		out[k] = t.Value(outputs[k])
	}
	return out
}

// Metric returns the figure by which jobs on this data are compared if they train with a loss: the accuracy of
// classes, the F1 of several labels, of a language model the perplexity, and of numbers the mean absolute error for
// LossMAE, else the root of the mean squared error.
func (d DataInfo) Metric(loss string) Metric {
	name := MetricRMSE
	switch {
	case d.NextToken:
		name = MetricPerplexity
	case d.MultiLabel():
		name = MetricF1
	case !d.Numbers():
		name = MetricAccuracy
	case loss == LossMAE:
		name = MetricMAE
	}
	m, _ := FindMetric(name)
	return m
}

// ErrorSums adds up the errors of predicted numbers, by target and in its unit.
type ErrorSums struct {
	targets []Target
	sums    []errorSum // by target
	rows    int
}

type errorSum struct{ squares, absolute, values, valueSquares float64 }

// NewErrorSums returns sums for these targets. Without targets Add does nothing.
func NewErrorSums(targets []Target) *ErrorSums {
	return &ErrorSums{targets: targets, sums: make([]errorSum, len(targets))}
}

// Add adds rows: the outputs of a network and the standardised targets, all values of a row one after the other.
func (e *ErrorSums) Add(outputs, targets []float32) {
	n := len(e.targets)
	if n == 0 {
		return
	}
	e.rows += len(targets) / n
	for i, v := range targets {
		s, unit := &e.sums[i%n], e.targets[i%n].Deviation
		off, value := unit*(float64(outputs[i])-float64(v)), unit*float64(v)
		s.squares += off * off
		s.absolute += math.Abs(off)
		s.values += value
		s.valueSquares += value * value
	}
}

// Scores returns the RMSE, the MAE and R2 of all rows, each the mean over the targets. R2 is nil if every target is the
// same in all rows.
func (e *ErrorSums) Scores() (s Scores) {
	var r2, explained float64
	n := float64(max(1, e.rows))
	for _, t := range e.sums {
		s.RMSE += math.Sqrt(t.squares/n) / float64(len(e.sums))
		s.MAE += t.absolute / n / float64(len(e.sums))
		if spread := t.valueSquares - t.values*t.values/n; spread > 1e-12*t.valueSquares {
			r2, explained = r2+1-t.squares/spread, explained+1
		}
	}
	if explained > 0 {
		s.R2 = new(r2 / explained)
	}
	return s
}

// LabelSums counts the right and wrong answers for rows of several labels, by label. See LabelThreshold.
type LabelSums struct{ labels []labelSum }

type labelSum struct{ rows, right, hits, given, answered int } // given, answered: rows of 1; hits: both

// NewLabelSums returns sums for so many labels. Without labels Add does nothing.
func NewLabelSums(labels int) *LabelSums { return &LabelSums{make([]labelSum, labels)} }

// Add adds rows: the probabilities and the labels, which are 1 for yes and 0 for no, of one row after the other.
func (l *LabelSums) Add(probabilities, labels []float32) {
	if len(l.labels) == 0 {
		return
	}
	for i, v := range labels {
		s := &l.labels[i%len(l.labels)]
		given, answered := v >= LabelThreshold, probabilities[i] >= LabelThreshold
		s.rows++
		for _, c := range []struct {
			counts bool
			sum    *int
		}{
			{given, &s.given}, {answered, &s.answered}, {given && answered, &s.hits}, {given == answered, &s.right},
		} {
			if c.counts {
				*c.sum++
			}
		}
	}
}

// Scores returns the share of right labels, and the F1 in Scores: F1 is the mean over the labels that a row has or is
// answered with (macro), MicroF1 that of all labels together.
func (l *LabelSums) Scores() (accuracy float64, s Scores) {
	var all labelSum
	var sum, known float64
	for _, one := range l.labels {
		all.rows, all.right = all.rows+one.rows, all.right+one.right
		all.hits, all.given, all.answered = all.hits+one.hits, all.given+one.given, all.answered+one.answered
		if one.given+one.answered > 0 {
			sum, known = sum+one.f1(), known+1
		}
	}
	s.F1, s.MicroF1 = new(sum/max(1, known)), all.f1()
	return float64(all.right) / float64(max(1, all.rows)), s
}

// f1 is the harmonic mean of precision and recall.
func (s *labelSum) f1() float64 { return 2 * float64(s.hits) / float64(max(1, s.given+s.answered)) }
