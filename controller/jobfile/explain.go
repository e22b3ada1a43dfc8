package jobfile

import (
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/nearest"
)

// Explain describes one field of the job file in a few lines: its type, rule, default and meaning, and the fields below it.
// path is dotted, with or without a leading "job."; list items may be written [] or [0], the kind of a layer by its name.
// "job" or "" describes the file. The error is of kind NotFound, with the closest path as its hint.
func Explain(path string) (string, error) {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "job"), ".")
	if path == "" {
		return "job  object\n  One training job.\n" + below(""), nil
	}
	f := find(path)
	if f == nil {
		return "", &disdel.Error{Kind: disdel.NotFound, Op: "explain field", Msg: "there is no field " + quote(path), Hint: closest(path)}
	}
	return f.headline() + "\n  " + f.meaning + "\n" + f.exampleLine() + below(f.path), nil
}

// headline is "training.batchSize  integer, at least 1, default 64".
func (f *field) headline() string {
	parts := []string{f.form.String()}
	if rule := f.rule(); rule != "" {
		parts = append(parts, rule)
	}
	switch {
	case f.later:
		parts = append(parts, "not supported in this version")
	case f.required:
		parts = append(parts, "required")
	case f.def+f.defBy != "":
		parts = append(parts, "default "+f.def+f.defBy)
	}
	return f.path + "  " + strings.Join(parts, ", ")
}

func (f *field) exampleLine() string {
	if f.example == "" {
		return ""
	}
	key := f.name()
	if key == "*" {
		return ""
	}
	return "  example  " + key + ": " + f.example + "\n"
}

// below lists the fields of an object.
func below(pattern string) string {
	var names []string
	for _, f := range children(pattern) {
		switch {
		case f.later || f.name() == "*":
		case f.required:
			names = append(names, f.name()+" (required)")
		default:
			names = append(names, f.name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "  fields   " + strings.Join(names, ", ") + "\n"
}

// closest is the hint for a path that is none: by likeness of the whole, else by the last name alone.
func closest(path string) string {
	if len(path) > longestGuess {
		return "disdel explain job"
	}
	var paths []string
	name := path[strings.LastIndexByte(path, '.')+1:]
	for i := range fields {
		if fields[i].name() == name {
			return didYouMean(fields[i].path)
		}
		paths = append(paths, fields[i].path)
	}
	if best := nearest.Word(path, paths); best != "" {
		return didYouMean(best)
	}
	return "disdel explain job"
}
