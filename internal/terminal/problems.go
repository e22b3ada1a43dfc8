package terminal

import (
	"errors"
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
)

// Problem is one thing wrong with one file. Line and column are 0 where it has no place in the file.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// ProblemsOf lists what an error says of a file.
func ProblemsOf(name string, err error) []Problem {
	var faults *disdel.Faults
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &faults):
		e := disdel.AsError(err)
		message := Headline(e)
		if e.Err != nil {
			message = fmt.Sprintf("%s: %v", message, e.Err)
		}
		return []Problem{{File: name, Message: Clean(message), Hint: Clean(e.Hint)}}
	}
	out := make([]Problem, len(faults.Faults))
	for i, f := range faults.Faults {
		out[i] = Problem{name, f.Line, f.Column, f.Path, f.Msg, f.Hint}
	}
	return out
}

// FailAll tells all that is wrong with several files at once, with the lines of their texts, and returns what the
// program ends with: nil where nothing is wrong. With -o json and yaml the problems are a list on standard output.
func (u *UI) FailAll(op string, wrong []error, texts map[string][]byte) error {
	if len(wrong) == 0 {
		return nil
	}
	var list []Problem
	for _, err := range wrong {
		var faults *disdel.Faults
		name := ""
		if errors.As(err, &faults) {
			name = faults.File
		}
		switch {
		case u.Format != "table":
			list = append(list, ProblemsOf(name, err)...)
		case faults != nil:
			jobfile.Render(faults, texts[name], u.Err)
		default:
			u.Fail(err)
		}
	}
	kind := disdel.KindOf(wrong[0])
	if u.Format != "table" {
		return errors.Join(u.Show(list, func(io.Writer) {}), &disdel.Error{Kind: kind, Op: op, Msg: Problems(len(list))})
	}
	return Reported(&disdel.Error{Kind: kind, Op: op, Msg: "nothing was run"})
}
