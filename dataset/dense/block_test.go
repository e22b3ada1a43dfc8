package dense

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel/dataset"
)

// taken is a text as blocks of a size give it: each record with its line, and what it ended with.
func taken(text string, size int, separator rune) (records []string, err error) {
	cut := newCutter(strings.NewReader(text), size)
	for s := (parsedBlock{}); cut.next(&s.block); {
		if s.split(separator); s.err != nil {
			return records, s.err
		}
		for _, r := range s.records {
			fields := []string{}
			for _, c := range s.cellsOf(r) {
				fields = append(fields, c.text)
			}
			records = append(records, fmt.Sprintf("%d %q", r.line, fields))
		}
	}
	return records, nil
}

// wanted is the same text as encoding/csv reads it in one go.
func wanted(text string, separator rune) (records []string, err error) {
	in := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, byteOrderMark)))
	in.FieldsPerRecord = -1
	separate(in, separator)
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		for i, f := range fields {
			fields[i] = strings.TrimSpace(f)
		}
		line, _ := in.FieldPos(0)
		records = append(records, fmt.Sprintf("%d %q", line, fields))
	}
}

// However a text is cut, its records, their lines and what is wrong with it are those of the whole.
func TestBlocksAreTheText(t *testing.T) {
	parts := []string{
		"1", "-2.5", " x", "\t", ",", ",", ";", "\n", "\n", "\r\n", "\r", `"a"`, `"b,""c"""`, "\"two\nlines\"", "\u00e9",
		"\u2003", `"`,
	}
	rapid.Check(t, func(t *rapid.T) {
		count := len(parts)
		if rapid.IntRange(0, 3).Draw(t, "wrong") > 0 {
			count-- // most texts have quotes in pairs alone
		}
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts[:count]), 0, 80).Draw(t, "text"), "")
		if rapid.Bool().Draw(t, "mark") {
			text = byteOrderMark + text
		}
		separator := rapid.SampledFrom([]rune{',', ';', '\t', '§'}).Draw(t, "separator")
		want, bad := wanted(text, separator)
		got, err := taken(text, rapid.IntRange(1, 100).Draw(t, "size"), separator)
		if errors.Is(err, errReturn) && loneReturn([]byte(text)) >= 0 {
			return
		}
		if bad != nil {
			var a, b *csv.ParseError
			if !errors.As(err, &a) || !errors.As(bad, &b) || a.StartLine != b.StartLine || !errors.Is(a.Err, b.Err) {
				t.Fatalf("%q: %v, not %v", text, err, bad)
			}
			return
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%q: %v %s", text, err, diff)
		}
	})
}

// A quote that is never closed is told by its line, however far behind it the text goes on.
func TestAQuoteThatIsNotClosed(t *testing.T) {
	text := "a,b\n1,2\n3\"4,5\n" + strings.Repeat("6,7\n", longestRecord/4)
	_, err := taken(text, blockBytes, ',')
	var where *csv.ParseError
	if !errors.As(err, &where) || where.StartLine != 3 {
		t.Errorf("%v", err)
	}
	if _, err = taken("a,b\n1,\"2\n"+strings.Repeat("6,7\n", longestRecord/4), blockBytes, ','); !errors.Is(err, errLong) {
		t.Errorf("%v", err)
	}
}

type broken struct{ text io.Reader }

var errTorn = errors.New("torn")

func (b broken) Read(p []byte) (int, error) {
	n, err := b.text.Read(p)
	if errors.Is(err, io.EOF) {
		err = errTorn
	}
	return n, err
}

// What is wrong with a file is not taken for its end.
func TestAFileThatBreaksOff(t *testing.T) {
	cut := newCutter(broken{strings.NewReader("1,2\n3,4\n5")}, 4)
	last := error(nil)
	for s := (parsedBlock{}); cut.next(&s.block); {
		last = s.err
	}
	if !errors.Is(last, errTorn) {
		t.Errorf("%v", last)
	}
}

// What stands for no value may look as a number; other numbers are as they are.
func TestNumbersThatAreNone(t *testing.T) {
	from := dataset.TextSource("f", "a,y\n-1,0\n1,1\n-1.0,0\n3,1\n")
	in, err := CSV{Source: from, Missing: []string{"-1", "9x"}}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	if c := in.Columns[0]; c.Missing != 1 || c.Mean != 1 || c.Low != -1 || c.High != 3 {
		t.Errorf("%+v", c)
	}
}

// Texts that are kept of a block outlast it, though its memory comes to be another block's: here one with other texts
// of the same length in the same places.
func TestTextsOutlastTheirBlock(t *testing.T) {
	half := 2 * (2*runtime.GOMAXPROCS(0) + 3) * blockBytes // more blocks than there are at a time
	rows := func(row string) string { return strings.Repeat(row, half/len(row)) }
	text := "shade,size,y\n" + rows("grey,1234,cats\n") + rows("pink,1234,dogs\n")
	in, err := CSV{Source: dataset.TextSource("f", text)}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"grey", "pink"}, in.Columns[0].Categories); diff != "" {
		t.Errorf("categories (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cats", "dogs"}, in.ClassNames); diff != "" {
		t.Errorf("classes (-want +got)\n%s", diff)
	}
	if text := fmt.Sprint(in.Understood.Example); !strings.Contains(text, "grey") || strings.Contains(text, "pink") {
		t.Errorf("the first row is %s", text)
	}
	text = "shade,size,y\ngrey,oops,cats\n" + rows("grey,1234,cats\n") + rows("pink,1234,dogs\n")
	_, err = CSV{Source: dataset.TextSource("f", text)}.Input("a")
	if !strings.Contains(told(err), `"oops" is no number`) {
		t.Errorf("a text among numbers: %s", told(err))
	}
}

// Numbers that are read on the way are those that strconv reads, to the last bit, whatever stands around them; a
// separator separates though numbers may have it.
func TestNumbersOnTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		separator := rapid.SampledFrom([]rune(",;|.-7")).Draw(t, "separator")
		cells := rapid.SliceOfN(rapid.StringMatching(`[-+]?[0-9]{0,9}\.?[0-9]{0,9}( |e5|x)?`), 1, 30).Draw(t, "cells")
		s := parsedBlock{block: block{text: []byte(strings.Join(cells, string(separator)) + "\n")}}
		s.split(separator)
		want := strings.Split(strings.Join(cells, string(separator)), string(separator))
		if len(s.cells) != len(want) && strings.Join(cells, "") != "" {
			t.Fatalf("%q: %d cells, and %d are there", want, len(s.cells), len(want))
		}
		for i, c := range s.cells {
			v, err := strconv.ParseFloat(want[i], 64)
			if c.text != strings.TrimSpace(want[i]) ||
				c.plain && (err != nil || math.Float64bits(v) != math.Float64bits(c.value)) {
				t.Fatalf("%q became %q, %v (%v), not %v", want[i], c.text, c.value, c.plain, v)
			}
			if digits := strings.TrimLeft(want[i], "+-"); !c.plain && err == nil && len(digits) <= 16 && separator == ',' &&
				strings.Contains(digits, ".") && !strings.Contains(digits, "e") {
				t.Fatalf("%q was not read on the way", want[i])
			}
		}
	})
}
