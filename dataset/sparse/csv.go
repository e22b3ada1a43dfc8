package sparse

import (
	"encoding/csv"
	"errors"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// CSV is rows of a CSV file, as a Schema says. The columns of the data set are the numbers in the schema's order, then
// for each of them whether it is missing, then those that categories are hashed to.
type CSV struct {
	dataset.Source
	Schema  Schema
	HeldOut HeldOut
}

// Input reads the file once for scales and targets. It returns Invalid for a schema that is none, and for a line that
// does not go with it.
func (c CSV) Input(name string) (in dataset.SparseInput, err error) {
	if err := c.HeldOut.check(); err != nil {
		return in, err
	}
	if err := c.Schema.check(); err != nil {
		return in, err
	}
	t := &table{CSV: c, fields: c.Schema.each()}
	if err := t.learn(); err != nil {
		return in, err
	}
	in = dataset.SparseInput{
		Name: name, Title: "Rows of " + fileName(c.Name), Classes: t.labels.classes(), ClassNames: t.labels.lowest,
		Columns: max(1, t.hashedFrom()+c.Schema.Hash),
	}
	in.Each = t.each
	return in, nil
}

// table is a CSV file that is being read.
type table struct {
	CSV
	fields  []Field
	places  []int // by field: its place in a line, -1 where the file has it not
	numbers []scaling
	labels  labels
}

// hashedFrom is the first column of categories.
func (t *table) hashedFrom() int {
	n := 0
	for _, f := range t.fields {
		if f.Kind == Number {
			n += 2
		}
	}
	return n
}

// learn reads the file for what has to be known of all rows.
func (t *table) learn() error {
	for _, f := range t.fields {
		if f.Kind == Number {
			t.numbers = append(t.numbers, scaling{scale: f.Scale, low: math.Inf(1), high: math.Inf(-1)})
		}
	}
	held := t.HeldOut.picker(0)
	err := t.lines(func(line int, record []string) error {
		learned := !held.next(0)
		number := 0
		for i, f := range t.fields {
			text := record[t.places[i]]
			switch f.Kind {
			case Target:
				if t.missing(text) {
					return bad(t.Source, line, "its target is missing")
				}
				t.labels.add([]byte(text))
			case Number:
				v, err := t.number(line, f, text)
				if err != nil {
					return err
				}
				if learned && v != nil {
					t.numbers[number].add(*v)
				}
				number++
			}
		}
		return nil
	})
	t.labels.close()
	for i := range t.numbers {
		t.numbers[i].close()
	}
	return err
}

// each gives the rows.
func (t *table) each(yield func(dataset.SparseRow) error) error {
	held := t.HeldOut.picker(0)
	var row dataset.SparseRow
	return t.lines(func(line int, record []string) error {
		row.HeldOut = held.next(0)
		if err := t.row(&row, line, record); err != nil {
			return err
		}
		return yield(row)
	})
}

// row makes a row of a line.
func (t *table) row(row *dataset.SparseRow, line int, record []string) error {
	row.Index, row.Value = row.Index[:0], row.Value[:0]
	count, number, first := len(t.numbers), 0, t.hashedFrom()
	add := func(column int, v float32) {
		if v != 0 {
			row.Index, row.Value = append(row.Index, int32(column)), append(row.Value, v)
		}
	}
	for i, f := range t.fields {
		text := record[t.places[i]]
		switch f.Kind {
		case Target:
			v, ok := t.labels.target([]byte(text))
			if !ok {
				return bad(t.Source, line, "the target %.40q is no number", text)
			}
			row.Target = v
		case Number:
			v, err := t.number(line, f, text)
			if err != nil {
				return err
			}
			if v == nil {
				add(count+number, 1)
			} else {
				add(number, t.numbers[number].of(*v))
			}
			number++
		case Category:
			if t.missing(text) {
				text = ""
			}
			t.category(row, first+Hashed(f.Name, text, t.Schema.Hash))
		}
	}
	return nil
}

// category adds 1 to a column, which another category of the row may have been hashed to, too.
func (t *table) category(row *dataset.SparseRow, column int) {
	if at := slices.Index(row.Index, int32(column)); at >= 0 {
		row.Value[at]++
		return
	}
	row.Index, row.Value = append(row.Index, int32(column)), append(row.Value, 1)
}

// Hashed is which of so many columns a field's text is hashed to (FNV-1a). The same text of two fields is two things.
func Hashed(field, text string, columns int) int {
	h := fnv.New64a()
	io.WriteString(h, field) //nolint:errcheck // a hash takes all
	h.Write([]byte{0})
	io.WriteString(h, text) //nolint:errcheck // a hash takes all
	return int(h.Sum64() % uint64(columns))
}

func (t *table) missing(text string) bool {
	return text == "" || slices.Contains(t.Schema.Missing, text)
}

// number reads a number, nil where it is missing.
func (t *table) number(line int, f Field, text string) (*float64, error) {
	if t.missing(text) {
		return nil, nil
	}
	v, ok := number([]byte(text))
	if !ok {
		return nil, bad(t.Source, line, "the %s %.40q is no number; add it to the schema's missing if it stands for none",
			f.Name, text)
	}
	x := float64(v)
	return &x, nil
}

// lines reads the file line by line. The record is good during the call alone.
func (t *table) lines(f func(line int, record []string) error) error {
	in, err := t.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	r := csv.NewReader(in)
	r.ReuseRecord, r.FieldsPerRecord, r.LazyQuotes = true, -1, true
	if t.Schema.Separator != "" {
		r.Comma, _ = utf8.DecodeRuneInString(t.Schema.Separator)
	}
	for begun := false; ; {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &disdel.Error{Kind: disdel.Invalid, Op: "read " + t.Name, Err: err}
		}
		line, _ := r.FieldPos(0)
		if !begun {
			begun = true
			if err := t.place(line, record); err != nil {
				return err
			}
			if t.Schema.Header {
				continue
			}
		}
		if last := slices.Max(t.places); len(record) <= last || !t.Schema.Header && len(record) != len(t.fields) {
			return bad(t.Source, line, "it has %d fields, and the schema %d", len(record), len(t.fields))
		}
		if err := f(line, record); err != nil {
			return err
		}
	}
}

// place finds the fields in a line, by the header or by their order.
func (t *table) place(line int, record []string) error {
	t.places = make([]int, len(t.fields))
	for i, f := range t.fields {
		t.places[i] = i
		if !t.Schema.Header {
			continue
		}
		if t.places[i] = slices.Index(record, f.Name); t.places[i] < 0 {
			return bad(t.Source, line, "the header has no field %q", f.Name)
		}
	}
	return nil
}
