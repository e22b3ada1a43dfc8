package service

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service/infer"
)

// askMany asks a model of 16 inputs and 3 classes about more rows than a request or an answer may be: every row gets
// the answer that it gets alone, in its place, and nothing of it is left beside the models.
func askMany(t *testing.T, s *Service, m *infer.Model) {
	t.Helper()
	rows := make([][]float32, 13_000)
	for i := range rows {
		rows[i] = make([]float32, 16)
		for k := range rows[i] {
			rows[i][k] = float32((i*7+k*k)%11) / 11
		}
	}
	all, err := s.Infer(t.Context(), m, rows)
	if err != nil || len(all.Classes) != len(rows) || len(all.Probabilities) != len(rows) {
		t.Fatalf("%d answers, %v", len(all.Classes), err)
	}
	if len(all.Actions) != 2 {
		t.Errorf("%d actions for two answers' worth of rows", len(all.Actions))
	}
	for _, a := range all.Actions {
		if a.Expected() <= 0 || a.Expected() >= a.Estimate {
			t.Errorf("%v are expected of an action that %v are given to, its margin included", a.Expected(), a.Estimate)
		}
	}
	some := []int{0, 1, 5_000, 12_799, 12_800, 12_999}
	var few [][]float32
	for _, i := range some {
		few = append(few, rows[i])
	}
	alone, err := s.Infer(t.Context(), m, few)
	if err != nil {
		t.Fatal(err)
	}
	for k, i := range some {
		if alone.Classes[k] != all.Classes[i] || !slices.Equal(alone.Probabilities[k], all.Probabilities[i]) {
			t.Errorf("row %d: %v among many, %v among few", i, all.Probabilities[i], alone.Probabilities[k])
		}
	}
	if left, err := os.ReadDir(filepath.Join(s.cfg.Home, "models", "inputs")); len(left) > 0 {
		t.Errorf("%v is left of the inputs, %v", left, err)
	}
}

// evaluate compares a model with its own data set: it finds the figures that its job found on the rows that the job
// held out, every row is counted once, and what does not fit is refused with both sizes.
func evaluate(t *testing.T, s *Service, m *infer.Model) {
	t.Helper()
	j, err := s.Evaluate(t.Context(), m, m.Data.Name)
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
	if _, err := s.Evaluate(t.Context(), m, "nowhere"); !errors.Is(err, disdel.NotFound) {
		t.Errorf("a data set that is not there: %v", err)
	}
	if err := s.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = s.Evaluate(t.Context(), m, "digits")
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "64") && !strings.Contains(err.Error(), "1x8x8") {
		t.Errorf("rows of another size: %v", err)
	}
}
