package jobfile

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

func ExampleExplain() {
	text, _ := Explain("training.batchSize")
	fmt.Print(text)
	// Output:
	// training.batchSize  integer, at least 1, default 64
	//   Rows of one step; at most the rows of the smallest shard. More rows need more memory.
	//   example  batchSize: 64
}

// filledIn are fields of a job that its submission fills in, so that no job file has them.
var filledIn = []string{
	"model.python.interpreter", "model.python.code", "model.python.network", "model.python.translation",
	"training.optimizer.own",
}

// structPaths lists the JSON paths of a struct as the table writes them.
func structPaths(t reflect.Type, at string) []string {
	var out []string
	for field := range t.Fields() {
		if field.Anonymous {
			out = append(out, structPaths(field.Type, at)...)
			continue
		}
		name := jsonName(field)
		if name == "-" {
			continue
		}
		path, inner := join(at, name), field.Type
		if slices.Contains(filledIn, path) {
			continue
		}
		out = append(out, path)
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case inner == reflect.TypeFor[[]disdel.Layer]():
			out = append(out, path+"[].*")
			out = append(out, structPaths(inner.Elem(), path+"[].*")...)
		case inner.Kind() == reflect.Map:
			out = append(out, path+".*")
		case inner == reflect.TypeFor[disdel.Sync]():
			out = append(out, path+".every")
		case inner.Kind() == reflect.Struct:
			out = append(out, structPaths(inner, path)...)
		}
	}
	return out
}

func TestTheTableHasEveryFieldOfTheJobAndNoOther(t *testing.T) {
	var table []string
	for _, f := range fields() {
		if !f.later {
			table = append(table, f.path)
		}
	}
	job := structPaths(reflect.TypeFor[disdel.Job](), "")
	slices.Sort(table)
	slices.Sort(job)
	if !slices.Equal(table, job) {
		t.Errorf("table and disdel.Job differ:\n%s\n%s", strings.Join(table, " "), strings.Join(job, " "))
	}
}

