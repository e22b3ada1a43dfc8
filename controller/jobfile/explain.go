package jobfile

import (
	"encoding/json"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
)

// Explain describes one field of the job file in a few lines: its type, rule, default and meaning, and the fields
// below it. path is dotted, with or without a leading "job."; list items may be written [] or [0], or left out before
// the kind of a layer, as in model.layers.conv. "job" or "" describes the file. Words that are no path find the
// field that they fit best, and others by name. The error is of kind NotFound, with the closest path as its hint.
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
		return explainByWords(path)
	}
	return f.text(), nil
}

// text explains the field.
func (f *field) text() string {
	if f.later {
		return f.headline() + "\n  " + f.meaning + "\n  instead  " + f.instead + "\n"
	}
	return f.headline() + "\n  " + f.meaning + "\n" + f.exampleLine() + below(f.path) + kindsBelow(f.path)
}

// ExplainSchema is Explain for programs: the JSON Schema of one field (draft 2020-12) with its path, or the fields
// that mention what path says.
func ExplainSchema(path string) (any, error) {
	path = wholePath(path)
	if path == "" {
		return json.RawMessage(Schema()), nil
	}
	f := find(path)
	if f == nil {
		if kind := layerKind(path); kind != "" {
			return ExplainSchema("model.layers." + kind)
		}
		list := findByWords(path)
		if t := topicOf(path); t != nil {
			list = t.fields()
		}
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

// wholePath is a path in the form of the table, except for list indexes and the user's own keys.
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

// closest is the hint for an unknown path: the most similar path, else by the last name alone.
func closest(path string) string {
	if len(path) > longestGuess {
		return "disdel explain job"
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	if f := namesake(name); f != nil {
		return didYouMean(f.path)
	}
	var paths []string
	for _, f := range fields() {
		switch {
		case f.later:
		case f.name() == name:
			return didYouMean(f.path)
		default:
			paths = append(paths, f.path)
		}
	}
	if best := spelling.Closest(path, paths); best != "" {
		return didYouMean(best)
	}
	if best, _, _ := FieldNamed(name); best != "" {
		return didYouMean(best)
	}
	return "disdel explain job"
}

// mention is a field that mentions a text.
type mention struct {
	Path    string `json:"path"`
	Meaning string `json:"meaning"`
}

func mentions(list []*field) []mention {
	out := make([]mention, len(list))
	for i, f := range list {
		out[i] = mention{f.path, f.meaning}
	}
	return out
}
