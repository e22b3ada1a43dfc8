package dense

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// sides returns the held-out rows and the training rows of a table by the value of its first input, which tells rows
// apart.
func sides(t rapid.TB, in dataset.DenseInput) (heldOut map[int]bool) {
	heldOut = map[int]bool{}
	err := in.Each(func(r dataset.DenseRow) error {
		n := int(r.Values[0])
		if _, twice := heldOut[n]; twice {
			t.Fatalf("row %d comes twice", n)
		}
		heldOut[n] = r.HeldOut
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return heldOut
}

// Each class of a drawn table keeps its share up to one row, and has a training row. The same seed holds out the same
// rows, whatever the order of classes is.
func TestEachClassKeepsItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "1", "1.0"}), 0, 200).Draw(t, "labels")
		labels = append(labels, "a", "b", "1", "1", "a", "b", "a") // at least one row of two classes is held out
		share := rapid.SampledFrom([]float64{0.5, 0.34, 0.4}).Draw(t, "share")
		var text strings.Builder
		text.WriteString("n,y\n")
		for i, y := range labels {
			fmt.Fprintf(&text, "%d,%s\n", i, y)
		}
		table := CSV{
			Source: dataset.TextSource("a.csv", text.String()), Label: "y", Scale: AsIs,
			HeldOut: &HeldOut{Share: share, Seed: rapid.Int64().Draw(t, "seed")},
		}
		in, err := table.Input("a")
		if err != nil {
			t.Fatal(err)
		}
		rows, held := map[string]int{}, map[string]int{}
		first := sides(t, in)
		for i, y := range labels {
			y = strings.TrimSuffix(y, ".0")
			if rows[y]++; first[i] {
				held[y]++
			}
		}
		for y, n := range rows {
			if off := math.Abs(float64(held[y]) - share*float64(n)); off > 1 || held[y] == n {
				t.Errorf("%d of %d rows of %s are held out, and the share is %g", held[y], n, y, share)
			}
		}
		if again := sides(t, in); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Errorf("a second reading holds out other rows")
		}
		if u := in.Understood; u.Rows+u.HeldOut != len(labels) {
			t.Errorf("%d and %d rows of %d are reported", u.Rows, u.HeldOut, len(labels))
		}
	})
}

// No group of a drawn table is on both sides, and both sides have a group. The held-out rows differ from the share by
// at most the largest group.
func TestGroupsStayTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := append(rapid.SliceOfN(rapid.IntRange(0, 30), 0, 200).Draw(t, "groups"), 31, 32)
		text, rows, largest := "n,patient,y\n", map[int]int{}, 0
		for i, g := range groups {
			text += fmt.Sprintf("%d,p%d,%d\n", i, g, i*i)
			rows[g]++
			largest = max(largest, rows[g])
		}
		share := rapid.SampledFrom([]float64{0.1, 0.2, 0.5}).Draw(t, "share")
		in, err := CSV{
			Source: dataset.TextSource("a.csv", text), Targets: []string{"y"}, Scale: AsIs,
			HeldOut: &HeldOut{Share: share, Group: "patient", Seed: rapid.Int64().Draw(t, "seed")},
		}.Input("a")
		if err != nil && strings.Contains(err.Error(), "nothing to predict") {
			return // too few training rows are left
		}
		if err != nil {
			t.Fatal(err)
		}
		if in.Shape[2] != 1 {
			t.Errorf("the group is an input: %v", in.Shape)
		}
		side, held := map[int]bool{}, 0
		for i, heldOut := range sides(t, in) {
			if before, ok := side[groups[i]]; ok && before != heldOut {
				t.Fatalf("group %d is on both sides", groups[i])
			}
			if side[groups[i]] = heldOut; heldOut {
				held++
			}
		}
		if off := math.Abs(float64(held) - share*float64(len(groups))); held == 0 || held == len(groups) ||
			off > float64(largest) {
			t.Errorf("%d of %d rows are held out, and the share is %g", held, len(groups), share)
		}
	})
}

// Rows that are held out decide neither means nor categories, and their faults are found before anything is written.
func TestHeldOutRowsDecideNothing(t *testing.T) {
	text := "x,g,y\n1,a,0\n3,a,1\n1000,b,0\n"
	for seed := range int64(20) {
		table := CSV{
			Source: dataset.TextSource("a.csv", text), Label: "y", HeldOut: &HeldOut{Share: 0.3, Group: "g", Seed: seed},
		}
		in, err := table.Input("a")
		if err == nil && in.Columns[0].High == 3 {
			if in.Columns[0].Mean != 2 {
				t.Errorf("the mean is %g", in.Columns[0].Mean)
			}
			table.Source = dataset.TextSource("a.csv", text+"x,b,1\n")
			var wrong *disdel.Faults
			if _, err := table.Input("a"); !errors.As(err, &wrong) || wrong.Faults[0].Line != 5 {
				t.Errorf("a text among numbers of held-out rows: %v", err)
			}
			table.Source = dataset.TextSource("a.csv", text+"4,b,2\n")
			_, err := table.Input("a")
			if !errors.As(err, &wrong) || !strings.Contains(wrong.Faults[0].Hint, "another --seed") {
				t.Errorf("a label of only held-out rows: %v", err)
			}
			return
		}
	}
	t.Error("no seed holds out the group b")
}