// withField is a good job file in which only path is set to value.
func withField(path, value string) (text string, sets []string) {
	base := smallest
	switch {
	case strings.HasPrefix(path, "model.layers"):
		base = strings.Replace(smallest, "{name: lenet5}", "{layers: [{conv: {filters: 1, kernel: 1}}, {dense: {units: 1}}]}",
			1)
		path = strings.NewReplacer("[].*", "[0].conv").Replace(path)
		option := path[strings.LastIndexByte(path, '.')+1:]
		kinds := map[string]string{
			"rate": "dropout", "units": "dense", "shape": "input",
			"eps": "batchNorm", "momentum": "batchNorm", "scale": "batchNorm", "center": "batchNorm",
			"vocabulary": "embedding", "width": "embedding", "padded": "embedding", "learned": "positions",
			"heads": "multiHeadAttention", "kvHeads": "multiHeadAttention", "causal": "multiHeadAttention",
			"bidirectional": "lstm", "first": "channels",
			"rotary": "multiHeadAttention", "take": "takePosition", "hidden": "transformer", "normFirst": "transformer",
			"shift": "windowAttention", "grid": "windowAttention", "cosine": "windowAttention",
			"slope": "leakyRelu", "size": "adaptiveAvgPool", "theta": "multiHeadAttention",
		}
		if kind, ok := kinds[option]; ok {
			needed := map[string]string{
				"embedding": "vocabulary: 9, width: 9", "multiHeadAttention": "heads: 1, rotary: true", "transformer": "heads: 1",
				"lstm": "units: 1", "windowAttention": "heads: 1, size: 7",
			}
			sets = append(sets, "model.layers=[{"+kind+": {"+needed[kind]+"}}]")
			path = "model.layers[0]." + kind + "." + option
		}
	case path == "model.rank", path == "training.goal.rmse":
		base = strings.Replace(smallest, "name: lenet5", "name: pmf", 1)
	case strings.HasPrefix(path, pythonPath):
		base = strings.Replace(smallest, "name: lenet5", "python: {file: net.py}", 1)
	case path == "model.custom":
		base = strings.Replace(smallest, "name: lenet5", "init: {}", 1)
	case path == "model.init.except", path == "model.init.replaceHead", path == "model.init.freeze", path == loraPath:
		sets = append(sets, "model.init.weights=digits:v3")
	case strings.HasPrefix(path, loraPath+"."):
		sets = append(sets, "model.init.weights=digits:v3", "model.lora={}")
	case path == "training.earlyStop.target":
		sets = append(sets, "training.earlyStop.metric=loss")
	case path == "training.earlyStop.patience", path == "training.earlyStop.metric", path == "training.earlyStop.keep":
		sets = append(sets, "training.earlyStop={metric: valLoss, patience: 1}")
	case path == "training.goal.within", path == "training.goal.cost":
		sets = append(sets, "training.goal.loss=1")
	case strings.HasPrefix(path, "training.optimizer.sgd."):
		sets = append(sets, "training.optimizer.sgd={learningRate: 1}")
		if path == "training.optimizer.sgd.nesterov" {
			sets = append(sets, "training.optimizer.sgd.momentum=0.9")
		}
	case strings.HasPrefix(path, "training.optimizer.adamw."):
		sets = append(sets, "training.optimizer.adamw={}")
	case strings.HasPrefix(path, "training.optimizer.lion."):
		sets = append(sets, "training.optimizer.lion={}")
	case strings.HasPrefix(path, "training.optimizer.lamb."):
		sets = append(sets, "training.optimizer.lamb={}")
	case strings.HasPrefix(path, "training.optimizer.rmsprop."):
		sets = append(sets, "training.optimizer.rmsprop={}")
	case strings.HasPrefix(path, "training.optimizer.adagrad."):
		sets = append(sets, "training.optimizer.adagrad={}")
	case path == "training.schedule.step.milestones":
		sets = append(sets, "training.schedule.step={factor: 1}")
	case strings.HasPrefix(path, "training.schedule.step."):
		sets = append(sets, "training.schedule.step={every: 1, factor: 1}")
	case strings.HasPrefix(path, "training.schedule.cosine."):
		sets = append(sets, "training.schedule.cosine={}")
	case strings.HasPrefix(path, "training.schedule.oneCycle."):
		sets = append(sets, "training.schedule.oneCycle={}")
	case strings.HasPrefix(path, "distribution.exchange."):
		sets = append(sets, "distribution.exchange={}")
	case strings.HasPrefix(path, "resources.gpu"):
		sets = append(sets, "resources.device=gpu")
	case path == "data.split.train":
		sets = append(sets, "data.split.validation=0.2")
	}
	return base, append(sets, strings.Replace(path, ".*", ".key", 1)+"="+value)
}

func TestEveryExampleOfTheTableIsAccepted(t *testing.T) {
	for _, f := range fields() {
		if f.later || f.path == "model.layers[].*" || f.path == kerasPath {
			continue // a file of Keras has its own test
		}
		text, sets := withField(f.path, f.example)
		if f.path == "model.layers" {
			text = strings.Replace(smallest, "name: lenet5", "init: {}", 1)
		}
		if _, err := Parse("job.yaml", []byte(text), sets); err != nil {
			t.Errorf("%s: %s: %v", f.path, f.example, err)
		}
	}
}

// A default that explain prints is the one that Parse fills in: giving it changes nothing.
func TestDefaultsOfTheTableAreThoseOfTheJob(t *testing.T) {
	for _, f := range fields() {
		if f.def == "" {
			continue
		}
		_, sets := withField(f.path, f.def)
		without := mustParse(t, smallest, sets[:len(sets)-1]...)
		with := mustParse(t, smallest, sets...)
		if !reflect.DeepEqual(without.Job, with.Job) {
			t.Errorf("%s: %s is not what Parse fills in", f.path, f.def)
		}
	}
}

