package dense

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Numbers of spreadsheets are read with the marks of their country, and no other text is taken for a number.
func TestNumbersHaveTheMarksOfTheirCountry(t *testing.T) {
	for _, c := range []struct {
		decimal, text string
		want          float64 // NaN: it is no number
	}{
		{"", "1.5", 1.5},
		{"", "1,5", math.NaN()},
		{",", "1,5", 1.5},
		{",", "-1.234.567,25", -1234567.25},
		{",", "1.234", 1234},
		{",", "1.5", math.NaN()},
		{",", "12 345,5", 12345.5},
		{",", "12\u00a0345", 12345},
		{",", "1,2,3", math.NaN()},
		{",", ",5", .5},
		{".", "1,234.5", 1234.5},
		{".", "1,234", 1234},
		{".", "-12,345,678", -12345678},
		{".", "1'234.5", 1234.5},
		{".", "1,23", math.NaN()},
		{".", "1234,567", math.NaN()},
		{".", ",123", math.NaN()},
		{".", "1.5e3", 1500},
		{".", "2012-01-01", math.NaN()},
		{".", "Inf", math.NaN()},
		{".", "+-1", math.NaN()},
		{".", "-", math.NaN()},
	} {
		got, ok := written(c.text, c.decimal)
		if ok == math.IsNaN(c.want) || ok && got != c.want {
			t.Errorf("%q with %q: %v, %v, want %v", c.text, c.decimal, got, ok, c.want)
		}
	}
}

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