// Integers that lose digits are noted with their column, others are not.
func TestLongIntegersAreNoted(t *testing.T) {
	const rows = "id,small,share,y\n9007199254740993,9007199254740991,1e30,a\n1,2,0.5,b\n"
	in, err := CSV{Source: dataset.TextSource("a.csv", rows), Label: "y"}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(in.Understood.Notes, "; "); notes != "id has integers of 2^53 or more, which lose their "+
		"last digits; if they are ids, leave them out (--skip)" {
		t.Errorf("the notes are %q", notes)
	}
}

// Each class of drawn arrays keeps its share up to one row and has a training row. What is printed is what is held out.
func TestEachClassOfArraysKeepsItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 200).Draw(t, "labels")
		labels = append(labels, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3)
		rule := HeldOut{
			Share: rapid.SampledFrom([]float64{0.5, 0.34, 0.4}).Draw(t, "share"), Seed: rapid.Int64().Draw(t, "seed"),
		}
		in, err := rule.Of(numbered(t, labels))
		if err != nil {
			t.Fatal(err)
		}
		rows, held := make([]int, 4), make([]int, 4)
		heldOut := sides(t, in)
		for i, y := range labels {
			if rows[y]++; heldOut[i] {
				held[y]++
			}
		}
		total := 0
		for y, n := range rows {
			total += held[y]
			if math.Abs(float64(held[y])-rule.Share*float64(n)) > 1 || held[y] == n {
				t.Errorf("class %d: %d of %d rows are held out", y, held[y], n)
			}
			if got := in.Understood.Classes[y].Rows; got != n-held[y] {
				t.Errorf("class %d has %d training rows, and %d are printed", y, n-held[y], got)
			}
		}
		if u := in.Understood; u.HeldOut != total || u.Rows != len(labels)-total {
			t.Errorf("%d of %d rows are held out, and %d and %d are printed", total, len(labels), u.HeldOut, u.Rows)
		}
	})
}

// numbered is rows whose only value is their number.
func numbered(t rapid.TB, labels []byte) dataset.DenseInput {
	values := make([]int64, len(labels))
	for i := range values {
		values[i] = int64(i)
	}
	x := npy("<i8", "False", fmt.Sprintf("%d, 1", len(labels)), bytesOf(binary.LittleEndian, values))
	y := npy("|u1", "False", fmt.Sprintf("%d,", len(labels)), labels)
	in, err := Arrays{
		Images: dataset.TextSource("x", x), Labels: dataset.TextSource("y", y), AsIs: true,
	}.Input("numbered")
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Rows that a rule cannot divide are refused, with a next step.
func TestRowsThatCannotBeDividedAreRefused(t *testing.T) {
	usual := numbered(t, []byte{0, 1, 0, 1, 0, 1})
	text, own := usual, usual
	text.NextToken, own.Understood.HeldOut = true, 1
	for _, c := range []struct {
		want string
		in   dataset.DenseInput
		rule HeldOut
	}{
		{"a share of 0.9 cannot", usual, HeldOut{Share: 0.9}},
		{"no column patient of groups", usual, HeldOut{Share: 0.5, Group: "patient"}},
		{"no classes", text, HeldOut{Share: 0.5}},
		{"in files of their own", own, HeldOut{Share: 0.5}},
		{"too few rows", usual, HeldOut{Share: 0.001, Seed: 1}},
	} {
		_, err := c.rule.Of(c.in)
		refused, ok := errors.AsType[*disdel.Error](err)
		if !ok || !strings.Contains(err.Error(), c.want) || refused.Hint == "" {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	few := CSV{Source: dataset.TextSource("a.csv", "x,y\n1,0\n2,1\n3,0\n4,1\n"), HeldOut: &HeldOut{Share: 0.1}}
	if _, err := few.Input("a"); err == nil || !strings.Contains(err.Error(), "none is held out") {
		t.Errorf("a share of 0.1 of four rows: %v", err)
	}
}

func ExampleHeldOut_Of() {
	in, err := Arrays{
		Images: dataset.TextSource("x.npy", npy("|u1", "False", "4, 1", []byte{0, 255, 9, 8})),
		Labels: dataset.TextSource("y.npy", npy("|u1", "False", "4,", []byte{0, 1, 1, 0})),
	}.Input("stripes")
	if err == nil {
		in, err = HeldOut{Share: 0.5}.Of(in)
	}
	fmt.Println(in.Understood.Rows, in.Understood.HeldOut, err)
	// Output: 2 2 <nil>
}
