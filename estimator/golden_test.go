package estimator

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

var update = flag.Bool("update", false, "write testdata/estimates.txt and testdata/drawn anew")

// variant is a job that differs from the plain one.
type variant struct {
	name   string
	change func(*Input)
}

// variants are jobs that take every branch of an estimate, beside the plain one.
var variants = []variant{
	{"plain", func(*Input) {}},
	{"clipped momentum", func(in *Input) {
		in.ClipNorm, in.Threads = 1, 4
		in.Optimizer = disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.1, Momentum: 0.9}}
	}},
	{"average bfloat16", func(in *Input) {
		in.Moments, in.Wire, in.Members = disdel.StateAverage, disdel.WireBfloat16,
			3
	}},
	{"keep int8", func(in *Input) {
		in.Moments, in.Wire, in.Checkpoints, in.Epochs = disdel.StateKeep, disdel.WireInt8, true, 1
		in.Optimizer = disdel.Optimizer{AdamW: &disdel.Adam{LearningRate: 0.1}}
	}},
	{"drawn", func(in *Input) { in.Part, in.Drawn, in.BatchSize, in.Rows = 60_000, true, 3, 100 }},
}

// networks are one of each of the zoo's families, and a network of an action's own binary.
func networks(t *testing.T) []*model.Graph {
	t.Helper()
	var out []*model.Graph
	for _, z := range model.Zoo() {
		if z.VariantOf != "" {
			continue
		}
		g, err := model.Build(disdel.Network{Name: z.Name, Input: z.Input, Classes: 10})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	own := &disdel.CustomNetwork{
		Name: "own", Input: []int{1, 28, 28}, Classes: 10, Activations: 10_000, Backward: 20_000,
		Params: []disdel.CustomParam{{Name: "w", Shape: []int{784, 10}, Trainable: true}, {Name: "s", Shape: []int{10}}},
	}
	g, err := model.Build(disdel.Network{Custom: own, Input: own.Input, Classes: own.Classes})
	if err != nil {
		t.Fatal(err)
	}
	sparse, err := model.Build(disdel.Network{
		Name: "logistic", Input: []int{1_000_000}, Classes: 2, Sparse: &disdel.SparseNetwork{Mean: 39, Most: 39},
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(out, g, sparse)
}

// oneOf draws one of some values.
func oneOf[T any](draw *rand.Rand, values ...T) T { return values[draw.IntN(len(values))] }

// drawnVariants are jobs of drawn values: together they have what no variant of the list has.
func drawnVariants(draw *rand.Rand) (out []variant) {
	for n := range 3 {
		seed := draw.Uint64()
		out = append(out, variant{fmt.Sprintf("drawn %d", n+1), func(in *Input) {
			drawInput(rand.New(rand.NewPCG(seed, 8)), in)
		}})
	}
	return out
}

func drawInput(draw *rand.Rand, in *Input) {
	in.BatchSize, in.Rows, in.Part = oneOf(draw, 1, 8, 64), oneOf(draw, 1, 100, 5000), oneOf(draw, 0, 100, 60_000)
	in.OnDisk, in.Drawn, in.InBlocks = oneOf(draw, true, false), oneOf(draw, true, false), oneOf(draw, true, false)
	in.Resizing, in.Epochs = oneOf[disdel.Bytes](draw, 0, 1000, 300_000), oneOf(draw, 1, 2, 7)
	in.Threads, in.Members = oneOf(draw, 0, 1, 2, 5), oneOf(draw, 0, 1, 2, 3, 4, 5, 8)
	in.Wire = oneOf(draw, "", disdel.WireFloat32, disdel.WireBfloat16, disdel.WireInt8, disdel.WireSignificant)
	in.Moments = oneOf(draw, "", disdel.StateAverage, disdel.StateReset, disdel.StateKeep)
	in.Bucket, in.Checkpoints = oneOf(draw, true, false), oneOf(draw, true, false)
	in.Precision = oneOf(draw, "", disdel.PrecisionBF16, disdel.PrecisionTF32)
	in.StepMemory = disdel.StepMemory{
		MicroBatch: oneOf(draw, 0, 0, 4), Recompute: oneOf(draw, "", disdel.RecomputeAuto),
		StateFormat: oneOf(draw, "", disdel.StateInt8, disdel.StatePaged, disdel.StatePaged),
	}
	if draw.IntN(3) == 0 {
		in.Exchange = &disdel.Exchange{Slack: oneOf(draw, 0, 1, 4), Order: oneOf(draw, disdel.OrderFixed, disdel.OrderEager)}
	}
	g := *in.Graph
	g.Nodes = slices.Clone(g.Nodes)
	if g.Custom() == nil && g.Sparse() == nil && draw.IntN(2) == 0 { // an earlier model's layers stay as they are
		for i := range len(g.Nodes) * 2 / 3 {
			g.Nodes[i].Frozen = true
		}
	}
	in.Graph = &g
}

// What an estimate comes to is what it came to when its figures were measured, to the byte, on every backend: who
// changes a byte runs `go test ./estimator -run Golden -update` and says why in the commit.
func TestGoldenEstimates(t *testing.T) {
	const file = "testdata/estimates.txt"
	var got bytes.Buffer
	fmt.Fprintln(&got, "# network, backend, variant, task: total, likely, low, high; parameters, activations, misc, "+
		"workspace, pkg, dta, mod; layers")
	for i, g := range networks(t) {
		for _, backend := range []string{"", "gorgonia"} {
			for _, v := range append(variants, drawnVariants(rand.New(rand.NewPCG(uint64(i), 7)))...) {
				in := Input{
					Graph: g, BatchSize: 32, Rows: 2000, SampleBytes: disdel.Bytes(g.Input().Len()), Epochs: 2, Optimizer: adam,
					Backend: backend,
				}
				v.change(&in)
				e := planned
				for _, c := range []struct {
					task     disdel.Task
					estimate func(Input) disdel.Estimate
				}{{disdel.TaskTrain, e.Train}, {disdel.TaskEvaluate, e.Evaluate}, {disdel.TaskAggregate, e.Aggregate}} {
					fmt.Fprintf(&got, "%s, %s, %s, %s: %s\n", g.Name, backend, v.name, c.task, line(t, c.estimate(in)))
				}
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a, b := bytes.Split(got.Bytes(), []byte("\n")), bytes.Split(want, []byte("\n"))
	if len(a) != len(b) {
		t.Fatalf("%d lines, want %d", len(a), len(b))
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			t.Errorf("line %d:\ngot  %s\nwant %s", i+1, a[i], b[i])
		}
	}
}

func line(t *testing.T, e disdel.Estimate) string {
	t.Helper()
	layers, err := json.Marshal(e.Layers)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %d %d %d; %d %d %d %d %d %d %d; %s %d %.4x",
		e.Total, e.Likely, e.Low, e.High, e.Parameters, e.Activations, e.Misc, e.Workspace, e.Package, e.Shard, e.Model,
		e.Method, len(e.Layers), sha256.Sum256(layers))
}
