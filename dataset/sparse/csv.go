package sparse

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
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

// CSV is rows of a CSV file with a Schema. The columns of the data set are the numbers in the schema's order, then
// for each of them whether it is missing, then the columns of hashed categories.
type CSV struct {
	dataset.Source
	Schema  Schema
	HeldOut HeldOut
}

// Input reads the file once for scales and targets. It returns Invalid for an invalid schema, and for a line that
// does not fit it.
func (c CSV) Input(name string) (in dataset.SparseInput, err error) {
	if err := c.HeldOut.check(); err != nil {
		return in, err
	}
	if err := c.Schema.check(); err != nil {
		return in, err
	}
	t := &table{CSV: c, fields: c.Schema.each()}
	t.read = newCSVReading(t.fields)
	if err := t.learn(); err != nil {
		return in, err
	}
	in = dataset.SparseInput{
		Name: name, Title: "Rows of " + fileName(c.Name), Classes: t.labels.classes(), ClassNames: t.labels.lowest,
		Columns: max(1, t.hashedFrom()+c.Schema.Hash),
	}
	in.Understood = t.read.understood(t)
	t.read, in.Each = nil, t.each
	return in, nil
}

// table is a CSV file during reading.
type table struct {
	CSV
	fields  []Field
	places  []int // by field: its place in a line, -1 if the file lacks it
	numbers []scaling
	labels  labels
	read    *csvReading // nil after the first reading
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

// learn reads the file for properties of all rows.
func (t *table) learn() error {
	for _, f := range t.fields {
		if f.Kind == Number {
			t.numbers = append(t.numbers, scaling{scale: f.Scale, low: math.Inf(1), high: math.Inf(-1)})
		}
	}
	held := t.HeldOut.picker()
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
		t.read.add(t, line, record, !learned)
		return nil
	})
	t.labels.close()
	for i := range t.numbers {
		t.numbers[i].close()
	}
	return err
}

