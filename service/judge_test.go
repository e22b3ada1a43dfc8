package service

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// judge holds a model against its own data set: it finds the figures that its job found on the rows that the job held
// out, every row is counted once, and what does not fit is refused with both sizes.
func judge(t *testing.T, s *Service, m *Trained) {
	t.Helper()
	j, err := s.Judge(t.Context(), m, m.Data.Name)
	if err != nil {
		t.Fatal(err)
	}
	if !j.HeldOut || j.Rows != m.Data.HeldOut ||
		math.Abs(j.Accuracy-m.Accuracy) > 1e-9 || math.Abs(j.Loss-m.Loss) > 1e-4 {
		t.Errorf("judged %d rows %v, accuracy %v and loss %v, where the job of %d found %v and %v", j.Rows, j.HeldOut,
			j.Accuracy, j.Loss, m.Data.HeldOut, m.Accuracy, m.Loss)
	}
	rows, right := 0, 0
	for k, c := range j.Classes {
		rows, right = rows+c.Rows, right+j.Confusion[k][k]
	}
	if rows != j.Rows || math.Abs(float64(right)/float64(rows)-j.Accuracy) > 1e-9 {
		t.Errorf("%d rows of %d in classes, %d of them right: %+v", rows, j.Rows, right, j)
	}
	if _, err := s.Judge(t.Context(), m, "nowhere"); !errors.Is(err, disdel.NotFound) {
		t.Errorf("a data set that is not there: %v", err)
	}
	if err := s.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = s.Judge(t.Context(), m, "digits")
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "64") && !strings.Contains(err.Error(), "1x8x8") {
		t.Errorf("rows of another size: %v", err)
	}
}

// Precision is of the rows that were given a class, recall of those that have it, and nothing divides by zero.
func TestFiguresOfClasses(t *testing.T) {
	j := Judgement{Confusion: [][]int{{3, 1, 0}, {2, 4, 0}, {0, 0, 0}}, Rows: 10, Loss: 5}
	j.conclude([]string{"cat", "dog"})
	want := []ClassJudgement{
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
