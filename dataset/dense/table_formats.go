package dense

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// tableFormat is a format of a table's file.
type tableFormat string

const (
	formatCSV     tableFormat = "CSV"
	formatObjects tableFormat = "JSON objects"
	formatArray   tableFormat = "JSON, an array of objects"
	formatParquet tableFormat = "Parquet"
)

// place names a row of the format.
func (f tableFormat) place(row int) string {
	if f == formatParquet || f == formatArray {
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
	const first = 512 // bytes; more are read only of a file that begins with so much white space
	var head, text []byte
	for size := first; len(text) <= first/2 && len(head) < size && size <= sniffBytes; size *= sniffBytes / first {
		more, err := io.ReadAll(io.LimitReader(file, int64(size-len(head))))
		if err != nil {
			return "", err
		}
		head = append(head, more...)
		text = bytes.TrimSpace(bytes.TrimPrefix(head, []byte(byteOrderMark)))
		if len(head) < size {
			break
		}
	}
	switch {
	case bytes.HasPrefix(head, []byte(parquetMark)):
		return formatParquet, nil
	case bytes.HasPrefix(text, []byte("{")):
		return formatObjects, nil
	case isArray(text), strings.HasSuffix(from.Name, ".json") && bytes.HasPrefix(text, []byte("[")):
		return formatArray, nil
	default:
		return formatCSV, nil
	}
}

// isArray tells whether a text starts as an array of JSON objects does.
func isArray(text []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("["))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("{"))
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
	if t.Header != "" || t.CSV.Separator != 0 || t.Decimal != "" {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + t.Name,
			Msg:  fmt.Sprintf("a table of %s has neither a header nor separators, and decimals have a point", t.format),
			Hint: "leave --header, --separator and --decimal out",
		}
	}
	skip := t.skippedNames()
	maximum := t.maxColumns()
	names, asRead := objectNames, func(from dataset.Source) dataset.Source { return asText(from, t.names, skip) }
	if t.format == formatParquet {
		names, asRead = parquetNames, func(from dataset.Source) dataset.Source { return from }
	}
	if t.names, err = names(t.Source, skip, maximum); err != nil {
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
		theirs, err := names(*t.Test, skip, maximum)
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

// sameNames returns faults for columns of held-out rows that the other rows do not have, and for missing ones. A key
// that no held-out object has is only a missing value.
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

// checkHeldOutHeader returns faults if the header of the held-out rows' file has other names, or the same ones in
// another order: cells are read by their place.
func (t *table) checkHeldOutHeader() error {
	if !t.header || t.Test == nil {
		return nil
	}
	file, err := t.Test.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(&guarded{file, longestRecord}, bufferBytes)
	if head, err := in.Peek(len(byteOrderMark)); err == nil && string(head) == byteOrderMark {
		in.Discard(len(byteOrderMark)) //nolint:errcheck // they have been read
	}
	top, err := t.top(in)
	if err != nil {
		return t.broken(*t.Test, err)
	}
	if len(top) == 0 {
		return nil
	}
	if theirs := HeaderNames(top[0]); !slices.Equal(theirs, t.names) {
		return t.otherHeader(theirs)
	}
	return nil
}

// otherHeader says how a header differs from the table's.
func (t *table) otherHeader(theirs []string) error {
	wrong := &faults{file: t.Test.Name}
	for i, name := range theirs {
		if !slices.Contains(t.names, name) {
			wrong.add(disdel.Fault{
				Line: 1, Column: i + 1, Path: "columns", Msg: fmt.Sprintf("rows to learn from have no column %.40q", name),
				Hint: "the first line must be the header of " + t.Name,
			})
		}
	}
	for _, name := range t.names {
		if !slices.Contains(theirs, name) {
			wrong.add(disdel.Fault{
				Line: 1, Path: "columns", Msg: fmt.Sprintf("rows to learn from have a column %.40q, and these rows do not", name),
				Hint: "rows without answers are for disdel infer, after the training",
			})
		}
	}
	if len(wrong.list) == 0 {
		at := 0
		for theirs[at] == t.names[at] {
			at++
		}
		wrong.add(disdel.Fault{
			Line: 1, Column: at + 1, Path: "columns",
			Msg:  fmt.Sprintf("column %d is %.40q, and in %s %.40q", at+1, theirs[at], t.Name, t.names[at]),
			Hint: "put the columns of both files in the same order",
		})
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

// objectNames returns the keys of all objects in the order in which they appear. It returns *disdel.Faults for lines
// that are no flat objects.
func objectNames(from dataset.Source, skip map[string]bool, maximum int) ([]string, error) {
	file, err := from.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	o, wrong, seen := newObjects(from, file), &faults{file: from.Name}, map[string]bool{}
	passed := map[string]bool{}
	maps.Copy(passed, skip)
	var names []string
	for !wrong.full() && len(names) <= maximum {
		line, err := o.line()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for again := true; again && !wrong.full(); {
			fault := eachMember(line, passed, func(key, _ string) {
				if !seen[key] && len(names) <= maximum {
					seen[key] = true
					names = append(names, key)
				}
			})
			if again = fault != nil && fault.Hint != ""; again { // a key to leave out: it is told once, not for each line
				passed[fault.Path] = true
			}
			if fault != nil {
				fault.Line, fault.Column = o.lines, 1
				wrong.add(*fault)
			}
		}
	}
	if len(names) > maximum {
		return nil, tooManyColumns(from.Name, maximum)
	}
	return names, wrong.err()
}

func tooManyColumns(file string, maximum int) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + file,
		Msg: fmt.Sprintf("a row has more than %d columns, and a table may have %d", maximum, maximum),
		Hint: fmt.Sprintf("raise the limit with --max-columns NUMBER, up to %d, on your own computer: a server takes at most "+
			"%d; or add wider rows as arrays "+
			"(--images FILE.npy --labels FILE.npy), or as sparse rows (--libsvm)", largestMaxColumns, mostColumns),
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

// objects reads a file of JSON objects, one in each line or all in an array.
type objects struct {
	name  string
	in    *bufio.Reader
	lines int // that were read, or elements of the array
	long  []byte
	array *json.Decoder // nil: there is no array
	bound *guarded      // of an element of the array
}

func newObjects(from dataset.Source, file io.Reader) *objects {
	o := &objects{name: from.Name, in: bufio.NewReaderSize(file, bufferBytes)}
	if head, _ := o.in.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		o.in.Discard(len(byteOrderMark)) //nolint:errcheck // they have been read
	}
	if head, _ := o.in.Peek(bufferBytes); bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("[")) {
		o.bound = &guarded{o.in, longestRecord}
		o.array = json.NewDecoder(o.bound)
		o.array.Token() //nolint:errcheck // the bracket that was seen
	}
	return o
}

// element returns the next element of the array as line does. Its faults have the number of the element, from 1.
func (o *objects) element() ([]byte, error) {
	var raw json.RawMessage
	var err error
	more := false // after the array
	o.bound.remaining = longestRecord
	if o.array.More() {
		err = o.array.Decode(&raw)
	} else if _, err = o.array.Token(); err == nil {
		if _, err = o.array.Token(); errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		more = err == nil
	}
	fault := disdel.Fault{Line: o.lines, Column: 1, Path: "json"}
	wrong := new(json.SyntaxError)
	switch {
	case more:
		fault.Msg = "it is no JSON: more follows after the array"
	case err == nil:
		return raw, nil
	case errors.Is(err, errLong):
		fault.Msg = "an element of the array is longer than 16 MB"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		fault.Msg = "the array does not end"
	case errors.As(err, &wrong):
		fault.Msg = wrongSyntax(err)
	default:
		return nil, err
	}
	return nil, &disdel.Faults{File: o.name, Faults: []disdel.Fault{fault}}
}

// line returns the next line, which is valid until the next call. It returns io.EOF at the end, and Invalid for a line
// that is longer than any row.
func (o *objects) line() ([]byte, error) {
	o.lines++
	if o.array != nil {
		return o.element()
	}
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

// noText says what a file is instead of text in UTF-8, by its first bytes.
func noText(head []byte) (what, hint string) {
	is := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case len(head) == 0:
		return "it is empty", ""
	case is("\xff\xfe"), is("\xfe\xff"):
		return "it is text in UTF-16", "save it as UTF-8: iconv -f utf-16 -t utf-8 FILE"
	case is("sep="):
		return "its first line is what spreadsheets read the separator from", "leave that line out: tail -n +2 FILE > OUT"
	case arff(head):
		return "it is an ARFF file", "its rows are CSV after the line @data: sed '1,/^@data/Id' FILE > OUT.csv, then " +
			"--header no and numbers instead of names of columns"
	case libsvmRow().Match(head):
		return "it looks like LIBSVM, with INDEX:VALUE in each row", "add it with --libsvm FILE instead"
	case is("PK"):
		return "it is a zip archive, perhaps a spreadsheet", "save the sheet as CSV"
	case head[0] == 0x80 && len(head) > 1 && head[1] >= 2 && head[1] <= 5: // the protocol; no UTF-8 starts like this
		return "it is a Python pickle, and reading one runs the code in it", "write the rows as CSV or Parquet: " +
			"df.to_parquet('rows.parquet')"
	case is("\x93NUMPY"):
		return "it is a NumPy array", "--images FILE --labels FILE"
	case bytes.IndexByte(head, 0) >= 0:
		return "it is no text", ""
	case bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(head, '\r') >= 0: // of what may be text
		return "its lines end in a carriage return alone", "have them end in newlines: tr '\\r' '\\n' < FILE > OUT"
	default:
		return "", ""
	}
}

// libsvmRow matches the first row of a LIBSVM file, after comments.
var libsvmRow = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\s*(#[^\n]*)?\n)*[-+.\d]+(\s+(qid|\d+):[-+.\deE]+)+\s*(#|\n|$)`)
})

