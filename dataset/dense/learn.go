package dense

import (
	"fmt"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// learn reads the rows to learn from, for what has to be known of all of them.
func (t *table) learn() error {
	wrong := &faults{file: t.Name}
	err := t.lines(t.Source, wrong, func(line int, record []string) error {
		if t.first.line == 0 {
			t.first.line, t.first.record = line, cloned(record)
		}
		t.rows++
		for i := range t.columns {
			if c := &t.columns[i]; c.passed == "" {
				c.add(line, record[i], t.missed(record[i]))
			}
		}
		if text := record[t.label]; t.missed(text) {
			wrong.at(line, t.label+1, t.names[t.label], "its label is missing")
		} else {
			t.labels.add(text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if t.rows == 0 && wrong.err() == nil {
		wrong.at(0, 0, "rows", "there are none")
	}
	t.decide(wrong)
	slices.SortStableFunc(wrong.list, func(a, b disdel.Fault) int { return a.Line - b.Line })
	return wrong.err()
}

// cloned is a record that lasts.
func cloned(record []string) []string {
	out := make([]string, len(record))
	for i, text := range record {
		out[i] = strings.Clone(text)
	}
	return out
}

// decide settles what all columns are.
func (t *table) decide(wrong *faults) {
	t.labels.close()
	if why := t.labels.fault(); why != "" && t.rows > 0 {
		wrong.add(disdel.Fault{
			Path: t.names[t.label], Msg: "the label: " + why, Hint: "name the label's column: --label COLUMN",
		})
	}
	inBytes := true
	for i := range t.columns {
		c := &t.columns[i]
		c.close(i, wrong)
		inBytes = inBytes && (c.passed != "" || c.inBytes())
	}
	scale := t.Scale
	if scale == "" && t.Shape != nil {
		scale = AsIs
	}
	if scale == "" {
		scale = Standard
	}
	t.bytes = t.Shape != nil && scale == AsIs && inBytes
	for i := range t.columns {
		t.columns[i].scale(scale)
	}
	t.Scale = scale
	width := t.width()
	switch {
	case t.Shape != nil && width != product(t.Shape):
		wrong.at(0, 0, "columns", "a row has %d values, and shape %v needs %d", width, t.Shape, product(t.Shape))
	case width == 0 && t.rows > 0 && len(wrong.list) == 0:
		wrong.at(0, 0, "columns", "none is left beside the label")
	case width > mostValues:
		wrong.at(0, 0, "columns", "a row has %d values, and %d are the most", width, mostValues)
	}
}

func product(shape []int) int {
	n := 1
	for _, v := range shape {
		n *= v
	}
	return n
}

// test reads the held-out rows for what is wrong with them.
func (t *table) test() error {
	wrong := &faults{file: t.Test.Name}
	err := t.lines(*t.Test, wrong, func(line int, record []string) error {
		t.tested++
		if _, why, at := t.row(nil, record); why != "" {
			wrong.at(line, at+1, t.names[at], "%s", why)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if t.tested == 0 && wrong.err() == nil {
		wrong.at(0, 0, "rows", "there are none")
	}
	return wrong.err()
}

// row appends the values of a record; why says what is wrong with it, and at in which column.
func (t *table) row(to []float32, record []string) (values []float32, why string, at int) {
	for i := range t.columns {
		c := &t.columns[i]
		if c.passed != "" {
			continue
		}
		var ok, known bool
		if to, ok, known = c.write(to, record[i], t.missed(record[i])); !ok {
			return to, fmt.Sprintf("%.40q is no number", record[i]), i
		}
		if !known {
			t.unknown++
		}
	}
	if _, ok := t.labels.of(record[t.label]); !ok {
		return to, fmt.Sprintf("no row to learn from has the label %.40q", record[t.label]), t.label
	}
	return to, "", 0
}

// each gives the rows.
func (t *table) each(yield func(dataset.DenseRow) error) error {
	if err := t.part(t.Source, false, yield); err != nil || t.Test == nil {
		return err
	}
	return t.part(*t.Test, true, yield)
}

func (t *table) part(from dataset.Source, heldOut bool, yield func(dataset.DenseRow) error) error {
	wrong := &faults{file: from.Name}
	values, row := make([]float32, 0, t.width()), dataset.DenseRow{HeldOut: heldOut}
	err := t.lines(from, wrong, func(line int, record []string) error {
		var why string
		var at int
		if values, why, at = t.row(values[:0], record); why != "" { // it was read before without this
			wrong.at(line, at+1, t.names[at], "%s; the file has changed meanwhile", why)
			return wrong.err()
		}
		row.Label, _ = t.labels.of(record[t.label])
		if t.bytes {
			row.Bytes = row.Bytes[:0]
			for _, v := range values {
				row.Bytes = append(row.Bytes, byte(v))
			}
		} else {
			row.Values = values
		}
		return yield(row)
	})
	if err == nil {
		err = wrong.err()
	}
	return err
}
