package dense

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/disdel/disdel/dataset"
)

// statisticsOf adds a table, and describes what is stored of it.
func statisticsOf(t rapid.TB, table CSV) dataset.Statistics {
	in, err := table.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	s, err := dataset.OpenStore(context.Background(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it is in memory
	if _, err := s.AddDense(context.Background(), in, false); err != nil {
		t.Fatal(err)
	}
	got, err := s.Statistics(context.Background(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The counts of a table are those of its file: missing values, categories and held-out rows are not counted as numbers.
func TestStatisticsAreThoseOfTheFile(t *testing.T) {
	test := dataset.TextSource("test.csv", "age,colour,kind\n99,red,cat\n")
	got := statisticsOf(t, CSV{
		Source: dataset.TextSource("a.csv", "age,colour,kind\n0,red,cat\n10,blue,dog\n,red,cat\n10,,dog\n4.5,red,cat\n"),
		Test:   &test, Label: "kind",
	})
	age := got.Columns[0]
	if age.Missing != 1 || age.Low != 0 || age.High != 10 || age.Mean != 6.125 ||
		math.Abs(age.Deviation-math.Sqrt(17.546875)) > 1e-12 ||
		!slices.Equal(age.Histogram, []int{1, 0, 0, 0, 1, 0, 0, 0, 0, 2}) {
		t.Errorf("age is %+v", age)
	}
	if c := got.Columns[1]; c.Missing != 1 || fmt.Sprint(c.Categories) != "[{blue 1} {red 3}]" || c.Histogram != nil {
		t.Errorf("colour is %+v", c)
	}
	if got.Rows != 5 || got.HeldOut != 1 || fmt.Sprint(got.Classes) != "[{cat 3} {dog 2}]" || got.Channels != nil {
		t.Errorf("the table is %+v", got)
	}
}

// Every value of a drawn table is in the range of the histogram that its number has, however it is scaled.
func TestStatisticsCountEveryValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, want := "x,y\n0,0\n100,1\n,1\n", []int{1, 0, 0, 0, 0, 0, 0, 0, 0, 1}
		for i, k := range rapid.SliceOf(rapid.IntRange(0, 9)).Draw(t, "ranges") {
			text += fmt.Sprintf("%d5.25,%d\n", k, i%2)
			want[k]++
		}
		got := statisticsOf(t, CSV{
			Source: dataset.TextSource("a.csv", text), Label: "y",
			Scale: rapid.SampledFrom([]Scale{"", Range, AsIs}).Draw(t, "scale"),
		})
		if !slices.Equal(got.Columns[0].Histogram, want) {
			t.Fatalf("the histogram is %v, and the numbers are in %v", got.Columns[0].Histogram, want)
		}
	})
}
