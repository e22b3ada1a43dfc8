package dense

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// A fault that many rows share is told once, with their number and the first places. It hides no other fault.
func TestAFaultOfManyRowsIsToldOnce(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(11, seed))
		rows, marked, last := 100+rng.IntN(300), 0, 0
		var first []string
		var text strings.Builder
		text.WriteString("area,price,rent\n")
		for line := 2; line < rows+2; line++ {
			price, rent := fmt.Sprint(rng.IntN(999)), fmt.Sprint(rng.IntN(999))
			if line > rows/2 && rng.IntN(3) > 0 {
				price = fmt.Sprintf(`"%d,%03d"`, 1+rng.IntN(9), rng.IntN(1000))
				if marked++; marked > 1 && len(first) < mostLines {
					first = append(first, fmt.Sprint(line))
				}
			}
			if line == rows+1 {
				rent, last = "gone", line
			}
			fmt.Fprintf(&text, "%g,%s,%s\n", rng.Float64(), price, rent)
		}
		for _, target := range []string{"price,rent", "rent"} { // told of targets, and of columns of numbers
			c := CSV{Source: dataset.TextSource("homes.csv", text.String()), Targets: strings.Split(target, ",")}
			if target == "rent" {
				c.Kinds = map[string]dataset.ColumnKind{"price": dataset.ColumnNumber}
			}
			_, err := c.Input("homes")
			var wrong *disdel.Faults
			if !errors.As(err, &wrong) || len(wrong.Faults) != 2 {
				t.Fatalf("seed %d: %v", seed, err)
			}
			shared, other := wrong.Faults[0], wrong.Faults[1]
			says := fmt.Sprintf("%d more are like it: lines %s", marked-1, strings.Join(first, ", "))
			if shared.Path != "price" || !strings.Contains(shared.Msg, says) || !strings.Contains(shared.Msg, "--decimal") {
				t.Errorf("seed %d: %q, not %q", seed, shared.Msg, says)
			}
			if other.Path != "rent" || other.Line != last {
				t.Errorf("seed %d: %+v, not line %d", seed, other, last)
			}
		}
	}
}

// A text that several rows have in the place of a number may stand for no value: the message says how to tell so.
func TestATextOfSeveralRowsMayStandForNoValue(t *testing.T) {
	text := "area,price\n" + strings.Repeat("1,2\n3,4\n", 100) + "not known,5\n6,7\nnot known,8\n"
	_, err := CSV{Source: dataset.TextSource("homes.csv", text), Targets: []string{"price"}}.Input("homes")
	var wrong *disdel.Faults
	if !errors.As(err, &wrong) || len(wrong.Faults) != 1 || !strings.Contains(err.Error(),
		`one more is like it: line 204; if it stands for no value: --missing 'not known'`) {
		t.Errorf("%v", err)
	}
}

// A table whose only column that is left looks like ids is noted: whole numbers or texts that differ in every row.
func TestATableOfOnlyIDsIsNoted(t *testing.T) {
	table := func(rows int, cell func(i int) string) string {
		var text strings.Builder
		text.WriteString("id,other,label\n")
		for i := range rows {
			fmt.Fprintf(&text, "%s,%d,%c\n", cell(i), i%7, 'a'+i%2)
		}
		return text.String()
	}
	whole := func(i int) string { return fmt.Sprint(7919 * (i + 1) % 10007) }
	for name, c := range map[string]struct {
		text  string
		skip  []string
		noted bool
	}{
		"many numbers":        {table(300, whole), []string{"other"}, true},
		"few numbers":         {table(30, whole), []string{"other"}, true},
		"texts":               {table(30, func(i int) string { return fmt.Sprint("p", i) }), []string{"other"}, true},
		"other columns":       {table(300, whole), nil, false},
		"fractions":           {table(300, func(i int) string { return fmt.Sprint(i) + ".5" }), []string{"other"}, false},
		"a number twice":      {table(300, func(i int) string { return whole(i % 299) }), []string{"other"}, false},
		"a few texts, twice":  {table(30, func(i int) string { return fmt.Sprint("p", i/2) }), []string{"other"}, false},
		"hardly any rows yet": {table(10, whole), []string{"other"}, false},
	} {
		in, err := CSV{Source: dataset.TextSource("a.csv", c.text), Label: "label", Skip: c.skip}.Input("a")
		if err != nil {
			t.Fatal(name, err)
		}
		if noted := strings.Contains(strings.Join(in.Understood.Notes, "\n"), "id is the only column"); noted != c.noted {
			t.Errorf("%s: %q", name, in.Understood.Notes)
		}
	}
}
