package text

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Table is a table with a text in each row, as rows of tokens with a class each: CSV, or a JSON object in each line
// (.jsonl).
type Table struct {
	Source    dataset.Source
	Test      *dataset.Source // held-out rows; nil: none
	Text      string          // the column of the texts; without a header its number, from 1
	Label     string          // the column of the classes, as Text
	Separator rune            // of the columns of CSV; 0: a comma
	Headless  bool            // the first line of CSV is a row
	// Tokenizer makes the tokens. nil: one of Vocabulary tokens is trained on the texts of Source. Token 0 of a given one
	// must be a special token: it fills short rows.
	Tokenizer  *Tokenizer
	Vocabulary int
	Positions  int // tokens of a row; longer texts are cut off
}

// Special tokens of a tokenizer that is trained for a data set.
const (
	Padding = "<|pad|>" // token 0, which fills short rows
	End     = "<|end|>" // token 1, the end of a text
)

// mostPositions bounds the tokens of a row.
const mostPositions = 1 << 16

// Input returns the rows for dataset.Store.AddDense. It reads the table, at first to learn classes and tokens. It returns
// Invalid, and *disdel.Faults for faults of the file.
func (t Table) Input(name string) (in dataset.DenseInput, err error) {
	return (&rowReader{Table: t, classes: map[string]int32{}}).input(name)
}

// input is Input, also of the files of a folder.
func (r *rowReader) input(name string) (in dataset.DenseInput, err error) {
	t := &r.Table
	bad := func(hint, format string, args ...any) (dataset.DenseInput, error) {
		return in, &disdel.Error{
			Kind: disdel.Invalid, Op: "read " + t.Source.Name, Msg: fmt.Sprintf(format, args...), Hint: hint,
		}
	}
	switch {
	case t.Positions < 1 || t.Positions > mostPositions:
		return bad("give a number of tokens, such as --positions 128", "rows of %d tokens, not 1 to %d", t.Positions,
			mostPositions)
	case t.Tokenizer != nil && !t.Tokenizer.added.special[0]:
		return bad("train one from the texts: --tokenizer bpe:8000",
			"token 0 of the tokenizer, %.40q, is no special token that could fill short rows", t.Tokenizer.tokens[0])
	}
	if err := r.learn(); err != nil {
		return in, err
	}
	if len(r.names) < 2 {
		return bad("name the column of the classes with --label", "all texts have the class %.40q", strings.Join(r.names, ""))
	}
	if err := r.each(func(dataset.DenseRow) error { return nil }); err != nil { // counts what is cut off
		return in, err
	}
	return dataset.DenseInput{
		Name: name, Shape: []int{1, 1, t.Positions}, Classes: len(r.names), ClassNames: r.names, LabelClasses: true,
		Tokenizer: r.Tokenizer.JSON(), Each: r.each, Understood: r.understood(),
	}, nil
}

// rowReader reads the rows of a Table.
type rowReader struct {
	Table
	inFolder map[string][]textFile // the files of the folders that Source and Test name; nil: they are tables
	classes  map[string]int32
	names    []string
	counts   []int

	example           document
	rows, tested      int
	cut, empty, blank int // texts that were too long; rows without a text; rows without a class
}

// document is a row of a table.
type document struct {
	text, label string
	place       string // of messages: its line or its file
}

// learn reads the whole table once: classes, tokens, and every fault.
func (r *rowReader) learn() error {
	var texts []string // at most, of the training of the tokenizer
	budget := mostTraining
	counts := map[string]int{}
	faults, err := r.documents(r.Source, func(d document) error {
		if r.rows == 0 {
			r.example = d
		}
		r.rows++
		counts[d.label]++
		if r.Tokenizer == nil && budget > 0 {
			texts = append(texts, d.text[:min(len(d.text), budget)])
			budget -= len(d.text)
		}
		return nil
	})
	empty, blank := r.empty, r.blank // of the rows to learn from
	if err == nil && r.Test != nil {
		var more *disdel.Faults
		more, err = r.documents(*r.Test, func(d document) error {
			if counts[d.label] == 0 {
				return fmt.Errorf("%s has the class %.40q, which no row to learn from has", d.place, d.label)
			}
			r.tested++
			return nil
		})
		faults = cmp.Or(faults, more)
	}
	switch {
	case faults != nil:
		return faults
	case err != nil:
		return &disdel.Error{Kind: disdel.Invalid, Op: "read " + r.Source.Name, Err: err}
	}
	r.empty, r.blank = empty, blank
	r.number(counts)
	if r.Tokenizer == nil {
		r.Tokenizer, err = TrainBPE(slices.Values(texts), r.Vocabulary, Padding, End)
	}
	return err
}

