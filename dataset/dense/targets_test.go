package dense

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

const homes = `area,town,price,rent
10,Ulm,100,1
20,Ulm,200,2
30,Bonn,300,3
40,Bonn,,4
50,Bonn,500,5
`

// Columns of numbers to predict are targets: standardised, in the order in which they are named, and no values of a
// row. Rows without one of them are left out.
func TestTargetsAreNumbersToPredict(t *testing.T) {
	in, err := CSV{Source: dataset.TextSource("homes.csv", homes), Targets: []string{"rent", "price"}}.Input("homes")
	if err != nil {
		t.Fatal(err)
	}
	if in.Classes != 2 || len(in.Columns) != 2 || len(in.Targets) != 2 || in.Targets[0].Name != "rent" {
		t.Fatalf("%d outputs, columns %v, targets %v", in.Classes, in.Columns, in.Targets)
	}
	price := in.Targets[1]
	if price.Mean != 275 || price.Low != 100 || price.High != 500 || math.Abs(price.Deviation-147.90199) > 1e-4 {
		t.Errorf("the price is %+v", price)
	}
	var prices []float64
	if err := in.Each(func(r dataset.DenseRow) error {
		prices = append(prices, math.Round(price.Value(r.Targets[1])))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(prices, []float64{100, 200, 300, 500}) {
		t.Errorf("the prices are %v", prices)
	}
	if !slices.Contains(in.Understood.Notes, "1 row without rent, the target, are left out") {
		t.Errorf("notes: %q", in.Understood.Notes)
	}
}

// A target that is no finite number is a fault with its line and column.
func TestTargetsAreFinite(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		line       int
	}{
		"text": {"area,price\n1,2\n2,dear\n3,4\n", `"dear" is no number to predict`, 3},
		"infinity": {
			"area,price\n1,2\n2,3\n3,inf\n",
			`"inf" is no number to predict; the largest one is 3.4e38: if it stands for no value, --missing inf`, 4,
		},
		"constant": {"area,price\n1,2\n2,2\n3,2\n", "it is 2 in all rows", 0},
	} {
		_, err := CSV{Source: dataset.TextSource("homes.csv", c.text), Targets: []string{"price"}}.Input("homes")
		var faults *disdel.Faults
		if !errors.As(err, &faults) || len(faults.Faults) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f := faults.Faults[0]; f.Line != c.line || f.Column != 2 || f.Path != "price" || !strings.Contains(f.Msg, c.want) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
