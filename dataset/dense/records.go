package dense

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// longestRecord limits a row of a file: a quote that is never closed must not fill memory.
const longestRecord = 16 << 20

// errLong is the error of a longer row.
var errLong = errors.New("a row is longer than 16 MB, the most that is read, or a quote is not closed")

// guarded reads so many bytes, and then reports that there is no end.
type guarded struct {
	r         io.Reader
	remaining int
}

func (g *guarded) Read(p []byte) (int, error) {
	if g.remaining <= 0 {
		return 0, errLong
	}
	n, err := g.r.Read(p)
	g.remaining -= n
	return n, err
}

// byteOrderMark starts the UTF-8 files of some programs.
const byteOrderMark = "\xef\xbb\xbf"

// sniffBytes is how much of a file is read to detect its format.
const sniffBytes = 64 << 10

// sniff detects the format of the file. It returns the first one or two records.
func (t *table) sniff() ([][]string, error) {
	file, err := t.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	in := bufio.NewReaderSize(&guarded{file, longestRecord}, bufferBytes)
	head, err := in.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, t.broken(t.Source, err)
	}
	if bytes.HasPrefix(head, []byte(byteOrderMark)) {
		in.Discard(len(byteOrderMark)) //nolint:errcheck // they have been read
		head = head[len(byteOrderMark):]
	}
	if why, hint := noText(head); why != "" && t.format == formatCSV {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + t.Name, Msg: why, Hint: hint}
	}
	if t.Separator == 0 {
		t.Separator = Separator(head)
	}
	rest := in
	if t.Separator == Blanks {
		t.separateBlanks()
		rest = bufio.NewReaderSize(&blanks{in: in}, bufferBytes)
	}
	if err := t.boundColumns(); err != nil {
		return nil, err
	}
	top, err := t.top(rest)
	if err != nil {
		return nil, t.broken(t.Source, err)
	}
	if len(top) == 0 || len(top[0]) < 2 {
		return nil, t.singleColumn(head)
	}
	t.header = t.Header == HeaderYes
	if t.Header == "" {
		t.header, t.sniffed = t.hasHeader(top), true
	}
	return top, nil
}

// Limits of the columns of a table: each needs about a kilobyte during reading.
const (
	mostColumns       = 1 << 16 // unless the user says otherwise
	largestMaxColumns = 1 << 20 // what the user may say
)

// maxColumns is the most columns of the table.
func (c *CSV) maxColumns() int { return cmp.Or(c.MaxColumns, mostColumns) }

// boundColumns refuses a table if one of its first two lines has more than maxColumns columns. It stores no cells:
// those of a line of only separators would need 40 times its size.
func (t *table) boundColumns() error {
	file, err := t.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(&guarded{file, longestRecord}, bufferBytes)
	quoted := false
	for columns, lines := 1, 0; lines < 2; {
		c, _, err := in.ReadRune()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return t.broken(t.Source, err)
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			columns, lines = 1, lines+1
		case c == t.Separator:
			columns++
		}
		if columns > t.maxColumns() {
			return tooManyColumns(t.Name, t.maxColumns())
		}
	}
	return nil
}

// top returns the first one or two records.
func (t *table) top(from io.Reader) (top [][]string, err error) {
	in := csv.NewReader(from)
	in.FieldsPerRecord = -1
	separate(in, t.Separator)
	for range 2 {
		texts, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i, text := range texts {
			texts[i] = trimmed(text)
		}
		top = append(top, texts)
	}
	return top, nil
}

// broken is the error of a file that is no CSV from a line on.
func (t *table) broken(from dataset.Source, err error) error {
	var where *csv.ParseError
	if errors.Is(err, errReturn) && errors.As(err, &where) {
		return &disdel.Faults{File: from.Name, Faults: []disdel.Fault{{
			Line: where.StartLine, Column: where.Column, Path: "lines", Msg: errReturn.Error(),
			Hint: "if it ends a line: tr '\\r' '\\n' < FILE > OUT; if not: tr -d '\\r' < FILE > OUT, or put the field in quotes",
		}}}
	}
	if errors.As(err, &where) {
		return &disdel.Faults{File: from.Name, Faults: []disdel.Fault{{
			Line: where.StartLine, Column: where.Column, Path: "quotes", Msg: where.Err.Error(),
			Hint: "a field with quotes or separators stands in quotes, and a quote in it is doubled",
		}}}
	}
	if known := new(disdel.Error); errors.As(err, &known) {
		return err
	}
	if errors.Is(err, errLong) {
		return &disdel.Error{Kind: disdel.Invalid, Op: "read " + from.Name, Err: err}
	}
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read " + from.Name, Err: err}
}

