package infer

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/internal/modelstore"
)

// readTableForm reads the description of a table's columns.
func readTableForm(ctx context.Context, store *modelstore.Store, sum string) (*dataset.Table, error) {
	data, err := store.ReadTable(ctx, sum)
	if err != nil {
		return nil, err
	}
	var t dataset.Table
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read columns", Msg: sum, Err: err}
	}
	return &t, nil
}

// rawRows collects rows of a table's cells.
type rawRows struct {
	model   *Model
	table   *dataset.Table
	convert *dense.RawRows
	file    string
	maximum int // values of all rows together; 0: no bound

	texts   []string // of the newest row, in the order of columns
	columns []string // of the table, and then its label or targets
	at      map[string]int
	values  []float32
	rows    int
	labels  []int32
	numbers [][]float64
	classes map[string]int32
	unknown map[string]int // cells with a text that no training row has, by column
	faults  []disdel.Fault
	more    int // faults that are not listed
}

// Bounds of raw rows: a short text of a category becomes many values. A server counts mostPerByte values for each byte
// of a request, and freeValues besides.
const (
	mostPerByte     = 2
	freeValues      = 1 << 19
	mostRawFaults   = 20
	mostOtherFields = 1000 // of a row, beside those of the model
)

// readRaw reads rows as the file of the model's table has them: CSV with a header that names columns, JSON objects, or
// Parquet. ok is false for anything else, and for models without a table.
func (t *Model) readRaw(name string, data []byte) (in Inputs, ok bool, err error) {
	if t.table == nil || bytes.HasPrefix(data, []byte("\x93NUMPY")) {
		return in, false, nil
	}
	isParquet := dense.IsParquet(data)
	lines := !isParquet && isCSV(name, data)
	objects, isJSON := rawObjects(data)
	if !lines && !isJSON && !isParquet {
		return in, false, nil
	}
	table, err := t.table()
	if err != nil {
		return in, false, err
	}
	r := newRawRows(t, table, name, len(data))
	switch ok = true; {
	case lines:
		ok, err = r.readCSV(data)
	case isParquet:
		err = r.readParquet(data)
	default:
		err = r.readObjects(objects)
	}
	switch {
	case err != nil:
		return in, false, err
	case ok:
		in, err = r.inputs()
	default:
		in, err = ReadInputs(name, data, t.Graph.Input())
		in.Notes = append(in.Notes, "the file has no header of column names: its numbers are taken as scaled in training. "+
			"For values as the data set's file had them, begin with the line "+headerOf(table))
	}
	return in, err == nil, err
}

// hintOfTable tells in the hint of err, that a file holds no inputs, how to ask a model of a table: as its file was.
func (t *Model) hintOfTable(err error) error {
	var e *disdel.Error
	if t.table == nil || !errors.As(err, &e) || e.Kind != disdel.Invalid || !strings.HasPrefix(e.Hint, "give rows of ") {
		return err
	}
	e.Hint = "give rows as the data set's file had them, as CSV with a header, JSON objects or Parquet; or scaled as in " +
		"training: " + strings.TrimPrefix(e.Hint, "give ")
	return err
}

// headerOf is the header of a table's file, cut if it is long.
func headerOf(t *dataset.Table) string {
	const maximum = 8
	var names []string
	for i := range min(len(t.Columns), maximum) {
		names = append(names, t.Columns[i].Name)
	}
	if len(t.Columns) > maximum {
		names = append(names, "...")
	}
	return strings.Join(names, ",")
}

func newRawRows(t *Model, table *dataset.Table, file string, size int) *rawRows {
	r := &rawRows{
		model: t, table: table, convert: dense.NewRawRows(*table), file: file, at: map[string]int{},
		classes: make(map[string]int32, len(t.Labels)), unknown: map[string]int{},
	}
	for k, name := range t.Labels {
		r.classes[name] = int32(k)
	}
	if t.MostRows > 0 {
		r.maximum = freeValues + mostPerByte*size
	}
	for i := range table.Columns {
		r.columns = append(r.columns, table.Columns[i].Name)
	}
	if table.Label != "" {
		r.columns = append(r.columns, table.Label)
	}
	for _, target := range t.Network.Targets {
		r.columns = append(r.columns, target.Name)
	}
	for i, name := range r.columns {
		if _, twice := r.at[name]; !twice {
			r.at[name] = i
		}
	}
	return r
}