// The bounds that explain prints are those that Parse holds: the value at a refused bound is refused, the one at an
// accepted bound is not.
func TestBoundsOfTheTableAreHeld(t *testing.T) {
	for _, f := range fields() {
		for _, c := range []struct {
			bound *float64
			ok    bool
		}{{f.min, true}, {f.max, true}, {f.above, false}, {f.below, false}} {
			if c.bound == nil || f.path == "data.split.train" || f.path == "data.split.validation" {
				continue
			}
			value := formatNumber(*c.bound)
			switch f.form {
			case duration:
				value += "s"
			case shape, counts:
				value = "[" + value + "]"
			}
			text, sets := withField(f.path, value)
			if _, err := Parse("job.yaml", []byte(text), sets); c.ok != (err == nil) && !needsMore(f.path) {
				t.Errorf("%s: %s: %v, want accepted %v", f.path, value, err, c.ok)
			}
		}
	}
}

// needsMore says whether the model folder asks more of a field than its bounds.
func needsMore(path string) bool { return path == "model.layers[].*.rate" }

func TestExplainKnowsEveryField(t *testing.T) {
	for _, f := range fields() {
		text, err := Explain("job." + strings.ReplaceAll(f.path, "[]", "[3]"))
		if err != nil || !strings.HasPrefix(text, f.path+"  "+f.form.String()) || !strings.Contains(text, f.meaning) {
			t.Errorf("%s: %v\n%s", f.path, err, text)
		}
		if f.meaning == "" || !strings.HasSuffix(f.meaning, ".") || (f.example == "") != f.later ||
			(f.instead == "") == f.later {
			t.Errorf("%s: the table's entry is not complete: %+v", f.path, f)
		}
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"", "job  object\n  One training job.\n  fields   apiVersion (required), kind (required), metadata (required), " +
			"model (required), data (required), training (required), distribution, resources, reliability, output\n"},
		{"data.format", "data.format  text, not supported in this version\n  Format of the source.\n" +
			"  instead  Nothing to do, because disdel dataset add finds out the format.\n"},
		{"resources.risk", "resources.risk  number, above 0 and at most 0.05, default 0.001\n" +
			"  Accepted chance that an action is killed for memory. Sets the limit from the estimate's interval. Used only " +
			"when memory is auto.\n" +
			"  example  risk: 0.001\n"},
		{"distribution.sync", "distribution.sync  text or object, epoch, end or {every: K}, default epoch\n" +
			"  When the workers' weights are averaged: after every epoch, once at the end (DiSDeL's one-shot averaging), or " +
			"after every K batches.\n" +
			"  example  sync: epoch\n  fields   every (required)\n"},
		{"distribution.sync.every", "distribution.sync.every  integer, at least 1, required\n" +
			"  Batches from one average to the next; the end of an epoch brings one too (KubeML's K-AVG).\n  example  every: " +
			"16\n"},
		{"reliability.retries.backoff", "reliability.retries.backoff  object\n" +
			"  Pause before work is tried again that may pass unchanged: initial, then twice the last, at most max.\n" +
			"  example  backoff: {initial: 1s, max: 30s}\n  fields   initial, max\n"},
		{"distribution.workers", "distribution.workers  integer, at least 1, or auto, default auto\n" +
			"  Train actions side by side. auto starts at two and adds by DiSDeL's rule until each fits its memory, or " +
			"takes the fewest that earlier jobs of the kind were as fast with.\n  " +
			"example  workers: 2\n"},
		{"data.split.seed", "data.split.seed  integer, default model.init.seed\n  Seed of the draw that tells the shares " +
			"apart.\n  example  seed: 1\n"},
		{
			"distribution.aggregation",
			"distribution.aggregation  object\n  Shape of the aggregation tree, and what of the workers' state is averaged.\n" +
				"  example  aggregation: {fanIn: 4}\n  fields   fanIn, shards, wire, threshold, optimizer, statistics\n",
		},
	} {
		if got, err := Explain(c.path); got != c.want || err != nil {
			t.Errorf("%q: %v\n%s", c.path, err, got)
		}
	}
}

