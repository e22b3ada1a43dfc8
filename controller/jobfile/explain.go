package jobfile

import (
	"encoding/json"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
)

// Explain describes one field of the job file in a few lines: its type, rule, default and meaning, and the fields below
// it. path is dotted, with or without a leading "job."; list items may be written [] or [0], or left out before the
// kind of a layer, which has its name: model.layers.conv. "job" or "" describes the file. A path that is none is looked
// for in what the fields mean. The error is of kind NotFound, with the closest path as its hint.
func Explain(path string) (string, error) {
	path = wholePath(path)
	if path == "" {
		return "job  object\n  One training job.\n" + below(""), nil
	}
	f := find(path)
	if kind, ok := kindIn(path); ok && f != nil {
		return explainLayer(f, kind)
	}
	if f == nil {
		return spokenOf(path)
	}
	return f.headline() + "\n  " + f.meaning + "\n" + f.exampleLine() + below(f.path) + kindsBelow(f.path), nil
}

// ExplainSchema is Explain for programs: the JSON Schema of one field (draft 2020-12) with its path, or the fields that
// speak of what path says.
func ExplainSchema(path string) (any, error) {
	path = wholePath(path)
	if path == "" {
		return json.RawMessage(Schema()), nil
	}
	f := find(path)
	if f == nil {
		list := speakOf(path)
		if len(list) == 0 {
			return nil, noField(path)
		}
		return mentions(list), nil
	}
	s := f.schema()
	if kind, ok := kindIn(path); ok {
		k, err := kindOfLayer(kind)
		if err != nil {
			return nil, err
		}
		s = k.optionOrWhole(f, s)
	}
	s["path"] = path
	return s, nil
}

// wholePath is a path as the table has it, but for the places of items and the keys of the user's choice.
func wholePath(path string) string {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "job"), ".")
	if kind, ok := strings.CutPrefix(path, "model.layers."); ok {
		path = "model.layers[]." + kind
	}
	return path
}

func noField(path string) error {
	return &disdel.Error{
		Kind: disdel.NotFound, Op: "explain field", Msg: "there is no field " + quote(path),
		Hint: closest(path),
	}
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
	name := path[strings.LastIndexByte(path, '.')+1:]
	if f := namesake(name); f != nil {
		return didYouMean(f.path)
	}
	var paths []string
	for i := range fields {
		if fields[i].name() == name {
			return didYouMean(fields[i].path)
		}
		paths = append(paths, fields[i].path)
	}
	if best := spelling.Closest(path, paths); best != "" {
		return didYouMean(best)
	}
	if best, _, _ := FieldNamed(name); best != "" {
		return didYouMean(best)
	}
	return "disdel explain job"
}