// row is a record with the results of its cells, after the columns are decided. It is valid until the next one.
type row struct {
	line   int
	cells  []cell
	values []float32
	// targets are standardised, in the order of the outputs
	targets []float32
	heldOut bool // by a rule of the table
	entry
}

// rows calls f with every record after the header. One with another number of columns is a fault, and is skipped.
func (t *table) rows(from dataset.Source, wrong *faults, f func(row) error) error {
	next, file, err := t.blocks(from)
	if err != nil {
		return err
	}
	defer file.Close()
	held := t.held
	if held != nil {
		held.begin()
	}
	begun, width := !t.header, t.width()
	return inOrder(t.blocksAtOnce(), next, t.read, func(s *parsedBlock) error {
		if s.err != nil {
			return t.broken(from, s.err)
		}
		for _, r := range s.records {
			switch {
			case !begun:
				begun = true
				continue
			case r.width != len(t.names):
				wrong.add(t.ragged(r, len(wrong.list) == 0))
				if wrong.full() {
					return errEnough
				}
				continue
			}
			one := row{line: r.line, cells: s.cellsOf(r)}
			if t.unlabelledRow(one.cells) {
				wrong.unlabelled++
				continue
			}
			if held != nil {
				one.heldOut = held.holds(t.label, one.cells)
			}
			if len(s.entries) > 0 {
				one.entry, one.values = s.entries[r.row], s.values[r.row*width:][:width]
				one.targets = s.targets[r.row*len(t.targets):][:len(t.targets)]
			}
			if err := f(one); err != nil {
				return err
			}
		}
		return nil
	})
}

// Rows of wide tables need much memory: what a cell needs in a block, about, and the memory for blocks together.
const (
	cellBytes      = 48
	wideBlockBytes = 64 << 20
)

// blocksAtOnce is how many blocks exist at a time. Each has at least a row.
func (t *table) blocksAtOnce() int { return max(2, wideBlockBytes/cellBytes/len(t.columns)) }

// ragged is the fault of a record with another number of columns. The first one says what to do.
func (t *table) ragged(r record, first bool) disdel.Fault {
	fault := disdel.Fault{
		Line: r.line, Column: 1, Path: "columns", Msg: fmt.Sprintf("it has %d, and the first line %d", r.width, len(t.names)),
	}
	if first && r.width > len(t.names)+1 {
		fault.Hint = fmt.Sprintf("if the table begins here, leave out the lines above: tail -n +%d FILE > OUT", r.line)
	}
	if first && t.header && r.width == len(t.names)+1 {
		by := string(t.Separator)
		if by == "\t" {
			by = `\t`
		}
		fault.Hint = "if the header has no name for the first column, as R writes the names of rows, add one: " +
			"sed '1s/^/row" + by + "/' FILE > OUT, and --skip row"
	}
	return fault
}

// blocks opens a file. next fills a block of it, and is false at its end.
func (t *table) blocks(from dataset.Source) (next func(*parsedBlock) bool, file io.Closer, err error) {
	if t.format == formatParquet {
		return t.parquetBlocks(from)
	}
	text, err := from.Open()
	if err != nil {
		return nil, nil, err
	}
	cut := newCutter(text, blockBytes)
	cut.countRows = t.format != formatCSV
	return func(s *parsedBlock) bool { return cut.next(&s.block) }, text, nil
}

// unlabelledRow tells whether a row has no label, or one of its targets is missing.
func (t *table) unlabelledRow(cells []cell) bool {
	return cells[t.label].kind == aGap ||
		slices.ContainsFunc(t.targets, func(at int) bool { return cells[at].kind == aGap })
}

// kind is what a cell has.
type kind uint8

const (
	aText     kind = iota // no number
	aNumber               // also the number of a category or a label
	aGap                  // no value
	isUnknown             // a category that no training row has
)

// cell is a field of a record.
type cell struct {
	text  string
	value float64 // of aNumber
	kind  kind
	plain bool // decimal reads the text as the value; there may be no text
}

// record is the cells of one row.
type record struct {
	line  int
	first int // of the sheet's cells
	width int
	row   int // index of its values in the sheet
}

// entry is the result of a row, after the columns are decided.
type entry struct {
	class        int32
	unknownTexts int    // texts that no training row has
	why          string // its fault; "": none
	at           int    // column of the fault
}

