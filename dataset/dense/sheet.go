package dense

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// kind is what stands in a cell.
type kind uint8

const (
	aText     kind = iota // which is no number
	aNumber               // of a category or a label, its own
	aGap                  // what stands for no value
	aStranger             // a category that no row to learn from has
)

// cell is a field of a record.
type cell struct {
	text  string
	value float64 // of aNumber
	kind  kind
	plain bool // the text is a number as decimal reads it, which is the value
}

// record is the cells of one row.
type record struct {
	line  int
	first int // of the sheet's cells
	width int
	row   int // of those whose values the sheet has
}

// entry is what a row comes to, once the columns are decided.
type entry struct {
	class     int32
	strangers int    // texts that no row to learn from has
	why       string // what is wrong with it; "": nothing
	at        int    // in which column
}

// sheet is a block that was taken apart.
type sheet struct {
	block
	most    int // cells of a record that are kept; 0: all
	cells   []cell
	records []record
	entries []entry   // of the rows, once the columns are decided
	values  []float32 // [rows values]
}

// of is the cells of a record, all of which are kept.
func (s *sheet) of(r record) []cell { return s.cells[r.first:][:r.width] }

// split takes a block apart. What is wrong with its quotes becomes its error.
func (s *sheet) split(separator rune) {
	s.cells, s.records = s.cells[:0], s.records[:0]
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
}

// splitPlain takes a block without quotes apart, as encoding/csv does, and reads the numbers among its cells on the
// way: most characters of most tables are looked at once. Texts of cells are in the block's own memory, which comes to
// be another block's: who keeps one copies it.
func (s *sheet) splitPlain(separator byte) {
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
			if n := len(s.cells) - first; s.most > 0 && n > s.most { // the row is a fault: its width is all that is told
				more = 1 + strings.Count(all[at:over], string(separator))
				break
			}
		}
		s.records = append(s.records, record{line: line, first: first, width: len(s.cells) - first + more})
	}
}

// take makes the cell what a line of a text, which goes on until over, has at a place, and says where that ends: at a
// separator, or with the line. With numbers it finds out whether it is one.
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

// splitQuoted takes any block apart, and says what is wrong with it, in lines of the whole text.
func (s *sheet) splitQuoted(separator rune) error {
	in := csv.NewReader(bytes.NewReader(s.text))
	in.FieldsPerRecord = -1
	separate(in, separator)
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
		s.records = append(s.records, record{line: s.line - 1 + line, first: len(s.cells), width: len(texts)})
		for i, text := range texts {
			if s.most > 0 && i > s.most {
				break
			}
			s.cells = append(s.cells, cell{text: trimmed(text)})
		}
	}
}

// separate says what stands between fields. Where that is no white space, white space before a field is none of it.
func separate(in *csv.Reader, by rune) { in.Comma, in.TrimLeadingSpace = by, !unicode.IsSpace(by) }

// trimmed is a field without the white space at its ends, which most have none of.
func trimmed(text string) string {
	if n := len(text); n > 0 && (text[0] <= ' ' || text[n-1] <= ' ' || text[0] >= utf8.RuneSelf ||
		text[n-1] >= utf8.RuneSelf) {
		return strings.TrimSpace(text)
	}
	return text
}

// read takes a block apart and finds out what its cells are: what they say, or, once the columns are decided, what
// their row comes to.
func (t *table) read(s *sheet) {
	s.most = len(t.columns)
	s.split(t.Separator)
	s.entries, s.values = s.entries[:0], s.values[:0]
	for k := range s.records {
		r := &s.records[k]
		if r.width != len(t.columns) {
			continue
		}
		cells := s.of(*r)
		for i := range cells {
			c := &t.columns[i]
			switch {
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

// enter appends what a row comes to, of which there is always as much, and says what is wrong with it.
func (t *table) enter(s *sheet, cells []cell) (e entry) {
	for i := range cells {
		c, x := &t.columns[i], &cells[i]
		switch {
		case c.passed != "":
			continue
		case x.kind == aText && e.why == "":
			e.why, e.at = fmt.Sprintf("%.40q is no number", x.text), i
		case x.kind == aStranger:
			e.strangers++
		}
		s.values = c.write(s.values, x)
	}
	if x := &cells[t.label]; x.kind == aNumber {
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
	if v, ok := number(x.text); ok {
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
		x.kind = aStranger
	}
}

func (t *table) readLabel(x *cell) {
	if t.labels.class == nil {
		if t.missing[x.text] {
			x.kind = aGap
		}
	} else if class, ok := t.labels.of(x.text); ok {
		x.value, x.kind = float64(class), aNumber
	}
}
