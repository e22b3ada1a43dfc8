package dense

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
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

// IsParquet tells whether a file begins as Parquet does.
func IsParquet(data []byte) bool { return bytes.HasPrefix(data, []byte(parquetMark)) }

// ParquetRows reads some columns of a Parquet file in memory.
type ParquetRows struct {
	file    *parquetFile
	columns []ParquetColumn
	spell   []func(v float64) string // for each column; nil: the text is as in the file
}

// ParquetColumn is a column that is read.
type ParquetColumn struct {
	Name     string
	IsNumber bool // it has numbers in the file
}

// OpenParquet opens a file of rows of the table. It reads the wanted columns, of maximum columns in the file. The
// largest pages of these may need so many bytes together; 0: as many as those of a table. Its errors are those of a
// table's file.
func (r *RawRows) OpenParquet(file string, data []byte, wanted func(name string) bool, maximum int, pages int64) (
	*ParquetRows, error,
) {
	if pages == 0 {
		pages = mostPages
	}
	f := &parquetFile{
		name: file, size: int64(len(data)), skip: func(name string) bool { return !wanted(name) }, only: true,
		maximum: maximum, pages: pages,
		local: struct {
			io.ReaderAt
			io.Closer
		}{bytes.NewReader(data), io.NopCloser(nil)},
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	f.texts = make([]bool, len(f.flat))
	p := &ParquetRows{file: f, spell: make([]func(v float64) string, len(f.flat))}
	for i, flat := range f.flat {
		c := &f.columns[flat.column]
		f.texts[i] = true
		p.columns = append(p.columns, ParquetColumn{c.name, c.numbers != nil})
		if c.numbers != nil && r.readsNumbers(c.name) {
			f.texts[i], p.spell[i] = false, func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
		}
	}
	return p, nil
}

// readsNumbers tells whether a column of the table has numbers that were read without texts where its file was Parquet.
func (r *RawRows) readsNumbers(name string) bool {
	for text := range r.missing {
		if _, isNumber := written(text, r.decimal); isNumber {
			return false
		}
	}
	for i := range r.columns {
		if r.columns[i].Name == name {
			return r.columns[i].Kind == dataset.ColumnNumber && r.decimal != ","
		}
	}
	return false
}

// Columns are the wanted columns that the file has.
func (p *ParquetRows) Columns() []ParquetColumn { return p.columns }

// Rows is how many rows the file says that it has.
func (p *ParquetRows) Rows() int64 { return p.file.meta.NumRows() }

// Each calls yield with the texts of each row, in the order of Columns. It returns yield's error.
func (p *ParquetRows) Each(yield func(texts []string) error) error {
	defer p.file.Close() //nolint:errcheck // it is in memory
	texts := make([]string, len(p.columns))
	for {
		var s parsedBlock
		if err := p.file.fill(&s); err != nil || s.parquetRows == 0 {
			return err
		}
		for k := range s.parquetRows {
			for i, flat := range p.file.flat {
				at := i*s.parquetRows + k
				texts[i] = ""
				if s.direct[i] {
					if v := s.numbers[at]; v == v { // NaN is no value
						texts[i] = p.spell[i](v)
					}
				} else if v := s.raw[at]; !v.IsNull() {
					texts[i] = p.file.columns[flat.column].text(v)
				}
			}
			if err := yield(texts); err != nil {
				return err
			}
		}
	}
}
