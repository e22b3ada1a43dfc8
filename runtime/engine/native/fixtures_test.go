package native

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// uniform are numbers in [0, 1) from a name, as testdata/curves/README.md defines them.
func uniform(name string, n int) []float64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	state, out := h.Sum64(), make([]float64, n)
	for i := range out {
		state += 0x9e3779b97f4a7c15
		z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		out[i] = float64(z>>40) / (1 << 24)
	}
	return out
}

// namedWeights are the fixtures' weights of a graph.
func namedWeights(g *model.Graph) disdel.Weights {
	var out disdel.Weights
	for _, p := range g.Params() {
		t := disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, p.Len())}
		op := g.Nodes[p.Node].Op
		norm := op == model.OpBatchNorm || op == model.OpLayerNorm || op == model.OpRMSNorm
		for i, u := range uniform(p.Name, p.Len()) {
			switch {
			case strings.HasSuffix(p.Name, ".running_mean"):
			case strings.HasSuffix(p.Name, ".running_var"):
				t.Data[i] = 1
			case strings.HasSuffix(p.Name, ".bias"):
				t.Data[i] = float32((2*u - 1) * 0.1)
			case norm:
				t.Data[i] = float32(0.5 + u)
			case op == model.OpPReLU:
				t.Data[i] = float32(u - 0.3)
			default:
				t.Data[i] = float32((2*u - 1) * math.Sqrt(6/float64(model.Shape(p.Shape[1:]).Len())))
			}
		}
		out = append(out, t)
	}
	return out
}

// namedBatch is the fixtures' batch of a step.
func namedBatch(step int, shape model.Shape) ([]float32, []int32) {
	const rows = 16
	size := shape.Len()
	labels, x := make([]int32, rows), make([]float32, rows*size)
	for i, u := range uniform(fmt.Sprintf("y/%d", step), rows) {
		labels[i] = int32(10 * u)
	}
	if len(shape) == 1 {
		namedTokens(step, x, labels)
		return x, labels
	}
	for i, u := range uniform(fmt.Sprintf("x/%d", step), rows*size) {
		x[i] = float32(2*u - 1)
	}
	exact := uniform(fmt.Sprintf("x/%d", step), rows*size)
	for r, label := range labels {
		for i, u := range uniform(fmt.Sprintf("t/%d", label), size) {
			x[r*size+i] = float32(2*exact[r*size+i] - 1 + 0.5*(2*u-1))
		}
	}
	return x, labels
}

// namedTokens are rows of tokens: the second token is the label's, and the label says how many at the end are padding.
func namedTokens(step int, x []float32, labels []int32) {
	for i, u := range uniform(fmt.Sprintf("x/%d", step), len(x)) {
		x[i] = float32(1 + math.Floor(18*u))
	}
	size := len(x) / len(labels)
	for r, label := range labels {
		row := x[r*size : (r+1)*size]
		row[1] = float32(1 + label)
		clear(row[size-int(label):])
	}
}

// encoder has blocks of a transformer, with norms before and after.
func encoder(b *model.Builder) {
	x := b.Positions("positions", b.Embedding("tokens", 0, 19, 16, true), false)
	y := b.MultiHeadAttention("attention1", b.LayerNorm("norm1", x, model.OpLayerNorm, 0), model.Attention{Heads: 4})
	x = b.Add("add1", x, y)
	y = b.Same("gelu", b.Dense("up1", b.LayerNorm("norm2", x, model.OpRMSNorm, 0), 24), model.OpGELU)
	x = b.Add("add2", x, b.Dense("down1", y, 16))
	y = b.MultiHeadAttention("attention2", x, model.Attention{Heads: 4, KVHeads: 2, Causal: true, Theta: model.UsualTheta})
	x = b.LayerNorm("norm3", b.Add("add3", x, y), model.OpLayerNorm, 0)
	y = b.Same("silu", b.Same("geluTanh", b.Dense("up2", x, 24), model.OpGELUTanh), model.OpSiLU)
	x = b.LayerNorm("norm4", b.Add("add4", x, b.Dense("down2", y, 16)), model.OpLayerNorm, 0)
	b.Dense("fc", b.TakePosition("mean", x, model.TakeMean), 10)
}

