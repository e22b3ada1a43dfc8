package dense

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// parquetFile is an open Parquet file whose columns are flat, or left out.
type parquetFile struct {
	name    string
	local   parquetBytes
	size    int64
	meta    *parquet.File
	columns []parquetColumn
	skip    func(name string) bool // tells which columns may be nested, because they are left out
	only    bool                   // columns that are left out are not read
	maximum int                    // of columns
	pages   int64                  // bytes of the largest page of each column, together
	flat    []flatColumn           // what is read

	group     int // number of the current row group, from 1
	readers   []columnReader
	direct    []bool // flat columns that are read as numbers in this group
	remaining int64  // rows of the group that are not read yet
	cells     []int  // the cell of a row that a flat column is
	texts     []bool // flat columns whose texts are needed
}

// parquetBytes is a file, or one in memory.
type parquetBytes interface {
	io.ReaderAt
	io.Closer
}

// flatColumn is a column with one value in each row.
type flatColumn struct{ column, leaf int } // its index among the columns, and among the file's leaves

// parquetNames returns the names of the columns. It returns *disdel.Faults for columns that no table can have.
// Columns in skip may be nested.
func parquetNames(from dataset.Source, skip map[string]bool, maximum int) ([]string, error) {
	f, err := openParquet(from, skip, maximum)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names := make([]string, len(f.columns))
	for i := range f.columns {
		names[i] = f.columns[i].name
	}
	return names, nil
}

// parquetBlocks reads the rows of a Parquet file in blocks. next fills a block; a fault is the block's.
func (t *table) parquetBlocks(from dataset.Source) (next func(*parsedBlock) bool, file io.Closer, err error) {
	f, err := openParquet(from, t.skippedNames(), t.maxColumns())
	if err != nil {
		return nil, nil, err
	}
	f.cells, f.texts = make([]int, len(f.flat)), make([]bool, len(f.flat)) // held-out files may have another order
	cells := make(map[string]int, len(t.names))
	for i, name := range t.names {
		cells[name] = i
	}
	for i, flat := range f.flat {
		at := cells[f.columns[flat.column].name]
		f.cells[i], f.texts[i] = at, t.needsTexts(at)
		if spell := f.columns[flat.column].spell; spell != nil {
			t.columns[at].typed = &typed{spell: spell}
		}
	}
	for i := range f.columns {
		if _, ok := cells[f.columns[i].name]; !ok || len(t.names) != len(f.columns) {
			f.Close() //nolint:errcheck // nothing was written
			return nil, nil, f.damaged("it has other columns than before", nil)
		}
	}
	line, over := 1, false
	return func(s *parsedBlock) bool {
		if over {
			return false
		}
		s.block, s.parquet, s.parquetRows = block{line: line}, f, 0
		s.err = f.fill(s)
		line += s.parquetRows
		over = s.err != nil || s.parquetRows == 0
		return s.err != nil || s.parquetRows > 0
	}, f, nil
}

// largestFooter bounds the description of a Parquet file, which is read into memory.
const largestFooter = 16 << 20

// openParquet opens a file and reads its description.
func openParquet(from dataset.Source, skip map[string]bool, maximum int) (*parquetFile, error) {
	local, err := localFile(from)
	if err != nil {
		return nil, err
	}
	f := &parquetFile{
		name: from.Name, local: local, skip: func(name string) bool { return skip[name] }, maximum: maximum, pages: mostPages,
	}
	info, err := local.Stat()
	if err != nil {
		err = &disdel.Error{Kind: disdel.Invalid, Op: "read " + f.name, Err: plain(err)}
	} else {
		f.size = info.Size()
		err = f.open()
	}
	if err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return f, nil
}

