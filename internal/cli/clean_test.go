package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/terminal"
)

// hostile is what a name from shared storage may hold: sequences, single and C1 controls, raw bytes, what turns the
// direction of text, and a line of its own.
const hostile = "a\x1b[2J\x1b]0;title\x07b\x9b31m\u009b2Jc\u202ed\x00e\x7f\rf\u2066g\u0085h"

// No output of a command has a character that a terminal acts on, in whatever field it came and in whatever form it is
// asked for; as JSON it means what it meant.
func TestNoOutputActsOnTheTerminal(t *testing.T) {
	name := hostile + "\nforged   line"
	m := modelstore.Model{
		ModelRef: disdel.ModelRef{Name: name, Version: 1, Path: name, Checksum: name}, Job: disdel.JobID(name),
		Labels:  []string{name},
		Network: disdel.Network{Name: name, Input: []int{1, 2, 2}, Classes: 2}, Data: disdel.DataInfo{Name: name, HeldOut: 1},
	}
	set := dataset.Manifest{
		Name: name, Title: name, License: name, ClassNames: []string{name}, Sample: []int{1, 2, 2},
		DType: name,
	}
	doc := render.Inference{
		Model: name, Classes: []int{0}, Names: []string{name}, Probabilities: [][]float32{{1, 0}},
		Labels: []int32{0}, Right: new(int),
	}
	for what, c := range map[string]struct {
		v     any
		print func(w io.Writer)
	}{
		"model show": {m, func(w io.Writer) { render.PrintTrainedModel(w, render.TrainedModel{Model: m}, true) }},
		"model list": {
			render.ModelList{Models: []modelstore.Model{m}},
			func(w io.Writer) { render.PrintModels(w, render.ModelList{Models: []modelstore.Model{m}}, nil) },
		},
		"dataset list": {render.DescribeDataset(set), func(w io.Writer) { render.PrintDatasets(w, set) }},
		"remove": {
			dataset.Removed{Name: name},
			func(w io.Writer) { render.PrintRemovedDataset(w, dataset.Removed{Name: terminal.OneLine(name)}) },
		},
		"network": {
			render.Network{Name: name, Title: name},
			func(w io.Writer) { render.PrintNetwork(w, render.Network{Name: name, Title: name}) },
		},
		"infer":    {doc, func(w io.Writer) { render.PrintInference(w, doc) }},
		"anything": {name, func(w io.Writer) { fmt.Fprint(w, hostile) }},
	} {
		for _, format := range []string{"table", "json", "jsonl", "yaml", "name"} {
			var out bytes.Buffer
			u := terminal.New(nil, &out, &out)
			u.Format = format
			if err := u.Show(c.v, c.print); err != nil {
				t.Errorf("%s as %s: %v", what, format, err)
			}
			if format == "table" {
				u.Say("%s", hostile)
				u.Fail(&disdel.Error{Kind: disdel.Invalid, Op: name, Msg: name, Hint: name})
			}
			if at := strings.IndexFunc(out.String(), actedOn); at >= 0 || !utf8.Valid(out.Bytes()) {
				t.Errorf("%s as %s: %q", what, format, out.String()[max(at-20, 0):])
			}
			if format == "name" && strings.Contains(out.String(), "\nforged") {
				t.Errorf("%s: a line of its own in %q", what, out.String())
			}
			if format == "json" || format == "jsonl" && what != "model list" { // whose lines are its models
				same(t, what, c.v, out.Bytes())
			}
			// those of fail
			if lines := strings.Count(out.String(), "\nforged"); format == "table" && what != "anything" && what != "network" &&
				lines > 3 {
				t.Errorf("%s: %d lines of its own in\n%s", what, lines, out.String())
			}
		}
	}
}

func actedOn(c rune) bool {
	return c < ' ' && c != '\n' || c >= 0x7f && c < 0xa0 || c >= 0x2028 && c <= 0x202e || c >= 0x2066 && c <= 0x2069
}

// same fails unless a document is valid JSON and means what encoding/json writes of v.
func same(t *testing.T, what string, v any, document []byte) {
	t.Helper()
	plain, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := json.Unmarshal(plain, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(document, &got); err != nil {
		t.Errorf("%s: %v in %q", what, err, document)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
