package infer

import (
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// Rows are counted before they are decoded: text of more rows than a request may ask for is OverLimit, even where it is
// no JSON.
func TestSparseRowsAreCountedBeforeTheyAreDecoded(t *testing.T) {
	m := &Model{MostRows: 3}
	for rows, want := range map[int]disdel.Kind{
		1: disdel.Invalid, 3: disdel.Invalid, 4: disdel.OverLimit, 1000: disdel.OverLimit,
	} {
		broken := `{"rows": [` + strings.Repeat(`{"index": [1]},`, rows)
		if _, err := m.ReadSparse("rows.json", []byte(broken)); disdel.KindOf(err) != want {
			t.Errorf("%d rows: %v, want %v", rows, err, want)
		}
	}
}
