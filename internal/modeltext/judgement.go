package modeltext

import (
	"fmt"
	"io"

	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/infer"
)

// mostConfused is how many classes have a table of which was taken for which.
const mostConfused = 20

// PrintEvaluation is how a model does on the rows of a data set, by class, and which class it takes for which.
func PrintEvaluation(w io.Writer, j infer.Evaluation) {
	which := "held out of"
	if !j.HeldOut {
		which = "all of"
	}
	fmt.Fprintf(w, "%s on %d rows, %s %s: accuracy %.4f, loss %.4f\n\n", j.Model, j.Rows, which, j.Dataset, j.Accuracy,
		j.Loss)
	rows := [][]string{{"CLASS", "NAME", "ROWS", "PRECISION", "RECALL", "F1"}}
	for _, c := range j.Classes {
		rows = append(rows, []string{
			fmt.Sprint(c.Class), c.Name, fmt.Sprint(c.Rows), fmt.Sprintf("%.4f", c.Precision),
			fmt.Sprintf("%.4f", c.Recall), fmt.Sprintf("%.4f", c.F1),
		})
	}
	terminal.Table(w, rows...)
	if len(j.Confusion) > mostConfused {
		return
	}
	head := []string{"LABEL / CLASS"}
	for k := range j.Confusion {
		head = append(head, fmt.Sprint(k))
	}
	table := [][]string{head}
	for k, counts := range j.Confusion {
		row := []string{fmt.Sprint(k)}
		for _, n := range counts {
			row = append(row, fmt.Sprint(n))
		}
		table = append(table, row)
	}
	fmt.Fprintln(w)
	terminal.Table(w, table...)
}
