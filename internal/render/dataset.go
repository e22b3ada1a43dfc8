package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/service/infer"
)

// Dataset is a data set as -o json shows it.
type Dataset struct {
	dataset.Manifest
	Checksum string   `json:"checksum"`
	Warnings []string `json:"warnings,omitempty"` // of dataset add
	// Understood is what dataset add took the files for, where their format does not say it.
	Understood *dataset.Interpretation `json:"understood,omitempty"`
	// Statistics is of dataset show --stats.
	Statistics *dataset.Statistics `json:"statistics,omitempty"`
}

// DescribeDataset describes a data set.
func DescribeDataset(m dataset.Manifest) Dataset {
	return Dataset{Manifest: m, Checksum: m.Checksum()}
}

// DescribeFound describes a data set by the name that its reader uses: OWNER/NAME of another tenant's.
func DescribeFound(d infer.Dataset) Dataset {
	out := DescribeDataset(d.Manifest)
	out.Name = d.Ref
	return out
}

// PrintDatasets is a table of data sets.
func PrintDatasets(w io.Writer, list ...dataset.Manifest) {
	rows := [][]string{{"NAME", "TRAIN", "HELD OUT", "SAMPLE", "CLASSES", "SIZE", "TITLE"}}
	for _, m := range list {
		held, learned := "by split", fmt.Sprint(m.Classes)
		if n := len(m.Targets); n > 0 {
			learned = disdel.Counted(n, disdel.DataInfo{Targets: m.Targets}.TargetWord())
		}
		if m.Test.Rows > 0 {
			held = fmt.Sprint(m.Test.Rows)
		}
		rows = append(rows, []string{
			m.Name, fmt.Sprint(m.Train.Rows), held, model.Shape(m.Sample).Text(), learned,
			(disdel.Bytes(m.Train.Rows+m.Test.Rows) * m.SampleSize()).String(), m.Title,
		})
	}
	terminal.Table(w, rows...)
}

// PrintDataset is a data set with its licence, its checksum and its classes.
func PrintDataset(w io.Writer, s Dataset) {
	m := s.Manifest
	PrintDatasets(w, m)
	if s.Statistics != nil {
		printStatistics(w, s.Statistics)
	} else {
		printColumns(w, m.Columns)
	}
	printSparseSet(w, m)
	if len(s.Targets) > 0 {
		fmt.Fprintln(w)
		printTargets(w, s.Targets)
	}
	fmt.Fprintf(w, "\nchecksum  %s\n", s.Checksum)
	if m.Duplicates > 0 {
		about := ""
		if m.EstimatesDuplicates() {
			about = "about "
		}
		fmt.Fprintf(w, "same      %s%d of %s are also training rows\n", about, m.Duplicates,
			disdel.Counted(m.Test.Rows, "held-out row"))
	}
	for _, line := range [][2]string{{"licence", m.License}, {"classes", strings.Join(quoted(m.ClassNames), ", ")}} {
		if line[1] != "" {
			fmt.Fprintf(w, "%-8s  %s\n", line[0], terminal.OneLine(line[1]))
		}
	}
}

// PrintRemovedDataset says what is gone.
func PrintRemovedDataset(w io.Writer, r dataset.Removed) {
	fmt.Fprintf(w, "removed data set %s: %s, %v\n", terminal.OneLine(r.Name), disdel.Counted(r.Files, "file"), r.Size)
}

// printSparseSet adds what is known of sparse rows: their entries, and what a loss is held against.
func printSparseSet(w io.Writer, m dataset.Manifest) {
	d := m.Sparse
	if d == nil {
		return
	}
	fmt.Fprintf(w, "\nrows      %d entries in all, at most %d a row\n", d.Entries, d.Most)
	if d.Ratings() {
		fmt.Fprintf(w, "ratings   by %s of %s\n", disdel.Counted(d.Users, "user"), disdel.Counted(d.Items, "item"))
	}
	loss := disdel.LossSquared
	if m.Classes == 2 {
		loss = disdel.LossLogistic
	}
	fmt.Fprintf(w, "targets   %g to %g, mean %.4f, deviation %.4f\n"+
		"guessing  one guess for all rows has the loss %.4f (%s)",
		d.Low, d.High, d.Mean, d.Deviation, d.Guess(loss), loss)
	if d.Bayes > 0 {
		fmt.Fprintf(w, "\nbest      no model comes below %.4f; a target is between the two: %.4f",
			d.Bayes, (d.Bayes+d.Guess(loss))/2)
	}
	fmt.Fprintln(w)
}

// What is shown of long lists.
const (
	mostClasses = 12
	mostColumns = 30
	mostTexts   = 6 // of a category
)

// PrintAddedDataset is a data set that was added, and what its files were taken for.
func PrintAddedDataset(w io.Writer, s Dataset) {
	PrintDatasets(w, s.Manifest)
	if s.Understood != nil {
		fmt.Fprintln(w)
		PrintUnderstood(w, s)
	}
}