// arff tells whether a file starts as ARFF does: with comments and the name of a relation.
func arff(head []byte) bool {
	for line := range bytes.Lines(head) {
		line = bytes.ToLower(bytes.TrimSpace(line))
		if len(line) > 0 && line[0] != '%' {
			return bytes.HasPrefix(line, []byte("@relation"))
		}
	}
	return false
}

// SeparatorOf is Separator of the first bytes of a file. A table of texts has no runs of blanks between its columns.
func SeparatorOf(from dataset.Source) (rune, error) {
	file, err := from.Open()
	if err != nil {
		return 0, err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, sniffBytes))
	if by := Separator(bytes.TrimPrefix(head, []byte(byteOrderMark))); by != Blanks {
		return by, err
	}
	return ',', err
}

// Separator is the one that separates the columns of a table that begins so: a comma, semicolon, tab or bar that
// divides all lines into the same number of fields, or else the most frequent one of the first line. It is Blanks if
// these divide no line, or tabs divide lines into different numbers of fields, and runs of blanks divide all lines into
// the same number.
func Separator(head []byte) rune {
	head = wholeRecords(head)
	best, fields := ',', []int{1}
	for _, c := range ",;\t|" { // of several alike the first
		own, _ := fieldsOf(head, byte(c))
		if len(own) > 0 && (even(own) && !even(fields) || even(own) == even(fields) && own[0] > fields[0]) {
			best, fields = c, own
		}
	}
	if even(fields) || fields[0] > 1 && best != '\t' && (len(fields) < 2 || fields[1] > 1) {
		return best
	}
	if fields, _ = fieldsOf(BlanksAsTabs(head), '\t'); even(fields) || len(fields) > 2 && even(fields[1:]) &&
		fields[0] == fields[1]-1 { // the header names no column of row names, which a fault of the rows says
		return Blanks
	}
	return best
}

