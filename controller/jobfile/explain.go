package jobfile

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
	"github.com/disdel/disdel/model"
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

//go:embed topics.yaml
var topicsYAML []byte

// topic is what people look for that is no field of its own.
type topic struct {
	Words  []string `yaml:"words"`
	Says   string   `yaml:"says"`
	Fields []string `yaml:"fields"`
}

var topics = sync.OnceValue(func() (out []topic) {
	if err := yaml.Load(topicsYAML, &out, yaml.WithKnownFields()); err != nil {
		panic("jobfile: topics.yaml: " + err.Error()) // a test covers it
	}
	return out
})

// fields are the fields that help.
func (t *topic) fields() (out []*field) {
	for _, path := range t.Fields {
		out = append(out, find(path))
	}
	return out
}

// topicOf returns the topic of a text, or nil: the whole text or one of its words is a word of the topic. The name of a
// field is no topic.
func topicOf(text string) *topic {
	if len(text) > longestGuess || namesake(text) != nil {
		return nil
	}
	asked := append(strings.Fields(strings.ToLower(text)), strings.ToLower(text))
	for _, t := range topics() {
		if slices.ContainsFunc(asked, func(word string) bool { return slices.Contains(t.Words, word) }) {
			return &t
		}
	}
	return nil
}

// explainByWords explains words that are no path: the topic or the field that they fit best, and others by name. Words
// that fit nothing are an error, and so is a path with a mistake.
func explainByWords(text string) (string, error) {
	if kind := layerKind(text); kind != "" {
		return Explain("model.layers." + kind)
	}
	if t := topicOf(text); t != nil {
		return wrapped(t.Says) + others("see also", t.fields()), nil
	}
	list := findByWords(text)
	if len(list) == 0 {
		return "", noField(text)
	}
	return list[0].text() + others("see also", list[1:]), nil
}

// layerKind is the kind of a layer that a text names, "" if there is none.
func layerKind(text string) string {
	for _, kind := range model.LayerKinds() {
		if plainWords(text) == plain(kind) {
			return kind
		}
	}
	return ""
}

// mostOthers limits the further fields of an explanation.
const mostOthers = 8

// others names further fields.
func others(head string, list []*field) string {
	var names []string
	for _, f := range list[:min(len(list), mostOthers)] {
		names = append(names, f.path)
	}
	if len(names) == 0 {
		return ""
	}
	return "  " + head + " " + strings.Join(names, ", ") + "\n"
}

// wrapped breaks a text into lines of at most commentWidth columns.
func wrapped(text string) string {
	var out strings.Builder
	width := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case width == 0:
		case width+1+len(word) > commentWidth:
			out.WriteString("\n")
			width = 0
		default:
			out.WriteString(" ")
			width++
		}
		out.WriteString(word)
		width += len(word)
	}
	return out.String() + "\n"
}

// findByWords returns the fields that all words of a text fit, the best one first. A text with a dot is a path, and
// finds nothing.
func findByWords(text string) []*field {
	words := stems(text)
	if len(text) > longestGuess || len(words) == 0 || strings.Contains(text, ".") {
		return nil
	}
	scores := map[*field]int{}
	var out []*field
	for _, f := range fields() {
		if score := f.fits(text, words); score > 0 && !f.later {
			scores[f] = score
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b *field) int { return scores[b] - scores[a] })
	return out
}

// Points of a field for words that find it: the more exact, the more points.
const (
	pointsName     = 1000 // the words are its name
	pointsInName   = 300  // they are a part of its name
	pointsSearch   = 100  // a word that people look for it by
	pointsPath     = 30   // a word of its path
	pointsMeaning  = 10   // a word of its meaning
	pointsUsual    = 5    // it belongs to the default optimiser
	pointsOfDepth  = 2    // taken off for each object around it
	pointsOfLayers = 800  // taken off for an option of layers
)

// fits rates how well a field fits words; 0 if one of them does not.
func (f *field) fits(text string, words []string) int {
	score := 0
	for _, w := range words {
		points := 0
		if strings.Contains(plain(f.meaning), w) {
			points = pointsMeaning
		}
		if strings.Contains(plain(f.path), w) {
			points = pointsPath
		}
		if slices.ContainsFunc(stems(f.search), func(s string) bool { return strings.HasPrefix(s, w) }) {
			points = pointsSearch
		}
		if points == 0 {
			return 0
		}
		score += points
	}
	switch name := plain(f.name()); {
	case name == plainWords(text), name == strings.Join(words, ""):
		score += pointsName
	case strings.Contains(name, strings.Join(words, "")):
		score += pointsInName
	}
	if strings.HasPrefix(f.path, usualOptimizer) {
		score += pointsUsual
	}
	if strings.Contains(f.path, "[]") {
		score -= pointsOfLayers
	}
	return max(1, score-pointsOfDepth*strings.Count(f.path, "."))
}

// plainWords is a text in the form of a field's name: batch size is batchsize.
func plainWords(text string) string { return plain(strings.Join(strings.Fields(text), "")) }

// emptyWords are words of a question that no field is found by.
var emptyWords = []string{"a", "an", "the", "of", "to", "for", "in", "on", "with", "is", "my", "how", "do", "i"}

// stems are the words of a text without endings: stopping is stop.
func stems(text string) (out []string) {
	for word := range strings.FieldsSeq(text) {
		word = plain(strings.Trim(word, ",;:()"))
		if word == "" || slices.Contains(emptyWords, word) {
			continue
		}
		out = append(out, stem(word))
	}
	return out
}

// shortestStem is how many letters a word keeps.
const shortestStem = 4

func stem(word string) string {
	for _, ending := range []string{"ing", "ed", "s"} {
		short, cut := strings.CutSuffix(word, ending)
		n := len(short)
		if !cut || n < shortestStem || strings.HasSuffix(short, "s") {
			continue
		}
		if ending != "s" && short[n-1] == short[n-2] && n > shortestStem {
			short = short[:n-1]
		}
		return short
	}
	return word
}