func convNorm(b *model.Builder, conv, norm string, in, filters int, w model.Window, groups int) int {
	return b.BatchNorm(norm, b.Conv(conv, in, filters, w, groups, false))
}

func residualBlock(b *model.Builder, name string, in, filters, stride int) int {
	x := convNorm(b, name+".conv1", name+".bn1", in, filters, model.Square(3, stride, 1), 1)
	x = b.Same(name+".relu1", x, model.OpReLU)
	x = convNorm(b, name+".conv2", name+".bn2", x, filters, model.Square(3, 1, 1), 1)
	short := in
	if stride > 1 {
		short = convNorm(b, name+".downsample.0", name+".downsample.1", in, filters, model.Square(1, stride, 0), 1)
	}
	return b.Same(name+".relu2", b.Add(name+".add", x, short), model.OpReLU)
}

// common has activations and pools that the other networks lack.
func common(b *model.Builder) int {
	x := b.LeakyReLU("leaky", b.Conv("conv1", 0, 8, model.Square(3, 1, 1), 1, true), 0.2)
	x = b.Same("elu", b.Conv("conv2", x, 10, model.Square(3, 2, 1), 1, true), model.OpELU)
	x = b.Same("softplus", b.Conv("conv3", x, 12, model.Square(1, 1, 0), 1, true), model.OpSoftplus)
	x = b.Conv("conv4", b.AdaptivePool("adaptive", x, 4), 9, model.Square(1, 1, 0), 1, true)
	x = b.Same("gate", x, model.OpHardSigmoid)
	return b.Concat("both", b.GlobalMaxPool("max", x), b.GlobalPool("mean", x))
}

// language is a block of GPT-2 that says the next token.
func language(b *model.Builder) {
	tokens := b.Embedding("tokens", 0, 19, 16, true)
	x := b.Positions("positions", tokens, false)
	y := b.LayerNorm("norm1", x, model.OpLayerNorm, 0)
	x = b.Add("add1", x, b.MultiHeadAttention("attention", y, model.Attention{Heads: 4, KVHeads: 2, Causal: true}))
	y = b.Same("gelu", b.Dense("up", b.LayerNorm("norm2", x, model.OpLayerNorm, 0), 24), model.OpGELUTanh)
	x = b.LayerNorm("norm3", b.Add("add2", x, b.Dense("down", y, 16)), model.OpLayerNorm, 0)
	b.TiedDense("head", x, tokens)
}