// parsedBlock is a block divided into cells.
type parsedBlock struct {
	block
	maximum int // stored cells of a record; 0: all
	cells   []cell
	records []record
	entries []entry   // of the rows, after the columns are decided
	values  []float32 // [rows values]
	targets []float32 // [rows targets]

	parquet     *parquetFile // that the block is of; nil: it is text
	parquetRows int
	raw         []parquet.Value // [flat columns rows]
	numbers     []float64       // [flat columns rows], of direct columns instead of raw
	direct      []bool          // [flat columns]
}

// cellsOf returns the cells of a record, all of which are stored.
func (s *parsedBlock) cellsOf(r record) []cell { return s.cells[r.first:][:r.width] }

// split divides a block into cells. A fault of its quotes becomes its error.
func (s *parsedBlock) split(separator rune) {
	s.cells, s.records = slices.Grow(s.cells[:0], s.maximum), s.records[:0] // a block has at least a row
	plain := bytes.IndexByte(s.text, '"') < 0 && separator < utf8.RuneSelf
	switch {
	case s.err != nil && plain:
	case s.err != nil:
		if err := s.splitQuoted(separator); errors.Is(err, csv.ErrBareQuote) {
			s.err = err // the row is that long since the quotes do not pair up
		}
	case plain:
		s.splitPlain(byte(separator))
	default:
		s.err = s.splitQuoted(separator)
	}
	if at := loneReturn(s.text); s.err == nil && at >= 0 {
		s.err = &csv.ParseError{StartLine: s.line + bytes.Count(s.text[:at], []byte{'\n'}), Column: 1, Err: errReturn}
	}
}

// errReturn is the error of a carriage return that other programs take for the end of a line.
var errReturn = errors.New("it has a carriage return outside quotes, without a newline after it")

// loneReturn is the place of the first such carriage return; -1: there is none. A run of them before a newline, or at
// the end, is one end of a line.
func loneReturn(text []byte) int {
	if bytes.IndexByte(text, '\r') < 0 || bytes.Count(text, []byte{'\r'}) == bytes.Count(text, []byte("\r\n")) {
		return -1
	}
	quoted := false
	for at, c := range text {
		if c == '"' {
			quoted = !quoted
		}
		if c != '\r' || quoted {
			continue
		}
		if rest := bytes.TrimLeft(text[at:], "\r"); len(rest) > 0 && rest[0] != '\n' {
			return at
		}
	}
	return -1
}

// splitPlain divides a block without quotes, like encoding/csv, and reads its numbers at the same time: most
// characters of most tables are read once. Texts of cells are in the block's own memory, which is reused: copy them
// to keep them.
func (s *parsedBlock) splitPlain(separator byte) {
	numbers := bytes.IndexByte([]byte("+-.0123456789"), separator) < 0
	all, line := unsafe.String(unsafe.SliceData(s.text), len(s.text)), s.line-1
	for at, next := 0, 0; at < len(all); at = next {
		line++
		over := len(all)
		next = over
		if length := strings.IndexByte(all[at:], '\n'); length >= 0 {
			over, next = at+length, at+length+1
		}
		if over > at && all[over-1] == '\r' {
			over--
		}
		if over == at {
			continue
		}
		first, more := len(s.cells), 0
		for {
			s.cells = append(s.cells, cell{})
			end := s.cells[len(s.cells)-1].take(all, at, over, separator, numbers)
			if end == over {
				break
			}
			at = end + 1
			if n := len(s.cells) - first; s.maximum > 0 && n > s.maximum { // the row is a fault: its width is all that is told
				more = 1 + strings.Count(all[at:over], string(separator))
				break
			}
		}
		s.records = append(s.records, record{line: line, first: first, width: len(s.cells) - first + more})
	}
}

// take makes the cell from a place of a line, which ends at over, and returns the cell's end: at a separator, or with
// the line. With numbers it also finds out whether it is one.
func (x *cell) take(text string, at, over int, separator byte, numbers bool) (end int) {
	if end = at; numbers {
		v, stop, ok := scanAt(text, at, over)
		if end = stop; end == over || text[end] == separator {
			x.text, x.value, x.plain = text[at:end], v, ok
			return end
		}
	}
	for end < over && text[end] != separator {
		end++
	}
	x.text = trimmed(text[at:end])
	return end
}