// mostTraining is the text, in bytes, that a tokenizer is trained on: more changes few tokens.
const mostTraining = 64 << 20

// number numbers the classes in the order of their names, or of their values if all are whole numbers.
func (r *rowReader) number(counts map[string]int) {
	value := func(name string) int { n, _ := strconv.Atoi(name); return n }
	numbers := true
	for name := range counts {
		r.names = append(r.names, name)
		_, err := strconv.Atoi(name)
		numbers = numbers && err == nil
	}
	slices.SortFunc(r.names, func(a, b string) int {
		if numbers {
			return cmp.Compare(value(a), value(b))
		}
		return strings.Compare(a, b)
	})
	for i, name := range r.names {
		r.classes[name] = int32(i)
		r.counts = append(r.counts, counts[name])
	}
}

// each yields the rows as tokens.
func (r *rowReader) each(yield func(dataset.DenseRow) error) error {
	e := r.Tokenizer.Encoder()
	row, tokens := make([]float32, r.Positions), []int32(nil)
	r.cut = 0
	defer func(empty, blank int) { r.empty, r.blank = empty, blank }(r.empty, r.blank)
	part := func(from dataset.Source, heldOut bool) error {
		faults, err := r.documents(from, func(d document) error {
			tokens = e.Append(tokens[:0], d.text, true)
			if Fill(row, tokens) {
				r.cut++
			}
			return yield(dataset.DenseRow{Values: row, Label: r.classes[d.label], HeldOut: heldOut})
		})
		if faults != nil {
			return faults
		}
		return err
	}
	if err := part(r.Source, false); err != nil || r.Test == nil {
		return err
	}
	return part(*r.Test, true)
}

// Fill writes tokens to a row of a network's input, and fills the rest with token 0. It tells whether the tokens were too
// many; then the first ones are taken.
func Fill(row []float32, tokens []int32) (cut bool) {
	n := min(len(row), len(tokens))
	for i, token := range tokens[:n] {
		row[i] = float32(token)
	}
	clear(row[n:])
	return n < len(tokens)
}

// understood is the interpretation of the table.
func (r *rowReader) understood() dataset.Interpretation {
	kind := "CSV with a header"
	switch {
	case isLines(r.Source.Name):
		kind = "JSON, an object in each line"
	case r.Headless:
		kind = "CSV without a header"
	}
	kind = fmt.Sprintf("%s; the text is %s; the label is %s", kind, r.Text, r.Label)
	if r.inFolder != nil {
		kind = "text files; the label is the file's folder"
	}
	u := dataset.Interpretation{
		Kind:   kind,
		Values: fmt.Sprintf("%d tokens of %d, as whole numbers", r.Positions, r.Tokenizer.Size()),
		Rows:   r.rows, HeldOut: r.tested,
		Example: dataset.Example{
			Place: r.example.place, Class: r.example.label, Values: []string{shortened(r.example.text)},
		},
	}
	for i, name := range r.names {
		u.Classes = append(u.Classes, dataset.ClassRows{Name: name, Rows: r.counts[i]})
	}
	if r.empty+r.blank > 0 {
		u.Passed = append(u.Passed, fmt.Sprintf("%s without %s and %d without %s", disdel.Counted(r.empty, "row"), r.Text,
			r.blank, r.Label))
	}
	if r.cut > 0 {
		u.Notes = append(u.Notes, fmt.Sprintf("%s more than %d tokens and lose their ends; --positions takes more",
			has(r.cut), r.Positions))
	}
	return u
}

func has(texts int) string {
	if texts == 1 {
		return "1 text has"
	}
	return fmt.Sprintf("%d texts have", texts)
}

// shortened is the start of a text, in one line.
func shortened(text string) string {
	const maximum = 60
	text = strings.Join(strings.Fields(text), " ")
	for i := range text {
		if i > maximum {
			return text[:i] + " ..."
		}
	}
	return text
}

func isLines(name string) bool {
	ext := strings.ToLower(filepath.Ext(strings.TrimSuffix(name, ".gz")))
	return ext == ".jsonl" || ext == ".ndjson"
}

// mostFaults is how many faults of a file are reported.
const mostFaults = 20

