package sparse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
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

// What is told of ratings and of a table with a schema agrees with the rows that are stored: rows, held-out rows, rows
// of each class, categories, missing numbers.
func TestReadingsAgreeWithTheRows(t *testing.T) {
	schema := Schema{Header: true, Hash: 50, Fields: []Field{
		{Name: "y", Kind: Target}, {Name: "age", Kind: Number}, {Name: "city", Kind: Category}, {Name: "note", Kind: Skip},
	}}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		rated, table := "user;item;stars\n", "note,y,age,city\n"
		for range 1 + rng.IntN(60) {
			rated += fmt.Sprintf("u%d;i%d;%d\n", rng.IntN(5), rng.IntN(9), rng.IntN(6))
			table += fmt.Sprintf("x,%s,%s,c%d\n", []string{"no", "yes"}[rng.IntN(2)], []string{"", "7", "9"}[rng.IntN(3)],
				rng.IntN(4))
		}
		table += "x,no,1,c1\nx,yes,2,c2\n"
		held := HeldOut{Share: 0.3, Seed: int64(seed), ByUser: true}
		ratings, err := Ratings{Source: dataset.TextSource("rated.csv", rated), HeldOut: held}.Input("rated")
		if err != nil {
			t.Fatal(err)
		}
		held.ByUser = false
		clicks, err := CSV{Source: dataset.TextSource("t.csv", table), Schema: schema, HeldOut: held}.Input("clicks")
		if err != nil {
			t.Fatal(err)
		}
		for kind, in := range map[string]dataset.SparseInput{
			"ratings, separated by semicolons, with a header":                        ratings,
			"CSV with a schema, separated by commas, with a header; the target is y": clicks,
		} {
			rows, heldOut, missing, classes := 0, 0, 0, make([]int, 2)
			err := in.Each(func(row dataset.SparseRow) error {
				if row.HeldOut {
					heldOut++
					return nil
				}
				rows++
				classes[int(row.Target)%2]++
				if slices.Contains(row.Index, 1) {
					missing++
				}
				return nil
			})
			u := in.Understood
			if err != nil || u.Kind != kind || u.Rows != rows || u.HeldOut != heldOut {
				t.Errorf("seed %d: %v; %d and %d rows: %+v", seed, err, rows, heldOut, u)
			}
			for class, told := range u.Classes {
				if told.Rows != classes[class] || told.Name != []string{"no", "yes"}[class] {
					t.Errorf("seed %d: class %d has %d rows: %+v", seed, class, classes[class], told)
				}
			}
			if u.Columns != nil && u.Columns[1].Missing != missing {
				t.Errorf("seed %d: %d numbers are missing: %+v", seed, missing, u.Columns[1])
			}
		}
		values := fmt.Sprintf("a rating is by one of %s, of one of %s", disdel.Counted(ratings.Users, "user"),
			disdel.Counted(ratings.Items, "item"))
		if got := ratings.Understood; got.Values != values || len(got.Example.Values) != 2 || got.Example.Place != "line 2" {
			t.Errorf("seed %d: %+v", seed, got)
		}
		if len(clicks.Understood.Classes) != 2 {
			t.Errorf("seed %d: %+v", seed, clicks.Understood)
		}
	}
}
