package terminal

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// one is a document with every name that namesIn prefers.
type one struct {
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Version int    `json:"version,omitempty"`
	Models  []one  `json:"models,omitempty"`
	Size    int    `json:"size"`
}

// Each format prints a list as its users need it: ids or names, a line of JSON each, or the results of an expression.
func TestFormatsOfAList(t *testing.T) {
	list := []one{{ID: "job-1", Name: "pets", Size: 1}, {Name: "small", Version: 2, Size: 12345678}, {Name: "x"}}
	for _, c := range []struct {
		format, jq string
		v          any
		want       string
	}{
		{"name", "", list, "job-1\nsmall:v2\nx\n"},
		{"name", "", one{Models: list[1:2], Name: "y"}, "small:v2\n"},
		{"name", "", []one{}, ""},
		{"jsonl", "", list[1:], `{"name":"small","version":2,"size":12345678}` + "\n" + `{"name":"x","size":0}` + "\n"},
		{"jsonl", "", list[2], `{"name":"x","size":0}` + "\n"},
		{"jsonl", "", []one{}, ""},
		{"json", ".[].name", list, "pets\nsmall\nx\n"},
		{"table", "map(.size) | add", list, "12345679\n"},
		{"jsonl", ".[] | select(.size > 1) | {name}", list, `{"name":"small"}` + "\n"},
		{"json", "empty", list, ""},
	} {
		var out bytes.Buffer
		u := New(nil, &out, io.Discard)
		u.Take(c.format)
		var err error
		if c.jq != "" {
			err = u.Filter(c.jq)
		}
		if err == nil {
			err = u.Show(c.v, func(io.Writer) { t.Errorf("%s prints a table", c.format) })
		}
		if err != nil || out.String() != c.want {
			t.Errorf("-o %s --jq %q: %v\n%s\nwant\n%s", c.format, c.jq, err, out.String(), c.want)
		}
	}
}

// What cannot be printed as it was asked for is refused, with what to do.
func TestFormatsThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		format, jq string
		v          any
	}{
		{"name", "", map[string]any{"a": 1, "b": 2}},
		{"json", ".[", nil},
		{"json", ".a", []int{1}},
		{"yaml", ".", nil},
		{"name", ".", nil},
		{"json", "nothing_like_this", nil},
	} {
		u := New(nil, io.Discard, io.Discard)
		u.Take(c.format)
		var err error
		if c.jq != "" {
			err = u.Filter(c.jq)
		}
		if err == nil {
			err = u.Show(c.v, nil)
		}
		if disdel.KindOf(err) != disdel.Invalid || disdel.AsError(err).Hint == "" {
			t.Errorf("-o %s --jq %q: %v", c.format, c.jq, err)
		}
	}
}

// A question is asked only where somebody can answer it; only yes is a yes.
func TestQuestions(t *testing.T) {
	for _, c := range []struct {
		answer           string
		interactive, yes bool
		asks, ok         bool
	}{
		{"y\n", true, false, true, true},
		{"YES\n", true, false, true, true},
		{"n\n", true, false, true, false},
		{"\n", true, false, true, false},
		{"", true, false, true, false},
		{"", true, true, false, true},
		{"", false, false, false, true},
	} {
		var errs strings.Builder
		u := New(strings.NewReader(c.answer), io.Discard, &errs)
		u.Scripted = c.interactive
		err := u.Confirm("Delete pets?", c.yes)
		if asked := errs.String() == "Delete pets? [y/N] "; asked != c.asks || (err == nil) != c.ok {
			t.Errorf("%+v: %v, %q", c, err, errs.String())
		}
	}
}
