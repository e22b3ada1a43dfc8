package dense

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Drawn faults, late in drawn tables, are told with their lines, and nothing of the table stays.
func TestDrawnFaultsOfTablesAreTold(t *testing.T) {
	wrong := map[string]func(cells []string) []string{
		"ragged":     func(cells []string) []string { return append(cells, "7") },
		"short":      func(cells []string) []string { return cells[:2] },
		"a text":     func(cells []string) []string { cells[0] = "oops"; return cells },
		"a date":     func(cells []string) []string { cells[0] = "2024-02-29"; return cells },
		"thousands":  func(cells []string) []string { cells[0] = `"1,234,567"`; return cells },
		"huge":       func(cells []string) []string { cells[0] = strings.Repeat("9", 400); return cells },
		"Latin-1":    func(cells []string) []string { cells[1] = "gr\xf6\xdfe"; return cells },
		"infinite":   func(cells []string) []string { cells[2] = "-Inf"; return cells },
		"no number":  func(cells []string) []string { cells[2] = "dear"; return cells },
		"half quote": func(cells []string) []string { cells[1] = `re"d`; return cells },
	}
	for seed := range uint64(5) {
		for name, spoil := range wrong {
			rng := rand.New(rand.NewPCG(seed, 1))
			rows, bad := 200+rng.IntN(800), map[int]bool{}
			for range 1 + rng.IntN(3) {
				bad[2+100+rng.IntN(rows-100)] = true
			}
			var text strings.Builder
			text.WriteString("area,colour,price\n")
			for line := 2; line < rows+2; line++ {
				cells := []string{
					fmt.Sprint(rng.Float64()), []string{"red", "green"}[rng.IntN(2)], fmt.Sprint(rng.NormFloat64()),
				}
				if bad[line] {
					cells = spoil(cells)
				}
				text.WriteString(strings.Join(cells, ",") + "\n")
			}
			keys, got := addedTable(t, text.String())
			var faults *disdel.Faults
			if !errors.As(got, &faults) || disdel.KindOf(got) != disdel.Invalid {
				t.Errorf("%s, seed %d: %v", name, seed, got)
				continue
			}
			for _, f := range faults.Faults {
				if !bad[f.Line] {
					t.Errorf("%s, seed %d: line %d is told: %v", name, seed, f.Line, f)
				}
				delete(bad, f.Line)
			}
			first := name == "half quote" || name == "Latin-1" // of these, the first line is told
			if len(bad) > 0 && !first || len(faults.Faults) == 0 {
				t.Errorf("%s, seed %d: lines %v are not told", name, seed, bad)
			}
			if len(keys) > 0 {
				t.Errorf("%s, seed %d: %v stay", name, seed, keys)
			}
		}
	}
}

// addedTable adds a table with a target, and returns the names of the data sets that are there then, and the error.
func addedTable(t *testing.T, text string) (names []string, err error) {
	t.Helper()
	s, wrong := dataset.OpenStore(t.Context(), "mem://")
	if wrong != nil {
		t.Fatal(wrong)
	}
	defer s.Close()
	in, err := CSV{Source: dataset.TextSource("homes.csv", text), Targets: []string{"price"}}.Input("homes")
	if err == nil {
		_, err = s.AddDense(context.Background(), in, false)
	}
	list, wrong := s.List(t.Context())
	if wrong != nil {
		t.Fatal(wrong)
	}
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names, err
}
