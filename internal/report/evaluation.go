package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/disdel/disdel"
)

// How many classes have a row of their own in text, how many a matrix in a page, and how many confusions are listed:
// more would be read by nobody, and -o json has them all.
const (
	mostClasses    = 20
	mostMatrix     = 40
	mostConfusions = 10
)

// countedByClass is the counts of an evaluation by class, nil if they are incomplete.
func countedByClass(b *disdel.ByClass) *disdel.ByClass {
	if b == nil || len(b.Rows) == 0 || len(b.Given) != len(b.Rows) || len(b.Right) != len(b.Rows) {
		return nil
	}
	if len(b.Confusion) == len(b.Rows) &&
		!slices.ContainsFunc(b.Confusion, func(row []int) bool { return len(row) != len(b.Rows) }) {
		return b
	}
	out := *b
	out.Confusion = nil
	return &out
}

var classHead = []string{"CLASS", "NAME", "ROWS", "PRECISION", "RECALL", "F1"}

// classTable is the scores of all classes, or of the most classes with the lowest scores.
func classTable(b *disdel.ByClass, maximum int) [][]string {
	if b == nil {
		return nil
	}
	list := make([]int, len(b.Rows))
	for k := range list {
		list[k] = k
	}
	if len(list) > maximum {
		slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(b.Figures(x).F1, b.Figures(y).F1) })
		list = list[:maximum]
	}
	var rows [][]string
	for _, k := range list {
		f := b.Figures(k)
		rows = append(rows, []string{
			fmt.Sprint(k), b.Name(k), fmt.Sprint(f.Rows), fmt.Sprintf("%.4f", f.Precision), fmt.Sprintf("%.4f", f.Recall),
			fmt.Sprintf("%.4f", f.F1),
		})
	}
	return rows
}

// worst says which classes a table shows, empty for all.
func worst(b *disdel.ByClass, maximum int) string {
	if b == nil || len(b.Rows) <= maximum {
		return ""
	}
	return fmt.Sprintf("the %d worst of %d classes", maximum, len(b.Rows))
}

// confusions says which classes are confused most often.
func confusions(b *disdel.ByClass) (out []string) {
	if b == nil || b.Confusion == nil {
		return nil
	}
	type pair struct{ label, class, rows int }
	var list []pair
	for label, row := range b.Confusion {
		for class, n := range row {
			if n > 0 && class != label {
				list = append(list, pair{label, class, n})
			}
		}
	}
	slices.SortStableFunc(list, func(x, y pair) int { return y.rows - x.rows })
	for _, p := range list[:min(mostConfusions, len(list))] {
		out = append(out, fmt.Sprintf("%d of %d rows of %s taken for %s", p.rows, b.Rows[p.label], b.Title(p.label),
			b.Title(p.class)))
	}
	return out
}

// Matrix is the confusion matrix of a page.
type Matrix struct {
	Caption string
	Head    []string
	Rows    []MatrixRow
}

// MatrixRow is the row of one label.
type MatrixRow struct {
	Name  string
	Cells []MatrixCell
}

// MatrixCell is the number of rows of a label with a predicted class, and its share of the label in tenths.
type MatrixCell struct {
	Rows, Tenth int
	Right       bool
}

// matrix is the confusion matrix if there are few enough classes for a page.
func matrix(b *disdel.ByClass) []Matrix {
	if b == nil || b.Confusion == nil || len(b.Rows) > mostMatrix {
		return nil
	}
	out := Matrix{Caption: "Held-out rows by their label (a row each) and the class that they were given (a column each)"}
	for label, counts := range b.Confusion {
		row := MatrixRow{Name: b.Title(label)}
		for class, n := range counts {
			tenth := 0
			if n > 0 {
				tenth = min(10, (10*n+b.Rows[label]-1)/max(1, b.Rows[label]))
			}
			row.Cells = append(row.Cells, MatrixCell{n, tenth, class == label})
		}
		out.Head, out.Rows = append(out.Head, fmt.Sprint(label)), append(out.Rows, row)
	}
	return []Matrix{out}
}