func (f *parquetFile) open() error {
	if err := f.checkFooter(f.size); err != nil {
		return err
	}
	return f.guard("its description is damaged", func() (err error) {
		f.meta, err = parquet.OpenFile(f.local, f.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		if err != nil {
			return err
		}
		return f.choose()
	})
}

// localFile opens a source as a file of this machine. It copies others to a temporary file, which is gone after Close.
func localFile(from dataset.Source) (*os.File, error) {
	if from.Path != "" {
		file, err := os.Open(from.Path)
		if err != nil {
			return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + from.Name, Err: plain(err)}
		}
		head := make([]byte, len(parquetMark))
		if _, err := file.ReadAt(head, 0); err == nil && string(head) == parquetMark {
			return file, nil
		}
		file.Close() //nolint:errcheck // nothing was written
	}
	in, err := from.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	file, err := os.CreateTemp("", "disdel-*.parquet")
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Unavailable, Op: "copy " + from.Name, Err: plain(err)}
	}
	os.Remove(file.Name()) //nolint:errcheck // the open file stays readable
	if _, err := io.Copy(file, in); err != nil {
		file.Close() //nolint:errcheck // it is gone already
		return nil, err
	}
	return file, nil
}

// checkFooter refuses files whose end is no description of a bounded size: memory for it is taken before it is read.
func (f *parquetFile) checkFooter(size int64) error {
	var end [8]byte
	if _, err := f.local.ReadAt(end[:], max(0, size-int64(len(end)))); err != nil || size < 12 {
		return f.damaged("the file ends early", nil)
	}
	length := int64(binary.LittleEndian.Uint32(end[:4]))
	switch {
	case string(end[4:]) == "PARE":
		return &disdel.Error{Kind: disdel.Invalid, Op: "read " + f.name, Msg: "it is encrypted", Hint: "write it in plain"}
	case string(end[4:]) != parquetMark, length > size-12:
		return f.damaged("the file ends early", nil)
	case length > largestFooter:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + f.name,
			Msg: fmt.Sprintf("the description of its columns and row groups has %v, and at most %v are read",
				disdel.Bytes(length), disdel.Bytes(largestFooter)),
			Hint: "write it with fewer columns, or with larger row groups",
		}
	}
	footer := make([]byte, length)
	if _, err := f.local.ReadAt(footer, size-8-length); err != nil {
		return f.damaged("the file ends early", err)
	}
	if w := (&thriftWalk{rest: footer}); !w.value(thriftStruct, 0) {
		return f.damaged("its description is damaged", nil)
	}
	return nil
}

// damaged is the error of a file that is no whole Parquet file.
func (f *parquetFile) damaged(what string, err error) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + f.name, Msg: what, Err: err, Hint: "fetch the file again, or write it again",
	}
}