func TestExplainNamesTheClosestField(t *testing.T) {
	for path, hint := range map[string]string{
		"training.batchsize":      `did you mean "training.batchSize"?`,
		"training.leraning":       `did you mean "training.optimizer.adam.learningRate"?`,
		"wibble":                  "disdel explain job",
		strings.Repeat("a", 999):  "disdel explain job",
		"model.layers[0]":         `did you mean "model.layers"?`,
		"model.layers.cov":        `did you mean "model.layers.conv"?`,
		"model.layers.dense.rate": "it takes units, bias, activation, name, from",
	} {
		_, err := Explain(path)
		var e *disdel.Error
		if !errors.As(err, &e) || e.Kind != disdel.NotFound || e.Hint != hint {
			t.Errorf("%.20s: %v, hint %q, want %q", path, err, disdel.AsError(err).Hint, hint)
		}
	}
}

// Every kind of layer is explained with its options, alone and each option by itself, as text and as a schema.
func TestExplainKnowsEveryKindOfLayer(t *testing.T) {
	list, err := Explain("model.layers")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range model.Kinds() {
		if !strings.Contains(list, "\n    "+k.Name+" ") {
			t.Errorf("model.layers does not list %s:\n%s", k.Name, list)
		}
		text, err := Explain("model.layers." + k.Name)
		if err != nil || !strings.Contains(text, k.Meaning) {
			t.Errorf("%s: %v\n%s", k.Name, err, text)
		}
		if _, err := ExplainSchema("model.layers." + k.Name); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		for _, o := range k.Options {
			one, err := Explain("model.layers[2]." + k.Name + "." + o.Name)
			want := "default " + o.Default
			if o.Required {
				want = "required"
			}
			if err != nil || !strings.Contains(one, want) || !strings.Contains(text, want) {
				t.Errorf("%s.%s: %v\n%s\n%s", k.Name, o.Name, err, one, text)
			}
		}
	}
}

// Words that are no path show the field that they fit best, and name others.
func TestExplainFindsFieldsByWords(t *testing.T) {
	for words, want := range map[string]string{
		"early stopping": "training.earlyStop", "loss": "training.loss", "gpu": "resources.gpu",
		"checkpoint": "reliability.checkpointEvery", "checkpoints": "reliability.checkpointEvery",
		"seed": "model.init.seed", "batch size": "training.batchSize", "batchSize": "training.batchSize",
		"learning rate": "training.optimizer.adam.learningRate", "learning_rate": "training.optimizer.adam.learningRate",
		"memory": "resources.memory", "OOM": "resources.memory", "epoch": "training.epochs",
		"overfitting": "data.augment", "pretrained": "model.init.weights", "K-AVG": "distribution.sync",
		"kavg": "distribution.sync", "averaging": "distribution.sync", "quantization": "distribution.aggregation.wire",
		"dropout": "model.layers.dropout", "batch norm": "model.layers.batchNorm", "price": "resources.price",
	} {
		text, err := Explain(words)
		if err != nil || !strings.HasPrefix(text, want+"  ") {
			t.Errorf("%s: %v\n%s", words, err, text)
		}
		if _, err := ExplainSchema(words); err != nil {
			t.Errorf("%s as a schema: %v", words, err)
		}
	}
	for words, others := range map[string]string{
		"checkpoint": "model.init.weights", "federated": "distribution.sync.every", "budget": "resources.maxCost",
	} {
		if text, err := Explain(words); err != nil || !strings.Contains(text, others) {
			t.Errorf("%s: %v\n%s", words, err, text)
		}
	}
}

