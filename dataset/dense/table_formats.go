package dense

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// tableFormat is a format of a table's file.
type tableFormat string

const (
	formatCSV     tableFormat = "CSV"
	formatObjects tableFormat = "JSON objects"
	formatParquet tableFormat = "Parquet"
)

// place names a row of the format.
func (f tableFormat) place(row int) string {
	if f == formatParquet {
		return fmt.Sprintf("row %d", row)
	}
	return fmt.Sprintf("line %d", row)
}

// parquetMark starts and ends a Parquet file.
const parquetMark = "PAR1"

// formatOf detects the format of a table by its first characters.
func formatOf(from dataset.Source) (tableFormat, error) {
	file, err := from.Open()
	if err != nil {
		return "", err
	}
	defer file.Close()
	head := make([]byte, sniffBytes)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	switch text := bytes.TrimSpace(bytes.TrimPrefix(head[:n], []byte(byteOrderMark))); {
	case bytes.HasPrefix(head[:n], []byte(parquetMark)):
		return formatParquet, nil
	case bytes.HasPrefix(text, []byte("{")):
		return formatObjects, nil
	case bytes.HasPrefix(text, []byte("[{")), strings.HasSuffix(from.Name, ".json") && bytes.HasPrefix(text, []byte("[")):
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + from.Name, Msg: "it is a JSON array, and a table has an object in each line",
			Hint: "write one object a line: jq -c '.[]' FILE > OUT.jsonl",
		}
	default:
		return formatCSV, nil
	}
}

// convert replaces files of JSON objects by sources of CSV text, and sets the names of the columns. It leaves other
// files as they are.
func (t *table) convert() error {
	var err error
	if t.format, err = formatOf(t.Source); err != nil {
		return err
	}
	if t.Test != nil {
		if other, err := formatOf(*t.Test); err != nil {
			return err
		} else if other != t.format {
			return &disdel.Error{
				Kind: disdel.Invalid, Op: "read " + t.Test.Name,
				Msg:  fmt.Sprintf("it is a table of %s, and %s is one of %s", other, t.Name, t.format),
				Hint: "convert one of them: both files need the same format",
			}
		}
	}
	if t.format == formatCSV {
		return nil
	}
	if t.Header != "" || t.CSV.Separator != 0 {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + t.Name,
			Msg: fmt.Sprintf("a table of %s has neither a header nor separators", t.format), Hint: "leave both out",
		}
	}
	skip := t.skippedNames()
	names, asRead := objectNames, func(from dataset.Source) dataset.Source { return asText(from, t.names, skip) }
	if t.format == formatParquet {
		names, asRead = parquetNames, func(from dataset.Source) dataset.Source { return from }
	}
	if t.names, err = names(t.Source, skip); err != nil {
		return err
	}
	if len(t.names) < 2 {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + t.Name,
			Msg: fmt.Sprintf("it has %s, and a row is a label and values", disdel.Counted(len(t.names), "column")),
		}
	}
	t.Separator = ','
	if t.Test != nil {
		theirs, err := names(*t.Test, skip)
		if err == nil {
			err = sameNames(t.Test.Name, t.names, theirs, t.format)
		}
		if err != nil {
			return err
		}
		test := asRead(*t.Test)
		t.Test = &test
	}
	t.Source = asRead(t.Source)
	return nil
}

// skippedNames are the names of columns that the user leaves out. Their values may be nested. Numbers of columns do not
// count: the names are not known yet.
func (t *table) skippedNames() map[string]bool {
	names := map[string]bool{}
	for _, name := range t.Skip {
		names[name] = true
	}
	for name, kind := range t.Kinds {
		if kind == dataset.ColumnSkip {
			names[name] = true
		}
	}
	return names
}

// sameNames returns faults for columns of held-out rows that the other rows do not have, and for missing ones. A key that
// no held-out object has is only a missing value.
func sameNames(file string, names, theirs []string, format tableFormat) error {
	wrong := &faults{file: file}
	for _, name := range theirs {
		if !slices.Contains(names, name) {
			wrong.add(disdel.Fault{Path: name, Msg: "rows to learn from have no such column", Hint: "leave it out of the file"})
		}
	}
	for _, name := range names {
		if format == formatParquet && !slices.Contains(theirs, name) {
			wrong.add(disdel.Fault{Path: name, Msg: "rows to learn from have this column, and these rows do not"})
		}
	}
	return wrong.err()
}

// nextRow sets the cells of the next row. It returns false for a line without a row, and io.EOF at the end.
type nextRow func(cells []string) (bool, error)

