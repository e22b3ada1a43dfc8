package service

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// askMany asks a model of 16 inputs and 3 classes about more rows than a request or an answer may be: every row gets
// the answer that it gets alone, in its place, and nothing of it is left beside the models.
func askMany(t *testing.T, s *Service, m *Trained) {
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
