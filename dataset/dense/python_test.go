package dense

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

var (
	pythonDraws = flag.Int("python-draws", 400, "number of tables to compare with Python's csv module")
	pythonSeed  = flag.Uint64("python-seed", 1, "seed of these tables")
)

// drawnTable is a table as people's programs write them.
type drawnTable struct {
	Text      string `json:"text"`
	Separator string `json:"separator"`
	header    bool
	faulty    bool // a line or a quote of it was damaged
}

// pythonRecord is a record as Python reads it.
type pythonRecord struct {
	Line  int
	Cells []string
}

// UnmarshalJSON reads [line, [cells]].
func (r *pythonRecord) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&r.Line, &r.Cells})
}

// pythonTable is a table as Python reads it.
type pythonTable struct {
	records []pythonRecord
	err     string
}

// readByPython reads the tables with one process.
func readByPython(t *testing.T, list []drawnTable) []pythonTable {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	var in, out, told bytes.Buffer
	e := json.NewEncoder(&in)
	for i := range list {
		e.Encode(list[i]) //nolint:errcheck // into memory
	}
	c := exec.Command(python, "-I", "testdata/readcsv.py")
	c.Stdin, c.Stdout, c.Stderr = &in, &out, &told
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s", err, told.String())
	}
	read := make([]pythonTable, len(list))
	for i := range read {
		line, err := out.ReadBytes('\n')
		if err == nil && line[0] == '{' {
			err = json.Unmarshal(line, &struct{ Error *string }{&read[i].err})
		} else if err == nil {
			err = json.Unmarshal(line, &read[i].records)
		}
		if err != nil {
			t.Fatalf("table %d: %v", i, err)
		}
	}
	return read
}

// drawTable draws a table of the forms that people's files have.
func drawTable(rng *rand.Rand) drawnTable {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	table := drawnTable{Separator: pick(",", ",", ";", "\t", "|"), header: rng.IntN(4) > 0}
	columns, rows, end := 2+rng.IntN(4), 1+rng.IntN(12), pick("\n", "\n", "\r\n")
	mixed, blankLines, ragged, loose := rng.IntN(6) == 0, rng.IntN(5) == 0, rng.IntN(6) == 0, rng.IntN(5) == 0
	kinds := make([]int, columns)
	for i := range kinds {
		kinds[i] = rng.IntN(9)
	}
	var text strings.Builder
	if rng.IntN(5) == 0 {
		text.WriteString(byteOrderMark)
	}
	write := func(cells []string) {
		for i, cell := range cells {
			if i > 0 {
				text.WriteString(table.Separator)
			}
			text.WriteString(spelled(rng, cell, table.Separator, loose))
		}
		if mixed {
			end = pick("\n", "\r\n")
		}
		text.WriteString(end)
		if blankLines && rng.IntN(4) == 0 {
			text.WriteString(end)
		}
	}
	if table.header {
		var names []string
		for i := range columns {
			names = append(names, pick("a", "b c", "größe", "x,y", "say \"n\"", "two\nlines", "", "id")+fmt.Sprint(i))
		}
		write(names)
	}
	for range rows {
		cells := make([]string, columns)
		for i := range cells {
			cells[i] = drawCell(rng, kinds[i], pick)
		}
		if ragged && rng.IntN(4) == 0 {
			cells, table.faulty = append(cells, "1")[rng.IntN(2)*2:], true
		}
		write(cells)
	}
	table.Text = text.String()
	if rng.IntN(4) == 0 {
		table.Text = strings.TrimRight(table.Text, "\r\n")
	}
	if rng.IntN(8) == 0 { // a character somewhere, as an editor or a wrong program leaves it
		at := rng.IntN(len(table.Text) + 1)
		for ; at < len(table.Text) && !utf8.RuneStart(table.Text[at]); at++ {
		}
		table.Text = table.Text[:at] + pick("\"", "\r", "\n", "#", " ", table.Separator) + table.Text[at:]
		table.faulty = true
	}
	return table
}

// drawCell draws a cell of a column of a kind.
func drawCell(rng *rand.Rand, kind int, pick func(...string) string) string {
	if rng.IntN(12) == 0 {
		return pick("", "NA", "?", "null", "-")
	}
	switch kind {
	case 0:
		return strconv.Itoa(rng.IntN(100))
	case 1:
		return strconv.FormatFloat(rng.NormFloat64()*math.Pow(10, float64(rng.IntN(9))), 'g', -1, 64)
	case 2:
		return fmt.Sprint(rng.Uint64(), rng.IntN(1000)) // digits with a blank between them
	case 3:
		return strings.Replace(strconv.FormatFloat(rng.Float64()*100, 'f', 2, 64), ".", ",", 1)
	case 4:
		return fmt.Sprintf("%d-%02d-%02d", 2020+rng.IntN(5), 1+rng.IntN(12), 1+rng.IntN(28))
	case 5:
		return pick("yes", "no", "maybe, later", "so; so", "tab\there", "a|b", "#1")
	case 6:
		return pick("São Paulo", "北京", "naïve café", "\u00a0x", "emoji 🙂", "a\u2028b")
	case 7:
		return pick("say \"yes\"", "two\nlines", "two\r\nlines", "\n", "\"", "5\" pipe", strings.Repeat("long ", 300))
	default:
		return strconv.FormatUint(rng.Uint64(), 10)
	}
}