// splitQuoted divides any block, and reports faults with lines of the whole text.
func (s *parsedBlock) splitQuoted(separator rune) error {
	in := csv.NewReader(bytes.NewReader(s.text))
	in.FieldsPerRecord = -1
	separate(in, separator)
	breaks := 0 // within the cells so far
	for {
		texts, err := in.Read()
		var where *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &where):
			where.StartLine += s.line - 1
			where.Line += s.line - 1
			return where
		case err != nil:
			return err
		}
		line, _ := in.FieldPos(0)
		s.records = append(s.records, record{line: s.line - 1 + line - breaks, first: len(s.cells), width: len(texts)})
		for i, text := range texts {
			if s.countRows {
				breaks += strings.Count(text, "\n")
			}
			if s.maximum == 0 || i <= s.maximum {
				s.cells = append(s.cells, cell{text: trimmed(text)})
			}
		}
	}
}

// separate sets the separator. If it is no white space, white space before a field is removed.
func separate(in *csv.Reader, by rune) { in.Comma, in.TrimLeadingSpace = by, !unicode.IsSpace(by) }

// trimmed is a field without white space at its ends; most have none.
func trimmed(text string) string {
	if n := len(text); n > 0 && (text[0] <= ' ' || text[n-1] <= ' ' || text[0] >= utf8.RuneSelf ||
		text[n-1] >= utf8.RuneSelf) {
		return strings.TrimSpace(text)
	}
	return text
}

// read divides a block and interprets its cells: their kinds, or, after the columns are decided, the results of their
// rows.
func (t *table) read(s *parsedBlock) {
	s.maximum = len(t.columns)
	if s.parquet == nil {
		s.split(t.Separator)
	} else if s.records = s.records[:0]; s.err == nil {
		s.fromParquet(t)
	}
	s.entries, s.values, s.targets = s.entries[:0], s.values[:0], s.targets[:0]
	for k := range s.records {
		r := &s.records[k]
		if r.width != len(t.columns) {
			continue
		}
		cells := s.cellsOf(*r)
		for i := range cells {
			c := &t.columns[i]
			switch {
			case c.target && t.several:
				t.readFlag(&cells[i])
			case c.target:
				t.readValue(&cells[i])
			case i == t.label:
				t.readLabel(&cells[i])
			case c.passed != "":
			case c.index != nil:
				t.readCategory(&cells[i], c.index)
			default:
				t.readValue(&cells[i])
			}
		}
		if t.labels.class != nil {
			r.row = len(s.entries)
			s.entries = append(s.entries, t.enter(s, cells))
		}
	}
}

// enter appends the results of a row, always the same number, and reports its faults.
func (t *table) enter(s *parsedBlock, cells []cell) (e entry) {
	for i := range cells {
		c, x := &t.columns[i], &cells[i]
		switch {
		case c.passed != "":
			continue
		case x.kind == aText && e.why == "":
			e.why, e.at = fmt.Sprintf("%.40q is no number", x.text), i
		case x.kind == isUnknown:
			e.unknownTexts++
		}
		s.values = c.write(s.values, x)
	}
	for _, at := range t.targets {
		x := &cells[at]
		s.targets = append(s.targets, t.asTarget(at).Standard(x.value))
		if x.kind != aText || e.why != "" {
			continue
		}
		if e.why, e.at = fmt.Sprintf("the target: %.40q is no number to predict", x.text), at; t.several {
			e.why = fmt.Sprintf("the label: %.40q is not 0, 1, true or false", x.text)
		}
	}
	if x := &cells[t.label]; len(t.targets) > 0 {
		return e
	} else if x.kind == aNumber {
		e.class = int32(x.value)
	} else if e.why == "" {
		e.why, e.at = fmt.Sprintf("no row to learn from has the label %.40q", x.text), t.label
	}
	return e
}

func (t *table) readValue(x *cell) {
	switch {
	case x.plain && !t.numbersMiss:
		x.kind = aNumber
		return
	case t.missing[x.text]:
		x.kind = aGap
		return
	}
	if v, ok := written(x.text, t.Decimal); ok {
		x.value, x.kind = v, aNumber
	}
}

func (t *table) readCategory(x *cell, index map[string]int) {
	k, known := index[x.text]
	switch {
	case t.missing[x.text]:
		x.kind = aGap
	case known:
		x.value, x.kind = float64(k), aNumber
	default:
		x.kind = isUnknown
	}
}

func (t *table) readLabel(x *cell) {
	if t.missing[x.text] {
		x.kind = aGap
	} else if t.labels.class == nil {
		return
	} else if class, ok := t.labels.index(x.text); ok {
		x.value, x.kind = float64(class), aNumber
	}
}