// answered is the columns of a row that the model predicts.
func (r *rawRows) answered() []string { return r.columns[len(r.table.Columns):] }

// readCSV reads a table. ok is false if its first line has no name of a column.
func (r *rawRows) readCSV(data []byte) (ok bool, err error) {
	by := r.separator(data)
	if by == dense.Blanks {
		data, by = dense.BlanksAsTabs(data), '\t'
	}
	in := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	in.Comma, in.ReuseRecord, in.TrimLeadingSpace = by, true, by != '\t'
	if line := tooWide(data, in.Comma, len(r.columns)+mostOtherFields); line > 0 {
		return false, r.bad("line %d has more fields than the model's table has columns", line)
	}
	head, err := in.Read()
	if err != nil {
		return false, nil // what follows tells the fault
	}
	places := make([]int, len(head)) // in r.texts, -1: the field is not needed
	names := make([]string, len(head))
	for i, name := range head {
		names[i] = strings.TrimSpace(name)
	}
	for i, name := range dense.HeaderNames(names) {
		places[i] = -1
		if at, known := r.at[name]; known {
			places[i], ok = at, ok || names[i] != ""
		}
	}
	headless := !ok && r.byPosition(places)
	if !ok && !headless {
		return false, nil
	}
	if err := r.lacks(func(at int) bool { return slices.Contains(places, at) }, "the header"); err != nil {
		return true, err
	}
	for record, again := head, headless; ; again = false {
		if !again {
			record, err = in.Read()
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return true, r.bad("%v", err)
		}
		line, _ := in.FieldPos(0)
		r.begin()
		for i, text := range record {
			if places[i] >= 0 {
				r.texts[places[i]] = text
			}
		}
		if err := r.end(fmt.Sprintf("line %d", line)); err != nil {
			return true, err
		}
	}
}

// byPosition sets the columns of fields in a file without a header, for a model of a table without a header, whose
// columns are named by their numbers. It tells whether there are enough fields. The last field, the label, may be left
// out.
func (r *rawRows) byPosition(places []int) bool {
	for at, name := range r.columns {
		var number int
		if _, err := fmt.Sscanf(name, dense.Headless, &number); err != nil || fmt.Sprintf(dense.Headless, number) != name {
			return false
		}
		if number <= len(places) {
			places[number-1] = at
		} else if number > len(places)+1 || at < len(r.table.Columns) {
			return false
		}
	}
	return true
}

// separator is the one of CSV: that of the table's file, if it divides the header. A single row shows blanks between
// its fields only if it has no other separator.
func (r *rawRows) separator(data []byte) rune {
	line, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n"))
	if named, size := utf8.DecodeRuneInString(r.table.Separator); size > 0 && divides(data, named) {
		return named
	}
	_, isName := r.at[string(line)]
	by := dense.Separator(data)
	if by != ',' || isName || bytes.ContainsRune(line, ',') || !bytes.ContainsRune(line, ' ') {
		return by
	}
	return dense.Blanks
}

// divides tells whether a character is in the first record of CSV, outside quotes.
func divides(data []byte, by rune) bool {
	quoted := false
	for _, c := range string(data) {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && (c == by || c == '\n'):
			return c == by
		}
	}
	return false
}

// rawObjects returns JSON objects with the columns of rows: one, a list of them, {"rows": [...]}, or one in each line.
func rawObjects(data []byte) (objects []byte, ok bool) {
	data = bytes.TrimSpace(data)
	inner := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("[")))
	if !bytes.HasPrefix(inner, []byte("{")) {
		return nil, false
	}
	if len(inner) < len(data) {
		return data, true
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.Token() //nolint:errcheck // the brace
	first, err := dec.Token()
	switch {
	case err != nil || first == json.Delim('}'):
		return nil, false
	case first == "inputs" || first == "labels" || first == "shape" || first == "numbers":
		return nil, false
	case first == "rows":
		var doc struct{ Rows json.RawMessage }
		if json.Unmarshal(data, &doc) == nil && bytes.HasPrefix(bytes.TrimSpace(doc.Rows), []byte("[")) {
			return doc.Rows, true
		}
	}
	return data, true
}

