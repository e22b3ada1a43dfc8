package sparse_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/sparse"
)

// written is a file that was made up, with what a reader is to make of it.
type written struct {
	text  string
	rows  []dataset.SparseRow
	fault int // the line that cannot be read; 0: all can
	open  func(dataset.Source) (dataset.SparseInput, error)
}

// pen writes lines in one of the ways that there are.
type pen struct {
	*rand.Rand
	out  bytes.Buffer
	line int // that was written last
	end  string
}

func newPen(lot *rand.Rand) *pen {
	p := &pen{Rand: lot, end: pick(lot, "\n", "\n", "\r\n")}
	if lot.IntN(6) == 0 {
		p.out.WriteString("\xef\xbb\xbf")
	}
	return p
}

func pick[T any](lot *rand.Rand, of ...T) T { return of[lot.IntN(len(of))] }

// write ends a line, and returns its number; texts may have lines of their own.
func (p *pen) write(text string) (line int) {
	line = p.line + 1
	p.out.WriteString(text + p.end)
	p.line += 1 + strings.Count(text, "\n")
	return line
}

func (p *pen) blanks() {
	for p.IntN(5) == 0 {
		p.write(pick(p.Rand, "", " ", "\t"))
	}
}

// numbers are ways to write one, and what they are.
var numbers = []struct {
	text string
	is   float32
}{
	{"1", 1},
	{"1.0", 1},
	{"0.5", 0.5},
	{"-2", -2},
	{"+3", 3},
	{"1e-3", 1e-3},
	{"1E2", 100},
	{".25", 0.25},
	{"3.", 3},
	{"0", 0},
	{"16777216", 1 << 24},
	{"3.4028234e38", 3.4028234e38},
}

var noNumbers = []string{"", "nan", "-inf", "1e99", "1.5x", "one", "0x", "0x10", "0x1p4", "1_0", "--1", "\u0661"}

// libsvmFile has rows of two classes or of numbers, from column 0 or 1.
func libsvmFile(lot *rand.Rand, faulty bool) (f written) {
	p := newPen(lot)
	labels := pick(lot, []string{"0", "1"}, []string{"-1", "+1"}, []string{"2", "4", "2.0"},
		[]string{"7", "8", "9.5", "-1"})
	n := len(labels) + lot.IntN(8)
	bad, base := -1, 1
	if faulty {
		bad = lot.IntN(n)
	}
	ones := lot.IntN(4) == 0
	for i := range n {
		for p.blanks(); lot.IntN(6) == 0; {
			p.write("# 3:x is no row")
		}
		text := labels[i%len(labels)]
		r := dataset.SparseRow{Target: labelled(labels, i%len(labels))}
		if lot.IntN(5) == 0 {
			text += " qid:" + fmt.Sprint(lot.IntN(9))
		}
		column := lot.IntN(2)
		for range lot.IntN(5) {
			v := pick(lot, numbers...)
			if ones {
				v = numbers[0]
			}
			text += pick(lot, " ", "\t", "  ") + fmt.Sprint(column) + ":" + v.text
			r.Index, r.Value = append(r.Index, int32(column)), append(r.Value, v.is)
			column += 1 + lot.IntN(400)
		}
		if len(r.Index) > 0 && r.Index[0] == 0 {
			base = 0
		}
		if i == bad {
			text = damagedRow(lot, text, column)
		}
		line := p.write(text + pick(lot, "", "", " ", " # x:y"))
		if i == bad {
			f.fault = line
		}
		f.rows = append(f.rows, r)
	}
	for _, r := range f.rows {
		for k := range r.Index {
			r.Index[k] -= int32(base)
		}
	}
	f.text = p.out.String()
	f.open = func(s dataset.Source) (dataset.SparseInput, error) { return sparse.Libsvm{Source: s}.Input("rows") }
	return f
}

// labelled is the target that a label stands for: its place among two, else its number.
func labelled(labels []string, i int) float32 {
	number := func(text string) (v float32) {
		fmt.Sscan(text, &v) //nolint:errcheck // it is one
		return v
	}
	values := map[float32]bool{}
	for _, l := range labels {
		values[number(l)] = true
	}
	own := number(labels[i])
	if len(values) != 2 {
		return own
	}
	for v := range values {
		if v < own {
			return 1
		}
	}
	return 0
}