// spelled is a cell as a file has it: in quotes where it must be, and sometimes where it need not.
func spelled(rng *rand.Rand, cell, separator string, loose bool) string {
	if strings.ContainsAny(cell, "\"\r\n"+separator) || rng.IntN(6) == 0 {
		cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
	} else if loose && separator != "\t" {
		cell += strings.Repeat(" ", rng.IntN(3))
	}
	if loose && separator != "\t" {
		cell = strings.Repeat(" ", rng.IntN(3)) + cell
	}
	return cell
}

// cellsRead is all records of a table as the reader of tables gives them, with the first line.
func cellsRead(from drawnTable) (names []string, records []pythonRecord, told []disdel.Fault, err error) {
	t := &table{CSV: CSV{
		Source: dataset.TextSource("t.csv", from.Text), Separator: rune(from.Separator[0]), Header: HeaderNo,
	}}
	if from.header {
		t.Header = HeaderYes
	}
	if err := t.begin(); err != nil {
		return nil, nil, nil, err
	}
	for i := range t.columns { // every row counts, also one without a label
		t.columns[i].passed = isIndex
	}
	t.missing = nil
	wrong := &faults{file: "t.csv"}
	err = t.rows(t.Source, wrong, func(r row) error {
		one := pythonRecord{Line: r.line}
		for i := range r.cells {
			one.Cells = append(one.Cells, strings.Clone(t.columns[i].textOf(&r.cells[i])))
		}
		records = append(records, one)
		return nil
	})
	return t.names, records, wrong.list, err
}

// Tables that nobody chose have the cells, the records and the lines that Python's csv module reads. What is refused is
// what Python refuses, or a quote in a field that has none around it, and the line is told.
func TestTablesAreReadAsByPython(t *testing.T) {
	rng := rand.New(rand.NewPCG(*pythonSeed, 3))
	list := make([]drawnTable, *pythonDraws)
	for i := range list {
		list[i] = drawTable(rng)
	}
	refused := 0
	for i, want := range readByPython(t, list) {
		names, records, told, err := cellsRead(list[i])
		if err != nil {
			refused++
		}
		if why := unlike(list[i], want, names, records, told, err); why != "" {
			t.Errorf("seed %d, table %d: %s\n%q", *pythonSeed, i, why, list[i].Text)
		}
	}
	t.Logf("%d tables, %d refused", len(list), refused)
	if 4*refused > len(list) {
		t.Errorf("%d of %d tables are refused: too few are compared", refused, len(list))
	}
}

// unlike says how a reading differs from Python's; "": it does not.
func unlike(from drawnTable, want pythonTable, names []string, got []pythonRecord, told []disdel.Fault, err error) string {
	for i, r := range want.records {
		for k, text := range r.Cells {
			want.records[i].Cells[k] = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
		}
	}
	switch {
	case err != nil:
		return untrue(from, want, err)
	case want.err != "":
		return "Python refuses it: " + want.err
	case len(want.records) == 0:
		return "Python reads no record"
	}
	if from.header {
		if header := HeaderNames(want.records[0].Cells); !slices.Equal(header, names) {
			return fmt.Sprintf("the header is %q, not %q", names, header)
		}
		want.records = want.records[1:]
	}
	var lines, ragged []int
	for _, f := range told {
		lines = append(lines, f.Line)
	}
	wanted := slices.DeleteFunc(slices.Clone(want.records), func(r pythonRecord) bool {
		if len(r.Cells) != len(names) {
			ragged = append(ragged, r.Line)
		}
		return len(r.Cells) != len(names)
	})
	if !slices.Equal(lines, ragged) {
		return fmt.Sprintf("faults are told of the lines %d, and these have other numbers of cells: %d", lines, ragged)
	}
	return cmp.Diff(wanted, got, cmpopts.EquateEmpty())
}

// untrue says why a refusal does not fit what Python reads; "": it fits.
func untrue(from drawnTable, want pythonTable, err error) string {
	var list *disdel.Faults
	switch {
	case want.err != "":
		return ""
	case errors.As(err, &list) && list.Faults[0].Path == "lines":
		if line := lineOfReturn(from.Text); line != list.Faults[0].Line {
			return fmt.Sprintf("it is refused: %v; the line of the carriage return is %d", err, line)
		}
		return ""
	case errors.As(err, &list):
		for _, f := range list.Faults {
			at := slices.IndexFunc(want.records, func(r pythonRecord) bool { return r.Line >= f.Line })
			if at < 0 || want.records[at].Line > f.Line {
				at = len(want.records) - 1
			}
			if f.Line == 0 || !strings.Contains(strings.Join(want.records[at].Cells, ""), `"`) {
				return fmt.Sprintf("it is refused: %v", err)
			}
		}
		return ""
	case len(want.records) > 0 && len(want.records[0].Cells) > 1:
		return fmt.Sprintf("it is refused: %v", err)
	default:
		return ""
	}
}