// each yields the rows.
func (t *table) each(yield func(dataset.SparseRow) error) error {
	held := t.HeldOut.picker()
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
				scaled = t.numbers[number].apply(*v)
			}
			switch {
			case v == nil:
				add(count+number, 1)
			case scaled-scaled != 0: // too far from the training rows
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

// category adds 1 to a column, to which another category of the row may be hashed, too.
func (t *table) category(row *dataset.SparseRow, column int) {
	if at := slices.Index(row.Index, int32(column)); at >= 0 {
		row.Value[at]++
		return
	}
	row.Index, row.Value = append(row.Index, int32(column)), append(row.Value, 1)
}

// Hashed is the column, of so many, to which a field's text is hashed (FNV-1a). The same text in two fields is two
// categories.
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

// number reads a number, nil if it is missing.
func (t *table) number(line int, f Field, text string) (*float64, error) {
	if t.missing(text) {
		return nil, nil
	}
	v, ok := number([]byte(text))
	if !ok && line == 1 && !t.Schema.Header {
		return nil, bad(t.Source, line, "the %s %.40q is no number; if the first line has the names of the columns, add "+
			`"header": true to the schema`, f.Name, text)
	}
	if !ok {
		return nil, bad(t.Source, line, "the %s %.40q is no number; add it to the schema's missing if it stands for none",
			f.Name, text)
	}
	x := float64(v)
	return &x, nil
}

// lines reads the file line by line. The record is valid only during the call.
func (t *table) lines(f func(line int, record []string) error) error {
	in, err := t.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	bound := &bounded{in: in}
	text := bufio.NewReaderSize(bound, bufferBytes)
	bound.remaining = longestLine
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
		bound.remaining = longestLine + bufferBytes
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

// broken is the error of what follows a line. encoding/csv adds the line of its own errors.
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

// bounded limits the bytes of one record: a quote that is not closed would read everything else into memory.
type bounded struct {
	in        io.Reader
	remaining int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, errLong
	}
	n, err := b.in.Read(p)
	b.remaining -= n
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

// Schema describes the fields of a CSV file.
type Schema struct {
	Separator string   `json:"separator"` // one character; "": a comma
	Header    bool     `json:"header"`    // the first line has the fields' names; those not in Fields are skipped
	Missing   []string `json:"missing"`   // texts that stand for no value; an empty field always does
	Hash      int      `json:"hash"`      // columns that categories are hashed to
	Fields    []Field  `json:"fields"`    // in the order of the file; with a header in any order
}

// Field is a field of a CSV file, or several similar ones.
type Field struct {
	Name  string `json:"name"`  // in the header; without one it only distinguishes categories
	Kind  Kind   `json:"kind"`  // what it is
	Scale Scale  `json:"scale"` // of a number
	Count int    `json:"count"` // so many in sequence, NAME1, NAME2, ...; 0 or 1: one called NAME
}

// Kind is the kind of a field.
type Kind string

// The kinds.
const (
	Target   Kind = "target"   // exactly one
	Number   Kind = "number"   // one column, and another one that says that it is missing
	Category Kind = "category" // one of the hashed columns, by its name and text; a missing one is a text too
	Skip     Kind = "skip"
)

// Scale says how a number becomes a value of about -1 to 1, by its distribution over the training rows.
type Scale string

// The scales.
const (
	Standard Scale = "standard" // minus the mean, divided by the standard deviation; also ""
	Log      Scale = "log"      // the same of sign(x) log(1+|x|), for counts and amounts
	Range    Scale = "range"    // from 0 at the least to 1 at the largest
	AsIs     Scale = "none"
)

// ReadSchema reads a schema as JSON. It returns Invalid, with the place, for an invalid one.
func ReadSchema(in io.Reader, name string) (s Schema, err error) {
	data, err := io.ReadAll(io.LimitReader(in, schemaBytes))
	if err != nil {
		return s, &disdel.Error{Kind: disdel.Unavailable, Op: "read " + name, Err: err}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return s, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + name, Err: err, Hint: "a schema is JSON: " + schemaExample,
		}
	}
	return s, s.check()
}

const (
	schemaBytes   = 1 << 20
	schemaExample = `{"header": true, "hash": 100000, "fields": [{"name": "clicked", "kind": "target"}, ` +
		`{"name": "age", "kind": "number"}, {"name": "site", "kind": "category"}]}`
)

// check refuses an impossible schema.
func (s *Schema) check() error {
	bad := func(format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read schema", Msg: fmt.Sprintf(format, args...), Hint: schemaExample,
		}
	}
	targets, categories, names := 0, false, map[string]bool{}
	for i, f := range s.Fields {
		switch f.Kind {
		case Target:
			targets += max(1, f.Count)
		case Category:
			categories = true
		case Number, Skip:
		default:
			return bad("field %d is a %q, and kinds are target, number, category and skip", i+1, f.Kind)
		}
		if f.Scale != "" && (f.Kind != Number || !slices.Contains([]Scale{Standard, Log, Range, AsIs}, f.Scale)) {
			return bad("field %d has the scale %q: numbers have standard, log, range or none", i+1, f.Scale)
		}
		if f.Count < 0 || f.Count > mostFields || s.Header && (f.Name == "" || f.Count > 1) {
			return bad("field %d: a field under a header has a name of its own", i+1)
		}
		if f.Name != "" && names[f.Name] {
			return bad("there are two fields %q", f.Name)
		}
		names[f.Name] = true
	}
	switch {
	case targets != 1:
		return bad("it has %d targets, and there is one", targets)
	case categories && (s.Hash < 1 || s.Hash > mostHashed):
		return bad("categories are hashed to %d columns, of 1 to %d", s.Hash, mostHashed)
	case len([]rune(s.Separator)) > 1 || strings.ContainsAny(s.Separator, "\"\r\n"):
		return bad("the separator is %q, and it is one character", s.Separator)
	default:
		return nil
	}
}

const (
	mostFields = 1 << 16
	mostHashed = 1 << 30
)

// each returns every single field.
func (s *Schema) each() []Field {
	var out []Field
	for i, f := range s.Fields {
		if f.Name == "" {
			f.Name = fmt.Sprint("field", i+1)
		}
		if f.Count <= 1 {
			out = append(out, f)
			continue
		}
		for k := range f.Count {
			one := f
			one.Name = fmt.Sprint(f.Name, k+1)
			out = append(out, one)
		}
	}
	return out
}

// scaling is how a number is scaled. Mean and variance are updated one by one (Welford 1962).
type scaling struct {
	scale         Scale
	n             int
	mean, sum     float64
	low, high     float64
	shift, factor float64 // a value is (number - shift) x factor
}

func (s *scaling) add(v float64) {
	v = s.folded(v)
	s.n++
	d := v - s.mean
	s.mean += d / float64(s.n)
	s.sum += d * (v - s.mean)
	s.low, s.high = min(s.low, v), max(s.high, v)
}

// folded is the number after the scale's logarithm.
func (s *scaling) folded(v float64) float64 {
	if s.scale == Log {
		return math.Copysign(math.Log1p(math.Abs(v)), v)
	}
	return v
}

// close computes the factor. A number that is always the same becomes 0: a bias says as much.
func (s *scaling) close() {
	width := math.Sqrt(s.sum / float64(max(1, s.n)))
	s.shift = s.mean
	if s.n == 0 && s.scale != AsIs { // no training row has it
		return
	}
	switch s.scale {
	case AsIs:
		s.shift, width = 0, 1
	case Range:
		s.shift, width = s.low, s.high-s.low
	}
	if width > 0 && !math.IsInf(width, 0) {
		s.factor = 1 / width
	}
}

func (s *scaling) apply(v float64) float32 { return float32((s.folded(v) - s.shift) * s.factor) }
