package sparse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// csvReading is what the first reading of a CSV file finds, for people. Its columns are those of the training rows.
type csvReading struct {
	rows, heldOut int
	columns       []dataset.ColumnReading // one for each field
	texts         []map[string]bool       // by field: different categories
	byLabel       map[string]int          // training rows by the text of their target
	example       dataset.Example
}

// shownFields is how many fields of the first row are shown, and mostTexts how many categories of a field are counted.
const (
	shownFields = 8
	mostTexts   = 1000
)

func newCSVReading(fields []Field) *csvReading {
	r := &csvReading{
		columns: make([]dataset.ColumnReading, len(fields)), texts: make([]map[string]bool, len(fields)),
		byLabel: map[string]int{},
	}
	for i, f := range fields {
		r.columns[i].Name = f.Name
		r.columns[i].Kind = map[Kind]dataset.ColumnKind{
			Target: dataset.ColumnTarget, Number: dataset.ColumnNumber, Category: dataset.ColumnCategory,
		}[f.Kind]
		if r.columns[i].Kind == "" {
			r.columns[i].Kind = dataset.ColumnSkip
		}
		if f.Kind == Category {
			r.texts[i] = map[string]bool{}
		}
	}
	return r
}

// add counts a row of the table.
func (r *csvReading) add(t *table, line int, record []string, heldOut bool) {
	if r.rows+r.heldOut == 0 {
		r.first(t, line, record)
	}
	if heldOut {
		r.heldOut++
		return
	}
	r.rows++
	for i, f := range t.fields {
		text, c := record[t.places[i]], &r.columns[i]
		switch {
		case f.Kind == Target:
			if len(r.byLabel) <= mostLabelTexts {
				r.byLabel[strings.Clone(text)]++
			}
		case f.Kind == Skip:
		case t.missing(text):
			c.Missing++
		case c.Example == "":
			c.Example = shortened(text)
			fallthrough
		case f.Kind == Category && !c.Above && !r.texts[i][text]:
			r.addText(i, text)
		}
	}
}

// addText counts a category of a field, unless there are too many. Numbers are not counted.
func (r *csvReading) addText(i int, text string) {
	switch c := &r.columns[i]; {
	case r.texts[i] == nil:
	case c.Distinct == mostTexts:
		c.Above, r.texts[i] = true, nil
	default:
		r.texts[i][strings.Clone(text)] = true
		c.Distinct++
	}
}

// first keeps the first row as an example.
func (r *csvReading) first(t *table, line int, record []string) {
	r.example.Place = fmt.Sprintf("line %d", line)
	for i, f := range t.fields {
		switch text := shortened(record[t.places[i]]); {
		case f.Kind == Target:
			r.example.Class = text
			r.columns[i].Example = text
		case f.Kind == Skip:
			r.columns[i].Example = text
		case len(r.example.Values) == shownFields:
			r.example.More++
		default:
			r.example.Values = append(r.example.Values, f.Name+" "+text)
		}
	}
}

// longestExample is the longest text of a field that is shown, in characters.
const longestExample = 40

// shortened copies a text, and cuts it off if it is too long for a line.
func shortened(text string) string {
	if letters := []rune(text); len(letters) > longestExample {
		return string(letters[:longestExample-3]) + "..."
	}
	return strings.Clone(text)
}

// understood is the interpretation of the file. It has the rows of each class only if the targets are two classes.
func (r *csvReading) understood(t *table) dataset.Interpretation {
	target := slices.IndexFunc(t.fields, func(f Field) bool { return f.Kind == Target })
	separator := t.Schema.Separator
	if separator == "" {
		separator = ","
	}
	u := dataset.Interpretation{
		Kind: fmt.Sprintf("CSV with a schema, %s; the target is %s", layoutOf(separator, t.Schema.Header),
			t.fields[target].Name),
		Rows: r.rows, HeldOut: r.heldOut, Columns: r.columns, Example: r.example, Values: t.valuesText(),
	}
	number := 0
	for i, f := range t.fields {
		switch r.columns[i].Done = t.done(f, number); f.Kind {
		case Number:
			number++
		case Target:
			if t.labels.lowest != nil {
				r.columns[i].Kind, r.columns[i].Distinct = dataset.ColumnLabel, 2
			}
		}
	}
	u.Classes = t.labels.classRows(r.byLabel)
	return u
}

// valuesText says which columns the data set has.
func (t *table) valuesText() string {
	var parts []string
	if n := t.hashedFrom(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d columns of numbers, half of them say which numbers are missing", n))
	}
	if t.Schema.Hash > 0 {
		parts = append(parts, disdel.Counted(t.Schema.Hash, "column")+" of hashed categories")
	}
	return strings.Join(parts, "; ")
}

// done says what becomes of a field; number counts the fields of numbers before it.
func (t *table) done(f Field, number int) string {
	switch f.Kind {
	case Target:
		if t.labels.lowest != nil {
			return "the class to predict, one of 2"
		}
		return "the number to predict"
	case Category:
		return fmt.Sprintf("hashed to one of %d columns", t.Schema.Hash)
	case Number:
		return t.numbers[number].text() + "; a missing one is 1 in a column of its own"
	default:
		return "left out: the schema skips it"
	}
}

// text says how a number becomes a value.
func (s *scaling) text() string {
	switch {
	case s.scale == AsIs:
		return "as it is"
	case s.factor == 0:
		return "always 0, as it never differs"
	case s.scale == Range:
		return fmt.Sprintf("%.4g to %.4g become 0 to 1", s.low, s.high)
	case s.scale == Log:
		return fmt.Sprintf("its logarithm, minus %.4g, divided by %.4g", s.shift, 1/s.factor)
	default:
		return fmt.Sprintf("minus %.4g, divided by %.4g", s.shift, 1/s.factor)
	}
}