// guard calls read, and returns its error or panic as the error of a damaged file: the library panics for some of them.
func (f *parquetFile) guard(what string, read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // its assembler may read beyond a damaged page
	defer func() {
		if recover() != nil { // what it says is for programmers
			err = f.damaged(what, nil)
		}
	}()
	err = read()
	var ours *disdel.Error
	var faults *disdel.Faults
	if err == nil || errors.As(err, &ours) || errors.As(err, &faults) {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return f.damaged(what, err)
}

// choose finds out how the values of each column become texts, and refuses columns that no table can have. It passes
// over nested columns that the user leaves out.
func (f *parquetFile) choose() error {
	wrong, seen := &faults{file: f.name}, map[string]bool{}
	list, elements := f.meta.Root().Columns(), f.meta.Metadata().Schema
	if len(list) > f.maximum {
		return tooManyColumns(f.name, f.maximum)
	}
	element, leaf := 1, 0 // of the schema's list, which has each column before its parts
	for i, c := range list {
		column, why := parquetColumn{name: c.Name()}, ""
		nested := !c.Leaf() || c.Repeated()
		switch {
		case f.skip(c.Name()) && (nested || f.only):
		case nested:
			why = "it is nested, and a cell has one value"
		case seen[c.Name()]:
			why = "another column has the same name"
		case element < len(elements):
			column.text, why = textOf(c, &elements[element])
			column.booleans, column.optional = c.Leaf() && c.Type().Kind() == parquet.Boolean, c.Optional()
			column.numbersOf(c, &elements[element])
		}
		if why != "" {
			wrong.add(disdel.Fault{
				Path: c.Name(), Msg: why, Hint: "leave the column out (--skip), or write its parts as columns of their own",
			})
		}
		leaves, parts := sizeOf(c)
		if !nested && !(f.only && f.skip(c.Name())) {
			f.flat = append(f.flat, flatColumn{i, leaf})
		}
		element, leaf = element+parts, leaf+leaves
		seen[c.Name()] = true
		f.columns = append(f.columns, column)
	}
	return wrong.err()
}

// sizeOf counts the leaves of a column, and all of its parts with itself.
func sizeOf(c *parquet.Column) (leaves, parts int) {
	if c.Leaf() {
		return 1, 1
	}
	parts = 1
	for _, child := range c.Columns() {
		l, p := sizeOf(child)
		leaves, parts = leaves+l, parts+p
	}
	return leaves, parts
}

// valuesAtOnce is about how many values a block has: their cells stay in a core's own cache.
const valuesAtOnce = 1 << 13

// fill reads the next rows of a file, all of one row group, into a block. At the end there are none.
func (f *parquetFile) fill(s *parsedBlock) error {
	for f.remaining == 0 {
		if f.group == len(f.meta.RowGroups()) {
			return nil
		}
		f.group++
		if err := f.guard(f.inGroup(), f.openGroup); err != nil {
			return err
		}
	}
	rows := int(min(f.remaining, max(1, valuesAtOnce/int64(max(1, len(f.flat))))))
	size := rows * len(f.flat)
	s.raw, s.numbers, s.direct = slices.Grow(s.raw[:0], size)[:size], slices.Grow(s.numbers[:0], size)[:size], f.direct
	err := f.guard(f.inGroup(), func() (err error) {
		for i := range f.readers {
			if f.direct[i] {
				err = f.readers[i].readNumbers(s.numbers[i*rows:][:rows])
			} else {
				err = f.readers[i].read(s.raw[i*rows:][:rows])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.parquetRows, f.remaining = rows, f.remaining-int64(rows)
	return nil
}

// inGroup says that the current row group is damaged.
func (f *parquetFile) inGroup() string {
	return fmt.Sprintf("row group %d of %d is damaged", f.group, len(f.meta.RowGroups()))
}

// openGroup opens the flat columns of a row group.
func (f *parquetFile) openGroup() error {
	f.closeGroup()
	if err := f.checkPages(f.group - 1); err != nil {
		return err
	}
	group := f.meta.RowGroups()[f.group-1]
	chunks := group.ColumnChunks()
	f.direct = make([]bool, len(f.flat)) // blocks of the group before keep theirs
	for i, flat := range f.flat {
		c := &f.columns[flat.column]
		f.direct[i] = c.numbers != nil && !f.texts[i] && c.isExact(chunks[flat.leaf])
		r := columnReader{numbers: c.numbers}
		if c.booleans {
			r.booleans = f.booleansOf(flat.leaf, c.optional)
		} else {
			r.pages = chunks[flat.leaf].Pages()
		}
		f.readers = append(f.readers, r)
	}
	f.remaining = group.NumRows()
	return nil
}

// closeGroup closes the row group that was read.
func (f *parquetFile) closeGroup() {
	for i := range f.readers {
		if f.readers[i].pages != nil {
			f.readers[i].pages.Close() //nolint:errcheck // nothing was written
		}
	}
	f.readers = f.readers[:0]
}

// columnReader reads the values of a column of a row group.
type columnReader struct {
	pages   parquet.Pages
	page    parquet.Page
	numbers func(values encoding.Values, indexes []int32) func(into []float64) // of the column; nil: it has texts
	values  parquet.ValueReader                                                // of the page; nil: it is at its end

	booleans *booleanPages // of the column instead of pages; nil: it has none

	next    func(into []float64) // numbers of the page
	present []byte               // for each row of the page that is left, whether it has a number; nil: all have
	left    int                  // rows of the page
}

// nextPage reads the next page.
func (c *columnReader) nextPage() (err error) {
	c.page, err = c.pages.ReadPage()
	if errors.Is(err, io.EOF) {
		return errors.New("it has fewer rows than its description says")
	}
	return err
}

// read fills all of into.
func (c *columnReader) read(into []parquet.Value) error {
	if c.booleans != nil {
		return c.booleans.read(into)
	}
	for len(into) > 0 {
		if c.values == nil {
			if err := c.nextPage(); err != nil {
				return err
			}
			c.values = c.page.Values()
		}
		n, err := c.values.ReadValues(into)
		into = into[n:]
		switch {
		case errors.Is(err, io.EOF):
			if c.values = nil; c.numbers != nil { // values need no memory of the page
				parquet.Release(c.page)
			}
		case err != nil:
			return err
		case n == 0:
			return errors.New("a page has fewer values than its description says")
		}
	}
	return nil
}

// readNumbers fills all of into. A row without a number has NaN. It panics for a damaged page, as the library does.
func (c *columnReader) readNumbers(into []float64) error {
	for len(into) > 0 {
		if c.left == 0 {
			if err := c.nextPage(); err != nil {
				return err
			}
			data, indexes := c.page.Data(), []int32(nil)
			if dictionary := c.page.Dictionary(); dictionary != nil {
				data, indexes = dictionary.Page().Data(), data.Int32()
			}
			c.next, c.left, c.present = c.numbers(data, indexes), int(c.page.NumValues()), nil
			if c.page.NumNulls() > 0 {
				c.present = c.page.DefinitionLevels()
			}
		}
		n := min(c.left, len(into))
		c.take(into[:n])
		into = into[n:]
		if c.left -= n; c.left == 0 {
			parquet.Release(c.page)
		}
	}
	return nil
}

// take fills into with the next numbers of the page.
func (c *columnReader) take(into []float64) {
	if c.present == nil {
		c.next(into)
		return
	}
	for at, end := 0, 0; at < len(into); at = end {
		for end = at; end < len(into) && c.present[end] != 0; end++ {
		}
		c.next(into[at:end])
		for ; end < len(into) && c.present[end] == 0; end++ {
			into[end] = math.NaN()
		}
	}
	c.present = c.present[len(into):]
}

// fromParquet makes the cells of a block. Cells of numbers have a text only where one is asked for.
func (s *parsedBlock) fromParquet(t *table) {
	columns, rows := len(t.columns), s.parquetRows
	s.records = s.records[:0]
	s.cells = slices.Grow(s.cells[:0], columns*rows)[:columns*rows]
	clear(s.cells)
	for k := range rows {
		s.records = append(s.records, record{line: s.line + k, first: k * columns, width: columns})
	}
	sizes := make([]int, rows) // bytes of the texts of each row
	for i, flat := range s.parquet.flat {
		at := s.parquet.cells[i]
		c := &s.parquet.columns[flat.column]
		if s.direct[i] {
			for k, v := range s.numbers[i*rows:][:rows] {
				s.cells[k*columns+at].set(v, c)
			}
			continue
		}
		for k, v := range s.raw[i*rows:][:rows] {
			if v.IsNull() {
				continue
			}
			text := strings.ReplaceAll(c.text(v), "\r\n", "\n")
			if sizes[k] += len(text); sizes[k] > longestRecord {
				s.err = errLong
			}
			s.cells[k*columns+at].text = trimmed(text)
		}
	}
}

// set makes a cell of a number. NaN is no value, and a number that no data set has is a text.
func (x *cell) set(v float64, c *parquetColumn) {
	if x.value, x.plain = v, math.Abs(v) <= math.MaxFloat32; !x.plain && v == v {
		x.text = c.spell(v)
	}
}

// needsTexts tells whether the texts of numbers of a column are needed.
func (t *table) needsTexts(at int) bool {
	c := &t.columns[at]
	return at == t.label && !c.target || t.numbersMiss || c.index != nil || c.passed == isGroup ||
		c.asked == dataset.ColumnCategory
}

// Close closes the file.
func (f *parquetFile) Close() error {
	f.closeGroup()
	return f.local.Close()
}
