package jobfile

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/scheduler"
)

// form is the kind of value of a field.
type form uint8

const (
	object   form = iota + 1
	list          // of objects
	counts        // a list of integers
	text          // a YAML string
	integer       // decimal digits
	number        // finite decimal
	size          // memory: megabytes or a number with a unit
	duration      // Go's syntax
	cost          // GB-s
	toggle        // true or false
	syncMode      // a word, or {every: K}
	anything      // any value of JSON

	// Options of layers, which take several kinds of values; see layers.go.
	boolean // true or false
	sides   // an integer or one for each of height and width
	padding // an integer, the word same, or an integer for each side
	names   // a text or a list of them
	shape   // a list of integers
)

var formNames = [...]string{
	object: "object", list: "list", counts: "list of integers", text: "text", integer: "integer", number: "number",
	size: "memory size", duration: "duration", cost: "cost in GB-s",
	toggle: "true or false", syncMode: "text or object", anything: "any value",
	boolean: "true or false", sides: "integer or [height, width]", padding: "integer, same or [top, bottom, left, right]",
	names: "text or a list of texts", shape: "list of integers",
}

// String is the form's name in explain.
func (f form) String() string { return formNames[f] }

// want is the form with its article, for "expected an integer".
func (f form) want() string {
	switch f {
	case text, toggle, boolean, names, anything:
		return f.String()
	case syncMode:
		return "text or an object"
	case object, integer, sides, padding:
		return "an " + f.String()
	default:
		return "a " + f.String()
	}
}

// field is everything known about one field of the job file. The reader, its checks, Explain and Schema use it.
type field struct {
	path    string // dotted; [] stands for an item of a list and * for a key of the user's choice
	form    form
	meaning string
	def     string // the default, as the file would give it
	defBy   string // the default in words, if it is no value
	example string // a value that works

	required bool
	auto     bool                  // it may also be auto, which is the zero value
	later    bool                  // known, but not supported in this version
	instead  string                // of a field that is not supported: what to do
	wide     bool                  // an integer that may exceed largestInt
	min, max *float64              // bounds of a number, in the unit of the file
	above    *float64              // exclusive lower bound
	below    *float64              // exclusive upper bound
	oneOf    []string              // the words that a text may be
	pattern  func() *regexp.Regexp // what a text must look like
	looks    string                // pattern in words
	search   string                // other words to find it by
}

// name is the last segment of the path.
func (f *field) name() string { return f.path[strings.LastIndexByte(f.path, '.')+1:] }

// parent is the path of the object around the field, "" for the file itself.
func (f *field) parent() string { return f.path[:max(0, strings.LastIndexByte(f.path, '.'))] }

// rule is the rule of a value in words, "" if the form says it all.
func (f *field) rule() string {
	var parts []string
	add := func(word string, bound *float64) {
		if bound != nil {
			parts = append(parts, word+" "+formatNumber(*bound))
		}
	}
	add("at least", f.min)
	add("above", f.above)
	add("at most", f.max)
	add("below", f.below)
	rule := strings.Join(parts, " and ")
	switch {
	case len(f.oneOf) > 0:
		rule = orList(f.choices())
	case f.looks != "":
		rule = f.looks
	}
	if f.auto && rule != "" {
		rule += ", or auto"
	} else if f.auto {
		rule = "or auto"
	}
	return rule
}

// choices are the words that the value may be, and the object that may replace one.
func (f *field) choices() []string {
	if f.form == syncMode {
		return append(slices.Clone(f.oneOf), syncObject)
	}
	return f.oneOf
}

// formatNumber prints a number as a person would write it into a job file.
func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// andList prints "a", "a and b", "a, b and c".
func andList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// orList prints "a", "a or b", "a, b or c".
func orList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// find returns the table's field for a concrete path such as model.layers[2].dense.units, or nil.
func find(path string) *field {
	want := segments(path)
	for _, f := range fields() {
		if matches(segments(f.path), want) {
			return f
		}
	}
	return nil
}

// segments splits a path at its dots; the index of a list item becomes a segment of its own, [].
func segments(path string) []string {
	var out []string
	for part := range strings.SplitSeq(path, ".") {
		name, _, item := strings.Cut(part, "[")
		if out = append(out, name); item {
			out = append(out, "[]")
		}
	}
	return out
}

func matches(pattern, path []string) bool {
	if len(pattern) != len(path) {
		return false
	}
	for i, p := range pattern {
		if p != path[i] && p != "*" {
			return false
		}
	}
	return true
}

// children returns the fields directly below the field whose path in the table is pattern ("" for the file itself), in
// the table's order.
func children(pattern string) []*field {
	var out []*field
	for _, f := range fields() {
		if f.path != pattern && f.parent() == pattern {
			out = append(out, f)
		}
	}
	return out
}

