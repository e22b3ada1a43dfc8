package dataset

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel"
)

// Warnings returns warnings about valid but unusual data.
func Warnings(in *Input, m *Manifest, layoutGiven bool) (list []string) {
	rows := make([]int, m.Classes)
	for _, y := range in.Train.Labels {
		rows[y]++
	}
	return warningsOf(rows, m, layoutGiven)
}

// warningsOf is Warnings for so many rows of each class.
func warningsOf(rows []int, m *Manifest, layoutGiven bool) (list []string) {
	if w := classWarnings(rows, true); w != "" {
		list = append(list, w)
	}
	c, h, w := m.Sample[0], m.Sample[1], m.Sample[2]
	if !layoutGiven && h > 1 && isChannels(w) && !isChannels(c) {
		list = append(list, fmt.Sprintf("images are read as %d channels of %dx%d pixels; if they are %dx%d pixels of %d "+
			"channels, "+
			"add --layout hwc --overwrite", c, h, w, c, h, w))
	}
	if info := m.Info(usualSplit); info.HeldOut == 0 {
		list = append(list, noneHeldOut)
	}
	return list
}

// Understood is how the files were interpreted. m is the manifest of the data set that they became.
func (in *Input) Understood(m *Manifest, format Format) Interpretation {
	rows := make([]int, m.Classes)
	for _, y := range in.Train.Labels {
		rows[y]++
	}
	kind := "IDX arrays"
	if set, ok := cifars[format]; ok {
		kind = set.title + ", in its binary version"
	}
	return arraysUnderstood(kind, rows, int(in.Train.Labels[0]), m)
}

// arraysUnderstood is the interpretation of arrays with so many training rows of each class. first is the class of the
// first row.
func arraysUnderstood(kind string, rows []int, first int, m *Manifest) Interpretation {
	name := func(class int) string {
		if class < len(m.ClassNames) {
			return m.ClassNames[class]
		}
		return fmt.Sprint(class)
	}
	values := "numbers"
	if m.DType == "U8" {
		values = "bytes, as 0..1 from 0..255"
	}
	switch c, h, w := m.Sample[0], m.Sample[1], m.Sample[2]; {
	case c == 1 && h == 1:
		values += ", in " + disdel.Counted(w, "column")
	default:
		values += fmt.Sprintf(", of %dx%d pixels in %s", h, w, disdel.Counted(c, "channel"))
	}
	u := Interpretation{
		Kind: kind, Values: values, Rows: m.Train.Rows, HeldOut: m.Test.Rows,
		Example: Example{Place: "row 0", Class: name(first)},
	}
	for class, n := range rows {
		u.Classes = append(u.Classes, ClassRows{Name: name(class), Rows: n})
	}
	return u
}

// usualSplit is the default split of a job.
var usualSplit = disdel.Split{Train: 0.8, Validation: 0.2}

const noneHeldOut = "none of its rows will be held out, so that no accuracy will be known"

// isChannels tells whether a side is a usual number of channels.
func isChannels(n int) bool { return n == 1 || n == 3 || n == 4 }

// classWarnings says which classes have no row, or only one. numbered: the classes are all numbers up to the highest
// label, so one wrong label can make many empty classes.
func classWarnings(rows []int, numbered bool) string {
	all := 0
	for _, n := range rows {
		all += n
	}
	var single, none []int
	for k, n := range rows {
		switch {
		case n == 0:
			none = append(none, k)
		case n == 1 && all > len(rows):
			single = append(single, k)
		}
	}
	if all == len(rows) && len(none) == 0 && all >= fewestOwnClasses {
		return "every row has a class of its own, so that nothing can be learned; name the column of the classes with --label"
	}
	var parts []string
	if len(single) > 0 {
		parts = append(parts, ranges(single)+" 1 row")
	}
	if len(none) > 0 {
		parts = append(parts, ranges(none)+" none")
	}
	text := strings.Join(parts, "; ")
	if text == "" {
		return ""
	}
	if len(none) > 0 && numbered {
		text += fmt.Sprintf("; labels are whole numbers from 0, and the largest makes %d classes", len(rows))
	}
	return text
}

// fewestOwnClasses is from how many rows on a class for each row is a mistake.
const fewestOwnClasses = 10

