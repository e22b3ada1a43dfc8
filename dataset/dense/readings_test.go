package dense

import (
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel/dataset"
)

// The reading of a column has the first text that is not missing, cut off, and the bound of its distinct texts.
func TestReadingsAreBounded(t *testing.T) {
	var file strings.Builder
	file.WriteString("id,note,label\n")
	for i := range 200 {
		fmt.Fprintf(&file, "%d,,%d\n", i, i%2)
	}
	fmt.Fprintf(&file, "200,%s,1\n201,b,0\n", strings.Repeat("x", 100))
	in, err := CSV{Source: dataset.TextSource("f.csv", file.String())}.Input("f")
	if err != nil {
		t.Fatal(err)
	}
	id, note := in.Understood.Columns[0], in.Understood.Columns[1]
	if id.Distinct != mostCategories || !id.Above {
		t.Errorf("%d distinct numbers, above %v", id.Distinct, id.Above)
	}
	if want := strings.Repeat("x", longestExample-3) + "..."; note.Example != want || note.Missing != 200 {
		t.Errorf("%d missing, example %q", note.Missing, note.Example)
	}
	in, err = CSV{
		Source: dataset.TextSource("f.csv", file.String()), Shape: []int{1, 1, 1}, Skip: []string{"note"},
	}.Input("f")
	if err != nil || in.Understood.Columns != nil {
		t.Errorf("the values of a picture have %d columns, %v", len(in.Understood.Columns), err)
	}
}

func Example_columnReadings() {
	in, err := CSV{Source: dataset.TextSource("flowers.csv",
		"length,width,species\n5.1,3.5,setosa\n7.0,3.5,versicolor\n")}.Input("flowers")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range in.Understood.Columns {
		fmt.Println(c.Name, c.Kind, c.Distinct, c.Done)
	}
	// Output:
	// length number 2 minus 6.05, divided by 0.95
	// width number 1 minus 3.5, divided by 1
	// species label 2 the class to predict, one of 2
}