func damagedRow(lot *rand.Rand, text string, column int) string {
	label, rest, _ := strings.Cut(text, " ")
	switch lot.IntN(8) {
	case 0:
		return text + " 7"
	case 1:
		return text + " x:1"
	case 2:
		return text + " -3:1"
	case 3:
		return text + fmt.Sprintf(" %d:1 %d:1", column+5, column+pick(lot, 5, 4))
	case 4:
		return text + " 99999999999:1"
	case 5:
		return text + fmt.Sprintf(" %d:%s", column+1, pick(lot, noNumbers...))
	case 6:
		return fmt.Sprintf("%d:1 ", column) + rest
	default:
		return label + "\x00 " + rest
	}
}

// ratingsFile has users and items of any names, in one of the layouts.
func ratingsFile(lot *rand.Rand, faulty bool) (f written) {
	p := newPen(lot)
	separator := pick(lot, "::", "\t", ",", ";")
	header, timed, named := lot.IntN(2) == 0, lot.IntN(2) == 0, lot.IntN(3) == 0
	if header {
		p.write(strings.Join([]string{"user", "item", "rating", "time"}, separator))
	}
	name := func(kind string) string {
		if named {
			return pick(lot, "", "\u00fc ", "x") + kind + fmt.Sprint(lot.IntN(5))
		}
		return fmt.Sprint(1 + lot.IntN(5))
	}
	n, bad := 2+lot.IntN(10), -1
	if faulty {
		bad = 1 + lot.IntN(n-1)
	}
	users, items := map[string]int32{}, map[string]int32{}
	number := func(of map[string]int32, name string) int32 {
		if _, known := of[name]; !known {
			of[name] = int32(len(of))
		}
		return of[name]
	}
	for i := range n {
		if i > 0 || header {
			p.blanks()
		}
		user, item, v := name("user"), name("item"), pick(lot, numbers...)
		r := dataset.SparseRow{Index: []int32{number(users, user), number(items, item)}, Target: v.is}
		fields := []string{user, item, v.text}
		if named && lot.IntN(2) == 0 {
			fields[0], fields[1] = `"`+user+`"`, ` "`+item+`" `
		}
		if timed {
			fields = append(fields, "88")
		}
		text := strings.Join(fields, separator)
		if i == bad {
			switch lot.IntN(6) {
			case 0:
				text = strings.Join(fields[:2], separator)
			case 1:
				text = strings.Join([]string{"", fields[1], fields[2]}, separator)
			case 2:
				text = strings.Join([]string{fields[0], " ", fields[2]}, separator)
			case 3:
				text = strings.Join([]string{fields[0], fields[1], pick(lot, noNumbers...)}, separator)
			case 4:
				text = strings.Join(fields, "|")
			default:
				text += "\x00"
			}
			f.fault = p.line + 1
		}
		p.write(text)
		f.rows = append(f.rows, r)
	}
	for i := range f.rows {
		f.rows[i].Index[1] += int32(len(users))
	}
	f.text = p.out.String()
	f.open = func(s dataset.Source) (dataset.SparseInput, error) { return sparse.Ratings{Source: s}.Input("films") }
	return f
}

