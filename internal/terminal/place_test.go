package terminal_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/terminal"
)

// Each command in a printed text gets the flags of the place once, whatever prints the text. A file for programs stays
// as it is.
func TestEveryWayOutCompletesCommands(t *testing.T) {
	const text = "disdel submit job.yaml; or disdel dataset add x --home /own\nelse disdel doctor"
	const flags = "--home /h --redis redis://r"
	faults := &disdel.Faults{
		File: "job.yaml", Faults: []disdel.Fault{{Path: "data.source", Msg: "there is none", Hint: text}},
	}
	failed := &disdel.Error{Kind: disdel.Invalid, Msg: text, Hint: text, Err: io.EOF}
	for _, format := range []string{"table", "json"} {
		for name, way := range map[string]func(u *terminal.UI){
			"Say":        func(u *terminal.UI) { u.Say("note %s", text) },
			"Tell":       func(u *terminal.UI) { u.Tell(func(w io.Writer) { fmt.Fprintln(w, text) }) },
			"Show":       func(u *terminal.UI) { u.Show(text, func(w io.Writer) { fmt.Fprintln(w, text) }) },
			"ShowFile":   func(u *terminal.UI) { u.ShowFile(text, func(w io.Writer) { fmt.Fprintln(w, text) }) },
			"Fail":       func(u *terminal.UI) { u.Fail(failed) },
			"Fail plain": func(u *terminal.UI) { u.Fail(fmt.Errorf("x: %s", text)) },
			"Fail of a file": func(u *terminal.UI) {
				u.Fail(fmt.Errorf("x: %w", faults))
			},
			"Faults": func(u *terminal.UI) { u.Faults(faults, []byte("data: {}\n")) },
		} {
			var out bytes.Buffer
			u := terminal.New(strings.NewReader(""), &out, &out)
			u.Format = format
			u.Place = addresses.Place{{Name: "home", Value: "/h"}, {Name: "redis", Value: "redis://r"}}
			way(u)
			got := out.String()
			if data := name == "ShowFile" || name == "Show" && format == "json"; data {
				if strings.Contains(got, "redis") {
					t.Errorf("%s, %s: %s", name, format, got)
				}
				continue
			}
			if !strings.Contains(got, "disdel "+flags+" submit job.yaml") || !strings.Contains(got, "disdel "+flags+" doctor") ||
				!strings.Contains(got, "disdel --redis redis://r dataset add x --home /own") {
				t.Errorf("%s, %s: %s", name, format, got)
			}
		}
	}
	if faults.Faults[0].Hint != text {
		t.Errorf("the faults themselves were changed: %+v", faults)
	}
}