// child returns the field that key names below pattern, or nil.
func child(pattern, key string) *field {
	for _, f := range children(pattern) {
		if f.name() == key || f.name() == "*" {
			return f
		}
	}
	return nil
}

// childNames are the keys of an object at pattern in this version.
func childNames(pattern string) []string {
	var out []string
	for _, f := range children(pattern) {
		if !f.later {
			out = append(out, f.name())
		}
	}
	return out
}

// largestInt bounds every integer except seeds, so that a product of two fits int64.
const largestInt = 1<<31 - 1

// longestGuess bounds the words that are compared with others; a longer one is no typing error.
const longestGuess = 64

// closestKey is the one of names that key probably means, or "".
func closestKey(key string, names []string) string {
	if len(key) > longestGuess {
		return ""
	}
	return spelling.Closest(key, names)
}

// suggest is the hint for an unknown key of the object at pattern; near is the closest known key, or "".
func suggest(pattern, key, near string) string {
	if near != "" {
		return didYouMean(near)
	}
	f := fieldElsewhere(pattern, key)
	switch {
	case f == nil && pattern == "training.optimizer":
		return "known here: " + strings.Join(childNames(pattern), ", ") + "; else " + model.OwnCode
	case f == nil:
		return "known here: " + strings.Join(childNames(pattern), ", ")
	case key == "learningRate":
		return "it belongs in the optimiser, as training.optimizer.adam.learningRate; --rate RATE sets it for any optimiser"
	case f.name() == key:
		return "it belongs in " + cmp.Or(f.parent(), "the file itself")
	default:
		return didYouMean(f.name()) + " it belongs in " + cmp.Or(f.parent(), "the file itself")
	}
}

// write is the hint that shows a valid value.
func (f *field) write() string {
	if f.name() == "*" {
		return "write " + f.example
	}
	return "write " + f.name() + ": " + f.example
}

// fieldElsewhere returns the field of another object that key probably means, or nil. Of several with that name it is
// the first inside the object at pattern, else the first of all.
func fieldElsewhere(pattern, key string) *field {
	var names []string
	var found []*field
	for _, f := range fields() {
		if !f.later && !strings.Contains(f.path, "*") {
			names, found = append(names, f.name()), append(found, f)
		}
	}
	var first *field
	name := closestKey(key, names)
	for _, f := range found {
		switch inside := strings.HasPrefix(f.path, pattern+"."); {
		case f.name() != name:
		case inside:
			return f
		case first == nil:
			first = f
		}
	}
	return first
}

func didYouMean(word string) string { return "did you mean " + strconv.Quote(word) + "?" }

// FieldNamed finds a field of the job file by its last name, for example of a flag: epochs is training.epochs,
// batch-size is training.batchSize. Of several it is the default's: learningRate is Adam's. exact ignores case and
// separators only. path is "" if there is none.
func FieldNamed(name string) (path, example string, exact bool) {
	var names []string
	for _, f := range fields() {
		if nameable(f) {
			names = append(names, f.name())
		}
	}
	near := closestKey(name, names)
	if near == "" {
		return "", "", false
	}
	f := namesake(near)
	return f.path, f.example, plain(near) == plain(name)
}

// SettableFields calls f with the path and the meaning of each field that one value sets, in the order of the job file.
func SettableFields(f func(path, meaning string)) {
	for _, one := range fields() {
		if nameable(one) {
			f(one.path, one.meaning)
		}
	}
}

// nameable fields are those that can be set by a short name.
func nameable(f *field) bool {
	return !f.later && f.form != object && f.form != list && !strings.Contains(f.path, "[]") && f.name() != "*" &&
		len(children(f.path)) == 0 || f.form == syncMode
}

// namesake is the field with this last name; of several, the default's.
func namesake(name string) *field {
	var first *field
	for _, f := range fields() {
		switch {
		case f.name() != name || !nameable(f):
		case strings.HasPrefix(f.path, usualOptimizer):
			return f
		case first == nil:
			first = f
		}
	}
	return first
}

// usualOptimizer is the object of the default optimiser.
const usualOptimizer = "training.optimizer.adam."

// plain ignores differences between flags and fields.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

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
	"keptForm": pattern(`^[A-Za-z0-9_][-A-Za-z0-9_./]*(, *[A-Za-z0-9_][-A-Za-z0-9_./]*)*$`,
		"auto, none, or names of layers with commas between them"),
	"freezeForm": pattern(`^[A-Za-z0-9_*][-A-Za-z0-9_./*]*(, *[A-Za-z0-9_*][-A-Za-z0-9_./*]*)*$`,
		"names of layers, with * for any text and commas between them"),
	"entryForm": pattern(`^[A-Za-z_][A-Za-z0-9_]*$`, "a name of Python: letters, digits and _"),
	"fileForm":  pattern(`^.{1,255}$`, "the name of a file"),
	"shortText": pattern(`^.{1,63}$`, "1 to 63 characters"),
}