// asText returns a source of the objects of a file as CSV without a header. Record i of the text is line i of the
// file; cells may have line breaks. The text has a byte order mark, so that none of the first cell is taken for it.
func asText(from dataset.Source, names []string, skip map[string]bool) dataset.Source {
	return dataset.Source{Name: from.Name, Open: func() (io.ReadCloser, error) {
		next, file, err := objectRows(from, names, skip)
		if err != nil {
			return nil, err
		}
		r := &rowText{next: next, Closer: file, cells: make([]string, len(names))}
		r.csv = csv.NewWriter(&r.text)
		r.text.WriteString(byteOrderMark)
		return r, nil
	}}
}

// rowText reads rows as CSV text.
type rowText struct {
	io.Closer
	next  nextRow
	cells []string
	csv   *csv.Writer
	text  bytes.Buffer // that is not read yet
	err   error        // after the text
}

func (r *rowText) Read(p []byte) (int, error) {
	for r.err == nil && r.text.Len() < bufferBytes {
		r.err = r.row()
	}
	if r.text.Len() == 0 {
		return 0, r.err
	}
	return r.text.Read(p)
}

// row writes the next row.
func (r *rowText) row() error {
	isRow, err := r.next(r.cells)
	if err != nil {
		return err
	}
	if !isRow {
		return r.text.WriteByte('\n')
	}
	if err := r.csv.Write(r.cells); err != nil {
		return err
	}
	r.csv.Flush()
	return r.csv.Error()
}

// objectNames returns the keys of all objects in the order in which they appear. It returns *disdel.Faults for lines that
// are no flat objects.
func objectNames(from dataset.Source, skip map[string]bool) ([]string, error) {
	file, err := from.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	o, wrong, seen := newObjects(from, file), &faults{file: from.Name}, map[string]bool{}
	var names []string
	for !wrong.full() && len(names) <= mostColumns {
		line, err := o.line()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		fault := eachMember(line, skip, func(key, _ string) {
			if !seen[key] && len(names) <= mostColumns {
				seen[key] = true
				names = append(names, key)
			}
		})
		if fault != nil {
			fault.Line, fault.Column = o.lines, 1
			wrong.add(*fault)
		}
	}
	if len(names) > mostColumns {
		return nil, tooManyColumns(from.Name)
	}
	return names, wrong.err()
}

func tooManyColumns(file string) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + file,
		Msg:  fmt.Sprintf("a row has more than %d columns, and a table may have %d", mostColumns, mostColumns),
		Hint: "add wider rows as arrays (--images FILE.npy --labels FILE.npy), or as sparse rows (--libsvm)",
	}
}

// objectRows reads the objects of a file as rows.
func objectRows(from dataset.Source, names []string, skip map[string]bool) (nextRow, io.Closer, error) {
	file, err := from.Open()
	if err != nil {
		return nil, nil, err
	}
	o, at := newObjects(from, file), make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i
	}
	return func(cells []string) (bool, error) {
		line, err := o.line()
		if err != nil {
			return false, err
		}
		clear(cells)
		if len(bytes.TrimSpace(line)) == 0 {
			return false, nil
		}
		unknown := ""
		fault := eachMember(line, skip, func(key, text string) {
			if i, ok := at[key]; ok {
				cells[i] = text
			} else {
				unknown = key
			}
		})
		if fault == nil && unknown != "" {
			fault = &disdel.Fault{Path: unknown, Msg: "no row had this key before; the file has changed meanwhile"}
		}
		if fault != nil {
			fault.Line, fault.Column = o.lines, 1
			return false, &disdel.Faults{File: from.Name, Faults: []disdel.Fault{*fault}}
		}
		return true, nil
	}, file, nil
}

// objects reads the lines of a file of JSON objects.
type objects struct {
	name  string
	in    *bufio.Reader
	lines int // that were read
	long  []byte
}

func newObjects(from dataset.Source, file io.Reader) *objects {
	o := &objects{name: from.Name, in: bufio.NewReaderSize(file, bufferBytes)}
	if head, _ := o.in.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		o.in.Discard(len(byteOrderMark)) //nolint:errcheck // they have been read
	}
	return o
}

// line returns the next line, which is valid until the next call. It returns io.EOF at the end, and Invalid for a line
// that is longer than any row.
func (o *objects) line() ([]byte, error) {
	o.lines++
	o.long = o.long[:0]
	for {
		part, err := o.in.ReadSlice('\n')
		if err == nil && len(o.long) == 0 {
			return part, nil
		}
		o.long = append(o.long, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(o.long) > 0:
			return o.long, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(o.long) > longestRecord:
			return nil, &disdel.Error{
				Kind: disdel.Invalid, Op: "read " + o.name, Msg: fmt.Sprintf("line %d is longer than 16 MB", o.lines),
				Hint: "write one object in each line",
			}
		}
	}
}
