package modelstore

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/disdel/disdel"
)

// Rows come back bit by bit, and damaged ones not at all.
func TestRowsComeBack(t *testing.T) {
	s, err := Open(t.Context(), "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]float32{{1, -2, math.MaxFloat32}, {0, float32(math.Inf(1)), 1e-40}, {7, 8, 9}}
	sha, err := s.WriteRows(t.Context(), "inputs/a/0.f32", rows)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.ReadRows(t.Context(), "inputs/a/0.f32", sha, 3)
	if err != nil || got.Len() != 3 {
		t.Fatalf("%d rows, %v", got.Len(), err)
	}
	if v := got.Append(nil, 1, 3); !slices.Equal(v, slices.Concat(rows[1], rows[2])) {
		t.Errorf("%v", v)
	}
	if _, err := s.WriteRows(t.Context(), "inputs/a/0.f32", rows[:2]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadRows(t.Context(), "inputs/a/0.f32", sha, 3); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("other rows: %v", err)
	}
	if err := s.Discard(t.Context(), "inputs/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadRows(t.Context(), "inputs/a/0.f32", sha, 3); !errors.Is(err, disdel.NotFound) {
		t.Errorf("rows that are gone: %v", err)
	}
}
