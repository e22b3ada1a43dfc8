package dense

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// longestRecord is how long a row of a file may be: a quote that is never closed is not to take all memory.
const longestRecord = 16 << 20

// errLong is what is wrong with one that is longer.
var errLong = errors.New("a row is longer than 16 MB; perhaps a quote is not closed")

// guarded reads so many bytes, and then says that there is no end.
type guarded struct {
	r    io.Reader
	left int
}

func (g *guarded) Read(p []byte) (int, error) {
	if g.left <= 0 {
		return 0, errLong
	}
	n, err := g.r.Read(p)
	g.left -= n
	return n, err
}

// byteOrderMark begins the UTF-8 files of some programs.
const byteOrderMark = "\xef\xbb\xbf"

// sniffBytes is how much of a file is looked at to tell what it is.
const sniffBytes = 64 << 10

// sniff finds out how the file is written. It returns the first one or two records.
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
	if why, hint := noText(head); why != "" {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + t.Name, Msg: why, Hint: hint}
	}
	if t.Separator == 0 {
		t.Separator = separator(head)
	}
	if err := t.boundColumns(); err != nil {
		return nil, err
	}
	top, err := t.top(in)
	if err != nil {
		return nil, t.broken(t.Source, err)
	}
	if len(top) == 0 || len(top[0]) < 2 {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + t.Name,
			Msg:  "its first line has a single column, and a row is a label and values",
			Hint: "say how columns are separated: --separator",
		}
	}
	t.header = t.Header == HeaderYes
	if t.Header == "" {
		t.header, t.sniffed = t.hasHeader(top), true
	}
	return top, nil
}

// mostColumns bounds the columns of a table: disdel keeps some kilobytes of each while it reads.
const mostColumns = 1 << 16

// boundColumns refuses a table if one of its first two lines has more than mostColumns columns. It keeps no cells:
// those of a line of only separators would take 40 times its size.
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
		if columns > mostColumns {
			return &disdel.Error{
				Kind: disdel.Invalid, Op: "read " + t.Name,
				Msg:  fmt.Sprintf("a row has more than %d columns, and a table may have %d", mostColumns, mostColumns),
				Hint: "add wider rows as arrays (--images FILE.npy --labels FILE.npy), or as sparse rows (--libsvm)",
			}
		}
	}
	return nil
}

// top is the first one or two records.
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
	case is("PK"):
		return "it is a zip archive, perhaps a spreadsheet", "save the sheet as CSV"
	case is("\x93NUMPY"):
		return "it is a NumPy array", "--images FILE --labels FILE"
	case is("PAR1"):
		return "it is a Parquet file", "write it as CSV: pandas.read_parquet(FILE).to_csv(OUT, index=False)"
	case bytes.IndexByte(head, 0) >= 0:
		return "it is no text", ""
	case bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(head, '\r') >= 0: // of what may be text
		return "its lines end in a carriage return alone", "have them end in newlines: tr '\\r' '\\n' < FILE > OUT"
	default:
		return "", ""
	}
}

// separator is the one that the first line has most of.
func separator(head []byte) rune {
	line, _, _ := bytes.Cut(head, []byte{'\n'})
	quoted, best, most := false, ',', 0
	counts := map[rune]int{}
	for _, c := range string(line) {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted:
			counts[c]++
		}
	}
	for _, c := range ",;\t|" { // of several alike the first
		if counts[c] > most {
			best, most = c, counts[c]
		}
	}
	return best
}

// hasHeader says whether the first record is names: no number is among them, and the second record has one, or they are
// all different as names are.
func (t *table) hasHeader(top [][]string) bool {
	names := map[string]bool{}
	for _, text := range top[0] {
		if _, ok := number(text); ok {
			return false
		}
		names[text] = true
	}
	if len(top) == 1 || slices.Contains(top[0], t.Label) && t.Label != "" {
		return true
	}
	numbers := slices.ContainsFunc(top[1], func(text string) bool { _, ok := number(text); return ok })
	return numbers || len(names) == len(top[0])
}

// broken is the error of a file that is no CSV from a line on.
func (t *table) broken(from dataset.Source, err error) error {
	var where *csv.ParseError
	if errors.As(err, &where) {
		return &disdel.Faults{File: from.Name, Faults: []disdel.Fault{{
			Line: where.StartLine, Column: where.Column, Path: "quotes", Msg: where.Err.Error(),
			Hint: "a field with quotes or separators stands in quotes, and a quote in it is doubled",
		}}}
	}
	if said := new(disdel.Error); errors.As(err, &said) {
		return err
	}
	if errors.Is(err, errLong) {
		return &disdel.Error{Kind: disdel.Invalid, Op: "read " + from.Name, Err: err}
	}
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read " + from.Name, Err: err}
}

// row is a record whose cells were read, and what it comes to, once the columns are decided. It is good until the next
// one.
type row struct {
	line   int
	cells  []cell
	values []float32
	entry
}

// rows calls f with every record behind the header. One of another number of columns is a fault, and goes to nobody.
func (t *table) rows(from dataset.Source, wrong *faults, f func(row) error) error {
	file, err := from.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	cut, begun, width := newCutter(file, blockBytes), !t.header, t.width()
	return inOrder(func(s *sheet) bool { return cut.next(&s.block) }, t.read, func(s *sheet) error {
		if s.err != nil {
			return t.broken(from, s.err)
		}
		for _, r := range s.records {
			switch {
			case !begun:
				begun = true
				continue
			case r.width != len(t.names):
				wrong.at(r.line, 1, "columns", "it has %d, and the first line %d", r.width, len(t.names))
				if wrong.full() {
					return errEnough
				}
				continue
			}
			one := row{line: r.line, cells: s.of(r)}
			if len(s.entries) > 0 {
				one.entry, one.values = s.entries[r.row], s.values[r.row*width:][:width]
			}
			if err := f(one); err != nil {
				return err
			}
		}
		return nil
	})
}
