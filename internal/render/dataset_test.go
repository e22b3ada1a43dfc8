package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/disdel/disdel/dataset"
)

// Texts with commas are quoted in lists, and a count that may be an estimate is "about" so many rows.
func TestListsAndEstimatesAreClear(t *testing.T) {
	set := Dataset{Manifest: dataset.Manifest{
		Name: "homes", Sample: []int{1, 1, 2}, ClassNames: []string{"a, b", "c"}, Duplicates: 7,
		Columns: []dataset.Column{{Name: "town", Kind: dataset.ColumnCategory, Categories: []string{"Paris, Texas", "Rome"}}},
		Train:   dataset.Part{Rows: 1 << 20}, Test: dataset.Part{Rows: 100},
	}}
	var out bytes.Buffer
	PrintDataset(&out, set)
	for _, want := range []string{
		`one of "Paris, Texas", Rome`, `classes   "a, b", c`, "same      about 7 of 100 held-out rows",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, &out)
		}
	}
	out.Reset()
	set.Train.Rows = 50
	if PrintDataset(&out, set); strings.Contains(out.String(), "about") {
		t.Errorf("a whole count is an estimate:\n%s", &out)
	}
}
