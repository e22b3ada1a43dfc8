package dense

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel/dataset"
)

// packed writes bits as runs of drawn kinds and lengths, as Parquet's format describes them.
func packed(rng *rand.Rand, bits []bool) (out []byte) {
	for at := 0; at < len(bits); {
		end := at + 1
		for end < len(bits) && bits[end] == bits[at] {
			end++
		}
		if end-at > 3 && rng.IntN(3) > 0 {
			out = binary.AppendUvarint(out, uint64(end-at)<<1)
			if out = append(out, 0); bits[at] {
				out[len(out)-1] = 1
			}
			at = end
			continue
		}
		bytes := 1 + rng.IntN(3)
		if at+8*bytes > len(bits) { // the last bits, and some that stand for nothing
			bytes = (len(bits) - at + 7) / 8
		}
		out = binary.AppendUvarint(out, uint64(bytes)<<1|1)
		for range bytes {
			var b byte
			for k := range 8 {
				if at < len(bits) && bits[at] {
					b |= 1 << k
				}
				at++
			}
			out = append(out, b)
		}
	}
	return out
}

// Runs of equal bits of any length, between bits that are packed, are the bits that were written.
func TestRunsOfBooleansAreTheirBits(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		want, bit := make([]bool, rng.IntN(300)), false
		for k := range want {
			if rng.IntN(1+rng.IntN(20)) == 0 {
				bit = !bit
			}
			want[k] = bit
		}
		r, got := bitReader{rest: packed(rng, want), runs: true}, make([]bool, len(want))
		for k := range got {
			got[k] = r.next()
		}
		if !slices.Equal(got, want) || r.short {
			t.Fatalf("seed %d: %v instead of %v", seed, got, want)
		}
		for range 8 {
			r.next() // bits that stand for nothing
		}
		if r.next(); !r.short {
			t.Fatalf("seed %d: the end is not noticed", seed)
		}
	}
}

var (
	parquetDraws = flag.Int("parquet-draws", 40, "number of Parquet files of PyArrow to read")
	parquetSeed  = flag.Int("parquet-seed", 1, "seed of these files")
)

// The rows of Parquet files that PyArrow wrote are those that it was given: runs of booleans, missing values, pages of
// both versions, every compression, and row groups without rows.
func TestParquetOfPyArrowHasItsRows(t *testing.T) {
	python := os.Getenv("DISDEL_TEST_EXPORTS")
	if python == "" {
		t.Skip("set DISDEL_TEST_EXPORTS=PYTHON, an interpreter with PyArrow")
	}
	folder := t.TempDir()
	out, err := exec.Command(python, "testdata/writeparquet.py", folder, strconv.Itoa(*parquetSeed),
		strconv.Itoa(*parquetDraws)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var tables [][][]any
	if err := json.Unmarshal(out, &tables); err != nil {
		t.Fatal(err)
	}
	for k, rows := range tables {
		want, columns := [][]string{}, &table{format: formatParquet, names: []string{"a", "b", "c", "d"}}
		for _, row := range rows {
			texts := make([]string, len(row))
			for i, v := range row {
				if texts[i] = fmt.Sprint(v); v == nil {
					texts[i] = ""
				} else if n, ok := v.(float64); ok {
					texts[i] = strconv.FormatFloat(n, 'g', -1, 64)
				}
			}
			want = append(want, texts)
		}
		from := dataset.FileSource(filepath.Join(folder, fmt.Sprintf("%d.parquet", k)))
		columns.Source, columns.columns = from, make([]column, len(columns.names))
		if diff := cmp.Diff(want, parquetTexts(t, columns, from)); diff != "" {
			t.Errorf("seed %d, file %d: %s", *parquetSeed, k, diff)
		}
	}
}

// parquetTexts reads all rows as texts, and numbers in one spelling.
func parquetTexts(t *testing.T, columns *table, from dataset.Source) [][]string {
	t.Helper()
	next, file, err := columns.blocks(from)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var s parsedBlock
	out := [][]string{}
	for next(&s) {
		if s.err != nil {
			t.Fatal(s.err)
		}
		s.fromParquet(columns)
		for at := 0; at < len(s.cells); at += len(columns.names) {
			texts := make([]string, len(columns.names))
			for i := range texts {
				texts[i] = columns.columns[i].textOf(&s.cells[at+i])
				if v, ok := number(texts[i]); ok {
					texts[i] = strconv.FormatFloat(v, 'g', -1, 64)
				}
			}
			out = append(out, texts)
		}
	}
	return out
}
