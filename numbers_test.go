package disdel_test

import (
	"fmt"

	"github.com/disdel/disdel"
)

// A metric knows its direction: a lower rank is better.
func ExampleFindMetric() {
	low, high := 0.5, 0.9
	for _, name := range []string{disdel.MetricAccuracy, disdel.MetricRMSE} {
		m, _ := disdel.FindMetric(name)
		fmt.Println(m.Text(high), m.Rank(&high) < m.Rank(&low))
	}
	// Output:
	// accuracy 0.9000 true
	// RMSE 0.9 false
}

// The head of a table's column names the metric where all results are of one.
func ExampleMetricColumn() {
	for _, cells := range [][]string{{"0.9312", "-"}, {"RMSE 41.27", "RMSE 4e+06"}, {"0.9312", "-", "RMSE 41.27"}} {
		head, cells := disdel.MetricColumn(cells)
		fmt.Printf("%s %q\n", head, cells)
	}
	// Output:
	// accuracy ["0.9312" "-"]
	// RMSE ["41.27" "4e+06"]
	// metric ["accuracy 0.9312" "-" "RMSE 41.27"]
}

// Rows of several labels are counted by label: two labels of two rows, of which one answer is wrong.
func ExampleLabelSums() {
	sums := disdel.NewLabelSums(2)
	sums.Add([]float32{0.9, 0.2, 0.6, 0.4}, []float32{1, 0, 1, 1})
	accuracy, scores := sums.Scores()
	fmt.Println(accuracy, scores.Text())
	// Output:
	// 0.75 F1 0.5000, micro F1 0.8000
}

// Networks learn standardised targets, and their errors are in the unit of the target.
func ExampleErrorSums() {
	price := disdel.Target{Name: "price", Mean: 200, Deviation: 50}
	fmt.Println(price.Standard(250), price.Value(-1))
	errors := disdel.NewErrorSums([]disdel.Target{price})
	errors.Add([]float32{0.5, -1}, []float32{1, -1})
	fmt.Println(errors.Scores().Text())
	// Output:
	// 1 150
	// RMSE 17.678, MAE 12.5, R2 0.8750
}

// Of two rows, one has its class among the five most probable of six. The share is a metric, and larger is better.
func ExampleCountTop5() {
	outputs := []float32{0.1, 0.2, 0.3, 0.1, 0.2, 0.1, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1}
	share := float64(disdel.CountTop5(outputs, []int32{2, 5})) / 2
	m, _ := disdel.FindMetric(disdel.MetricTop5)
	fmt.Println(m.Text(share), m.Larger, *m.Value(disdel.Figures{Scores: disdel.Scores{Top5: &share}}))
	// Output:
	// top-5 accuracy 0.5000 true 0.5
}
