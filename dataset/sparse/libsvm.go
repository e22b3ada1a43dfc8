package sparse

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Libsvm is rows in the format of LIBSVM and SVMlight: one per line, `TARGET COLUMN:VALUE ...`, columns ascending,
// with an optional `qid:N` that is skipped and an optional comment after #.
type Libsvm struct {
	dataset.Source
	// Columns is their number, if the file does not have all; 0: those of the file. Columns are counted from 1 like in
	// LIBSVM, unless the file has a column 0.
	Columns int
	HeldOut HeldOut
}

// Input reads the file once for its sums. It returns Invalid for a line that cannot be read.
func (l Libsvm) Input(name string) (in dataset.SparseInput, err error) {
	if err := l.HeldOut.check(); err != nil {
		return in, err
	}
	first, last, ones := int32(math.MaxInt32), int32(-1), true
	var seen labels
	var read libsvmReading
	held := l.HeldOut.picker()
	err = l.rows(func(line int, row *libsvmRow) error {
		seen.add(row.label)
		read.add(line, row, held.next(0))
		if n := len(row.index); n > 0 {
			first, last = min(first, row.index[0]), max(last, row.index[n-1])
		}
		for _, v := range row.value {
			ones = ones && v == 1
		}
		return nil
	})
	if err != nil {
		return in, err
	}
	seen.close()
	base := int32(1)
	if first == 0 {
		base = 0
	}
	columns := max(1, int(last-base)+1)
	if l.Columns > 0 {
		columns = l.Columns
	}
	in = dataset.SparseInput{
		Name: name, Title: "Rows of " + fileName(l.Name), Classes: seen.classes(), ClassNames: seen.lowest, Columns: columns,
		Ones: ones, FromZero: base == 0,
	}
	in.Understood = read.understood(&in, &seen)
	in.Each = func(yield func(dataset.SparseRow) error) error {
		held := l.HeldOut.picker()
		return l.rows(func(line int, row *libsvmRow) error {
			target, ok := seen.target(row.label)
			if !ok {
				return bad(l.Source, line, "the target %.40q is no number", row.label)
			}
			for k := range row.index {
				if row.index[k] -= base; int(row.index[k]) >= columns {
					return bad(l.Source, line, "column %d is beyond the %d that there are to be", row.index[k]+base, columns)
				}
			}
			out := dataset.SparseRow{Index: row.index, Target: target, HeldOut: held.next(0)}
			if !ones {
				out.Value = row.value
			}
			return yield(out)
		})
	}
	return in, nil
}

// libsvmReading is what the first reading of a file finds, for people.
type libsvmReading struct {
	rows, heldOut, entries, most int
	byLabel                      map[string]int // training rows by the text of their target
	example                      dataset.Example
}

// shownEntries is how many entries of the first row are shown.
const shownEntries = 6

func (r *libsvmReading) add(line int, row *libsvmRow, heldOut bool) {
	if r.rows+r.heldOut == 0 {
		r.byLabel = map[string]int{}
		r.example = dataset.Example{Place: fmt.Sprintf("line %d", line), Class: string(row.label)}
		for k := range min(len(row.index), shownEntries) {
			r.example.Values = append(r.example.Values, fmt.Sprintf("%d:%g", row.index[k], row.value[k]))
		}
		r.example.More = len(row.index) - len(r.example.Values)
	}
	r.entries, r.most = r.entries+len(row.index), max(r.most, len(row.index))
	if heldOut {
		r.heldOut++
		return
	}
	r.rows++
	if len(r.byLabel) <= mostLabelTexts {
		r.byLabel[string(row.label)]++
	}
}

// understood is the interpretation of the file. It has the rows of each class only if the targets are two classes.
func (r *libsvmReading) understood(in *dataset.SparseInput, seen *labels) dataset.Interpretation {
	from := 1
	if in.FromZero {
		from = 0
	}
	values := "numbers"
	if in.Ones {
		values = "all 1"
	}
	u := dataset.Interpretation{
		Kind: fmt.Sprintf("LIBSVM; columns count from %d", from),
		Values: fmt.Sprintf("%s, %d entries in %s (%.3g%%), at most %d a row", values, r.entries,
			disdel.Counted(in.Columns, "column"),
			100*float64(r.entries)/float64(max(1, r.rows+r.heldOut))/float64(in.Columns), r.most),
		Rows: r.rows, HeldOut: r.heldOut, Example: r.example,
	}
	u.Classes = seen.classRows(r.byLabel)
	return u
}

