package infer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset/text"
	"github.com/disdel/disdel/model"
)

// A text file of several lines is several texts, and a note says so. A text of JSON may have several lines.
func TestLinesOfATextFileAreTextsOfTheirOwn(t *testing.T) {
	texts := func(yield func(string) bool) { yield("the cat sat on the mat") }
	tokenizer, err := text.TrainBPE(texts, 300, "<pad>")
	if err != nil {
		t.Fatal(err)
	}
	g, err := model.Build(disdel.Network{Name: "mlp", Input: []int{1, 1, 8}, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Graph: g, texts: func() (*text.Tokenizer, error) { return tokenizer, nil }}
	for _, c := range []struct {
		file, text string
		rows       int
		isNoted    bool
	}{
		{"a.txt", "the cat\n\nsat\n", 2, true},
		{"a.txt", "the cat\n", 1, false},
		{"a.json", `{"inputs": ["the cat\nsat"]}`, 1, false},
		{"a.json", `{"inputs": ["the cat", "sat"]}`, 2, false},
	} {
		in, err := m.Read(c.file, []byte(c.text))
		noted := strings.Contains(strings.Join(in.Notes, "\n"), "each of the 2 lines of "+c.file+" is a text of its own")
		if err != nil || len(in.Rows) != c.rows || noted != c.isNoted {
			t.Errorf("%q: %d rows, notes %q, %v", c.text, len(in.Rows), in.Notes, err)
		}
	}
}

// Blanks are part of a text: JSON keeps them all, and a line keeps those at its ends. Blank lines are no texts.
func TestTextsKeepTheirBlanks(t *testing.T) {
	m := &Model{texts: func() (*text.Tokenizer, error) { return nil, errors.ErrUnsupported }}
	for given, want := range map[string][]string{
		"  the cat \r\n \t\n\n\tsat\n":          {"  the cat ", "\tsat"},
		"the cat  ":                             {"the cat  "},
		"the \u2003cat\u2003\n":                 {"the \u2003cat\u2003"},
		`["", " ", " the cat\n", "\r\n\u0000"]`: {"", " ", " the cat\n", "\r\n\x00"},
		" {\"inputs\": [\" the cat \"]}\n":      {" the cat "},
	} {
		if list, ok := m.Texts("a", []byte(given)); !ok || !slices.Equal(list, want) {
			t.Errorf("%q: %q", given, list)
		}
	}
}