// readObjects reads a list of objects, or one after another.
func (r *rawRows) readObjects(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	isList := bytes.HasPrefix(data, []byte("["))
	if isList {
		dec.Token() //nolint:errcheck // the bracket
	}
	// present is for any row: a key that only some rows have is a missing value in the others.
	present, n := make([]bool, len(r.columns)), 0
	for ; dec.More(); n++ {
		if err := r.readObject(dec, n, present); err != nil {
			return err
		}
	}
	if isList {
		if _, err := dec.Token(); err != nil {
			return r.bad("it is no JSON of rows: it ends within the list")
		}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r.bad("it is no JSON of rows")
	}
	where := "the file"
	switch n {
	case 0:
		return nil
	case 1:
		where = "row 0"
	}
	return r.lacks(func(at int) bool { return present[at] }, where)
}

// readObject reads one row, and notes the columns that it has.
func (r *rawRows) readObject(dec *json.Decoder, n int, present []bool) error {
	where := fmt.Sprintf("row %d", n)
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return r.bad("%s is no JSON object of columns", where)
	}
	r.begin()
	for fields := 0; dec.More(); fields++ {
		key, err := dec.Token()
		if err != nil || fields > len(r.columns)+mostOtherFields {
			return r.bad("%s is no JSON object of the model's columns", where)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return r.bad("%s is no JSON object of columns", where)
		}
		if at, known := r.at[fmt.Sprint(key)]; known {
			present[at] = true
			if text, why := cellText(value); why != "" {
				r.fault(where, r.columns[at], why)
			} else {
				r.texts[at] = text
			}
			if first := value[0]; r.hasMarks(at) && (first == '-' || first-'0' <= 9) {
				r.texts[at] = r.convert.Spelled(r.texts[at])
			}
		}
	}
	if _, err := dec.Token(); err != nil {
		return r.bad("%s is no JSON object of columns", where)
	}
	return r.end(where)
}

// cellText is the text that a CSV file has for a value of JSON.
func cellText(value json.RawMessage) (text, why string) {
	switch {
	case string(value) == "null":
		return "", ""
	case value[0] == '"':
		if json.Unmarshal(value, &text) != nil {
			return "", "it is no text"
		}
		return text, ""
	case value[0] == '{', value[0] == '[':
		return "", "it is a list or an object, and a column has a number or a text"
	default: // numbers, true, false
		return string(value), ""
	}
}

// readParquet reads a Parquet file. It reads only the columns of the model.
func (r *rawRows) readParquet(data []byte) error {
	wanted := func(name string) bool { _, known := r.at[name]; return known }
	in, err := r.convert.OpenParquet(r.file, data, wanted, len(r.columns)+mostOtherFields, int64(4*r.maximum))
	if err != nil {
		return err
	}
	if err := r.model.checkRows(r.file, int(min(in.Rows(), math.MaxInt32))); err != nil {
		return err
	}
	columns := in.Columns()
	has := func(at int) bool {
		return slices.ContainsFunc(columns, func(c dense.ParquetColumn) bool { return r.at[c.Name] == at })
	}
	if err := r.lacks(has, "the file"); err != nil {
		return err
	}
	row := 0
	return in.Each(func(texts []string) error {
		r.begin()
		for i, text := range texts {
			at := r.at[columns[i].Name]
			if columns[i].IsNumber && r.hasMarks(at) {
				text = r.convert.Spelled(text)
			}
			r.texts[at] = text
		}
		row++
		return r.end(fmt.Sprintf("row %d", row))
	})
}

// hasMarks tells whether numbers of a column have the marks of the table's file: all but classes have.
func (r *rawRows) hasMarks(at int) bool {
	return at < len(r.table.Columns)+len(r.model.Network.Targets)
}

