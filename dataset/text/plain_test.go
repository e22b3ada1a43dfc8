package text

import (
	"errors"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Rows of plain texts are full, and each begins with the last token of the row before: every token but the first is a
// target. Only the last row may begin earlier.
func TestRowsOfPlainTextsOverlapByOneToken(t *testing.T) {
	words := strings.Repeat("the quick brown fox. ", 20)
	for _, positions := range []int{2, 7, 16, 64} {
		for cut := range 8 {
			text := words[:len(words)-cut]
			in, err := Plain{
				Sources:    []dataset.Source{dataset.TextSource("a.txt", text), dataset.TextSource("b.txt", "\ufeffEnd.")},
				Vocabulary: 270, Positions: positions,
			}.Input("set")
			if err != nil {
				t.Fatal(err)
			}
			tokenizer := read(t, in.Tokenizer)
			e := tokenizer.Encoder()
			want := e.Append(e.Append(nil, text, true), "End.", true)
			var got []int32
			rows := 0
			err = in.Each(func(r dataset.DenseRow) error {
				rows++
				begin := max(0, len(got)-1)
				if len(want)-begin < positions { // the last row
					begin = len(want) - positions
				}
				got = got[:begin]
				for _, v := range r.Values {
					got = append(got, int32(v))
				}
				return nil
			})
			if err != nil || tokenizer.Decode(got) != tokenizer.Decode(want) || rows != in.Understood.Rows ||
				in.Classes != tokenizer.Size() || !in.NextToken {
				t.Fatalf("%d positions, cut %d: %d rows, %d of %d tokens, %+v, %v", positions, cut, rows, len(got), len(want),
					in.Understood, err)
			}
		}
	}
}

// Texts that no row can be made of are refused, with a reason.
func TestUnusablePlainTextsAreRefused(t *testing.T) {
	for want, p := range map[string]Plain{
		"not 2 to":     {Sources: []dataset.Source{dataset.TextSource("a", "text")}, Vocabulary: 270, Positions: 1},
		"a row has":    {Sources: []dataset.Source{dataset.TextSource("a", "text")}, Vocabulary: 270, Positions: 50},
		"no text in":   {Sources: []dataset.Source{dataset.TextSource("a", "\xff\xfe")}, Vocabulary: 270, Positions: 8},
		"no such file": {Sources: []dataset.Source{dataset.FileSource("absent.txt")}, Vocabulary: 270, Positions: 8},
	} {
		if _, err := p.Input("set"); !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
