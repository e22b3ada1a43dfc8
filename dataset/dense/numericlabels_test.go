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

// A table of drawn prices is refused as bad input, unless somebody insists; its ids of classes are not refused.
func TestATableOfPricesIsNoTableOfClasses(t *testing.T) {
	for seed := range uint64(10) {
		lot := rand.New(rand.NewPCG(seed, 32))
		text := strings.Builder{}
		text.WriteString("rooms,kind,price\n")
		for i := range 800 {
			fmt.Fprintf(&text, "%d,%d,%d\n", 1+lot.IntN(9), i%200, 50_000+lot.IntN(900_000))
		}
		table := CSV{Source: dataset.TextSource("houses.csv", text.String()), Label: "price"}
		_, err := table.Input("houses")
		var faults *disdel.Faults
		if !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Path != "price" ||
			!strings.Contains(faults.Faults[0].Hint, "--target COLUMN") ||
			!strings.Contains(faults.Faults[0].Hint, "--label-classes") {
			t.Fatalf("seed %d: %v", seed, err)
		}
		table.LabelClasses = true
		if in, err := table.Input("houses"); err != nil || in.Classes < 700 || !in.LabelClasses {
			t.Errorf("seed %d: insisted: %d classes, %v", seed, in.Classes, err)
		}
		table.LabelClasses, table.Label = false, "kind"
		if in, err := table.Input("houses"); err != nil || in.Classes != 200 ||
			len(in.Understood.Notes) != 1 || !strings.HasPrefix(in.Understood.Notes[0], "200 numbers are taken for classes. ") {
			t.Errorf("seed %d: ids of classes: %d, %v: %q", seed, in.Classes, err, in.Understood.Notes)
		}
		table.LabelClasses = true
		if in, err := table.Input("houses"); err != nil || len(in.Understood.Notes) > 0 {
			t.Errorf("seed %d: insisted: %v: %q", seed, err, in.Understood.Notes)
		}
	}
}