// libsvmRow is one line. It is valid until the next.
type libsvmRow struct {
	label []byte
	index []int32
	value []float32
}

func (l Libsvm) rows(f func(line int, row *libsvmRow) error) error {
	var row libsvmRow
	return lines(l.Source, func(number int, line []byte) error {
		if at := bytes.IndexByte(line, '#'); at >= 0 {
			line = line[:at]
		}
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		if err := l.parse(&row, number, line); err != nil {
			return err
		}
		return f(number, &row)
	})
}

func (l Libsvm) parse(row *libsvmRow, at int, line []byte) error {
	row.index, row.value = row.index[:0], row.value[:0]
	row.label, line = field(line)
	if bytes.IndexByte(row.label, ':') >= 0 {
		return bad(l.Source, at, "it begins with %.40q, and the target comes first", row.label)
	}
	before := int64(-1)
	for {
		var entry []byte
		if entry, line = field(line); len(entry) == 0 {
			return nil
		}
		key, text, ok := bytes.Cut(entry, []byte(":"))
		if !ok {
			return bad(l.Source, at, "%.40q is no COLUMN:VALUE", entry)
		}
		if string(key) == "qid" {
			continue
		}
		column, err := strconv.ParseInt(string(key), 10, 32)
		if err != nil || column < 0 || column == math.MaxInt32 {
			return bad(l.Source, at, "%.40q is no column", key)
		}
		if column <= before {
			return bad(l.Source, at, "column %d comes after %d, and columns ascend", column, before)
		}
		v, ok := number(text)
		if !ok {
			return bad(l.Source, at, "%.40q is no value", text)
		}
		row.index, row.value, before = append(row.index, int32(column)), append(row.value, v), column
	}
}

// field splits the first word off a line.
func field(line []byte) (word, rest []byte) {
	line = bytes.TrimLeft(line, " \t")
	if end := bytes.IndexAny(line, " \t"); end >= 0 {
		return line[:end], line[end:]
	}
	return line, nil
}

// LibsvmRows reads rows for a model in the format of LIBSVM.
type LibsvmRows struct {
	Columns    int      // that the model has
	Most       int      // entries of a row
	ClassNames []string // of the targets 0 and 1; nil: targets are numbers
	FromZero   bool     // columns of the file count from 0; else from 1, as LIBSVM does
}

// LibsvmRow is a row for a model, whose columns count from 0.
type LibsvmRow struct {
	Index     []int32
	Value     []float32
	Target    float32
	HasTarget bool // the file names a class, or a number
}

// Read calls yield with each row. It returns Invalid for a line that cannot be read, and for columns that the model
// does not have.
func (l LibsvmRows) Read(name string, data []byte, yield func(LibsvmRow) error) error {
	from := dataset.TextSource(name, string(data))
	targets, base := labels{lowest: l.ClassNames}, int32(1)
	if l.FromZero {
		base = 0
	}
	return Libsvm{Source: from}.rows(func(line int, row *libsvmRow) error {
		if n := len(row.index); n > l.Most {
			return bad(from, line, "it has %d columns, and no row that the model was trained on has more than %d", n, l.Most)
		}
		out := LibsvmRow{Index: slices.Clone(row.index), Value: slices.Clone(row.value)}
		for k := range out.Index {
			column := out.Index[k] - base
			switch {
			case column < 0:
				return bad(from, line, "it has column 0, and the columns of the model's file count from 1")
			case int(column) >= l.Columns:
				return bad(from, line, "it has column %d, and the columns of the model's file go from %d to %d", out.Index[k], base,
					l.Columns-1+int(base))
			}
			out.Index[k] = column
		}
		out.Target, out.HasTarget = targets.target(row.label)
		return yield(out)
	})
}
