package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/dataset"
)

// trial is one job of the suite.
type trial struct {
	network  string
	input    []int // [channels height width]
	batch    int
	rows     int // a worker's
	workers  int
	epochs   int
	threads  int
	float    bool // rows of float32, not bytes
	clip     bool
	backend  string
	optimize string // sgd, momentum or adam
	upkeep   string // of moments; "": the default
	wire     string
	timeout  string // short enough that a round takes several legs; "": the planner's
	saved    bool   // checkpoints after every round

	// Of generated trials.
	name    string
	layers  []string      // of a job file; nil: network is a name of the zoo
	keras   string        // the text of Keras' model
	classes int           // 0: ten
	held    int           // rows held out; 0: two batches, or as many as train
	share   float64       // above 0: the data set has no rows of its own for tests, and so many of its rows train
	saves   disdel.Millis // between states that workers store inside a round; 0: as the controller says
	tokens  bool          // rows are tokens
	resumed bool          // once it has ended, its last round is trained again from the checkpoint
}

func (t trial) String() string {
	if t.name != "" {
		return t.name
	}
	parts := []string{
		t.network, shape(t.input), fmt.Sprintf("b%d", t.batch), t.optimize,
		fmt.Sprintf("w%d r%d t%d e%d", t.workers, t.rows, t.threads, t.epochs),
	}
	if t.clip {
		parts = append(parts, "clip")
	}
	if t.float {
		parts = append(parts, "f32")
	}
	if t.backend != "" {
		parts = append(parts, t.backend)
	}
	for _, p := range []string{t.upkeep, t.wire, t.timeout} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if t.saved {
		parts = append(parts, "saved")
	}
	return strings.Join(parts, " ")
}

func shape(s []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(s), " ", "x"), "[]") }

var optimizers = map[string]string{
	"sgd": "{sgd: {learningRate: 0.001}}", "momentum": "{sgd: {learningRate: 0.001, momentum: 0.9}}",
	"adam": "{adam: {learningRate: 0.0001}}",
}

// dataName is the data set's: one for each shape and number of rows.
func (t trial) dataName() string {
	if t.name != "" {
		return strings.ReplaceAll(t.name, ".", "-")
	}
	return strings.ToLower(fmt.Sprintf("d%s-%d-%d-%v", shape(t.input), t.rows*t.workers, t.heldOut(), t.float))
}

func (t trial) heldOut() int { return cmp.Or(t.held, min(t.rows, 2*t.batch)) }

func (t trial) classCount() int { return cmp.Or(t.classes, classes) }

// model is what the job file says of its network.
func (t trial) model() string {
	switch {
	case t.keras != "":
		return "{keras: model.json}"
	case t.layers != nil:
		return "\n  layers:\n    - " + strings.Join(t.layers, "\n    - ")
	default:
		return "{name: " + t.network + "}"
	}
}

// parse reads the trial's job file.
func (t trial) parse() (jobfile.File, error) {
	return jobfile.ParseWith(t.String(), []byte(t.job()), nil,
		func(string) ([]byte, error) { return []byte(t.keras), nil })
}

func (t trial) job() string {
	extra := ""
	if t.clip {
		extra += "  clipNorm: 1\n"
	}
	if t.backend != "" {
		extra += "  backend: " + t.backend + "\n"
	}
	return fmt.Sprintf(`apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: bench}
model: %s
data: {source: "dataset://%s"%s}
training:
  epochs: %d
  batchSize: %d
  optimizer: %s
%sdistribution: {workers: %d, sync: epoch%s}
%s`, t.model(), t.dataName(), t.split(), t.epochs, t.batch, optimizers[t.optimize], extra, t.workers, t.aggregation(), t.rest())
}

func (t trial) split() string {
	if t.share == 0 {
		return ""
	}
	return fmt.Sprintf(", split: {train: %.4f, validation: %.4f, seed: 7}", t.share, 1-t.share)
}

func (t trial) aggregation() string {
	var parts []string
	if t.upkeep != "" {
		parts = append(parts, "optimizer: "+t.upkeep)
	}
	if t.wire != "" {
		parts = append(parts, "wire: "+t.wire)
	}
	if parts == nil {
		return ""
	}
	return ", aggregation: {" + strings.Join(parts, ", ") + "}"
}