// wholeRecords is what the first bytes of a file have of whole records; all, if they end within the first one.
func wholeRecords(head []byte) []byte {
	if len(head) < sniffBytes {
		return head
	}
	head = head[:sniffBytes]
	return head[:cmp.Or(recordsEnd(head), len(head))]
}

// fieldsOf counts the fields of each line that is not empty, and returns also the numbers of the lines.
func fieldsOf(text []byte, by byte) (fields, lines []int) {
	quoted, n, line, length := false, 1, 1, 0
	for _, c := range append(bytes.Clone(text), '\n') {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\n' && !quoted:
			if length > 0 {
				fields, lines = append(fields, n), append(lines, line)
			}
			n, length = 1, -1
		case c == by && !quoted:
			n++
		}
		if c != '\r' {
			length++
		}
		if c == '\n' {
			line++
		}
	}
	return fields, lines
}

// even tells whether there are two lines or more, and all have the same number of fields, more than one.
func even(fields []int) bool {
	return len(fields) > 1 && slices.Min(fields) > 1 && slices.Min(fields) == slices.Max(fields)
}

// singleColumn is the error of a table whose first line no separator divides. It says what blanks would do.
func (t *table) singleColumn(head []byte) error {
	bad := &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + t.Name,
		Msg:  "its first line has a single column, and a row is a label and values",
		Hint: "say how columns are separated: --separator",
	}
	fields, lines := fieldsOf(BlanksAsTabs(wholeRecords(head)), '\t')
	at := slices.IndexFunc(fields, func(n int) bool { return n != fields[0] })
	switch {
	case bytes.HasPrefix(head, []byte("#")), bytes.HasPrefix(head, []byte("%")):
		bad.Msg = fmt.Sprintf("its first line begins with %c, as comments do", head[0])
		bad.Hint = fmt.Sprintf("leave comments out: grep -v '^%c' FILE > OUT", head[0])
	case at > 0 && max(fields[0], fields[at]) > 1:
		bad.Msg = fmt.Sprintf("its columns have no comma, semicolon, tab or bar between them, and blanks do not divide it: "+
			"line %d has %s, and line %d has %d", lines[0], disdel.Counted(fields[0], "field"), lines[at], fields[at])
		bad.Hint = "leave out lines above the table (tail -n +3 FILE > OUT), and put texts with blanks in quotes; " +
			"columns of fixed width become CSV by pandas.read_fwf('FILE').to_csv('OUT', index=False)"
	}
	return bad
}

// hasHeader tells whether the first record is names: it has no number, and the second record has one, or all its
// texts differ.
func (t *table) hasHeader(top [][]string) bool {
	names := map[string]bool{}
	for _, text := range top[0] {
		if _, ok := number(text); ok {
			return false
		}
		names[text] = true
	}
	named := func(text string) bool { return slices.Contains(top[0], text) && text != "" }
	if len(top) == 1 || named(t.Label) || slices.ContainsFunc(strings.Split(t.Label, ","), named) ||
		slices.ContainsFunc(t.Targets, named) {
		return true
	}
	numbers := slices.ContainsFunc(top[1], func(text string) bool { _, ok := number(text); return ok })
	return numbers || len(names) == len(top[0])
}