func testNetwork(t testing.TB, name string) *model.Graph {
	t.Helper()
	if name == "lenet5" {
		g, err := model.Build(disdel.Network{Name: name, Input: []int{1, 28, 28}, Classes: 10})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if name == "encoder-test" || name == "recurrent-test" || name == "both-ways-test" || name == "language-test" {
		b := model.NewBuilder(name, model.Shape{30})
		switch name {
		case "encoder-test":
			encoder(b)
		case "language-test":
			language(b)
		case "both-ways-test":
			x := b.Bidirectional("lstm", b.Embedding("tokens", 0, 19, 16, true), model.OpLSTM, 12)
			b.Dense("fc", b.TakePosition("mean", b.Bidirectional("gru", x, model.OpGRU, 10), model.TakeMean), 10)
		default:
			x := b.Recurrent("lstm", b.Embedding("tokens", 0, 19, 16, true), model.OpLSTM, 12)
			b.Dense("fc", b.TakePosition("last", b.Recurrent("gru", x, model.OpGRU, 20), model.TakeLast), 10)
		}
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	var b *model.Builder
	var last int
	switch name {
	case "common-test":
		b = model.NewBuilder(name, model.Shape{3, 12, 12})
		last = common(b)
	case "resnet8-test":
		b = model.NewBuilder(name, model.Shape{3, 12, 12})
		x := b.Same("relu", convNorm(b, "conv1", "bn1", 0, 8, model.Square(3, 1, 1), 1), model.OpReLU)
		last = residualBlock(b, "layer2.0", residualBlock(b, "layer1.0", x, 8, 1), 16, 2)
	default:
		b = model.NewBuilder(name, model.Shape{3, 16, 16})
		x := convNorm(b, "conv0", "bn0", 0, 8, model.Square(3, 2, 1), 1)
		for i, c := range []struct{ in, out, stride int }{{8, 16, 1}, {16, 24, 2}} {
			x = b.Same(fmt.Sprintf("relu%d", i), x, model.OpReLU6)
			x = convNorm(b, fmt.Sprintf("dw%d", i+1), fmt.Sprintf("dwbn%d", i+1), x, c.in, model.Square(3, c.stride, 1), c.in)
			x = b.Same(fmt.Sprintf("dwrelu%d", i), x, model.OpReLU6)
			x = convNorm(b, fmt.Sprintf("pw%d", i+1), fmt.Sprintf("pwbn%d", i+1), x, c.out, model.Square(1, 1, 0), 1)
		}
		last = b.Same("relu", x, model.OpReLU6)
	}
	if name != "common-test" {
		last = b.GlobalPool("pool", last)
	}
	b.Dense("fc", b.Flatten("flatten", last), 10)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// testedSets are the sets of kernels that a test tries in float32: those of this machine without the ones that have
// only pairs of bfloat16 of their own. With -short, which the race detector runs with, it is only the fastest: the
// detector makes plain Go a hundred times slower, and values race with nobody.
func testedSets() []kernel.Set {
	sets := slices.DeleteFunc(kernel.Sets(), func(s kernel.Set) bool { return strings.HasSuffix(s.Name, "bf16") })
	if testing.Short() {
		return sets[:1]
	}
	return sets
}

// threadCounts are the numbers of threads that a test tries. With -short it is only 3, which is enough to see a race.
func threadCounts(all ...int) []int {
	if testing.Short() {
		return []int{3}
	}
	return all
}

// paths runs f once with every one of the tested sets of kernels.
func paths(t *testing.T, f func(t *testing.T)) { pathsOf(t, testedSets(), f) }

func pathsOf(t *testing.T, sets []kernel.Set, f func(t *testing.T)) {
	for _, s := range sets {
		t.Run(s.Name, func(t *testing.T) {
			t.Setenv(kernel.Variable, s.Name)
			f(t)
		})
	}
}

// From the same weights and batches the losses of 50 steps are PyTorch's, to 1e-4 relative.
func TestLossCurvesArePyTorchs(t *testing.T) {
	race.SkipSequential(t)
	files, err := filepath.Glob("testdata/curves/*.json")
	if err != nil || len(files) != 19 {
		t.Fatal(files, err)
	}
	paths(t, func(t *testing.T) {
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var curve struct {
				Network, Optimizer string
				Losses             []float64
			}
			if err := json.Unmarshal(data, &curve); err != nil {
				t.Fatal(err)
			}
			t.Run(curve.Network+"/"+curve.Optimizer, func(t *testing.T) {
				replay(t, curve.Network, curve.Optimizer, curve.Losses)
			})
		}
	})
}

func replay(t *testing.T, network, optimizer string, losses []float64) {
	g := testNetwork(t, network)
	cfg := engine.Spec{
		BatchSize: 16, Training: true,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 0.05, Momentum: 0.9}},
	}
	switch optimizer {
	case "adam":
		cfg.Optimizer = disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.002}}
	case "lamb":
		cfg.Optimizer = disdel.Optimizer{LAMB: &disdel.LAMB{LearningRate: 0.01, WeightDecay: 0.01}}
	case "rmsprop":
		cfg.Optimizer = disdel.Optimizer{RMSprop: &disdel.RMSprop{LearningRate: 0.001, Momentum: 0.5, WeightDecay: 0.01}}
	case "adagrad":
		cfg.Optimizer = disdel.Optimizer{Adagrad: &disdel.Adagrad{LearningRate: 0.02, WeightDecay: 0.01}}
	}
	e := newEngine(t, g, cfg)
	if err := engine.SetWeights(e, namedWeights(g)); err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for s, want := range losses {
		x, y := namedBatch(s, g.Input())
		got, err := enginetest.Train(e, x, y)
		if err != nil {
			t.Fatal(err)
		}
		away := math.Abs(got-want) / want
		if worst = max(worst, away); away > 1e-4 {
			t.Fatalf("step %d: loss %.8f, PyTorch has %.8f", s, got, want)
		}
	}
	t.Logf("strays by %.1e", worst)
}
