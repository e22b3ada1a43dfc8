package dense

import (
	"cmp"
	"fmt"

	"github.com/disdel/disdel/dataset"
)

// longestExample is the longest text of a cell that is shown, in characters.
const longestExample = 40

// readings describes all columns of the file; nil for the values of a picture, which have no names.
func (t *table) readings() []dataset.ColumnReading {
	if t.Shape != nil {
		return nil
	}
	out := make([]dataset.ColumnReading, len(t.columns))
	for i := range t.columns {
		out[i] = t.columns[i].reading(t.Scale)
		if t.columns[i].passed == isLabel {
			out[i].Distinct = len(t.labels.names)
			out[i].Done = fmt.Sprintf("the class to predict, one of %d", len(t.labels.names))
		}
		if i < len(t.first.record) {
			out[i].Example = cmp.Or(out[i].Example, t.first.record[i])
		}
		out[i].Example = shortened(out[i].Example)
	}
	return out
}

// shortened cuts a text off that is too long for a table.
func shortened(text string) string {
	if letters := []rune(text); len(letters) > longestExample {
		return string(letters[:longestExample-3]) + "..."
	}
	return text
}

// reading describes a column whose numbers are scaled.
func (c *column) reading(by Scale) dataset.ColumnReading {
	r := dataset.ColumnReading{
		Name: c.Name, Kind: c.Kind, Missing: c.Missing, Distinct: c.different, Above: c.tooMany, Example: c.example,
	}
	switch {
	case c.passed == isLabel:
		r.Kind = dataset.ColumnLabel
	case c.passed == isYesOrNo:
		r.Kind, r.Done = dataset.ColumnLabel, "yes or no"
	case c.target:
		r.Kind, r.Done = dataset.ColumnTarget, "the number to predict"
	case c.passed != "":
		r.Kind, r.Done = dataset.ColumnSkip, "left out: "+c.passed
	case c.Kind == dataset.ColumnCategory:
		r.Done = fmt.Sprintf("one value of 0 or 1 for each of %d categories", len(c.Categories))
		if c.Missing > 0 {
			r.Done += "; a missing one has only zeros"
		}
	default:
		r.Done = c.scaling(by)
		if c.Missing > 0 {
			r.Done += "; a missing one becomes the mean"
		}
	}
	return r
}

// scaling says how the column's numbers become values.
func (c *column) scaling(by Scale) string {
	switch by {
	case Standard:
		return fmt.Sprintf("minus %.4g, divided by %.4g", c.Shift, 1/c.Factor)
	case Range:
		return fmt.Sprintf("%.4g to %.4g become 0 to 1", c.Low, c.High)
	default:
		return "as it is"
	}
}
