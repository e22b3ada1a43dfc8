package infer

import (
	"math"
	"testing"

	"github.com/disdel/disdel"
)

// Precision is of the rows that were given a class, recall of those that have it, and nothing divides by zero.
func TestFiguresOfClasses(t *testing.T) {
	j := Evaluation{Confusion: [][]int{{3, 1, 0}, {2, 4, 0}, {0, 0, 0}}, Rows: 10, Loss: 5}
	j.conclude([]string{"cat", "dog"})
	want := []ClassEvaluation{
		{0, "cat", disdel.ClassFigures{Rows: 4, Precision: 3. / 5, Recall: 3. / 4, F1: 2. / 3}},
		{1, "dog", disdel.ClassFigures{Rows: 6, Precision: 4. / 5, Recall: 4. / 6, F1: 8. / 11}},
		{Class: 2},
	}
	for k, c := range j.Classes {
		if c != want[k] {
			t.Errorf("%+v, want %+v", c, want[k])
		}
	}
	if j.Accuracy != 0.7 || j.Loss != 0.5 {
		t.Errorf("accuracy %v, loss %v", j.Accuracy, j.Loss)
	}
}

// The loss of an error of a number is that of the model's job (Huber 1964).
func TestLossOfNumbers(t *testing.T) {
	for loss, want := range map[string][2]float64{
		"": {0.25, 9}, disdel.LossMSE: {0.25, 9}, disdel.LossMAE: {0.5, 3}, disdel.LossHuber: {0.125, 2.5},
	} {
		if near, far := numberLoss(loss, 0.5), numberLoss(loss, -3); near != want[0] || far != want[1] {
			t.Errorf("%q: the losses of 0.5 and -3 are %g and %g, not %g", loss, near, far, want)
		}
	}
}

// The loss of a row is that of the model's job: of plain outputs, too, which are no probabilities.
func TestLossOfClasses(t *testing.T) {
	for _, c := range []struct {
		loss    string
		outputs []float32
		softmax bool
		want    float64
	}{
		{"", []float32{0.25, 0.75}, true, -math.Log(0.25)},
		{disdel.LossCrossEntropy, []float32{-3, 0}, false, 3 + math.Log1p(math.Exp(-3))},
		{disdel.LossMSE, []float32{-0.5, 2}, false, (1.5*1.5 + 4) / 2},
		{disdel.LossMSE, []float32{0.25, 0.75}, true, 0.75 * 0.75},
		{disdel.LossBinaryCrossEntropy, []float32{0.5, 0.75}, false, (math.Ln2 + math.Log(4)) / 2},
	} {
		if got := classLoss(c.loss, c.outputs, 0, c.softmax); math.Abs(got-c.want) > 1e-7 {
			t.Errorf("%s of %v: %v, want %v", c.loss, c.outputs, got, c.want)
		}
	}
}
