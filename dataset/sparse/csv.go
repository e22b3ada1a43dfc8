package sparse

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strings"
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
		if strings.IndexByte(text, 0) >= 0 {
			return bad(t.Source, line, zeroByte)
		}
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
			scaled := float32(0)
			if v != nil {
				scaled = t.numbers[number].of(*v)
			}
			switch {
			case v == nil:
				add(count+number, 1)
			case scaled-scaled != 0: // so far from all that was learned from that it is none
				return bad(t.Source, line, "the %s %.40q is too far from the others to be scaled", f.Name, text)
			default:
				add(number, scaled)
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
	bound := &bounded{in: in}
	text := bufio.NewReaderSize(bound, bufferBytes)
	bound.left = longestLine
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		text.Discard(len(byteOrderMark)) //nolint:errcheck // they are there
	}
	r := csv.NewReader(text)
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	if t.Schema.Separator != "" {
		r.Comma, _ = utf8.DecodeRuneInString(t.Schema.Separator)
	}
	line, width, against := 0, len(t.fields), "schema"
	for begun := false; ; {
		bound.left = longestLine + bufferBytes
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return t.broken(line, err)
		}
		line, _ = r.FieldPos(0)
		if !begun {
			begun = true
			if err := t.place(line, record); err != nil {
				return err
			}
			if t.Schema.Header {
				width, against = len(record), "header"
				continue
			}
		}
		if len(record) != width {
			return bad(t.Source, line, "it has %d fields, and the %s %d", len(record), against, width)
		}
		if err := f(line, record); err != nil {
			return err
		}
	}
}

// broken is the error of what follows a line. encoding/csv names the line of what is no CSV itself.
func (t *table) broken(after int, err error) error {
	e := &disdel.Error{Kind: disdel.Invalid, Op: "read " + t.Name, Err: err}
	switch parse := (*csv.ParseError)(nil); {
	case errors.As(err, &parse):
		e.Hint = "a field with quotes in it stands in quotes, and has each of them twice"
	case errors.Is(err, errLong):
		e.Msg, e.Err = fmt.Sprintf("line %d: its record is longer than %v", after+1, disdel.Bytes(longestLine)), nil
		e.Hint = "look for a quote that is not closed"
	default:
		e.Kind, e.Msg = disdel.Corrupt, fmt.Sprintf("after line %d", after)
	}
	return e
}

// errLong is what is read of a record that does not end.
var errLong = errors.New("the record does not end")

// bounded is a file of which so many bytes may be read before it is told that one record more was: a quote that is not
// closed would have all that follows come into memory.
type bounded struct {
	in   io.Reader
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.in.Read(p)
	b.left -= n
	return n, err
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
		if slices.Contains(record[t.places[i]+1:], f.Name) {
			return bad(t.Source, line, "the header has two fields %q", f.Name)
		}
	}
	return nil
}
