package dense

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel/dataset"
)

// RawRows converts rows as a table's file has them into values as the table's data set stores them: numbers are scaled
// as the training rows were, a text has a value for each category.
type RawRows struct {
	columns []column
	missing map[string]bool
	decimal string
	width   int
}

// NewRawRows returns a converter for the columns of a table.
func NewRawRows(t dataset.Table) *RawRows {
	r := &RawRows{columns: make([]column, len(t.Columns)), missing: missingTexts(t.Missing), decimal: t.Decimal}
	for i := range r.columns {
		c := &r.columns[i]
		c.Column = t.Columns[i]
		r.width += c.Width()
		if c.Kind == dataset.ColumnCategory {
			c.index = make(map[string]int, len(c.Categories))
			for k, text := range c.Categories {
				c.index[text] = k
			}
		}
	}
	return r
}

// missingTexts are the texts that stand for no value.
func missingTexts(more []string) map[string]bool {
	out := map[string]bool{}
	for _, texts := range [][]string{usualMissing, more} {
		for _, text := range texts {
			out[text] = true
		}
	}
	return out
}

// Width is the number of values of a row.
func (r *RawRows) Width() int { return r.width }

// RawCell says what was found in a cell of a row.
type RawCell struct {
	Column  string
	Unknown bool   // a text that no training row has; it counts as missing
	Fault   string // why the cell cannot be read; "": it can
}

// Append appends the values of a row, whose texts are in the order of the table's columns. tell is called with each
// cell that has a fault or an unknown text. A cell with a fault counts as missing.
func (r *RawRows) Append(to []float32, texts []string, tell func(RawCell)) []float32 {
	for i := range r.columns {
		c, x := &r.columns[i], cell{text: trimmed(strings.ReplaceAll(texts[i], "\r\n", "\n"))} // as CSV is read
		v, isNumber := written(x.text, r.decimal)
		k, isCategory := c.index[x.text]
		switch {
		case r.missing[x.text]:
			x.kind = aGap
		case c.index != nil && isCategory:
			x.value, x.kind = float64(k), aNumber
		case c.index != nil:
			x.kind = isUnknown
			tell(RawCell{Column: c.Name, Unknown: true})
		case isNumber:
			x.value, x.kind = v, aNumber
		default:
			x.kind = aGap
			tell(RawCell{Column: c.Name, Fault: fmt.Sprintf("%.40q is no number%s", x.text, nearNumber(x.text))})
		}
		to = c.write(to, &x)
	}
	return to
}

// Number reads a number as tables of data sets usually have it.
func Number(text string) (float64, bool) { return number(trimmed(text)) }

// Number reads a number as the table's file has it.
func (r *RawRows) Number(text string) (float64, bool) { return written(trimmed(text), r.decimal) }

// Spelled is a number of JSON, whose decimals have a point, as the table's file has it.
func (r *RawRows) Spelled(number string) string {
	if r.decimal == "," {
		return strings.Replace(number, ".", ",", 1)
	}
	return number
}

// HeaderNames are the names of columns whose header has these fields: an empty one is named by its number, and a later
// one of the same name by its place among them, from 2.
func HeaderNames(header []string) []string {
	names, seen := make([]string, len(header)), map[string]int{}
	for i, name := range header {
		if name == "" {
			name = fmt.Sprintf(Headless, i+1)
		}
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, seen[name])
		}
		names[i] = name
	}
	return names
}
