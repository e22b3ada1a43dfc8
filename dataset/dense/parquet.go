package dense

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// parquetFile is an open Parquet file whose columns are flat, or left out.
type parquetFile struct {
	name    string
	local   *os.File
	meta    *parquet.File
	columns []parquetColumn
	skip    map[string]bool // names of columns that may be nested, because they are left out
	flat    []flatColumn    // what is read

	group     int          // number of the next row group
	reader    parquet.Rows // of the current row group; nil: it is at its end
	remaining int64        // its rows that are not read yet
	ready     []parquet.Row
	buffer    []parquet.Row
}

// flatColumn is a column with one value in each row.
type flatColumn struct{ column, leaf int } // its index among the columns, and among the file's leaves

// flatGroup is a row group of which only some leaves are read.
type flatGroup struct {
	parquet.RowGroup
	chunks []parquet.ColumnChunk
}

func (g flatGroup) ColumnChunks() []parquet.ColumnChunk { return g.chunks }

// parquetNames returns the names of the columns. It returns *disdel.Faults for columns that no table can have.
// Columns in skip may be nested.
func parquetNames(from dataset.Source, skip map[string]bool) ([]string, error) {
	f, err := openParquet(from, skip)
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

// parquetRows reads the rows of a Parquet file.
func parquetRows(from dataset.Source, names []string, skip map[string]bool) (nextRow, io.Closer, error) {
	f, err := openParquet(from, skip)
	if err != nil {
		return nil, nil, err
	}
	at := make([]int, len(f.columns)) // the cell of each column: held-out files may have another order
	cells := make(map[string]int, len(names))
	for i, name := range names {
		cells[name] = i
	}
	for i := range f.columns {
		k, ok := cells[f.columns[i].name]
		if !ok || len(names) != len(f.columns) {
			f.Close() //nolint:errcheck // nothing was written
			return nil, nil, f.damaged("it has other columns than before", nil)
		}
		at[i] = k
	}
	return func(cells []string) (bool, error) {
		row, err := f.next()
		if err != nil {
			return false, err
		}
		clear(cells)
		for i, v := range row {
			if column := f.flat[i].column; !v.IsNull() {
				cells[at[column]] = f.columns[column].text(v)
			}
		}
		return true, nil
	}, f, nil
}

// largestFooter bounds the description of a Parquet file, which is read into memory.
const largestFooter = 16 << 20

// openParquet opens a file and reads its description.
func openParquet(from dataset.Source, skip map[string]bool) (*parquetFile, error) {
	local, err := localFile(from)
	if err != nil {
		return nil, err
	}
	f := &parquetFile{name: from.Name, local: local, skip: skip}
	if err := f.open(); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return f, nil
}

func (f *parquetFile) open() error {
	info, err := f.local.Stat()
	if err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "read " + f.name, Err: plain(err)}
	}
	if err := f.checkFooter(info.Size()); err != nil {
		return err
	}
	return f.guard("its description is damaged", func() (err error) {
		f.meta, err = parquet.OpenFile(f.local, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
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
	defer func() {
		if p := recover(); p != nil {
			err = f.damaged(what, fmt.Errorf("%v", p))
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
	if len(list) > mostColumns {
		return tooManyColumns(f.name)
	}
	element, leaf := 1, 0 // of the schema's list, which has each column before its parts
	for i, c := range list {
		column, why := parquetColumn{name: c.Name()}, ""
		nested := !c.Leaf() || c.Repeated()
		switch {
		case nested && f.skip[c.Name()]:
		case nested:
			why = "it is nested, and a cell has one value"
		case seen[c.Name()]:
			why = "another column has the same name"
		case element < len(elements):
			column.text, why = textOf(c, &elements[element])
		}
		if why != "" {
			wrong.add(disdel.Fault{
				Path: c.Name(), Msg: why, Hint: "leave the column out (--skip), or write its parts as columns of their own",
			})
		}
		leaves, parts := sizeOf(c)
		if !nested {
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

// rowsAtOnce is how many rows are read at once.
const rowsAtOnce = 64

// next returns the next row, which is valid until the next call, and io.EOF at the end.
func (f *parquetFile) next() (row parquet.Row, err error) {
	for len(f.ready) == 0 {
		group := f.group // fill counts from 1
		if f.remaining == 0 {
			group++
		}
		if groups := len(f.meta.RowGroups()); group > groups {
			return nil, io.EOF
		}
		what := fmt.Sprintf("row group %d of %d is damaged", group, len(f.meta.RowGroups()))
		if err := f.guard(what, f.fill); err != nil {
			return nil, err
		}
	}
	row, f.ready = f.ready[0], f.ready[1:]
	return row, nil
}

// fill reads the next rows of the current row group, or opens the next one.
func (f *parquetFile) fill() error {
	if f.remaining == 0 {
		if err := f.closeRows(); err != nil {
			return err
		}
		if err := f.checkPages(f.group); err != nil {
			return err
		}
		group := f.meta.RowGroups()[f.group]
		f.group++
		if f.remaining = group.NumRows(); f.remaining == 0 {
			return nil
		}
		f.reader = f.flatRows(group)
	}
	if f.buffer == nil {
		f.buffer = make([]parquet.Row, rowsAtOnce)
	}
	n, err := f.reader.ReadRows(f.buffer[:min(rowsAtOnce, f.remaining)])
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	f.ready, f.remaining = f.buffer[:n], f.remaining-int64(n)
	for _, row := range f.ready {
		if len(row) != len(f.flat) {
			return fmt.Errorf("a row has %d values and not %d", len(row), len(f.flat))
		}
	}
	if err != nil && f.remaining > 0 || n == 0 {
		return errors.New("it has fewer rows than its description says")
	}
	return nil
}

// flatRows reads the flat columns of a row group. Nested ones may have any number of values in a row.
func (f *parquetFile) flatRows(group parquet.RowGroup) parquet.Rows {
	all := group.ColumnChunks()
	chunks := make([]parquet.ColumnChunk, len(f.flat))
	for i, c := range f.flat {
		chunks[i] = all[c.leaf]
	}
	return parquet.NewRowGroupRowReader(flatGroup{group, chunks})
}

// closeRows closes the row group that was read; until then its rows are valid.
func (f *parquetFile) closeRows() error {
	if f.reader == nil {
		return nil
	}
	reader := f.reader
	f.reader = nil
	return reader.Close()
}

// Close closes the file.
func (f *parquetFile) Close() error {
	f.closeRows() //nolint:errcheck // nothing was written
	return f.local.Close()
}
