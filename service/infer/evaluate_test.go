package infer

import (
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
