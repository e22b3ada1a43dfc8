package jobfile

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/nearest"
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
	if best := nearest.Word(path, paths); best != "" {
		return didYouMean(best)
	}
	if best, _, _ := FieldNamed(name); best != "" {
		return didYouMean(best)
	}
	return "disdel explain job"
}

// otherWords are what people call a field, or look for it by, that its meaning does not say.
var otherWords = map[string]string{
	"distribution.sync":                  "K-AVG federated averaging FedAvg local SGD synchronisation communication",
	"distribution.sync.every":            "federated averaging FedAvg local SGD",
	"distribution.workers":               "parallelism data parallel replicas concurrency containers functions",
	"distribution.aggregation":           "federated averaging parameter server all-reduce hierarchy",
	"distribution.aggregation.fanIn":     "tree degree hierarchy levels",
	"distribution.aggregation.wire":      "compression quantization quantisation precision int8 float16 sparse",
	"distribution.aggregation.threshold": "sparse sparsification top-k gradient compression communication MLLess ISP",
	"distribution.missing.policy":        "straggler dropout of workers fault tolerance",
	"training.batchSize":                 "minibatch",
	"training.optimizer":                 "learning rate lr solver",
	"training.optimizer.sgd":             "learning rate lr",
	"training.optimizer.adam":            "learning rate lr",
	"training.optimizer.adamw":           "learning rate lr",
	"training.schedule":                  "learning rate lr decay annealing",
	"training.earlyStop":                 "convergence target accuracy overfitting",
	"training.goal":                      "convergence target accuracy deadline budget time to accuracy",
	"training.validateEvery":             "evaluation held-out accuracy",
	"training.precision":                 "mixed precision bfloat16 half memory of activations autocast AMP",
	"training.clipNorm":                  "gradient clipping exploding",
	"model.init":                         "weights initialisation initialization random",
	"model.init.weights":                 "pretrained fine-tune fine-tuning transfer learning warm start checkpoint Keras",
	"model.init.except":                  "fine-tuning transfer learning new head",
	"model.init.seed":                    "random reproducible",
	"data.split":                         "held-out test set validation set",
	"resources.memory":                   "RAM limit out of memory OOM",
	"resources.maxMemory":                "RAM limit out of memory OOM",
	"resources.timeout":                  "time limit",
	"resources.maxCost":                  "budget money",
	"resources.price":                    "money dollar rate",
	"resources.gpu":                      "CUDA accelerator device sharing",
	"resources.gpu.memory":               "CUDA accelerator VRAM device out of memory OOM",
	"reliability.checkpointEvery":        "snapshot resume",
	"reliability.retries":                "fault tolerance failure",
	"reliability.retries.limit":          "attempts failure",
	"reliability.deadline":               "time limit",
	"output.keep":                        "versions history retention",
	"distribution.aggregation.optimizer": "Adam moments state momentum",
}

// mention is a field that speaks of what was looked for.
type mention struct {
	Path    string `json:"path"`
	Meaning string `json:"meaning"`
}

// speakOf lists the fields whose name, meaning or other words have all words of text, whatever their case and dashes.
func speakOf(text string) []*field {
	if len(text) > longestGuess {
		return nil
	}
	var out []*field
	for i := range fields {
		f := &fields[i]
		said := plain(f.path + " " + f.meaning + " " + otherWords[f.path])
		if !f.later && !slices.ContainsFunc(strings.Fields(text),
			func(word string) bool { return !strings.Contains(said, plain(word)) }) {
			out = append(out, f)
		}
	}
	return out
}

func mentions(list []*field) []mention {
	out := make([]mention, len(list))
	for i, f := range list {
		out[i] = mention{f.path, f.meaning}
	}
	return out
}

// spokenOf explains what is no field by those that speak of it. One that is nearly a field is told so first.
func spokenOf(path string) (string, error) {
	list := speakOf(path)
	if len(list) == 0 || strings.Contains(path, ".") || nearlyField(path) {
		return "", noField(path)
	}
	var out strings.Builder
	out.WriteString(quote(path) + " is no field; these speak of it:\n")
	for _, m := range mentions(list) {
		out.WriteString("  " + m.Path + "\n      " + m.Meaning + "\n")
	}
	return out.String(), nil
}

// nearlyField says whether a word is the last name of a field.
func nearlyField(word string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return plain(f.name()) == plain(word) })
}
