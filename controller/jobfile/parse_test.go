package jobfile

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

func ExampleParse() {
	source := []byte(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: digits}
model: {name: digits-cnn}
data: {source: dataset://digits}
training:
  epochs: 0
  batchsize: 8
`)
	_, err := Parse("bad.yaml", source, nil)
	var faults *disdel.Faults
	if errors.As(err, &faults) {
		terminal.PrintFaults(faults, source, os.Stdout)
	}
	// Output:
	// bad.yaml:7:11: training.epochs: must be at least 1
	//    7 |   epochs: 0
	//      |           ^
	// bad.yaml:8:3: training.batchsize: unknown field; did you mean "batchSize"?
	//    8 |   batchsize: 8
	//      |   ^^^^^^^^^
	// 2 problems
}

// smallest is the shortest job file there is.
const smallest = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: digits}
model: {name: lenet5}
data: {source: dataset://digits}
training: {epochs: 3}
`

// smallestJob is what smallest means: the defaults of interface.md, section 4.
func smallestJob() disdel.Job {
	return disdel.Job{
		APIVersion: "disdel/v1", Kind: "TrainingJob",
		Metadata: disdel.Metadata{Name: "digits"},
		Model:    disdel.Model{Name: "lenet5", Init: disdel.Init{Seed: 42, Scheme: "glorot"}},
		Data:     disdel.Data{Source: "dataset://digits", Split: disdel.Split{Train: 0.8, Validation: 0.2, Seed: 42}},
		Training: disdel.Training{
			Epochs: 3, BatchSize: 64, Loss: "crossEntropy", ValidateEvery: 1, Backend: "native",
			Optimizer: disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}},
		},
		Distribution: disdel.Distribution{
			Policy: disdel.PolicyStatic, Sync: disdel.SyncEpoch,
			Aggregation: disdel.Aggregation{
				Wire: disdel.WireFloat32, Threshold: 0.7, OptimizerState: disdel.StateReset, Statistics: disdel.StateAverage,
			},
			Missing: disdel.Missing{Policy: disdel.MissingRetry, After: disdel.Duration(time.Minute)},
		},
		Resources: disdel.Resources{Risk: 0.001},
		Reliability: disdel.Reliability{CheckpointEvery: 1, Retries: disdel.Retries{
			Limit: 6, PerWorker: 3, MemoryFactor: 1.25, TimeoutFactor: 2,
			Backoff: disdel.Backoff{Initial: disdel.Duration(time.Second), Max: disdel.Duration(30 * time.Second)},
		}},
		Output: disdel.Output{Model: "digits", Keep: 20},
	}
}