// documents reads the rows of a source that have a text and a class. It returns the faults of the file, and take's error.
func (r *rowReader) documents(from dataset.Source, take func(document) error) (*disdel.Faults, error) {
	r.empty, r.blank = 0, 0
	file, err := from.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	read := r.table
	if list, ok := r.inFolder[from.Name]; ok {
		read = func(io.Reader) iter.Seq2[document, error] { return filesOf(list) }
	} else if isLines(from.Name) {
		read = r.lines
	}
	found := &disdel.Faults{File: from.Name}
	for d, err := range read(file) {
		var fault *lineError
		switch {
		case errors.As(err, &fault):
			found.Faults = append(found.Faults, disdel.Fault{Line: fault.line, Path: fault.path, Msg: fault.Error()})
			if len(found.Faults) == mostFaults {
				return found, nil
			}
		case err != nil:
			return nil, err
		case d.text == "":
			r.empty++
		case d.label == "":
			r.blank++
		case len(found.Faults) == 0:
			if err := take(d); err != nil {
				return nil, err
			}
		}
	}
	if len(found.Faults) > 0 {
		return found, nil
	}
	return nil, nil
}

// lineError is a line or a file that cannot be read. Others may be.
type lineError struct {
	line int    // 0: a file
	path string // of the file in its folder
	error
}

// table reads CSV.
func (r *rowReader) table(from io.Reader) iter.Seq2[document, error] {
	return func(yield func(document, error) bool) {
		in := csv.NewReader(skipMark(from))
		in.ReuseRecord, in.LazyQuotes = true, r.Separator == '\t' // files with tabs rarely quote
		if r.Separator != 0 {
			in.Comma = r.Separator
		}
		head, err := in.Read()
		if err != nil {
			yield(document{}, fmt.Errorf("the first line is no header: %w", err))
			return
		}
		text, label, err := r.columns(head)
		if err != nil {
			yield(document{}, err)
			return
		}
		for cells, again := head, r.Headless; ; again = false {
			var err error
			if !again {
				cells, err = in.Read()
			}
			if errors.Is(err, io.EOF) {
				return
			}
			var parse *csv.ParseError
			if errors.As(err, &parse) {
				err = &lineError{line: parse.StartLine, error: parse.Err}
			}
			var d document
			if err == nil {
				line, _ := in.FieldPos(0)
				d.place = fmt.Sprintf("line %d", line)
				d.text, d.label = cells[text], strings.TrimSpace(cells[label])
			}
			if !yield(d, err) || err != nil && parse == nil {
				return
			}
		}
	}
}

// columns finds the columns of the texts and the classes, by the first line.
func (r *rowReader) columns(head []string) (text, label int, err error) {
	at := func(name string) int {
		if !r.Headless {
			return slices.Index(head, name)
		}
		n, err := strconv.Atoi(name)
		if err != nil || n > len(head) {
			return -1
		}
		return n - 1
	}
	if text, label = at(r.Text), at(r.Label); text >= 0 && label >= 0 {
		return text, label, nil
	}
	if r.Headless {
		return 0, 0, fmt.Errorf("without a header, columns have the numbers 1 to %d; %q or %q is none of them", len(head),
			r.Text, r.Label)
	}
	return 0, 0, fmt.Errorf("the columns are %s; %q or %q is not among them", strings.Join(head, ", "), r.Text, r.Label)
}

// skipMark drops the mark that some editors write at the start of a file.
func skipMark(from io.Reader) io.Reader {
	in := bufio.NewReader(from)
	if head, _ := in.Peek(3); string(head) == "\ufeff" {
		_, _ = in.Discard(3)
	}
	return in
}

// longestLine bounds a line of JSON, in bytes.
const longestLine = 16 << 20

// lines reads a JSON object in each line.
func (r *rowReader) lines(from io.Reader) iter.Seq2[document, error] {
	return func(yield func(document, error) bool) {
		in := bufio.NewScanner(skipMark(from))
		in.Buffer(nil, longestLine)
		n := 0
		for in.Scan() {
			n++
			line := bytes.TrimSpace(in.Bytes())
			if len(line) == 0 {
				continue
			}
			d, err := r.object(line)
			d.place = fmt.Sprintf("line %d", n)
			if err != nil {
				err = &lineError{line: n, error: err}
			}
			if !yield(d, err) {
				return
			}
		}
		if err := in.Err(); err != nil {
			yield(document{}, fmt.Errorf("line %d: %w", n+1, err))
		}
	}
}

// object reads the two fields of a JSON object.
func (r *rowReader) object(line []byte) (d document, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return d, errors.New("it is no JSON object")
	}
	text, hasText := fields[r.Text]
	label, hasLabel := fields[r.Label]
	switch {
	case !hasText || !hasLabel:
		return d, fmt.Errorf("it has no field %q or no field %q", r.Text, r.Label)
	case string(text) != "null" && json.Unmarshal(text, &d.text) != nil:
		return d, fmt.Errorf("the field %q is no text", r.Text)
	case string(label) == "null":
		return d, nil
	case json.Unmarshal(label, &d.label) != nil: // a number or a yes/no
		d.label = string(label)
	}
	return d, nil
}