// lacks returns Invalid if columns that the model needs are not there.
func (r *rawRows) lacks(has func(at int) bool, where string) error {
	var missing []string
	for at := range r.table.Columns {
		if !has(at) {
			missing = append(missing, r.columns[at])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	const maximum = 12
	if n := len(missing); n > maximum {
		missing = append(missing[:maximum], fmt.Sprintf("and %d more", n-maximum))
	}
	err := disdel.AsError(r.bad("%s has no %s", where, strings.Join(missing, ", ")))
	err.Hint = "the model was trained on the columns " + headerOf(r.table) +
		"; leave a field empty, or null, for a missing value"
	return err
}

func (r *rawRows) bad(format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read " + r.file, Msg: fmt.Sprintf(format, args...),
		Hint: "give CSV with the header " + headerOf(r.table) + ", or JSON objects or Parquet with these names",
	}
}

// begin starts a row.
func (r *rawRows) begin() {
	if r.texts == nil {
		r.texts = make([]string, len(r.columns))
	}
	clear(r.texts)
}

// end converts the newest row.
func (r *rawRows) end(where string) error {
	r.rows++
	if err := r.model.checkRows(r.file, r.rows); err != nil {
		return err
	}
	if r.maximum > 0 && len(r.values)+r.convert.Width() > r.maximum {
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "read " + r.file,
			Msg:  fmt.Sprintf("its rows have more than %d values after texts became categories", r.maximum),
			Hint: "ask for fewer rows at once, or add them as a data set and ask for its rows",
		}
	}
	r.values = r.convert.Append(r.values, r.texts, func(c dense.RawCell) {
		if c.Unknown {
			r.unknown[c.Column]++
		} else {
			r.fault(where, c.Column, c.Fault)
		}
	})
	present := r.texts[len(r.table.Columns):]
	if r.table.Label != "" {
		if class, ok := r.classOf(present[0]); ok && len(r.labels) == r.rows-1 {
			r.labels = append(r.labels, class)
		}
		return nil
	}
	var numbers []float64
	for _, text := range present {
		v, ok := r.convert.Number(text)
		if text = strings.TrimSpace(text); r.model.Network.MultiLabel() && strings.EqualFold(text, "true") {
			v, ok = 1, true
		} else if r.model.Network.MultiLabel() && strings.EqualFold(text, "false") {
			v, ok = 0, true
		}
		if ok {
			numbers = append(numbers, v)
		}
	}
	if len(numbers) == len(present) && len(r.numbers) == r.rows-1 {
		r.numbers = append(r.numbers, numbers)
	}
	return nil
}

// classOf returns the class of a label.
func (r *rawRows) classOf(text string) (int32, bool) {
	v, isNumber := dense.Number(text)
	if len(r.model.Labels) == 0 {
		return int32(v), isNumber && v >= 0 && v < float64(r.model.Data.Classes) && v == float64(int32(v))
	}
	names := []string{strings.TrimSpace(text), dense.LabelText(text)}
	if isNumber { // as models of earlier versions spell it
		names = append(names, strconv.FormatFloat(v, 'g', -1, 64))
	}
	for _, name := range names {
		if class, ok := r.classes[name]; ok {
			return class, true
		}
	}
	return 0, false
}

func (r *rawRows) fault(where, column, why string) {
	if len(r.faults) == mostRawFaults {
		r.more++
		return
	}
	r.faults = append(r.faults, disdel.Fault{Path: where + ", " + column, Msg: why})
}

// inputs returns the rows, or their faults. Labels and numbers count only if all rows have them.
func (r *rawRows) inputs() (in Inputs, err error) {
	switch {
	case len(r.faults) > 0:
		if r.more > 0 {
			r.faults = append(r.faults, disdel.Fault{Path: "more", Msg: fmt.Sprintf("%d faults besides", r.more)})
		}
		return in, &disdel.Faults{File: r.file, Faults: r.faults}
	case r.rows == 0:
		return in, r.bad("there are no rows")
	case r.convert.Width() != r.model.Graph.Input().Len():
		return in, &disdel.Error{
			Kind: disdel.Corrupt, Op: "read columns", Msg: fmt.Sprintf("the model's table has rows of %d values, and the model "+
				"takes %d", r.convert.Width(), r.model.Graph.Input().Len()),
		}
	}
	in.Rows = rowsOf(r.values, r.convert.Width())
	if len(r.labels) == r.rows {
		in.Labels = r.labels
	}
	if len(r.numbers) == r.rows && len(r.answered()) > 0 {
		in.Numbers = r.numbers
	}
	for _, column := range slices.Sorted(maps.Keys(r.unknown)) {
		in.Notes = append(in.Notes, fmt.Sprintf("%s of column %s are in no row that the model was trained on; they count as "+
			"missing", disdel.Counted(r.unknown[column], "text"), column))
	}
	return in, nil
}