func mustParse(t *testing.T, text string, sets ...string) File {
	t.Helper()
	file, err := Parse("job.yaml", []byte(text), sets)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEveryDefaultIsFilledIn(t *testing.T) {
	if diff := cmp.Diff(smallestJob(), mustParse(t, smallest).Job); diff != "" {
		t.Error(diff)
	}
}

func TestEveryFieldIsRead(t *testing.T) {
	got := mustParse(t, `
apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: mnist-mlp, labels: {team: vision, a.b/c: ""}}
model:
  layers:
    - conv: {filters: 8, kernel: 3, stride: 2, padding: 1, groups: 1, activation: relu}
    - conv: {name: up, filters: 4, kernel: [1, 3], stride: [2, 1], padding: [1, 0, 2, 3], dilation: [1, 2], bias: false}
    - conv: {name: down, from: "0", filters: 4, kernel: [3, 3], padding: same, dilation: 2}
    - add: {from: [up, down]}
    - batchNorm: {eps: 1e-3, momentum: 0.01, scale: false, center: true}
    - flatten:
    - dropout: {rate: 0.2}
    - dense: {units: 10, activation: softmax}
  init: {seed: -7, scheme: he}
data:
  source: dataset://digits
  checksum: sha256:`+strings.Repeat("0a", 32)+`
  split: {train: 0.7, validation: 0.3, seed: 1}
training:
  epochs: 12
  batchSize: 32
  optimizer: {sgd: {learningRate: 1e-1, momentum: .9, weightDecay: 0.0005, nesterov: true}}
  loss: binaryCrossEntropy
  schedule: {step: {every: 4, factor: 0.5}}
  clipNorm: 2.5
  exact: true
  precision: float32
  earlyStop: {metric: valLoss, patience: 3}
  validateEvery: 0
  backend: gorgonia
distribution:
  workers: 4
  policy: elastic
  minWorkers: 2
  maxWorkers: 8
  sync: {every: 16}
  aggregation: {fanIn: 2, wire: significant, threshold: 0.25, optimizer: keep, statistics: reset}
  missing: {policy: proceed, after: 90s}
resources: {risk: 0.01, memory: 256, maxMemory: 1.5Gi, timeout: 90s, maxCost: 50 GB-s}
reliability:
  deadline: 1h30m
  checkpointEvery: 0
  retries: {limit: 9, perWorker: 0, backoff: {initial: 500ms, max: 1m}, memoryFactor: 1.5, timeoutFactor: 3}
output: {model: mnist, keep: 2}
`).Job
	want := disdel.Job{
		APIVersion: "disdel/v1", Kind: "TrainingJob",
		Metadata: disdel.Metadata{Name: "mnist-mlp", Labels: map[string]string{"team": "vision", "a.b/c": ""}},
		Model: disdel.Model{
			Layers: []disdel.Layer{
				{Kind: "conv", Filters: 8, Kernel: 3, Stride: 2, Padding: 1, Groups: 1, Activation: "relu"},
				{
					Kind: "conv", Name: "up", Filters: 4, KernelHW: [2]int{1, 3}, StrideHW: [2]int{2, 1},
					PaddingAt:  [4]int{1, 0, 2, 3},
					DilationHW: [2]int{1, 2}, Bias: new(false),
				},
				{Kind: "conv", Name: "down", From: []string{"0"}, Filters: 4, Kernel: 3, SamePad: true, Dilation: 2},
				{Kind: "add", From: []string{"up", "down"}},
				{Kind: "batchNorm", Eps: 1e-3, Momentum: 0.01, Scale: new(false), Center: new(true)},
				{Kind: "flatten"},
				{Kind: "dropout", Rate: 0.2},
				{Kind: "dense", Units: 10, Activation: "softmax"},
			},
			Init: disdel.Init{Seed: -7, Scheme: "he"},
		},
		Data: disdel.Data{
			Source: "dataset://digits", Checksum: "sha256:" + strings.Repeat("0a", 32),
			Split: disdel.Split{Train: 0.7, Validation: 0.3, Seed: 1},
		},
		Training: disdel.Training{
			Epochs: 12, BatchSize: 32, Loss: "binaryCrossEntropy", Backend: "gorgonia", ClipNorm: 2.5, Exact: true,
			Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9, WeightDecay: 0.0005, Nesterov: true}},
			Schedule:  &disdel.Schedule{Step: &disdel.StepSchedule{Every: 4, Factor: 0.5}},
			EarlyStop: &disdel.EarlyStop{Metric: "valLoss", Patience: 3, Keep: "best"},
		},
		Distribution: disdel.Distribution{
			Workers: 4, Sync: disdel.SyncEvery(16), Policy: disdel.PolicyElastic, MinWorkers: 2, MaxWorkers: 8,
			Aggregation: disdel.Aggregation{
				FanIn: 2, Wire: disdel.WireSignificant, Threshold: 0.25,
				OptimizerState: disdel.StateKeep, Statistics: disdel.StateReset,
			},
			Missing: disdel.Missing{Policy: disdel.MissingProceed, After: disdel.Duration(90 * time.Second)},
		},
		Resources: disdel.Resources{
			Risk: 0.01, Memory: 256 * disdel.MB, MaxMemory: 1536 * disdel.MB,
			Timeout: disdel.Duration(90 * time.Second), MaxCost: 50,
		},
		Reliability: disdel.Reliability{Deadline: disdel.Duration(90 * time.Minute), Retries: disdel.Retries{
			Limit: 9, MemoryFactor: 1.5, TimeoutFactor: 3,
			Backoff: disdel.Backoff{Initial: disdel.Duration(500 * time.Millisecond), Max: disdel.Duration(time.Minute)},
		}},
		Output: disdel.Output{Model: "mnist", Keep: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Spellings that mean the same job as smallest with one thing changed.
func TestSpellingsThatAreAccepted(t *testing.T) {
	for _, c := range []struct {
		name, text string
		change     func(*disdel.Job)
	}{
		{"autos", smallest + "distribution: {workers: auto, aggregation: {fanIn: auto}}\nresources: {memory: auto, " +
			"timeout: auto}\n", nil},
		{"empty objects", smallest + "distribution: {}\nresources:\nreliability: ~\n", nil},
		{"windows", strings.ReplaceAll(smallest, "\n", "\r\n"), nil},
		{"byte order mark", "\ufeff" + smallest, nil},
		{"document marks", "---\n" + smallest + "...\n", nil},
		{"an anchor that nobody uses", strings.Replace(smallest, "epochs: 3", "epochs: &n 3", 1), nil},
		{"comments", "# job\n" + strings.ReplaceAll(smallest, "\n", " # note\n"), nil},
		{"JSON", `{"apiVersion": "disdel/v1", "kind": "TrainingJob", "metadata": {"name": "digits"}, "model": {"name": ` +
			`"lenet5"},` +
			` "data": {"source": "dataset://digits"}, "training": {"epochs": 3}}`, nil},
		{
			"only one share", strings.Replace(smallest, "digits}\ntrain", "digits, split: {validation: 0.25}}\ntrain", 1),
			func(j *disdel.Job) { j.Data.Split.Train, j.Data.Split.Validation = 0.75, 0.25 },
		},
		{
			"only the other share", strings.Replace(smallest, "digits}\ntrain", "digits, split: {train: 0.75}}\ntrain", 1),
			func(j *disdel.Job) { j.Data.Split.Train, j.Data.Split.Validation = 0.75, 0.25 },
		},
		{
			"shares that do not add up in binary",
			strings.Replace(smallest, "digits}\ntrain", "digits, split: {train: 0.9, validation: 0.1}}\ntrain", 1),
			func(j *disdel.Job) { j.Data.Split.Train, j.Data.Split.Validation = 0.9, 0.1 },
		},
		{
			"the split's seed follows the network's", strings.Replace(smallest, "lenet5", "lenet5, init: {seed: 9}", 1),
			func(j *disdel.Job) { j.Model.Init.Seed, j.Data.Split.Seed = 9, 9 },
		},
		{
			"seed zero", strings.Replace(smallest, "lenet5", "lenet5, init: {seed: 0}", 1),
			func(j *disdel.Job) { j.Model.Init.Seed, j.Data.Split.Seed = 0, 0 },
		},
		{"optimiser by name alone", strings.Replace(smallest, "epochs: 3", "epochs: 3, optimizer: {adam: }", 1), nil},
		{
			"early stop at a loss", strings.Replace(smallest, "epochs: 3", "epochs: 3, earlyStop: {metric: loss, target: 5e-2}",
				1),
			func(j *disdel.Job) { j.Training.EarlyStop = &disdel.EarlyStop{Metric: "loss", Target: new(0.05)} },
		},
		{
			"early stop at a held-out loss",
			strings.Replace(smallest, "epochs: 3",
				"epochs: 3, earlyStop: {metric: valLoss, target: 0.5, patience: 2, keep: last}", 1),
			func(j *disdel.Job) {
				j.Training.EarlyStop = &disdel.EarlyStop{Metric: "valLoss", Target: new(0.5), Patience: 2, Keep: "last"}
			},
		},
		{
			"early stop at an accuracy",
			strings.Replace(smallest, "epochs: 3", "epochs: 3, earlyStop: {metric: accuracy, target: 0.9}", 1),
			func(j *disdel.Job) {
				j.Training.EarlyStop = &disdel.EarlyStop{Metric: "accuracy", Target: new(0.9), Keep: "best"}
			},
		},
		{
			"early stop at an R2 below that of the mean",
			strings.Replace(smallest, "epochs: 3", "epochs: 3, earlyStop: {metric: r2, target: -0.5}", 1),
			func(j *disdel.Job) {
				j.Training.EarlyStop = &disdel.EarlyStop{Metric: "r2", Target: new(-0.5), Keep: "best"}
			},
		},
		{
			"early stop at an R2 of 0",
			strings.Replace(smallest, "epochs: 3", "epochs: 3, earlyStop: {metric: r2, target: 0}", 1),
			func(j *disdel.Job) {
				j.Training.EarlyStop = &disdel.EarlyStop{Metric: "r2", Target: new(0.), Keep: "best"}
			},
		},
		{
			"a goal",
			strings.Replace(smallest, "epochs: 3", "epochs: 3, goal: {accuracy: 0.9, within: 10m, cost: 50 GB-s}", 1),
			func(j *disdel.Job) {
				j.Training.Goal = &disdel.Goal{Accuracy: 0.9, Within: disdel.Duration(10 * time.Minute), Cost: 50}
			},
		},
		{
			"a name of digits in quotes", strings.Replace(smallest, "name: digits", `name: "7"`, 1),
			func(j *disdel.Job) { j.Metadata.Name, j.Output.Model = "7", "7" },
		},
		{
			"adamw by name alone", strings.Replace(smallest, "epochs: 3", "epochs: 3, optimizer: {adamw: }", 1),
			func(j *disdel.Job) {
				j.Training.Optimizer = disdel.Optimizer{AdamW: &disdel.Adam{
					LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999,
					Epsilon: 1e-8, WeightDecay: 0.01,
				}}
			},
		},
		{
			"adamw without decay", strings.Replace(smallest, "epochs: 3",
				"epochs: 3, optimizer: {adamw: {weightDecay: 0, epsilon: 1e-6}}", 1), func(j *disdel.Job) {
				j.Training.Optimizer = disdel.Optimizer{AdamW: &disdel.Adam{
					LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999,
					Epsilon: 1e-6,
				}}
			},
		},
		{
			"adam with decay", strings.Replace(smallest, "epochs: 3", "epochs: 3, optimizer: {adam: {weightDecay: 0.1}}", 1),
			func(j *disdel.Job) { j.Training.Optimizer.Adam.WeightDecay = 0.1 },
		},
		{
			"a cosine down to nothing", strings.Replace(smallest, "epochs: 3", "epochs: 3, schedule: {cosine: }", 1),
			func(j *disdel.Job) { j.Training.Schedule = &disdel.Schedule{Cosine: &disdel.CosineSchedule{}} },
		},
		{
			"a cosine with a floor", strings.Replace(smallest, "epochs: 3", "epochs: 3, schedule: {cosine: {floor: 0.1}}", 1),
			func(j *disdel.Job) {
				j.Training.Schedule = &disdel.Schedule{Cosine: &disdel.CosineSchedule{Floor: 0.1}}
			},
		},
		{"sync at the end", smallest + "distribution: {sync: end, missing: {policy: proceed}}\n", func(j *disdel.Job) {
			j.Distribution.Sync, j.Distribution.Missing.Policy = disdel.SyncEnd, disdel.MissingProceed
		}},
		{
			"sync after every batch", smallest + "distribution:\n  sync:\n    every: 1\n",
			func(j *disdel.Job) { j.Distribution.Sync = disdel.SyncEvery(1) },
		},
		{
			"no retries", smallest + "reliability: {retries: {limit: 0, backoff: {initial: 30s}}}\n",
			func(j *disdel.Job) {
				j.Reliability.Retries.Limit, j.Reliability.Retries.Backoff.Initial = 0, j.Reliability.Retries.Backoff.Max
			},
		},
		{
			"moments kept that SGD does not have",
			strings.Replace(smallest, "epochs: 3", "epochs: 3, optimizer: {sgd: {learningRate: 1}}", 1) +
				"distribution: {aggregation: {optimizer: keep}}\n",
			func(j *disdel.Job) {
				j.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}}
				j.Distribution.Aggregation.OptimizerState = disdel.StateKeep
			},
		},
		{"a cost without unit", smallest + "resources: {maxCost: 2.5}\n", func(j *disdel.Job) { j.Resources.MaxCost = 2.5 }},
	} {
		want := smallestJob()
		if c.change != nil {
			c.change(&want)
		}
		file, err := Parse("job.yaml", []byte(c.text), nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if diff := cmp.Diff(want, file.Job); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestSetTakesThePlaceOfTheFile(t *testing.T) {
	layers := strings.Replace(smallest, "name: lenet5", "layers: [{dense: {units: 10}}, {relu: }]", 1)
	for _, c := range []struct {
		text   string
		sets   []string
		change func(*disdel.Job)
	}{
		{smallest, []string{"training.epochs=5"}, func(j *disdel.Job) { j.Training.Epochs = 5 }},
		{smallest, []string{"training.epochs=5", "training.epochs=6"}, func(j *disdel.Job) { j.Training.Epochs = 6 }},
		{
			smallest,
			[]string{"distribution.aggregation.fanIn=3"},
			func(j *disdel.Job) { j.Distribution.Aggregation.FanIn = 3 },
		},
		{smallest, []string{"distribution.sync=end"}, func(j *disdel.Job) { j.Distribution.Sync = disdel.SyncEnd }},
		{smallest, []string{"distribution.sync.every=4"}, func(j *disdel.Job) { j.Distribution.Sync = disdel.SyncEvery(4) }},
		{
			smallest,
			[]string{"distribution.sync={every: 4}"},
			func(j *disdel.Job) { j.Distribution.Sync = disdel.SyncEvery(4) },
		},
		{
			smallest,
			[]string{"distribution.sync=end", "distribution.sync.every=4"},
			func(j *disdel.Job) { j.Distribution.Sync = disdel.SyncEvery(4) },
		},
		{
			strings.Replace(smallest, "epochs: 3", "epochs: 3, earlyStop: {metric: valLoss, patience: 2}", 1),
			[]string{"training.earlyStop=null"},
			func(*disdel.Job) {},
		},
		{smallest, []string{"training.earlyStop={metric: loss, target: 1}", "training.earlyStop=~"}, func(*disdel.Job) {}},
		{smallest, []string{"training.clipNorm=null", "resources.timeout=null"}, func(*disdel.Job) {}},
		{
			smallest + "distribution: {sync: end}\n",
			[]string{"distribution.sync.every=4"},
			func(j *disdel.Job) { j.Distribution.Sync = disdel.SyncEvery(4) },
		},
		{
			smallest + "distribution: {sync: {every: 9}}\n",
			[]string{"distribution.sync.every=4"},
			func(j *disdel.Job) { j.Distribution.Sync = disdel.SyncEvery(4) },
		},
		{smallest + "distribution: {sync: {every: 9}}\n", []string{"distribution.sync=epoch"}, func(*disdel.Job) {}},
		{smallest, []string{"reliability.retries.backoff.max=1m", "distribution.missing.policy=wait"}, func(j *disdel.Job) {
			j.Reliability.Retries.Backoff.Max, j.Distribution.Missing.Policy = disdel.Duration(time.Minute), disdel.MissingWait
		}},
		{smallest, []string{"resources.memory=1.5Gi"}, func(j *disdel.Job) { j.Resources.Memory = 1536 * disdel.MB }},
		{smallest, []string{"metadata.labels.a.b=x=y"}, nil},
		{
			smallest,
			[]string{"metadata.labels.a.b=xy"},
			func(j *disdel.Job) { j.Metadata.Labels = map[string]string{"a.b": "xy"} },
		},
		{smallest, []string{"training.optimizer={sgd: {learningRate: 0.1}}"}, func(j *disdel.Job) {
			j.Training.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1}}
		}},
		{layers, []string{"model.layers[0].dense.units=3"}, func(j *disdel.Job) {
			j.Model.Name, j.Model.Layers = "", []disdel.Layer{{Kind: "dense", Units: 3}, {Kind: "relu"}}
		}},
	} {
		file, err := Parse("job.yaml", []byte(c.text), c.sets)
		if c.change == nil {
			if err == nil {
				t.Errorf("%v is accepted", c.sets)
			}
			continue
		}
		want := smallestJob()
		c.change(&want)
		if diff := cmp.Diff(want, file.Job); diff != "" || err != nil {
			t.Errorf("%v: %v %s", c.sets, err, diff)
		}
	}
}

// faultsOf parses what must be refused.
func faultsOf(t *testing.T, text string, sets ...string) []disdel.Fault {
	t.Helper()
	_, err := Parse("job.yaml", []byte(text), sets)
	var faults *disdel.Faults
	if !errors.As(err, &faults) || len(faults.Faults) == 0 || !errors.Is(err, disdel.Invalid) {
		t.Fatalf("%.80q: got %v, want Faults of kind Invalid", text, err)
	}
	return faults.Faults
}

// What txtar cannot hold: the file as a whole, and characters that no editor shows (reliability.md, S10 and S15).
func TestFilesThatAreNoText(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		line, column int
		msg          string
	}{
		{"empty", "", 1, 1, "the file is empty"},
		{"only comments", "# nothing\n", 1, 1, "the file is empty"},
		{"null", "~", 1, 1, "expected an object, found nothing"},
		{"a list", "- a\n", 1, 1, "expected an object, found a list"},
		{"text", "hello", 1, 1, `expected an object, found text "hello"`},
		{"too large", strings.Repeat("#", maxFile+1), 1, 1, "the file has 1048577 bytes; a job file has at most 1048576"},
		{"brackets", "[" + strings.Repeat("[],", maxMarks), 1, 1, fmt.Sprintf(
			"the file has %d brackets, colons, commas, dashes and quotes; a job file has at most %d", 3*maxMarks+1, maxMarks)},
		{"NUL", "a: b\nc: \x00", 2, 4, "the control character U+0000 is not allowed"},
		{"escape", "a: \x1b[31m", 1, 4, "the control character U+001B is not allowed"},
		{"carriage return alone", "a: b\rc: d", 1, 5, "the control character U+000D is not allowed"},
		{"text that turns around", "é: \u202e", 1, 4, "the control character U+202E is not allowed"},
		{"line separator", "a: \u2028", 1, 4, "the control character U+2028 is not allowed"},
		{"broken UTF-8", "a: b\nü: \xc3", 2, 4, "byte 0xc3 is not UTF-8"},
		{"UTF-16", "\xff\xfea\x00", 1, 1, "byte 0xff is not UTF-8"},
		{"deep", strings.Repeat("[", 20_000), 1, 10001, "not YAML: exceeded max depth of 10000"},
	} {
		got := faultsOf(t, c.text)
		want := []disdel.Fault{{Line: c.line, Column: c.column, Msg: c.msg, Hint: got[0].Hint}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestAHopelessFileIsCutShort(t *testing.T) {
	var text strings.Builder
	for i := range 2 * maxKept {
		fmt.Fprintf(&text, "k%d: 1\n", i)
	}
	got := faultsOf(t, text.String())
	last := got[len(got)-1]
	if len(got) != maxFaults+1 || !strings.HasSuffix(last.Msg, "more problems from here on") {
		t.Errorf("%d faults, the last %q", len(got), last.Msg)
	}
	if want := fmt.Sprintf("%d more", 2*maxKept+len(goodSections)-maxFaults); !strings.HasPrefix(last.Msg, want) {
		t.Errorf("%q does not start with %q", last.Msg, want)
	}
}

func TestTooManyLayers(t *testing.T) {
	text := strings.Replace(smallest, "name: lenet5", "layers: ["+strings.Repeat("{relu: },", maxLayers+1)+"]", 1)
	if got := faultsOf(t, text); len(got) != 1 || got[0].Msg != "has 1001 items; at most 1000 are read" {
		t.Errorf("%+v", got)
	}
}

// Locate gives later checks of the controller their places: a scalar's value, an object's key, else what is around it.
func TestLocate(t *testing.T) {
	file := mustParse(t, `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: digits}
model:
  layers:
    - dense: {units: 128}
    - dense:
        units: 10
data: {source: dataset://digits}
training:
  epochs: 3
`, "training.batchSize=8", "distribution.workers=2")
	for path, want := range map[string]string{
		"training.epochs":             "11:11",
		"training":                    "10:1",
		"training.loss":               "10:1",
		"training.batchSize":          "0:0",
		"distribution.workers":        "0:0",
		"data.source":                 "9:16",
		"model":                       "4:1",
		"model.layers":                "5:3",
		"model.layers[0].dense.units": "6:22",
		"model.layers[1]":             "7:7",
		"model.layers[1].dense.units": "8:16",
		"model.layers[1].dense.rate":  "7:7",
		"model.layers[9]":             "5:3",
		"output.keep":                 "1:1",
		"":                            "1:1",
		"nonsense[3].more":            "1:1",
	} {
		line, column := file.Locate(path)
		if got := fmt.Sprintf("%d:%d", line, column); got != want {
			t.Errorf("%s is at %s, want %s", path, got, want)
		}
	}
}

// The controller goes on with what could be read, to add its own faults.
func TestTheFileComesBackWithItsFaults(t *testing.T) {
	file, err := Parse("job.yaml", []byte(strings.Replace(smallest, "epochs: 3", "epochs: x", 1)), nil)
	if err == nil || file.Job.Data.Source != "dataset://digits" || file.Job.Training.BatchSize != 64 {
		t.Errorf("err %v, job %+v", err, file.Job)
	}
	if line, _ := file.Locate("training.epochs"); line != 6 {
		t.Errorf("training.epochs is in line %d", line)
	}
}

const kerasJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: digits}
model: {keras: my.json}
data: {source: dataset://digits}
training: {epochs: 3}
`

// The network of a Keras file becomes part of the job, which then needs the file no more.
func TestAFileOfKerasBecomesLayers(t *testing.T) {
	open := func(file string) ([]byte, error) {
		if file != "my.json" {
			t.Errorf("opens %q", file)
		}
		return []byte(`{"class_name": "Sequential", "config": {"name": "m", "layers": [
			{"class_name": "InputLayer", "config": {"name": "in", "batch_shape": [null, 8, 8, 1]}},
			{"class_name": "Flatten", "config": {"name": "flat"}},
			{"class_name": "Dense", "config": {"name": "out", "units": 10, "activation": "softmax"}}]}}`), nil
	}
	file, err := ParseWith("job.yaml", []byte(kerasJob), nil, open)
	if err != nil {
		t.Fatal(err)
	}
	want := disdel.Model{Init: disdel.Init{Seed: 42, Scheme: "glorot"}, Layers: []disdel.Layer{
		{Kind: "input", Name: "in", Shape: []int{1, 8, 8}},
		{Kind: "flatten", Name: "flat"},
		{Kind: "dense", Name: "out", Units: 10, Activation: "softmax"},
	}}
	if diff := cmp.Diff(want, file.Job.Model); diff != "" {
		t.Error(diff)
	}
	checkRoundTrip(t, file.Job)
}

// Everything wrong with a Keras file stands at the line that names it.
func TestFaultsOfAKerasFileStandWhereTheJobNamesIt(t *testing.T) {
	parse := func(open func(string) ([]byte, error)) (out []string) {
		_, err := ParseWith("job.yaml", []byte(kerasJob), nil, open)
		var faults *disdel.Faults
		if !errors.As(err, &faults) {
			t.Fatalf("got %v, want Faults", err)
		}
		for _, f := range faults.Faults {
			out = append(out, fmt.Sprintf("%d:%d %s %s", f.Line, f.Column, f.Path, f.Msg))
		}
		return out
	}
	for _, c := range []struct {
		name string
		open func(string) ([]byte, error)
		want []string
	}{
		{"nobody can open it", nil, []string{"4:16 model.keras files of Keras cannot be read here"}},
		{
			"not there", func(string) ([]byte, error) { return nil, os.ErrNotExist },
			[]string{"4:16 model.keras file does not exist"},
		},
		{"two layers", func(string) ([]byte, error) {
			return []byte(`{"class_name": "Sequential", "config": [
				{"class_name": "ConvLSTM2D", "config": {"name": "a", "batch_input_shape": [null, 8, 8, 1]}}, {"class_name": "ConvLSTM1D", "config": {"name": "b\u001b"}}]}`), nil
		}, []string{
			"4:16 model.keras layer a: layers of class ConvLSTM2D are not supported",
			`4:16 model.keras layer b\x1b: layers of class ConvLSTM1D are not supported`,
		}},
	} {
		if diff := cmp.Diff(c.want, parse(c.open)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// A policy may say its bounds with its name; what is wrong there has its own place.
func TestAPolicyWithItsBounds(t *testing.T) {
	parse := func(policy string) (disdel.Distribution, error) {
		f, err := Parse("job.yaml", []byte(smallest+"distribution: {"+policy+"}\n"), nil)
		return f.Job.Distribution, err
	}
	want, err := parse("policy: coach, minWorkers: 2, maxWorkers: 8")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parse("policy: {name: coach, min: 2, max: 8}"); err != nil || got != want {
		t.Errorf("%+v: %v, want %+v", got, err, want)
	}
	for policy, says := range map[string]string{
		"policy: {name: luck}":                          "distribution.policy",
		"policy: {name: coach, most: 8}":                "distribution.policy",
		"policy: {name: coach, max: 0}":                 "distribution.maxWorkers",
		"policy: {name: coach, max: 8}, maxWorkers: 8":  "given twice",
		"policy: {name: coach, min: 2, max: 8, min: 3}": "distribution",
	} {
		if _, err := parse(policy); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", policy, err, says)
		}
	}
}

// What a job takes of GPUs is read, printed and read again; auto is nothing.
func TestWhatAJobTakesOfGPUs(t *testing.T) {
	for text, want := range map[string]disdel.GPUs{
		"{count: 2, memory: 1.5GB}":  {Count: 2, Memory: 1536 * disdel.MB},
		"{memory: 512}":              {Memory: 512 * disdel.MB},
		"{count: auto}":              {},
		"{count: 1, memory: auto}":   {Count: 1},
		"{count: auto, memory: 2Gi}": {Memory: 2 * disdel.GB},
	} {
		f, err := Parse("job.yaml", []byte(smallest), []string{"resources.device=gpu", "resources.gpu=" + text})
		if err != nil || f.Job.Resources.GPU != want {
			t.Fatalf("%s: %v, %+v", text, err, f.Job.Resources.GPU)
		}
		printed, err := Print(f.Job)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse("again.yaml", printed, nil); err != nil || again.Job.Resources.GPU != want {
			t.Errorf("%s: %v, comes back as %+v\n%s", text, err, again.Job.Resources.GPU, printed)
		}
	}
}

// A job on a GPU is trained by the engine of GPUs, says so in one place, and comes back as it went.
func TestADeviceHasItsEngine(t *testing.T) {
	for device, backend := range map[string]string{
		"gpu": disdel.BackendCUDA, "cpu": disdel.BackendNative, "auto": disdel.BackendNative,
	} {
		f, err := Parse("job.yaml", []byte(smallest), []string{"resources.device=" + device})
		if err != nil || f.Job.Training.Backend != backend {
			t.Fatalf("%s: %v, trained by %q", device, err, f.Job.Training.Backend)
		}
		text, err := Print(f.Job)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("again.yaml", text, nil)
		if err != nil || again.Job.Training.Backend != backend || again.Job.Resources.Device != f.Job.Resources.Device {
			t.Errorf("%s: %v, comes back as %q\n%s", device, err, again.Job.Training.Backend, text)
		}
	}
}
