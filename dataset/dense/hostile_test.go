package dense

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Drawn faults, late in drawn tables, are told with their lines, and nothing of the table stays.
func TestDrawnFaultsOfTablesAreTold(t *testing.T) {
	wrong := map[string]func(cells []string) []string{
		"ragged":     func(cells []string) []string { return append(cells, "7") },
		"short":      func(cells []string) []string { return cells[:2] },
		"a text":     func(cells []string) []string { cells[0] = "oops"; return cells },
		"a date":     func(cells []string) []string { cells[0] = "2024-02-29"; return cells },
		"thousands":  func(cells []string) []string { cells[0] = `"1,234,567"`; return cells },
		"huge":       func(cells []string) []string { cells[0] = strings.Repeat("9", 400); return cells },
		"Latin-1":    func(cells []string) []string { cells[1] = "gr\xf6\xdfe"; return cells },
		"infinite":   func(cells []string) []string { cells[2] = "-Inf"; return cells },
		"no number":  func(cells []string) []string { cells[2] = "dear"; return cells },
		"half quote": func(cells []string) []string { cells[1] = `re"d`; return cells },
	}
	for seed := range uint64(5) {
		for name, spoil := range wrong {
			rng := rand.New(rand.NewPCG(seed, 1))
			rows, bad := 200+rng.IntN(800), map[int]bool{}
			for range 1 + rng.IntN(3) {
				bad[2+100+rng.IntN(rows-100)] = true
			}
			var text strings.Builder
			text.WriteString("area,colour,price\n")
			for line := 2; line < rows+2; line++ {
				cells := []string{
					fmt.Sprint(rng.Float64()), []string{"red", "green"}[rng.IntN(2)], fmt.Sprint(rng.NormFloat64()),
				}
				if bad[line] {
					cells = spoil(cells)
				}
				text.WriteString(strings.Join(cells, ",") + "\n")
			}
			keys, got := addedTable(t, text.String())
			var faults *disdel.Faults
			if !errors.As(got, &faults) || disdel.KindOf(got) != disdel.Invalid {
				t.Errorf("%s, seed %d: %v", name, seed, got)
				continue
			}
			for _, f := range faults.Faults {
				if !bad[f.Line] {
					t.Errorf("%s, seed %d: line %d is told: %v", name, seed, f.Line, f)
				}
				delete(bad, f.Line)
				for line := range bad { // the next lines of the same cause are in the message
					if strings.Contains(f.Msg, fmt.Sprintf(" %d", line)) {
						delete(bad, line)
					}
				}
			}
			first := name == "half quote" || name == "Latin-1" // of these, the first line is told
			if len(bad) > 0 && !first || len(faults.Faults) == 0 {
				t.Errorf("%s, seed %d: lines %v are not told", name, seed, bad)
			}
			if len(keys) > 0 {
				t.Errorf("%s, seed %d: %v stay", name, seed, keys)
			}
		}
	}
}

// addedTable adds a table with a target, and returns the names of the data sets that are there then, and the error.
func addedTable(t *testing.T, text string) (names []string, err error) {
	t.Helper()
	return addedRows(t, CSV{Source: dataset.TextSource("homes.csv", text), Targets: []string{"price"}})
}

// addedRows adds any table.
func addedRows(t *testing.T, table CSV) (names []string, err error) {
	t.Helper()
	s, wrong := dataset.OpenStore(t.Context(), "mem://")
	if wrong != nil {
		t.Fatal(wrong)
	}
	defer s.Close()
	in, err := table.Input("homes")
	if err == nil {
		_, err = s.AddDense(context.Background(), in, false)
	}
	list, wrong := s.List(t.Context())
	if wrong != nil {
		t.Fatal(wrong)
	}
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names, err
}

