package dense

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// longestRecord is how long a row of a file may be: a quote that is never closed is not to take all memory.
const longestRecord = 16 << 20

// errLong is what a guarded reader ends with.
var errLong = errors.New("a row is longer than 16 MB; perhaps a quote is not closed")

// guarded reads as long as somebody resets it in time.
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

// reader is a CSV file that is open.
type reader struct {
	*csv.Reader
	guard *guarded
	file  io.Closer
}

func (r *reader) Close() error { return r.file.Close() }

// next is the next record and the line it begins at; the record is good until the next.
func (r *reader) next() (line int, record []string, err error) {
	r.guard.left = longestRecord
	if record, err = r.Read(); err != nil {
		return 0, nil, err
	}
	line, _ = r.FieldPos(0)
	return line, record, nil
}

// byteOrderMark begins the UTF-8 files of some programs.
const byteOrderMark = "\xef\xbb\xbf"

// open opens a source of text.
func (t *table) open(from dataset.Source) (*reader, []byte, error) {
	file, err := from.Open()
	if err != nil {
		return nil, nil, err
	}
	guard := &guarded{r: file, left: longestRecord}
	in := bufio.NewReaderSize(guard, bufferBytes)
	head, err := in.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		file.Close() //nolint:errcheck // nothing was written
		return nil, nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read " + from.Name, Err: err}
	}
	if bytes.HasPrefix(head, []byte(byteOrderMark)) {
		in.Discard(len(byteOrderMark)) //nolint:errcheck // they have been read
		head = head[len(byteOrderMark):]
	}
	r := &reader{Reader: csv.NewReader(in), guard: guard, file: file}
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	if t.Separator != 0 {
		r.separate(t.Separator)
	}
	return r, head, nil
}

// separate says what stands between fields. Where that is no white space, white space before a field is none of it.
func (r *reader) separate(by rune) {
	r.Comma, r.TrimLeadingSpace = by, !unicode.IsSpace(by)
}

// sniffBytes is how much of a file is looked at to tell what it is.
const sniffBytes = 64 << 10

// sniff finds out how the file is written. It returns the first one or two records.
func (t *table) sniff() ([][]string, error) {
	in, head, err := t.open(t.Source)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if why, hint := noText(head); why != "" {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read " + t.Name, Msg: why, Hint: hint}
	}
	if t.Separator == 0 {
		t.Separator = separator(head)
		in.separate(t.Separator)
	}
	var top [][]string
	for range 2 {
		_, record, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, t.broken(t.Source, err)
		}
		top = append(top, trimmed(slices.Clone(record)))
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

// noText says what a file is instead of text in UTF-8, by its first bytes.
func noText(head []byte) (what, hint string) {
	is := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case len(head) == 0:
		return "it is empty", ""
	case is("\xff\xfe"), is("\xfe\xff"):
		return "it is text in UTF-16", "save it as UTF-8: iconv -f utf-16 -t utf-8 FILE"
	case is("PK"):
		return "it is a zip archive, perhaps a spreadsheet", "save the sheet as CSV"
	case is("\x93NUMPY"):
		return "it is a NumPy array", "--images FILE --labels FILE"
	case is("PAR1"):
		return "it is a Parquet file", "write it as CSV: pandas.read_parquet(FILE).to_csv(OUT, index=False)"
	case bytes.IndexByte(head, 0) >= 0:
		return "it is no text", ""
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
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read " + from.Name, Err: err}
}

// lines calls f with every record behind the header, and its line. A record of another number of columns is a fault,
// and goes to nobody.
func (t *table) lines(from dataset.Source, wrong *faults, f func(line int, record []string) error) error {
	in, _, err := t.open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	for begun := false; ; begun = true {
		line, record, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return t.broken(from, err)
		}
		if !begun && t.header {
			continue
		}
		if len(record) != len(t.names) {
			wrong.at(line, 1, "columns", "it has %d, and the first line %d", len(record), len(t.names))
			if wrong.full() {
				return nil
			}
			continue
		}
		if err := f(line, trimmed(record)); err != nil {
			return err
		}
	}
}

// trimmed takes white space from the ends of fields.
func trimmed(record []string) []string {
	for i, text := range record {
		record[i] = strings.TrimSpace(text)
	}
	return record
}
