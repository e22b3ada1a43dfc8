package dense

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/test/race"
)

// Reading a column of a wide table takes about a kilobyte, for numbers and for texts. All that is printed is kept.
func TestAColumnOfAWideTableNeedsAboutAKilobyte(t *testing.T) {
	race.SkipMemory(t)
	const columns, rows, most, mostLeft = 100_000, 48, 2_900, 1_000
	rng := rand.New(rand.NewPCG(5, 5))
	text := wideText(rng, columns, rows)
	var before, after, left runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	in, err := CSV{Source: dataset.TextSource("wide.csv", text), MaxColumns: largestMaxColumns}.Input("wide")
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	runtime.GC()
	runtime.ReadMemStats(&left)
	all, kept := (after.TotalAlloc-before.TotalAlloc)/columns, (int64(left.HeapAlloc)-int64(before.HeapAlloc))/columns
	t.Logf("%d bytes are allocated for a column, and %d are left", all, kept)
	if all > most || kept > mostLeft {
		t.Errorf("a column needs %d bytes, of which %d are left", all, kept)
	}
	for i, c := range in.Understood.Columns[:3] {
		want := []dataset.ColumnReading{
			{Kind: dataset.ColumnNumber, Distinct: rows},
			{Kind: dataset.ColumnNumber, Distinct: rows / 2},
			{Kind: dataset.ColumnCategory, Distinct: 3},
		}[i]
		if c.Kind != want.Kind || c.Distinct != want.Distinct || c.Example == "" {
			t.Errorf("column %d is %+v", i, c)
		}
	}
	runtime.KeepAlive(text)
}

// wideText is a table with three kinds of columns: of different numbers, of each number twice, and of three texts.
func wideText(rng *rand.Rand, columns, rows int) string {
	var text strings.Builder
	for i := range columns {
		fmt.Fprintf(&text, "g%d,", i)
	}
	text.WriteString("label\n")
	for r := range rows {
		for i := range columns {
			switch i % 3 {
			case 0:
				fmt.Fprintf(&text, "%d.%03d,", r, rng.IntN(1000))
			case 1:
				fmt.Fprintf(&text, "%d,", 1000+r/2)
			default:
				fmt.Fprintf(&text, "%s,", []string{"AA", "AB", "BB"}[(r+i)%3])
			}
		}
		fmt.Fprintf(&text, "c%d\n", r%2)
	}
	return text.String()
}

// A set of drawn texts has each of them once, in the order in which they came, and takes no more than it may.
func TestATextSetHasEachTextOnce(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(7, seed))
		var s textSet
		var want []string
		most, alphabet := 1+rng.IntN(255), 1+rng.IntN(26)
		for range 600 {
			text := make([]byte, rng.IntN(4))
			for i := range text {
				text[i] = 'a' + byte(rng.IntN(alphabet))
			}
			at, added := slices.Index(want, string(text)), false
			k, isNew := s.add(string(text), most)
			if at < 0 && len(want) < most {
				at, added, want = len(want), true, append(want, string(text))
			}
			if isNew != added || k != at {
				t.Fatalf("seed %d: %q is %d, new %t; it is %d of %d", seed, text, k, isNew, at, len(want))
			}
		}
		if got := s.texts(); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q, not %q", seed, got, want)
		}
	}
}
