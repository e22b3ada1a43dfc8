package sparse

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disdel/disdel/dataset"
)

// What is told of a LIBSVM file agrees with the rows that are stored: rows, held-out rows, rows of each class, entries.
func TestLibsvmReadingAgreesWithTheRows(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		base, numbers := rng.IntN(2), rng.IntN(3) == 0
		var text strings.Builder
		fmt.Fprintf(&text, "+1 %d:1\n", base) // decides whether columns count from 0
		for range 1 + rng.IntN(50) {
			target := []string{"+1", "1", "1.0", "-1"}[rng.IntN(4)]
			if numbers {
				target = fmt.Sprint(rng.Float32())
			}
			text.WriteString(target)
			for column := base; column < base+9; column++ {
				if rng.IntN(3) == 0 {
					fmt.Fprintf(&text, " %d:%d", column, 1+rng.IntN(3))
				}
			}
			text.WriteByte('\n')
		}
		text.WriteString("-1\n")
		in, err := Libsvm{
			Source: dataset.TextSource("rows.svm", text.String()), HeldOut: HeldOut{Share: 0.3, Seed: int64(seed)},
		}.Input("rows")
		if err != nil {
			t.Fatal(err)
		}
		rows, heldOut, entries, most, classes := 0, 0, 0, 0, map[float32]int{}
		err = in.Each(func(row dataset.SparseRow) error {
			entries, most = entries+len(row.Index), max(most, len(row.Index))
			if row.HeldOut {
				heldOut++
				return nil
			}
			rows++
			classes[row.Target]++
			return nil
		})
		u := in.Understood
		if err != nil || u.Rows != rows || u.HeldOut != heldOut ||
			u.Kind != fmt.Sprintf("LIBSVM; columns count from %d", base) ||
			!strings.Contains(u.Values, fmt.Sprintf("%d entries in %d columns ", entries, in.Columns)) ||
			!strings.HasSuffix(u.Values, fmt.Sprintf("at most %d a row", most)) {
			t.Errorf("seed %d: %v; %d and %d rows: %+v", seed, err, rows, heldOut, u)
		}
		if len(u.Classes) == 2 != (in.Classes == 2) {
			t.Errorf("seed %d: %d classes: %+v", seed, in.Classes, u.Classes)
		}
		for class, told := range u.Classes {
			if told.Rows != classes[float32(class)] || told.Name != in.ClassNames[class] {
				t.Errorf("seed %d: class %d has %d rows: %+v", seed, class, classes[float32(class)], told)
			}
		}
	}
}
