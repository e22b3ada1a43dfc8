package datasettext

import (
	"fmt"
	"io"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
)

// Set is a data set as -o json shows it.
type Set struct {
	dataset.Manifest
	Checksum string   `json:"checksum"`
	Warnings []string `json:"warnings,omitempty"` // of dataset add
	// Understood is what dataset add took the files for, where their format does not say it.
	Understood *dataset.Interpretation `json:"understood,omitempty"`
}

// Describe describes a data set.
func Describe(m dataset.Manifest) Set {
	return Set{Manifest: m, Checksum: m.Checksum()}
}

// PrintSets is a table of data sets.
func PrintSets(w io.Writer, list ...dataset.Manifest) {
	rows := [][]string{{"NAME", "TRAIN", "HELD OUT", "SAMPLE", "CLASSES", "SIZE", "TITLE"}}
	for _, m := range list {
		held := "by split"
		if m.Test.Rows > 0 {
			held = fmt.Sprint(m.Test.Rows)
		}
		rows = append(rows, []string{
			m.Name, fmt.Sprint(m.Train.Rows), held, model.Shape(m.Sample).Text(), fmt.Sprint(m.Classes),
			(disdel.Bytes(m.Train.Rows+m.Test.Rows) * m.SampleSize()).String(), m.Title,
		})
	}
	terminal.Table(w, rows...)
}

// PrintSet is a data set with its licence, its checksum and its classes.
func PrintSet(w io.Writer, m dataset.Manifest) {
	PrintSets(w, m)
	printColumns(w, m.Columns)
	printSparse(w, m)
	fmt.Fprintf(w, "\nlicence   %s\nchecksum  %s\nclasses   %s\n", terminal.OneLine(m.License), m.Checksum(),
		terminal.OneLine(strings.Join(m.ClassNames, ", ")))
}

// PrintRemoved says what is gone.
func PrintRemoved(w io.Writer, r dataset.Removed) {
	fmt.Fprintf(w, "removed data set %s: %s, %v\n", terminal.OneLine(r.Name), terminal.Counted(r.Files, "file"), r.Size)
}

// printSparse adds what is known of sparse rows: their entries, and what a loss is held against.
func printSparse(w io.Writer, m dataset.Manifest) {
	d := m.Sparse
	if d == nil {
		return
	}
	fmt.Fprintf(w, "\nrows      %d entries in all, at most %d a row\n", d.Entries, d.Most)
	if d.Ratings() {
		fmt.Fprintf(w, "ratings   by %s of %s\n", terminal.Counted(d.Users, "user"), terminal.Counted(d.Items, "item"))
	}
	loss := disdel.LossSquared
	if m.Classes == 2 {
		loss = disdel.LossLogistic
	}
	fmt.Fprintf(w, "targets   %g to %g, mean %.4f, deviation %.4f\nguessing  one guess for all rows has the loss %.4f (%s)",
		d.Low, d.High, d.Mean, d.Deviation, d.Guess(loss), loss)
	if d.Bayes > 0 {
		fmt.Fprintf(w, "\nbest      no model comes below %.4f; a target is between the two: %.4f", d.Bayes, (d.Bayes+d.Guess(loss))/2)
	}
}