// ranges names classes with their verb: "class 3 has", "classes 3 to 199 and 201 have".
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := fmt.Sprint(list[i])
		if j > i {
			part = fmt.Sprintf("%d to %d", list[i], list[j])
		}
		parts, i = append(parts, part), j+1
	}
	if more := len(parts) - mostRanges; more > 0 {
		parts = append(parts[:mostRanges], fmt.Sprintf("%d more ranges", more))
	}
	last := len(parts) - 1
	text := parts[last]
	if last > 0 {
		text = strings.Join(parts[:last], ", ") + " and " + text
	}
	if len(list) == 1 {
		return "class " + text + " has"
	}
	return "classes " + text + " have"
}

const mostRanges = 5

// Interpretation is how a reader interpreted files, for their user: files that can be read may still mean something
// else.
type Interpretation struct {
	Kind    string      `json:"kind"`    // "CSV, separated by commas, with a header"
	Values  string      `json:"values"`  // how they are stored: "bytes, as 0..1 from 0..255"
	Rows    int         `json:"rows"`    // for training
	HeldOut int         `json:"heldOut"` // in files of their own
	Classes []ClassRows `json:"classes"` // of the training rows; none where rows have targets
	// Targets are the numbers to predict; nil: rows have classes
	Targets []disdel.Target `json:"targets,omitempty"`
	Example Example         `json:"example"`           // the first row
	Passed  []string        `json:"passed,omitempty"`  // what was omitted, and why
	Columns []ColumnReading `json:"columns,omitempty"` // of a table, in the order of the file; nil: values have no names
	Notes   []string        `json:"notes,omitempty"`   // warnings
}

// ColumnReading is what a reader found in a column of a table, over the training rows, and what happens to the column.
type ColumnReading struct {
	Name    string     `json:"name"`
	Kind    ColumnKind `json:"kind"`              // number, category, skip, or the role: label or target
	Missing int        `json:"missing,omitempty"` // rows without a value; rows without a label or target do not count
	// Distinct is the number of different texts; 0: they were not counted. With Above there are more than Distinct.
	Distinct int    `json:"distinct,omitempty"`
	Above    bool   `json:"above,omitempty"`
	Example  string `json:"example,omitempty"` // the first text that is not missing
	Done     string `json:"done"`              // "minus 5.1, divided by 0.3; missing values become the mean"
}

// ClassRows is how many rows a class has.
type ClassRows struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
}

// Example is a row as in its file.
type Example struct {
	Place  string   `json:"place"` // "line 2", "cat/1.png", "row 0"
	Class  string   `json:"class"`
	Values []string `json:"values"` // the first ones
	More   int      `json:"more"`   // further values
}

// Column is a column of a table: the source of one value of a row, or for a category of several.
type Column struct {
	Name    string     `json:"name"`
	Kind    ColumnKind `json:"kind"`
	Missing int        `json:"missing,omitempty"` // rows without it

	// For a number, over the training rows. A value is stored as (number - Shift) x Factor; a missing one as the mean.
	Low       float64 `json:"low,omitempty"`
	High      float64 `json:"high,omitempty"`
	Mean      float64 `json:"mean,omitempty"`
	Deviation float64 `json:"deviation,omitempty"`
	Shift     float64 `json:"shift,omitempty"`
	Factor    float64 `json:"factor,omitempty"`

	// For a category: one value each, 1 for the row's own and 0 for the others; all 0 for a row without it.
	Categories []string `json:"categories,omitempty"`
}

type ColumnKind string

// The kinds of columns.
const (
	ColumnNumber   ColumnKind = "number"
	ColumnCategory ColumnKind = "category"
	ColumnSkip     ColumnKind = "skip"   // the column is left out of the data set
	ColumnLabel    ColumnKind = "label"  // the column has the classes; only in a ColumnReading
	ColumnTarget   ColumnKind = "target" // the column has numbers to predict; only in a ColumnReading
)

// Width is the number of values of the column in a row.
func (c *Column) Width() int {
	if c.Kind == ColumnCategory {
		return len(c.Categories)
	}
	return 1
}

// Warnings returns warnings about the classes, and the notes.
func (u *Interpretation) Warnings(m *Manifest) (list []string) {
	rows := make([]int, m.Classes)
	for k := range min(len(u.Classes), m.Classes) {
		rows[k] = u.Classes[k].Rows
	}
	if w := classWarnings(rows, len(m.ClassNames) == 0); w != "" && len(u.Classes) > 0 { // else nobody counted them
		list = append(list, w)
	}
	if info := m.Info(usualSplit); info.HeldOut == 0 {
		list = append(list, noneHeldOut)
	}
	if note := m.duplicatesNote(); note != "" {
		list = append(list, note)
	}
	return append(list, u.Notes...)
}