// csvFile goes by a schema of numbers as they are, categories and fields that nobody reads, in any order.
func csvFile(lot *rand.Rand, faulty bool) (f written) {
	p := newPen(lot)
	const hash = 500
	separator := pick(lot, ",", "\t", ";")
	schema := sparse.Schema{Header: lot.IntN(2) == 0, Separator: separator, Hash: hash, Missing: []string{"NA"}}
	kinds := []sparse.Kind{sparse.Target, sparse.Number, sparse.Category, sparse.Skip, sparse.Number, sparse.Category}
	kinds = kinds[:3+lot.IntN(4)]
	lot.Shuffle(len(kinds), func(i, k int) { kinds[i], kinds[k] = kinds[k], kinds[i] })
	count := int32(0)
	for i, k := range kinds {
		one := sparse.Field{Name: fmt.Sprint("f", i), Kind: k}
		if k == sparse.Number {
			one.Scale, count = sparse.AsIs, count+1
		}
		schema.Fields = append(schema.Fields, one)
	}
	order := lot.Perm(len(kinds)) // of the fields in the file
	if !schema.Header {
		slices.Sort(order)
	}
	line := func(fields []string) (texts []string) {
		for _, i := range order {
			text := fields[i]
			if strings.ContainsAny(text, separator+"\"\n") || lot.IntN(6) == 0 {
				text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
			}
			texts = append(texts, text)
		}
		return texts
	}
	if schema.Header {
		var names []string
		for _, f := range schema.Fields {
			names = append(names, f.Name)
		}
		p.write(strings.Join(line(names), separator))
	}
	n, bad := 2+lot.IntN(8), -1
	if faulty {
		bad = lot.IntN(n)
	}
	for i := range n {
		r := dataset.SparseRow{Target: float32(i % 2)}
		fields, at := make([]string, len(kinds)), int32(0)
		for k, kind := range kinds {
			switch kind {
			case sparse.Target:
				fields[k] = fmt.Sprint(i % 2)
			case sparse.Number:
				v := pick(lot, numbers...)
				if fields[k] = v.text; lot.IntN(4) == 0 {
					fields[k] = pick(lot, "", "NA")
					r.Index, r.Value = append(r.Index, count+at), append(r.Value, 1)
				} else if v.is != 0 {
					r.Index, r.Value = append(r.Index, at), append(r.Value, v.is)
				}
				at++
			case sparse.Category:
				fields[k] = pick(lot, "a", "b c", "NA", "", "x"+separator+"y", `say "no"`, "two\nlines", "\u00fc")
				text := fields[k]
				if text == "NA" {
					text = ""
				}
				r = counted(r, 2*count+int32(sparse.Hashed(schema.Fields[k].Name, text, hash)))
			default:
				fields[k] = pick(lot, "whatever", "NA", "1")
			}
		}
		texts := line(fields)
		if i == bad {
			texts = damagedFields(lot, texts, slices.Index(order, slices.Index(kinds, sparse.Number)),
				slices.Index(order, slices.Index(kinds, sparse.Target)))
			f.fault = p.line + 1
		}
		p.write(strings.Join(texts, separator))
		f.rows = append(f.rows, r)
	}
	f.text = p.out.String()
	f.open = func(s dataset.Source) (dataset.SparseInput, error) {
		return sparse.CSV{Source: s, Schema: schema}.Input("clicks")
	}
	return f
}

// counted adds one to a row's column.
func counted(r dataset.SparseRow, column int32) dataset.SparseRow {
	if at := slices.Index(r.Index, column); at >= 0 {
		r.Value[at]++
		return r
	}
	r.Index, r.Value = append(r.Index, column), append(r.Value, 1)
	return r
}

func damagedFields(lot *rand.Rand, texts []string, number, target int) []string {
	switch how := lot.IntN(7); {
	case how == 0:
		return texts[:len(texts)-1]
	case how == 1:
		return append(texts, "more")
	case how == 2 && number >= 0:
		texts[number] = pick(lot, noNumbers[1:]...)
	case how == 3:
		texts[target] = pick(lot, "NA", "")
	case how == 4:
		texts[lot.IntN(len(texts))] = `say "no"`
	case how == 5:
		texts[lot.IntN(len(texts))] = `"not closed`
	default:
		texts[target] = "1\x00"
	}
	return texts
}

// readAll reads a file as an addition does: once to know it, and once for its rows.
func readAll(f written, s dataset.Source) (in dataset.SparseInput, rows []dataset.SparseRow, err error) {
	if in, err = f.open(s); err != nil {
		return in, nil, err
	}
	err = in.Each(func(r dataset.SparseRow) error {
		r.Index, r.Value = slices.Clone(r.Index), slices.Clone(r.Value)
		rows = append(rows, r)
		return nil
	})
	return in, rows, err
}

