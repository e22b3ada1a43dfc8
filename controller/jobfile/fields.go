package jobfile

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
)

//go:embed fields.yaml
var fieldsYAML []byte

// fields returns every field of disdel/v1, in the order of the file. It reads fields.yaml at the first call: a program
// that reads no job file does not pay for it.
var fields = sync.OnceValue(func() []*field {
	all, err := readFields(fieldsYAML)
	if err != nil {
		panic("jobfile: fields.yaml: " + err.Error()) // a test covers it
	}
	return all
})

// fieldText is a field in fields.yaml.
type fieldText struct {
	Form, Meaning, Instead, Example, Pattern, Looks, Words, Search string
	Default                                                        string
	DefaultText                                                    string `yaml:"defaultText"`
	Required, Auto, Later, Wide                                    bool
	Min, Max, Above, Below                                         *float64
	OneOf                                                          []string `yaml:"oneOf"`
}

func readFields(text []byte) ([]*field, error) {
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		return nil, err
	}
	var out []*field
	table := document.Content[0].Content
	for i := 0; i+1 < len(table); i += 2 {
		var t fieldText
		if err := table[i+1].Load(&t, yaml.WithKnownFields()); err != nil {
			return nil, err
		}
		f := t.field(table[i].Value)
		if f.form == 0 || t.Words != "" && f.oneOf == nil || t.Pattern != "" && f.pattern == nil {
			return nil, fmt.Errorf("%s: there is no form %q, list %q or pattern %q", f.path, t.Form, t.Words, t.Pattern)
		}
		out = append(out, f)
	}
	return out, nil
}

func (t *fieldText) field(path string) *field {
	f := &field{
		path: path, form: forms[t.Form], meaning: strings.ReplaceAll(t.Meaning, "{policies}", policies()), def: t.Default,
		defBy: t.DefaultText, example: t.Example, search: t.Search, required: t.Required, auto: t.Auto, later: t.Later,
		wide: t.Wide, min: t.Min, max: t.Max, above: t.Above, below: t.Below, oneOf: t.OneOf, looks: t.Looks,
		instead: t.Instead,
	}
	if list, ok := wordLists[t.Words]; ok {
		f.oneOf = list()
	}
	if p, ok := patterns[t.Pattern]; ok {
		f.pattern = p.match
		if f.looks == "" {
			f.looks = p.looks
		}
	}
	return f
}

// forms maps names in fields.yaml to forms.
var forms = map[string]form{
	"object": object, "list": list, "counts": counts, "text": text, "integer": integer, "number": number, "size": size,
	"duration": duration, "cost": cost, "anything": anything, "toggle": toggle, "syncMode": syncMode, "boolean": boolean,
	"sides": sides, "padding": padding, "names": names, "shape": shape,
}

// wordLists are lists of words that other packages define.
var wordLists = map[string]func() []string{
	"backends": disdel.BackendChoices, "policies": scheduler.PolicyNames,
	"precisions": func() []string { return texts(disdel.Precisions()) },
	"wires":      func() []string { return texts(disdel.Wires()) },
}

func texts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// policies describes every policy.
func policies() string {
	var all []string
	for _, p := range scheduler.Policies() {
		all = append(all, p.Name()+" "+p.Meaning())
	}
	return strings.Join(all, "; ")
}

// textPattern is a regular expression for a text, and the rule in words.
type textPattern struct {
	match func() *regexp.Regexp
	looks string
}

// pattern compiles an expression on first use: together they would take a millisecond of the start of every command.
func pattern(expression, looks string) textPattern {
	return textPattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) }), looks}
}

const dnsInWords = "lower-case letters, digits and dashes, at most 63, a letter or digit at both ends"

var labelKey = pattern(`^[A-Za-z0-9]([-A-Za-z0-9_./]{0,61}[A-Za-z0-9])?$`, "").match

// patterns are the rules of names. A data set is a folder of its store and a job a package of OpenWhisk, so both are
// DNS labels (RFC 1123, section 2.1), which cannot hide a path.
var patterns = map[string]textPattern{
	"dnsLabel":  pattern(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`, dnsInWords),
	"labelText": pattern(`^[^,=]{0,256}$`, "at most 256 characters, without commas and equals signs"),
	"dataURL": pattern(`^dataset://([a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?/)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`,
		"dataset:// and the name of a data set, or dataset://OWNER/NAME"),
	"sha256Form": pattern(`^sha256:[0-9a-f]{64}$`, "sha256: and 64 lower-case hex digits"),
	"layerForm": pattern(`^[A-Za-z0-9_][-A-Za-z0-9_./]{0,99}$`,
		"letters, digits and _ - . /, at most 100, the first a letter, digit or _"),
	"layersForm": pattern(`^[A-Za-z0-9_][-A-Za-z0-9_./]*(, *[A-Za-z0-9_][-A-Za-z0-9_./]*)*$`,
		"names of layers, with commas between them"),
	"freezeForm": pattern(`^[A-Za-z0-9_*][-A-Za-z0-9_./*]*(, *[A-Za-z0-9_*][-A-Za-z0-9_./*]*)*$`,
		"names of layers, with * for any text and commas between them"),
	"entryForm": pattern(`^[A-Za-z_][A-Za-z0-9_]*$`, "a name of Python: letters, digits and _"),
	"fileForm":  pattern(`^.{1,255}$`, "the name of a file"),
	"shortText": pattern(`^.{1,63}$`, "1 to 63 characters"),
}
