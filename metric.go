package disdel

import (
	"fmt"
	"math"
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
)

// metrics is the table of metrics.
var metrics = []Metric{
	{MetricAccuracy, "accuracy", true, func(f Figures) *float64 { return f.Accuracy }},
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

// Text is a cell of a table: the accuracy of classes, the RMSE of numbers or the perplexity of texts with its
// name, or "-".
func (f Figures) Text() string {
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

// Figures returns the round's evaluation.
func (r *Round) Figures() Figures { return Figures{r.Loss, r.Accuracy, r.Scores} }

// Figures returns the evaluation whose weights are kept.
func (b *Best) Figures() Figures { return Figures{&b.Loss, &b.Accuracy, b.Scores} }

// Figures returns the evaluation of the observed round.
func (o *Observation) Figures() Figures { return Figures{o.HeldOut, o.Accuracy, o.Scores} }

// Metric returns the figure by which the job is compared with others.
func (r *Record) Metric() Metric { return r.Data.Metric(r.Job.Training.Loss) }