// Two thousand files that nobody wrote by hand: one in two as it should be, in one of the many ways that there are; one
// in four with a line that cannot be read, which the error names; one in four with bytes that were changed, lost or
// doubled anywhere, packed and cut, of which no reader makes anything but rows that are rows, or an error that says
// where.
func TestFilesOfAnyKindAreReadRightOrRefusedByTheirLine(t *testing.T) {
	makers := []func(*rand.Rand, bool) written{libsvmFile, ratingsFile, csvFile}
	for seed := range 2000 {
		lot := rand.New(rand.NewPCG(uint64(seed), 41))
		f := makers[seed%len(makers)](lot, seed%4 == 1)
		if seed%4 == 3 {
			damaged(t, seed, f, lot)
			continue
		}
		in, rows, err := readAll(f, dataset.TextSource("file", f.text))
		switch {
		case f.fault > 0:
			if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), fmt.Sprintf("line %d", f.fault)) {
				t.Errorf("seed %d: %v, and line %d cannot be read:\n%s", seed, err, f.fault, f.text)
			}
		case err != nil || len(rows) != len(f.rows):
			t.Errorf("seed %d: %d rows of %d, %v:\n%s", seed, len(rows), len(f.rows), err, f.text)
		default:
			for i, r := range rows {
				if !sameRow(r, f.rows[i], in.Ones) {
					t.Errorf("seed %d: row %d is %v, and is read as %v:\n%s", seed, i, f.rows[i], r, f.text)
				}
			}
		}
	}
}

func sameRow(got, want dataset.SparseRow, ones bool) bool {
	for _, v := range want.Value {
		ones = ones && v == 1
	}
	return got.Target == want.Target && slices.Equal(got.Index, want.Index) &&
		(ones || slices.Equal(got.Value, want.Value) || len(want.Value) == 0 && !slices.ContainsFunc(got.Value, not1))
}

func not1(v float32) bool { return v != 1 }

// damaged changes bytes of a file, and looks at what is made of it.
func damaged(t *testing.T, seed int, f written, lot *rand.Rand) {
	t.Helper()
	data := []byte(f.text)
	for range 1 + lot.IntN(4) {
		at, end := lot.IntN(len(data)+1), 0
		end = at + lot.IntN(min(12, len(data)-at+1))
		switch lot.IntN(5) {
		case 0:
			data = slices.Insert(data, at, byte(lot.IntN(256)))
		case 1:
			data = slices.Delete(data, at, end)
		case 2:
			data = slices.Insert(data, at, bytes.Clone(data[at:end])...)
		case 3:
			if at < len(data) {
				data[at] ^= 1 << lot.IntN(8)
			}
		default:
			data = slices.Insert(data, at, []byte(pick(lot, `"`, "\r", "\n", ":", ",", "1e308", "\xff\xfe", "#", "\u2028"))...)
		}
	}
	source := dataset.TextSource("file", string(data))
	if lot.IntN(4) == 0 {
		source = cutPacked(t, data, lot)
	}
	in, rows, err := readAll(f, source)
	if err != nil {
		if k := disdel.KindOf(err); k != disdel.Invalid && k != disdel.Corrupt || !strings.Contains(err.Error(), "line ") {
			t.Errorf("seed %d: %v of\n%q", seed, err, data)
		}
		return
	}
	for i, r := range rows {
		ok := finite(r.Target) && (in.Ones || len(r.Value) == len(r.Index))
		for _, c := range r.Index {
			ok = ok && c >= 0 && int(c) < in.Columns
		}
		for _, v := range r.Value {
			ok = ok && finite(v)
		}
		if sorted := slices.Clone(r.Index); ok {
			slices.SortFunc(sorted, cmp.Compare)
			ok = len(slices.Compact(sorted)) == len(r.Index)
		}
		if !ok {
			t.Errorf("seed %d: row %d is %v, of %d columns:\n%q", seed, i, r, in.Columns, data)
		}
	}
}

func finite(v float32) bool { return v-v == 0 }

// cutPacked is a file that was packed, and of which the end may be missing.
func cutPacked(t *testing.T, data []byte, lot *rand.Rand) dataset.Source {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(data); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	all := packed.Bytes()
	all = all[:len(all)-lot.IntN(9)]
	return dataset.Source{Name: "file.gz", Open: func() (io.ReadCloser, error) {
		r, err := gzip.NewReader(bytes.NewReader(all))
		return r, err
	}}
}
