package render

import (
	"errors"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
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

// Problems lists what is wrong with a file.
func Problems(name string, err error) []Problem {
	var faults *disdel.Faults
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &faults):
		e := disdel.AsError(err)
		message := terminal.Headline(e)
		if e.Err != nil {
			message = fmt.Sprintf("%s: %v", message, e.Err)
		}
		return []Problem{{File: name, Message: terminal.Clean(message), Hint: terminal.Clean(e.Hint)}}
	}
	out := make([]Problem, len(faults.Faults))
	for i, f := range faults.Faults {
		out[i] = Problem{name, f.Line, f.Column, f.Path, f.Msg, f.Hint}
	}
	return out
}