// If no field does what the words say, explain names what is possible. It offers no field that is not supported.
func TestExplainSaysWhatIsPossible(t *testing.T) {
	for words, want := range map[string]string{
		"text": "an embedding, then", "RNN": "rows of tokens", "predict a number": "linear",
		"imbalanced": "disdel evaluate", "class weights": "no class weights", "slow": "--what-if", "pytorch": "from_torch",
		"export": "disdel model export",
	} {
		text, err := Explain(words)
		if err != nil || !strings.Contains(strings.ReplaceAll(text, "\n", " "), want) {
			t.Errorf("%s: %v\n%s", words, err, text)
		}
		for _, f := range fields() {
			if f.later && strings.Contains(text, f.path) {
				t.Errorf("%s: %s is not supported", words, f.path)
			}
		}
	}
	seen := map[string]bool{}
	for _, topic := range topics() {
		for _, f := range topic.fields() {
			if f == nil || f.later {
				t.Errorf("%v: a field is not there: %v", topic.Words, topic.Fields)
			}
		}
		for _, word := range topic.Words {
			if seen[word] {
				t.Errorf("%q is a word of two topics", word)
			}
			seen[word] = true
		}
	}
}

// docs/reference/layers.md is made from the table of layers: go test -update updates the file.
func TestTheCommittedPageOfLayersIsTheTables(t *testing.T) {
	const page = "../../docs/reference/layers.md"
	if *update {
		if err := os.WriteFile(page, layersPage(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(page)
	if err != nil || string(committed) != string(layersPage()) {
		t.Errorf("docs/reference/layers.md is stale (%v): go test ./controller/jobfile -update", err)
	}
}

// A flag of the name of a field is answered with the field.
func TestFieldsAreFoundByTheirLastName(t *testing.T) {
	for name, want := range map[string]string{
		"epochs": "training.epochs", "batch-size": "training.batchSize", "batch_size": "training.batchSize",
		"learningRate": "training.optimizer.adam.learningRate",
		"workers":      "distribution.workers", "sync": "distribution.sync", "memory": "resources.memory",
		"epoch": "training.epochs", "wibble": "", "": "",
	} {
		if got, _, _ := FieldNamed(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// schema.json is committed for editors; this fails when the table has moved on. go test -update writes it anew.
func TestTheCommittedSchemaIsTheTables(t *testing.T) {
	if *update {
		if err := os.WriteFile("schema.json", Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile("schema.json")
	if err != nil || string(committed) != string(Schema()) {
		t.Errorf("schema.json is stale (%v): go test ./controller/jobfile -update", err)
	}
}

// layersPage is docs/reference/layers.md: every kind of layer with its options.
func layersPage() []byte {
	var out strings.Builder
	out.WriteString("# Layers\n\nThe kinds of `model.layers` in a job file, one an item of the list; `disdel explain " +
		"model.layers.conv` prints the same.\n" +
		"Made from the program's own table: `go test ./controller/jobfile -update`.\n\n" +
		"Every layer takes a `name` (default: its place, 0, 1, ...) and `from`, the layer or layers whose output it takes " +
		"(default: the\n" +
		"one before; `input` is the data).\n\n")
	var plain strings.Builder // kinds without options, as a table
	for _, k := range model.Kinds() {
		if d := (described{k}); len(k.Options) == 0 {
			fmt.Fprintf(&plain, "| `%s` | %s |\n", d.example(), k.Meaning)
		} else {
			fmt.Fprintf(&out, "- [%s](#%s)\n", k.Name, strings.ToLower(k.Name))
		}
	}
	out.WriteString("- [Layers without options](#layers-without-options)\n")
	for _, k := range model.Kinds() {
		if len(k.Options) == 0 {
			continue
		}
		d := described{k}
		fmt.Fprintf(&out, "\n## %s\n\n%s For example: `%s`\n", k.Name, k.Meaning, d.example())
		out.WriteString("\n| option | takes | default | |\n|---|---|---|---|\n")
		for _, o := range k.Options {
			f, usage := child(layerPath, o.Name), o.Default
			if o.Required {
				usage = "required"
			}
			takes := strings.Join(nonEmpty(f.form.String(), f.rule()), ", ")
			if o.Name == "activation" {
				takes = orList(model.Activations())
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", o.Name, takes, usage, f.meaning)
		}
	}
	out.WriteString("\n## Layers without options\n\n| layer | what it does |\n|---|---|\n" + plain.String())
	return []byte(out.String())
}
