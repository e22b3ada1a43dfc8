package dense

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Eight characters at once say what one after the other says, wherever a number stands, and both what Go's own reader
// says.
func TestNumbersAreReadEightCharactersAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.OneOf(
			rapid.StringMatching(`[-+]?[0-9]{0,10}(\.[0-9]{0,18})?`), rapid.StringMatching(`[-+.,0-9eEx \r;]{0,30}`),
		).Draw(t, "cell")
		before := rapid.StringMatching(`[0-9,]{0,3}`).Draw(t, "before")
		behind := rapid.SampledFrom([]string{"", "\n", "\r\n", "\n" + strings.Repeat("7", 40), "\n1,2"}).Draw(t, "behind")
		text, at := before+cell+behind, len(before)
		want, length, known := scan(cell)
		got, end, ok := scanAt(text, at, at+len(cell))
		if ok != known || end != at+length || ok && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%q: %v, %d, %v, and one by one %v, %d, %v", cell, got, end-at, ok, want, length, known)
		}
		if right, err := strconv.ParseFloat(cell[:length], 64); known && (err != nil || right != want) {
			t.Fatalf("%q: %v, and Go reads %v, %v", cell, want, right, err)
		}
	})
}
