package dense

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Files that were made to fill memory are bad input: one endless line when unpacked, too many columns in the first or
// second line, and a row of only separators.
func TestTablesThatFillMemoryAreRefused(t *testing.T) {
	bomb := filepath.Join(t.TempDir(), "bomb.csv.gz")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	part := bytes.Repeat([]byte("1"), 1<<20)
	if _, err := z.Write([]byte("a,y\n1,0\n2,1\n")); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if _, err := z.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), os.WriteFile(bomb, packed.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		from dataset.Source
		says string
	}{
		"bomb":        {dataset.FileSource(bomb), "longer than 16 MB"},
		"header":      {dataset.TextSource("f", strings.Repeat("a,", mostColumns)+"y\n1,2\n"), "more than 65536 columns"},
		"second line": {dataset.TextSource("f", "a,y\n"+strings.Repeat(",", mostColumns)+"\n"), "more than 65536 columns"},
		"wide row":    {dataset.TextSource("f", "a,y\n1,0\n2,1\n"+strings.Repeat(",", 99_999)+"\n"), "it has 100000"},
		"quoted row":  {dataset.TextSource("f", "a,y\n1,0\n2,1\n\"\""+strings.Repeat(",", 99_999)+"\n"), "it has 100000"},
	} {
		_, err := CSV{Source: c.from, Header: HeaderYes}.Input("a")
		var faults *disdel.Faults
		if !errors.Is(err, disdel.Invalid) && !errors.As(err, &faults) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	note := `"` + strings.Repeat(",", 2*mostColumns) + `"`
	if _, err := (CSV{
		Source: dataset.TextSource("f", "a,note,y\n1,"+note+",0\n2,"+note+",1\n"), Skip: []string{"note"},
	}).Input("a"); err != nil {
		t.Errorf("separators in quotes: %v", err)
	}
	s := parsedBlock{block: block{text: []byte(strings.Repeat(",", 1<<20)), line: 1}, maximum: 2}
	if s.split(','); cap(s.cells) > 16 || s.records[0].width != 1<<20+1 {
		t.Errorf("%d cells are kept of a row of %d", cap(s.cells), s.records[0].width)
	}
}

// Pickles of every binary protocol are refused with the reason, and so are a million columns in each text format.
func TestPicklesAndAMillionColumnsAreRefused(t *testing.T) {
	const columns = 1_000_000
	var object strings.Builder
	for i := range columns {
		fmt.Fprintf(&object, `,"c%d":1`, i)
	}
	cases := map[string]string{
		strings.Repeat("1,", columns-1) + "0\n":   "more than 65536 columns",
		"{" + object.String()[1:] + ",\"y\":0}\n": "more than 65536 columns",
	}
	for protocol := byte(2); protocol <= 5; protocol++ {
		cases["\x80"+string(rune(protocol))+"\x95\x00]q."] = "a Python pickle, and reading one runs the code in it"
	}
	for text, says := range cases {
		_, err := CSV{Source: dataset.TextSource("rows", text)}.Input("rows")
		refused, ok := errors.AsType[*disdel.Error](err)
		if !ok || refused.Kind != disdel.Invalid || refused.Hint == "" || !strings.Contains(err.Error(), says) {
			t.Errorf("%.10q: %v", text, err)
		}
	}
}

// The limit of a table's columns can be raised up to a bound. The message of a wider table names the flag.
func TestTheLimitOfColumnsCanBeRaised(t *testing.T) {
	const columns = mostColumns + 10
	line := func(label string) string {
		return strings.Repeat("1,", columns/2) + strings.Repeat("2.5,", columns/2) + label + "\n"
	}
	rows := line("0") + strings.ReplaceAll(line("1"), "1,", "3,")
	var names strings.Builder
	for i := range columns {
		fmt.Fprintf(&names, `"c%d":%d,`, i, i)
	}
	object := "{" + names.String() + `"y":0}` + "\n"
	says := func(err error) string { return err.Error() + disdel.AsError(err).Hint }
	for name, text := range map[string]string{"CSV": rows, "JSON": object + strings.Replace(object, `"y":0`, `"y":1`, 1)} {
		c := CSV{Source: dataset.TextSource("wide", text)}
		if _, err := c.Input("wide"); err == nil || !strings.Contains(says(err), "--max-columns NUMBER, up to 1048576") {
			t.Errorf("%s: %v", name, err)
		}
		c.MaxColumns = columns + 1
		_, err := c.Input("wide")
		if err != nil && (name == "CSV" || strings.Contains(says(err), "--max-columns")) {
			t.Errorf("%s: %v", name, err)
		}
		c.MaxColumns = largestMaxColumns + 1
		if _, err := c.Input("wide"); err == nil || !strings.Contains(says(err), "takes 1 to 1048576") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
