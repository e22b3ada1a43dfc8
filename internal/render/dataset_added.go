package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/terminal"
)

// What is shown of long lists.
const (
	mostClasses = 12
	mostColumns = 30
	mostTexts   = 6 // of a category
)

// PrintAdded is a data set that was added, and what its files were taken for.
func PrintAdded(w io.Writer, s Set) {
	PrintSets(w, s.Manifest)
	if s.Understood == nil {
		return
	}
	u := s.Understood
	fmt.Fprintf(w, "\nread      %s\nrows      %s to learn from", terminal.OneLine(u.Kind), terminal.Counted(u.Rows, "row"))
	if u.HeldOut > 0 {
		fmt.Fprintf(w, ", %d held out", u.HeldOut)
	}
	fmt.Fprintf(w, "\nclasses   %s\nvalues    %s\nexample   %s\n", classes(u.Classes), u.Values, example(u.Example))
	for _, text := range u.Passed {
		fmt.Fprintf(w, "left out  %s\n", terminal.OneLine(text))
	}
	printColumns(w, s.Columns)
}

// classes tells how many rows each class has.
func classes(list []dataset.ClassRows) string {
	var parts []string
	for i, k := range list {
		if i == mostClasses && len(list) > mostClasses+1 {
			parts = append(parts, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", terminal.OneLine(k.Name), k.Rows))
	}
	return strings.Join(parts, ", ")
}

func example(e dataset.Example) string {
	text := fmt.Sprintf("%s is %s", e.Place, e.Class)
	if len(e.Values) > 0 {
		text += ": " + strings.Join(e.Values, ", ")
	}
	if e.More > 0 {
		text += fmt.Sprintf(" and %d more", e.More)
	}
	return terminal.OneLine(text)
}

// printColumns is a table of what the values of a row come from.
func printColumns(w io.Writer, list []dataset.Column) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w)
	rows := [][]string{{"COLUMN", "IS", "MISSING", "LOW", "MEAN", "HIGH"}}
	for i := range list {
		if i == mostColumns && len(list) > mostColumns+1 {
			rows = append(rows, []string{fmt.Sprintf("and %d more", len(list)-i)})
			break
		}
		rows = append(rows, columnRow(&list[i]))
	}
	terminal.Table(w, rows...)
}

func columnRow(c *dataset.Column) []string {
	missing := "-"
	if c.Missing > 0 {
		missing = fmt.Sprint(c.Missing)
	}
	if c.Kind == dataset.ColumnNumber {
		return []string{
			c.Name, "number", missing, fmt.Sprintf("%.4g", c.Low), fmt.Sprintf("%.4g", c.Mean), fmt.Sprintf("%.4g", c.High),
		}
	}
	texts := c.Categories
	if len(texts) > mostTexts {
		texts = append(texts[:mostTexts:mostTexts], fmt.Sprintf("%d more", len(c.Categories)-mostTexts))
	}
	return []string{c.Name, "one of " + strings.Join(texts, ", "), missing}
}
