package dense

import (
	"fmt"
	"slices"

	"github.com/disdel/disdel/dataset"
)

// mostShown is how many values of the example are shown.
const mostShown = 8

// described is the columns as the data set keeps them.
func (t *table) described() []dataset.Column {
	if t.Shape != nil {
		return nil
	}
	out := []dataset.Column{}
	for i := range t.columns {
		if t.columns[i].passed == "" {
			out = append(out, t.columns[i].Column)
		}
	}
	return out
}

var separators = map[rune]string{',': "commas", ';': "semicolons", '\t': "tabs", '|': "bars"}

// understood is what the file was taken for.
func (t *table) understood() dataset.Understood {
	by, ok := separators[t.Separator]
	if !ok {
		by = fmt.Sprintf("%q", t.Separator)
	}
	u := dataset.Understood{
		Kind: "CSV, separated by " + by + ", without a header", Rows: t.learned, HeldOut: t.tested,
		Classes: t.labels.counts(), Values: t.kept(),
	}
	if t.header {
		u.Kind = "CSV, separated by " + by + ", with a header"
	}
	u.Example = dataset.Example{Place: fmt.Sprintf("line %d", t.first.line), Class: t.first.record[t.label]}
	for i := range t.columns {
		c := &t.columns[i]
		switch {
		case c.passed == isLabel:
			u.Kind += fmt.Sprintf("; the label is %s", c.Name)
		case c.passed != "":
			u.Passed = append(u.Passed, c.Name+": "+c.passed)
		case len(u.Example.Values) == mostShown:
			u.Example.More++
		default:
			u.Example.Values = append(u.Example.Values, c.Name+" "+t.first.record[i])
		}
	}
	if t.unknown > 0 {
		u.Notes = append(u.Notes,
			fmt.Sprintf("held-out rows have %d texts that no row to learn from has; they are kept as missing",
				t.unknown))
	}
	u.Notes = append(u.Notes, t.labels.numericNotes(t.LabelClasses)...)
	u.Notes = append(u.Notes, t.almostNumbers()...)
	if t.Shape == nil && t.pixels() {
		u.Notes = append(u.Notes,
			"all values are whole numbers from 0 to 255; if rows are images, add --shape 1xHEIGHTxWIDTH --overwrite")
	}
	return u
}

// almostNumbers tells of columns that are numbers to people, and became categories.
func (t *table) almostNumbers() (list []string) {
	for i := range t.columns {
		c := &t.columns[i]
		at := slices.IndexFunc(c.Categories, func(text string) bool { return almost(text) != "" })
		if at < 0 || c.passed != "" || slices.ContainsFunc(c.Categories, isText) {
			continue
		}
		list = append(list, fmt.Sprintf("%s is kept as %d categories and not as numbers, as it has %.40q%s",
			c.Name, len(c.Categories), c.Categories[at], almost(c.Categories[at])))
	}
	return list
}

// isText tells whether a text is no number to anybody.
func isText(text string) bool {
	_, ok := number(text)
	return !ok && almost(text) == ""
}

// kept says how values are kept.
func (t *table) kept() string {
	if t.bytes {
		return "bytes, as 0..1 from 0..255"
	}
	switch t.Scale {
	case Standard:
		return "numbers less their column's mean, over its deviation"
	case Range:
		return "numbers as 0..1 from their column's least to its largest"
	default:
		return "numbers as they are"
	}
}

// leastPixels is the smallest picture that anybody would call one, 8x8.
const leastPixels = 64

// pixels says whether the columns look like those of a picture.
func (t *table) pixels() bool {
	n, high := 0, 0.0
	for i := range t.columns {
		c := &t.columns[i]
		if c.passed == "" && !c.inBytes() {
			return false
		}
		if c.passed == "" {
			n, high = n+1, max(high, c.High)
		}
	}
	return n >= leastPixels && high > 1
}
