package dense

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel/dataset"
)

// noted is a row whose texts may have line breaks.
type noted struct {
	Note  string  `parquet:"note" json:"note"`
	Size  float64 `parquet:"size" json:"size"`
	Label string  `parquet:"label" json:"label"`
}

// notedRows are more rows than a block has. Their first cell looks like the start of an archive.
func notedRows() (rows []noted) {
	notes := []string{
		"PK\nx", "a b", "a\nb", "a\r\nb", "say \"\n\"", "\n,\n", strings.Repeat("long\n", 40) + ".", "\ufeffmark",
	}
	for i := range 1600 {
		rows = append(rows, noted{notes[i%len(notes)], float64(i), []string{"yes\nno", "yes no"}[i%2]})
	}
	return rows
}

// notedFiles are the rows in each format.
func notedFiles(t *testing.T, rows []noted) map[string]dataset.Source {
	var table, objects strings.Builder
	w, e := csv.NewWriter(&table), json.NewEncoder(&objects)
	w.Write([]string{"note", "size", "label"}) //nolint:errcheck // into memory
	for _, r := range rows {
		w.Write([]string{r.Note, fmt.Sprint(r.Size), r.Label}) //nolint:errcheck // into memory
		e.Encode(r)                                            //nolint:errcheck // into memory
	}
	w.Flush()
	return map[string]dataset.Source{
		"CSV":          dataset.TextSource("a.csv", table.String()),
		"JSON objects": dataset.TextSource("a.jsonl", objects.String()),
		"Parquet":      parquetOf(t, rows...),
	}
}

// Line breaks within cells are kept in every format: texts that differ in them are different categories and classes.
// Only CRLF is the same as LF.
func TestLineBreaksWithinCellsAreKept(t *testing.T) {
	rows := notedRows()
	categories := []string{"PK\nx", "a b", "a\nb", "say \"\n\"", ",", strings.Repeat("long\n", 40) + ".", "\ufeffmark"}
	slices.Sort(categories)
	var want []kept
	for _, name := range []string{"CSV", "JSON objects", "Parquet"} {
		in, err := CSV{Source: notedFiles(t, rows)[name], Header: headerOf(name)}.Input("notes")
		if err != nil {
			t.Fatal(name, told(err))
		}
		if diff := cmp.Diff([]string{"yes\nno", "yes no"}, slices.Sorted(slices.Values(in.ClassNames))); diff != "" {
			t.Errorf("%s: classes: %s", name, diff)
		}
		if diff := cmp.Diff(categories, slices.Sorted(slices.Values(in.Columns[0].Categories))); diff != "" {
			t.Errorf("%s: categories: %s", name, diff)
		}
		got := all(t, in)
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: other rows than in CSV: %.500s", name, diff)
		}
		raw := NewRawRows(dataset.Table{Columns: in.Columns})
		values := raw.Append(nil, []string{"a\r\nb", "3"}, func(c RawCell) { t.Errorf("%s: %+v", name, c) })
		if diff := cmp.Diff(want[3].Values, values); diff != "" {
			t.Errorf("%s: a raw row has other values: %s", name, diff)
		}
	}
}

func headerOf(format string) Header {
	if format == "CSV" {
		return HeaderYes
	}
	return ""
}

// A fault's line is the line or the row of the file, however many line breaks the cells before it have.
func TestFaultsAfterLineBreaksHaveTheirRows(t *testing.T) {
	type loose struct {
		Note  string `parquet:"note" json:"note"`
		Size  string `parquet:"size" json:"size"`
		Label string `parquet:"label" json:"label"`
	}
	var rows []loose
	var objects strings.Builder
	e := json.NewEncoder(&objects)
	for i, r := range notedRows() {
		one := loose{r.Note, fmt.Sprint(r.Size), r.Label}
		if i == 1431 {
			one.Size = "12 apples"
		}
		rows = append(rows, one)
		e.Encode(one) //nolint:errcheck // into memory
	}
	for name, from := range map[string]dataset.Source{
		"JSON objects": dataset.TextSource("a.jsonl", objects.String()), "Parquet": parquetOf(t, rows...),
	} {
		_, err := CSV{Source: from}.Input("notes")
		if err == nil || !strings.Contains(told(err), ":1432:2: size:") {
			t.Errorf("%s: %v", name, told(err))
		}
	}
}