// lineOfReturn is the line of the first carriage return outside quotes that no newline follows; 0: there is none.
func lineOfReturn(text string) int {
	var even strings.Builder
	for i, part := range strings.Split(text, `"`) { // every other part stands in quotes
		if even.WriteString("\""); i%2 == 1 {
			part = strings.ReplaceAll(part, "\r", ".")
		}
		even.WriteString(part)
	}
	for at := range strings.Count(even.String(), "\n") + 1 {
		if line := strings.Split(even.String(), "\n")[at]; strings.Contains(strings.TrimRight(line, "\r"), "\r") {
			return at + 1
		}
	}
	return 0
}

// The rows of a data set are the cells that Python reads: numbers by their value, texts by their category, rows without
// a class left out. Separator and header are found out.
func TestRowsOfADataSetAreThoseOfPython(t *testing.T) {
	rng := rand.New(rand.NewPCG(*pythonSeed, 4))
	list := make([]drawnTable, *pythonDraws)
	for i := range list {
		list[i] = drawTable(rng)
	}
	added, otherwise := 0, 0
	for i, want := range readByPython(t, list) {
		from := CSV{Source: dataset.TextSource("t.csv", list[i].Text), Scale: AsIs, LabelClasses: true}
		if list[i].header {
			from.Header = HeaderYes
		} else {
			from.Header = HeaderNo
		}
		if rng.IntN(2) == 0 {
			from.Separator = rune(list[i].Separator[0])
		}
		in, err := from.Input("t")
		if err != nil {
			continue
		}
		if added++; !strings.Contains(in.Understood.Kind, separators[rune(list[i].Separator[0])]) {
			otherwise++ // as in 1|2,3 and 4|5,6
			continue
		}
		if why := otherRows(t, list[i], want, in); why != "" {
			t.Errorf("seed %d, table %d: %s\n%+v\n%q", *pythonSeed, i, why, in.Understood, list[i].Text)
		}
	}
	t.Logf("%d of %d tables were added, %d with another separator", added, len(list), otherwise)
	if 3*added < len(list) || 100*otherwise > added {
		t.Errorf("%d of %d tables were added, %d with another separator: too few are compared", added, len(list), otherwise)
	}
}

// otherRows says how the rows of a data set differ from Python's; "": they do not.
func otherRows(t *testing.T, from drawnTable, want pythonTable, in dataset.DenseInput) string {
	if from.header {
		want.records = want.records[1:]
	}
	rows := all(t, in)
	columns := in.Understood.Columns
	missing := missingTexts(nil)
	at := slices.IndexFunc(columns, func(c dataset.ColumnReading) bool { return c.Kind == dataset.ColumnLabel })
	for _, r := range want.records {
		if len(r.Cells) != len(columns) {
			return fmt.Sprintf("line %d has %d cells: %q", r.Line, len(r.Cells), r.Cells)
		}
		for k, text := range r.Cells {
			r.Cells[k] = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
		}
		if missing[r.Cells[at]] {
			continue
		}
		if len(rows) == 0 {
			return fmt.Sprintf("line %d is no row", r.Line)
		}
		if why := otherRow(r.Cells, at, rows[0], in); why != "" {
			return fmt.Sprintf("line %d: %s", r.Line, why)
		}
		rows = rows[1:]
	}
	if len(rows) > 0 {
		return fmt.Sprintf("%d more rows", len(rows))
	}
	return ""
}

// otherRow says how a row of a data set differs from its cells; "": it does not.
func otherRow(cells []string, label int, row kept, in dataset.DenseInput) string {
	missing := missingTexts(nil)
	class, text := strconv.Itoa(int(row.Label)), cells[label]
	if in.ClassNames != nil {
		class = in.ClassNames[row.Label]
	}
	if v, ok := number(text); ok && math.Abs(v) < exactIntegers {
		text = strconv.FormatFloat(v, 'f', -1, 64)
	}
	if class != text {
		return fmt.Sprintf("the class is %q, not %q", class, text)
	}
	values, left := row.Values, in.Columns
	for k, text := range cells {
		if kind := in.Understood.Columns[k].Kind; kind != dataset.ColumnNumber && kind != dataset.ColumnCategory {
			continue
		}
		c, own := left[0], values[:left[0].Width()]
		left, values = left[1:], values[len(own):]
		for i, v := range own {
			expected, err := float64(0), error(nil)
			switch {
			case c.Kind == dataset.ColumnCategory && c.Categories[i] == text && !missing[text]:
				expected = 1
			case c.Kind == dataset.ColumnCategory:
			case missing[text]:
				expected = c.Mean
			default:
				expected, err = strconv.ParseFloat(text, 64)
			}
			if err != nil || v != float32(expected) {
				return fmt.Sprintf("column %s has %g for %q", c.Name, v, text)
			}
		}
		if c.Kind == dataset.ColumnCategory && !missing[text] && !slices.Contains(c.Categories, text) {
			return fmt.Sprintf("column %s has no category %q", c.Name, text)
		}
	}
	return ""
}