func (t trial) rest() string {
	out := ""
	if t.timeout != "" {
		out += "resources: {timeout: " + t.timeout + "}\n"
	}
	if t.saved {
		out += "reliability: {checkpointEvery: 1}\n"
	}
	return out
}

// classes is what every data set of the zoo's suite has.
const classes = 10

// addData writes the trial's synthetic rows, a batch of them held out.
func (t trial) addData(ctx context.Context, s *dataset.Store) error {
	in := dataset.Input{
		Name: t.dataName(), Title: "synthetic", Classes: t.classCount(), Scale: 1.0 / 255,
		Train: t.samples(t.rows * t.workers),
	}
	if t.tokens {
		in.Scale = 1
	}
	if t.share == 0 {
		held := t.samples(t.heldOut())
		in.Test = &held
	}
	_, err := s.Add(ctx, in, false)
	return err
}

func (t trial) samples(rows int) dataset.Samples {
	n := 1
	for _, v := range t.input {
		n *= v
	}
	s := dataset.Samples{Shape: t.input, Labels: make([]int32, rows)}
	pixels := make([]byte, rows*n)
	x := uint32(1)
	for i := range pixels {
		x = x*1664525 + 1013904223
		pixels[i] = byte(x >> 24)
	}
	for i := range s.Labels {
		s.Labels[i] = int32(i % t.classCount())
	}
	s.U8 = pixels
	if t.float {
		s.U8, s.F32 = nil, make([]float32, len(pixels))
		for i, p := range pixels {
			s.F32[i] = float32(p)
		}
	}
	return s
}

// change is what sets a trial apart from two workers with one thread, a batch each an epoch, two epochs.
type change func(*trial)

func rows(n int) change    { return func(t *trial) { t.rows = n } }
func once(t *trial)        { t.epochs = 1 }
func clip(t *trial)        { t.clip = true }
func floats(t *trial)      { t.float = true }
func one(t *trial)         { t.workers = 1 }
func threads(t *trial)     { t.workers, t.threads = 1, 2 }
func gorgonia(t *trial)    { t.backend = "gorgonia" }
func average(t *trial)     { t.upkeep = "average" }
func keepMoments(t *trial) { t.upkeep = "keep" }
func int8(t *trial)        { t.wire = "int8" }
func bfloat16(t *trial)    { t.wire = "bfloat16" }
func saved(t *trial)       { t.saved = true }
func legs(t *trial)        { t.timeout = "5s" }

func newTrial(network string, input []int, batch int, optimize string, changes ...change) trial {
	t := trial{
		network: network, input: input, batch: batch, optimize: optimize, workers: 2, epochs: 2, threads: 1,
		rows: batch,
	}
	for _, c := range changes {
		c(&t)
	}
	return t
}

func rgb(side int) []int { return []int{3, side, side} }