// Each kind of bad table is refused. The message says what is wrong and where. Nothing of the table stays.
func TestBadTablesAreRefusedWithTheirPlace(t *testing.T) {
	const rows = 3000
	homes := func(bad string) dataset.Source { // whose last line is bad
		text := "area,price\n" + strings.Repeat("50,1.5\n60,2.5\n", rows/2)
		return dataset.TextSource("homes.csv", text+bad+"\n")
	}
	half := make([]home, 100)
	for i := range half {
		half[i] = home{Town: fmt.Sprint("town ", i%3), Area: new(float64), Price: float32(i)}
	}
	groups, err := os.ReadFile(parquetOf(t, half...).Path)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 64 { // pages of the first row groups
		groups[100+k] ^= 0xff
	}
	type nested struct {
		Areas []float64 `parquet:"areas,list"`
		Price float64   `parquet:"price"`
	}
	last := fmt.Sprintf("homes.csv:%d:", rows+2)
	for name, c := range map[string]struct {
		from dataset.Source
		says []string
	}{
		"ragged row":           {homes("50,1.5,7"), []string{last, "it has 3, and the first line 2"}},
		"text late":            {homes("large,1.5"), []string{last + "1", `area: "large" is no number`}},
		"date":                 {homes("2024-02-29,1.5"), []string{last, `"2024-02-29" is no number`}},
		"thousands":            {homes(`"1,234",1.5`), []string{last, `"1,234" is no number`, "thousands: --decimal ."}},
		"huge integer":         {homes(strings.Repeat("9", 50) + ",1.5"), []string{last, "is no number"}},
		"infinite target":      {homes("50,Inf"), []string{last + "2", `"Inf" is no number to predict`}},
		"target of text":       {homes("50,dear"), []string{last, `"dear" is no number to predict`}},
		"UTF-16":               {dataset.TextSource("homes.csv", "\xff\xfea\x00,\x00"), []string{"UTF-16", "iconv"}},
		"Latin-1 in a name":    {dataset.TextSource("homes.csv", "gr\xf6\xdfe,price\n1,2\n"), []string{"UTF-8", "iconv"}},
		"a million columns":    {dataset.TextSource("homes.csv", strings.Repeat("1,", 1<<20)), []string{"65536"}},
		"pickle":               {dataset.TextSource("homes.pkl", "\x80\x04\x95"), []string{"pickle", "runs the code"}},
		"nested Parquet":       {parquetOf(t, nested{[]float64{1}, 2}), []string{"areas: it is nested", "--skip"}},
		"Parquet without end":  {fileOf(t, groups[:len(groups)-9]), []string{"the file ends early"}},
		"corrupted row groups": {fileOf(t, groups), []string{"row group", "is damaged"}},
	} {
		keys, err := addedRows(t, CSV{Source: c.from, Targets: []string{"price"}})
		if disdel.KindOf(err) != disdel.Invalid || len(keys) > 0 {
			t.Errorf("%s: %v; %v stay", name, err, keys)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error()+disdel.AsError(err).Hint, part) {
				t.Errorf("%s: %q is not in %v", name, part, err)
			}
		}
	}
	// A target that is not known is no fault: its row is left out, and that is told.
	for _, unknown := range []string{"NaN", "<NA>", "#N/A", "-nan", "1.#IND", "-1.#QNAN", "#NA"} {
		in, err := CSV{Source: homes("50," + unknown), Targets: []string{"price"}}.Input("homes")
		if err != nil || in.Understood.Rows != rows ||
			!strings.Contains(strings.Join(in.Understood.Notes, " "), "1 row") {
			t.Errorf("the target %s: %v; %d rows, %q", unknown, err, in.Understood.Rows, in.Understood.Notes)
		}
	}
}

// Files of each format with changed, missing and repeated bytes are read or refused. A refused file leaves nothing, and
// takes little memory.
func TestChangedFilesLeaveNothing(t *testing.T) {
	rows := make([]home, 40)
	var lines, objects strings.Builder
	lines.WriteString("town,area,price\n")
	for i := range rows {
		rows[i] = home{Town: fmt.Sprint("town ", i%3), Area: new(float64), Price: float32(i)}
		fmt.Fprintf(&lines, "\"town %d\",%d.5,%d\n", i%3, i, i)
		fmt.Fprintf(&objects, "{\"town\": \"t%d\", \"area\": %d.5, \"price\": %d},\n", i%3, i, i)
	}
	groups, err := os.ReadFile(parquetOf(t, rows...).Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, good := range map[string]string{
		"CSV": lines.String(), "spaces": strings.ReplaceAll(strings.ReplaceAll(lines.String(), "n ", "n"), ",", " "),
		"lines": strings.ReplaceAll(objects.String(), "},", "}"), "array": "[" + objects.String()[:objects.Len()-2] + "]",
		"Parquet": string(groups),
	} {
		refused := 0
		for seed := range uint64(100) {
			rng := rand.New(rand.NewPCG(seed, 37))
			data := []byte(good)
			for range seed % 4 { // the first of four is not changed
				at := rng.IntN(len(data))
				switch rng.IntN(3) {
				case 0:
					data[at] ^= byte(1 + rng.IntN(255))
				case 1:
					data = append(data[:at], data[min(len(data), at+1+rng.IntN(9)):]...)
				default:
					data = append(data[:at:at], data[max(0, at-rng.IntN(50)):]...)
				}
			}
			from := fileOf(t, data)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			keys, err := addedRows(t, CSV{Source: from, Targets: []string{"price"}})
			runtime.ReadMemStats(&after)
			if err != nil {
				refused++
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 400<<20 || (err != nil) != (len(keys) == 0) ||
				err != nil && (seed%4 == 0 || disdel.KindOf(err) != disdel.Invalid && disdel.KindOf(err) != disdel.Corrupt) {
				t.Errorf("%s, seed %d: %v stay, %d MB: %v", name, seed, keys, took>>20, err)
			}
		}
		if refused < 20 {
			t.Errorf("%s: %d of 100 files are refused", name, refused)
		}
	}
}