// PrintUnderstood prints what the files of a data set were taken for. Understood is set.
func PrintUnderstood(w io.Writer, s Dataset) {
	u := s.Understood
	fmt.Fprintf(w, "read      %s\nrows      %s to learn from", terminal.OneLine(u.Kind), disdel.Counted(u.Rows, "row"))
	if u.HeldOut > 0 {
		fmt.Fprintf(w, ", %d held out", u.HeldOut)
	}
	fmt.Fprintln(w)
	numbers := s.Sparse != nil && len(u.Classes) == 0
	if numbers {
		fmt.Fprintf(w, "targets   %g to %g, mean %.6g, deviation %.6g\n", s.Sparse.Low, s.Sparse.High, s.Sparse.Mean,
			s.Sparse.Deviation)
	}
	if len(s.Targets) == 0 && !s.NextToken && !numbers {
		fmt.Fprintf(w, "classes   %s\n", classes(u.Classes))
	}
	printTargets(w, s.Targets)
	fmt.Fprintf(w, "values    %s\nexample   %s\n", u.Values, example(u.Example))
	if u.Columns != nil {
		printReadings(w, u.Columns)
		return
	}
	for _, text := range u.Passed {
		fmt.Fprintf(w, "left out  %s\n", terminal.OneLine(text))
	}
}

// printReadings is a table of what was found in the columns of a file.
func printReadings(w io.Writer, list []dataset.ColumnReading) {
	fmt.Fprintln(w)
	rows := [][]string{{"COLUMN", "KIND", "MISSING", "DISTINCT", "EXAMPLE", "WHAT IS DONE"}}
	for i, c := range list {
		if i == mostColumns && len(list) > mostColumns+1 {
			rows = append(rows, []string{fmt.Sprintf("and %d more", len(list)-i)})
			break
		}
		distinct := "-"
		if c.Distinct > 0 {
			distinct = fmt.Sprint(c.Distinct)
		}
		if c.Above {
			distinct = "over " + distinct
		}
		rows = append(rows, []string{c.Name, string(c.Kind), counted(c.Missing), distinct, c.Example, c.Done})
	}
	terminal.Table(w, rows...)
}

// counted is a number of rows, or a dash for none.
func counted(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// printTargets is a line for each number to predict.
func printTargets(w io.Writer, list []disdel.Target) {
	for k, t := range list {
		head := "targets"
		if k > 0 {
			head = ""
		}
		if t.Label {
			fmt.Fprintf(w, "%-8s  %s yes or no\n", head, terminal.OneLine(t.Name))
			continue
		}
		fmt.Fprintf(w, "%-8s  %s %.6g to %.6g, mean %.6g, deviation %.6g\n", head, terminal.OneLine(t.Name), t.Low, t.High,
			t.Mean, t.Deviation)
	}
}

// classes tells how many rows each class has.
func classes(list []dataset.ClassRows) string {
	var parts []string
	for i, k := range list {
		if i == mostClasses && len(list) > mostClasses+1 {
			parts = append(parts, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", terminal.OneLine(quoted([]string{k.Name})[0]), k.Rows))
	}
	return strings.Join(parts, ", ")
}

// quoted puts quotes around the texts that a list with commas would make unclear.
func quoted(list []string) []string {
	out := slices.Clone(list)
	for i, text := range out {
		if text == "" || strings.ContainsAny(text, ",\"") || strings.TrimSpace(text) != text {
			out[i] = strconv.Quote(text)
		}
	}
	return out
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

// printStatistics is a line for each column, channel and target, with a small histogram, and the rows of each class.
func printStatistics(w io.Writer, s *dataset.Statistics) {
	fmt.Fprintln(w)
	rows := [][]string{{"VALUES", "KIND", "MISSING", "LOW", "MEAN", "HIGH", "DEVIATION", "ROWS BY VALUE"}}
	list := slices.Concat(s.Columns, s.Channels, s.Targets)
	for i := range list {
		if i == mostColumns && len(list) > mostColumns+1 {
			rows = append(rows, []string{fmt.Sprintf("and %d more", len(list)-i)})
			break
		}
		v := &list[i]
		row := []string{v.Name, string(v.Kind), counted(v.Missing), "-", "-", "-", "-", classes(v.Categories)}
		if v.Kind != dataset.ColumnCategory {
			for k, x := range []float64{v.Low, v.Mean, v.High, v.Deviation} {
				row[3+k] = fmt.Sprintf("%.4g", x)
			}
			row[len(row)-1] = bars(v.Histogram)
		}
		rows = append(rows, row)
	}
	if len(list) > 0 {
		terminal.Table(w, rows...)
	}
	if len(s.Classes) > 0 {
		fmt.Fprintf(w, "rows      %s\n", classes(s.Classes))
	}
}

// bars draws a histogram, one character for each range: a dot for no value, else a bar as high as its share of the
// most.
func bars(counts []int) string {
	heights := []rune("▁▂▃▄▅▆▇█")
	most, out := max(1, slices.Max(append([]int{0}, counts...))), make([]rune, len(counts))
	for i, n := range counts {
		out[i] = '.'
		if n > 0 {
			out[i] = heights[(n*len(heights)-1)/most]
		}
	}
	return string(out)
}

func columnRow(c *dataset.Column) []string {
	missing := counted(c.Missing)
	if c.Kind == dataset.ColumnNumber {
		return []string{
			c.Name, "number", missing, fmt.Sprintf("%.4g", c.Low), fmt.Sprintf("%.4g", c.Mean), fmt.Sprintf("%.4g", c.High),
		}
	}
	texts := quoted(c.Categories)
	if len(texts) > mostTexts {
		texts = append(texts[:mostTexts:mostTexts], fmt.Sprintf("%d more", len(c.Categories)-mostTexts))
	}
	return []string{c.Name, "one of " + strings.Join(texts, ", "), missing}
}