// suite is every network of the zoo, batches from 8 to 512, all optimisers, one thread and two.
func suite() []trial {
	gray, digits := []int{1, 28, 28}, []int{1, 8, 8}
	return []trial{
		newTrial("resnet18", rgb(32), 16, "adam", average),
		newTrial("mobilenetv1", rgb(32), 32, "momentum", average, saved),
		newTrial("resnet18", rgb(32), 16, "adam", keepMoments),
		newTrial("mobilenetv1", rgb(32), 32, "adam", keepMoments, saved),
		newTrial("resnet18", rgb(32), 32, "sgd", int8),
		newTrial("lenet5", gray, 64, "adam", int8, keepMoments),
		newTrial("mobilenetv1", rgb(32), 16, "momentum", bfloat16),
		newTrial("resnet18", rgb(32), 8, "momentum", bfloat16, average),
		newTrial("mobilenetv1", rgb(32), 16, "adam", one, rows(8000), legs, once),
		newTrial("softmax-regression", gray, 32, "sgd"),
		newTrial("softmax-regression", gray, 512, "adam", rows(30_000), once),
		newTrial("softmax-regression", rgb(32), 128, "momentum", rows(6000)),
		newTrial("mlp", gray, 8, "momentum"),
		newTrial("mlp", gray, 128, "adam", rows(10_000)),
		newTrial("mlp", gray, 512, "sgd", threads),
		newTrial("mlp", rgb(32), 64, "adam", clip),
		newTrial("digits-cnn", digits, 32, "adam", rows(720)),
		newTrial("digits-cnn", digits, 256, "sgd", threads),
		newTrial("digits-cnn", digits, 512, "momentum", one),
		newTrial("lenet5", gray, 8, "sgd"),
		newTrial("lenet5", gray, 16, "adam", one),
		newTrial("lenet5", gray, 64, "adam", rows(30_000), once),
		newTrial("lenet5", gray, 512, "momentum", rows(5000)),
		newTrial("lenet5", gray, 32, "adam", rows(4000), floats),
		newTrial("lenet5", gray, 128, "adam", threads, clip),
		newTrial("lenet5", gray, 256, "sgd", rows(1000)),
		newTrial("lenet-kubeml", gray, 64, "sgd", rows(2000)),
		newTrial("lenet-kubeml", gray, 256, "adam"),
		newTrial("lenet-kubeml", gray, 512, "momentum", threads),
		newTrial("resnet20-cifar", rgb(32), 8, "adam", one),
		newTrial("resnet20-cifar", rgb(32), 16, "sgd"),
		newTrial("resnet20-cifar", rgb(32), 128, "momentum", rows(128)),
		newTrial("resnet20-cifar-b", rgb(32), 32, "adam", rows(200), one),
		newTrial("resnet20-cifar-b", rgb(32), 64, "momentum", clip, threads),
		newTrial("resnet32-cifar", rgb(32), 8, "sgd"),
		newTrial("resnet32-cifar", rgb(32), 32, "adam"),
		newTrial("resnet32-cifar", rgb(32), 64, "sgd", rows(64), clip),
		newTrial("resnet32-cifar-b", rgb(32), 16, "momentum", threads),
		newTrial("resnet32-cifar-b", rgb(32), 128, "adam", rows(128), one),
		newTrial("resnet18", rgb(32), 8, "sgd"),
		newTrial("resnet18", rgb(32), 32, "adam"),
		newTrial("resnet18", rgb(32), 64, "momentum", threads),
		newTrial("resnet18", rgb(32), 128, "adam", rows(128), one),
		newTrial("resnet18", rgb(64), 16, "adam", clip),
		newTrial("resnet18", rgb(96), 16, "sgd", one),
		newTrial("resnet34", rgb(32), 16, "adam", one),
		newTrial("resnet34", rgb(32), 64, "sgd", threads, rows(64)),
		newTrial("resnet34", rgb(64), 8, "momentum", rows(8)),
		newTrial("resnet50", rgb(32), 16, "sgd", rows(16)),
		newTrial("resnet50", rgb(32), 32, "adam", one, rows(32)),
		newTrial("resnet50", rgb(64), 8, "adam", threads),
		newTrial("resnet50-keras", rgb(32), 16, "adam", rows(16), one),
		newTrial("resnet50-keras", rgb(64), 16, "momentum", rows(16), one),
		newTrial("resnet152", rgb(32), 8, "sgd", rows(8), one),
		newTrial("mobilenetv1", rgb(32), 8, "adam", threads),
		newTrial("mobilenetv1", rgb(32), 16, "sgd"),
		newTrial("mobilenetv1", rgb(32), 128, "momentum", rows(128)),
		newTrial("mobilenetv1", rgb(64), 32, "adam"),
		newTrial("mobilenetv1", rgb(96), 16, "momentum", threads),
		newTrial("vgg16-cifar", rgb(32), 16, "sgd", rows(16)),
		newTrial("vgg16-cifar", rgb(32), 32, "adam", one, rows(32)),
		newTrial("vgg16-cifar", rgb(32), 64, "momentum", clip, one, rows(64)),
		newTrial("inceptionv3", rgb(75), 8, "sgd", one, rows(8)),
		newTrial("inceptionv3", rgb(96), 16, "adam", one, rows(16)),
		newTrial("vgg16-cifar-adaptive", rgb(32), 8, "sgd", one, rows(8), once),
		newTrial("vgg16", rgb(32), 16, "sgd", one, rows(16), once),
		newTrial("digits-cnn", digits, 32, "adam", gorgonia),
		newTrial("lenet5", gray, 32, "adam", gorgonia),
		newTrial("lenet5", gray, 128, "momentum", gorgonia),
		newTrial("lenet-kubeml", gray, 64, "sgd", gorgonia),
		newTrial("mlp", gray, 64, "adam", gorgonia),
	}
}
