package dense

import (
	"cmp"
	"fmt"
	"slices"

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

// mostIDs bounds the rows that are read to find out whether a column differs in each of them.
const mostIDs = 100_000

// onlyID notes that one column is left for a row, and that it looks like ids: whole numbers or texts that differ in
// every row. It reads the first rows again if there are too many different ones to know.
func (t *table) onlyID(u *dataset.Interpretation) error {
	kept := func(c column) bool { return c.passed == "" }
	at := slices.IndexFunc(t.columns, kept)
	if at < 0 || slices.ContainsFunc(t.columns[at+1:], kept) || t.learned < fewRows {
		return nil
	}
	c := &t.columns[at]
	if c.Missing > 0 || c.Kind == dataset.ColumnNumber && !c.integers || !c.tooMany && c.different < t.learned {
		return nil
	}
	if c.tooMany {
		differs, err := t.differs(at)
		if err != nil || !differs {
			return err
		}
	}
	u.Notes = append(u.Notes, fmt.Sprintf("%s is the only column that is left, and it differs in every row, as ids do. "+
		"A model cannot learn from ids: keep other columns", c.Name))
	return nil
}

// differs tells whether the first rows have different numbers in a column.
func (t *table) differs(at int) (bool, error) {
	seen, rows := map[float64]bool{}, 0
	err := t.rows(t.Source, &faults{file: t.Name}, func(r row) error {
		if r.heldOut {
			return nil
		}
		seen[r.cells[at].value] = true
		if rows++; len(seen) < rows || rows == mostIDs {
			return errEnough
		}
		return nil
	})
	return len(seen) == rows, err
}
