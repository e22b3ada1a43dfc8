package render

import (
	"errors"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/batch"
)

// FailAll tells all that is wrong with several files at once, with the lines of their texts, and returns what the
// program ends with: nil where nothing is wrong. With -o json and yaml the problems are a list on standard output.
func FailAll(u *terminal.UI, op string, wrong []error, files []batch.File) error {
	if len(wrong) == 0 {
		return nil
	}
	var list []Problem
	texts := map[string][]byte{}
	for _, f := range files {
		texts[f.Name] = f.Text
	}
	for _, err := range wrong {
		var faults *disdel.Faults
		name := ""
		if errors.As(err, &faults) {
			name = faults.File
		}
		switch {
		case u.Format != "table":
			list = append(list, Problems(name, err)...)
		case faults != nil:
			u.Faults(faults, texts[name])
		default:
			u.Fail(err)
		}
	}
	kind := disdel.KindOf(wrong[0])
	if u.Format != "table" {
		return errors.Join(u.Show(list, func(io.Writer) {}),
			&disdel.Error{Kind: kind, Op: op, Msg: terminal.Counted(len(list), "problem")})
	}
	return terminal.Reported(&disdel.Error{Kind: kind, Op: op, Msg: "nothing was run"})
}
