package jobfile

import (
	"slices"
	"strings"
)

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
	"training.optimizer.lion":            "learning rate lr",
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
