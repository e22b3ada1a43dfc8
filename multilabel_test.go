package disdel

import (
	"math"
	"testing"
)

// F1 of several labels is that of scikit-learn (f1_score, macro and micro), except that a label that no row has and
// none is answered with does not count. The accuracy is the share of right labels.
func TestScoresOfLabels(t *testing.T) {
	// Labels of four rows, and probabilities: of the first label 2 hits of 3 answered and 2 given, of the second none of
	// one given, of the third all; the fourth is never there.
	labels := []float32{1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0}
	answers := []float32{0.9, 0.2, 0.5, 0.1, 0.6, 0.1, 0.4, 0, 0.7, 0.4, 0.8, 0.1, 0.1, 0.2, 0.3, 0.4}
	sums := NewLabelSums(4)
	sums.Add(answers[:8], labels[:8])
	sums.Add(answers[8:], labels[8:])
	accuracy, s := sums.Scores()
	if accuracy != 14.0/16 || s.F1 == nil || math.Abs(*s.F1-(0.8+0+1)/3) > 1e-12 || math.Abs(s.MicroF1-8.0/10) > 1e-12 {
		t.Errorf("accuracy %g, %s", accuracy, s.Text())
	}
	if m, ok := FindMetric(MetricF1); !ok || !m.Larger || *m.Value(Figures{Scores: s}) != *s.F1 {
		t.Errorf("%+v", m)
	}
	if got := (Figures{Accuracy: &accuracy, Scores: s}).Text(); got != "F1 0.6000" {
		t.Error(got)
	}
	n := Network{Targets: []Target{{Name: "a", Label: true}, {Name: "b", Label: true}}}
	if got := n.LabelsOf([]float32{0.5, 0.4999}); len(got) != 1 || got[0] != "a" {
		t.Errorf("labels %v", got)
	}
}
