package dense

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Several columns of 0 and 1, or of true and false, are labels: learned as they are, from tables of every format. Rows
// without one of them are left out.
func TestLabelsAreYesOrNo(t *testing.T) {
	for name, text := range map[string]string{
		"films.csv": "length,funny,sad\n90,1,0\n100,true,FALSE\n110,0,1\n120,,1\n",
		"films.jsonl": `{"length":90,"funny":1,"sad":0}
{"length":100,"funny":true,"sad":false}
{"length":110,"funny":false,"sad":true}
{"length":120,"sad":1}
`,
	} {
		in, err := CSV{Source: dataset.TextSource(name, text), Label: "funny,sad"}.Input("films")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := []disdel.Target{
			{Name: "funny", Deviation: 1, High: 1, Label: true}, {Name: "sad", Deviation: 1, High: 1, Label: true},
		}
		if !slices.Equal(in.Targets, want) || in.Classes != 2 || len(in.Columns) != 1 {
			t.Errorf("%s: targets %+v, %d outputs, columns %v", name, in.Targets, in.Classes, in.Columns)
		}
		var got []float32
		if err := in.Each(func(r dataset.DenseRow) error { got = append(got, r.Targets...); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, []float32{1, 0, 1, 0, 0, 1}) {
			t.Errorf("%s: the labels are %v", name, got)
		}
		if !strings.Contains(in.Understood.Kind, "a label is funny, in 2 rows") {
			t.Errorf("%s: %s", name, in.Understood.Kind)
		}
	}
}

// What is no label of several is a fault with its line and column; all faults are reported at once. Rules for classes
// are refused.
func TestFaultsOfLabels(t *testing.T) {
	const films = "length,funny,sad\n90,1,0\n100,2,0\n110,0,maybe\n"
	_, err := CSV{Source: dataset.TextSource("f.csv", films), Label: "funny,sad"}.Input("f")
	var faults *disdel.Faults
	if !errors.As(err, &faults) || len(faults.Faults) != 2 || faults.Faults[0].Line != 3 || faults.Faults[0].Column != 2 ||
		faults.Faults[1].Line != 4 || !strings.Contains(faults.Faults[1].Msg, `"maybe" is not 0, 1, true or false`) {
		t.Errorf("%v", err)
	}
	const never = "length,funny,sad\n90,1,0\n100,0,0\n"
	_, err = CSV{Source: dataset.TextSource("f.csv", never), Label: "funny,sad"}.Input("f")
	if !errors.As(err, &faults) || len(faults.Faults) != 1 || faults.Faults[0].Path != "sad" ||
		!strings.Contains(faults.Faults[0].Msg, "it is 0 in all rows") {
		t.Errorf("%v", err)
	}
	for name, c := range map[string]CSV{
		`no column "glad"`: {Label: "funny,glad"},
		"is given twice":   {Label: "funny,sad,funny"},
		"and no class":     {Label: "funny,sad", LabelClasses: true},
		"have no classes that could keep their shares": {Label: "funny,sad", HeldOut: &HeldOut{Share: 0.2}},
	} {
		c.Source = dataset.TextSource("f.csv", never)
		if _, err := c.Input("f"); !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	test := dataset.TextSource("t.csv", "length,funny,sad\n1,0,3\n")
	_, err = CSV{
		Source: dataset.TextSource("f.csv", "length,funny,sad\n90,1,0\n100,0,1\n"), Test: &test,
		Label: "funny,sad",
	}.Input("f")
	if !errors.As(err, &faults) || faults.File != "t.csv" || faults.Faults[0].Line != 2 {
		t.Errorf("%v", err)
	}
}
