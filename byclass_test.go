package disdel_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/disdel/disdel"
)

// Rows are counted by label, by class and by both; what is neither is left out.
func TestByClass(t *testing.T) {
	b := disdel.NewByClass(3)
	b.Add([]int32{0, 0, 0, 0, 1, 1}, []int32{0, 0, 0, 1, 1, 0})
	b.Add([]int32{3, -1, 0, 2}, []int32{0, 0, 3, -1})
	want := &disdel.ByClass{
		Rows: []int{4, 2, 0}, Given: []int{4, 2, 0}, Right: []int{3, 1, 0},
		Confusion: [][]int{{3, 1, 0}, {1, 1, 0}, {0, 0, 0}},
	}
	if !reflect.DeepEqual(b, want) {
		t.Errorf("%+v", b)
	}
	for class, want := range []disdel.ClassFigures{
		{Rows: 4, Precision: 0.75, Recall: 0.75, F1: 0.75}, {Rows: 2, Precision: 0.5, Recall: 0.5, F1: 0.5}, {},
	} {
		if got := b.Figures(class); got != want {
			t.Errorf("class %d: %+v", class, got)
		}
	}
	many := disdel.NewByClass(disdel.MostConfused + 1)
	many.Add([]int32{100}, []int32{100})
	if many.Confusion != nil || many.Right[100] != 1 {
		t.Errorf("%+v", many)
	}
}

func ExampleByClass() {
	b := disdel.NewByClass(2)
	b.Add([]int32{0, 0, 1, 1}, []int32{0, 1, 1, 1})
	b.Names = []string{"cat", "dog"}
	for class := range b.Rows {
		f := b.Figures(class)
		fmt.Printf("%s: %d rows, precision %.2f, recall %.2f\n", b.Name(class), f.Rows, f.Precision, f.Recall)
	}
	fmt.Println(b.Confusion)
	// Output:
	// cat: 2 rows, precision 1.00, recall 0.50
	// dog: 2 rows, precision 0.67, recall 1.00
	// [[1 1] [0 2]]
}
