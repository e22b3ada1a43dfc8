package native

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// drawnStep is a network, a batch, and the gradients of its weights on every path of kernels and number of threads, as
// testdata/drawn.py reads them.
type drawnStep struct {
	Nodes     []model.Node
	Ops       []string // what the nodes compute
	Weights   disdel.Weights
	X         []float32
	Y         []int32
	Gradients map[string]disdel.Weights
	Kept      map[string][]float32 // what a layer multiplies each row with: 0 for rows that it leaves out
}

// drawImages draws a network of layers of images from a seed.
func drawImages(t *testing.T, seed uint64) *model.Graph {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 36))
	b := model.NewBuilder(fmt.Sprintf("drawn %d", seed), model.Shape{1 + rng.IntN(3), 5 + rng.IntN(6), 5 + rng.IntN(6)})
	acts := []model.Op{
		model.OpReLU, model.OpReLU6, model.OpSigmoid, model.OpTanh, model.OpHardSwish, model.OpELU, model.OpSoftplus,
		model.OpHardSigmoid, model.OpGELU, model.OpSiLU,
	}
	x := 0
	for i := range 2 + rng.IntN(4) {
		name := fmt.Sprint("n", i)
		switch c := b.Out(x)[0]; rng.IntN(19) {
		case 17:
			x = drawWindows(b, rng, name, x)
		case 18: // a block covers a side that is odd
			block := model.Sides{H: 1 + b.Out(x)[1]%2*(b.Out(x)[1]-1), W: 2 + b.Out(x)[2]%2*(b.Out(x)[2]-2)}
			x = b.SpaceToDepth(name, x, block)
		case 11:
			x = b.Conv(name+".a", x, 6*(1+rng.IntN(3)), model.Square(1, 1, 0), 1, true)
			x = b.Channels(name, x, rng.IntN(3), rng.IntN(4), 1+rng.IntN(3))
		case 12:
			x = b.LayerNorm(name, b.Conv(name+".a", x, 5+rng.IntN(9), model.Square(1, 1, 0), 1, true), model.OpLayerNorm, 1e-5)
		case 16:
			groups := 1 + rng.IntN(5)
			x = b.Conv(name+".a", x, groups*(1+rng.IntN(4)), model.Square(3, 1, 1), 1, true)
			x = b.GroupNorm(name, x, groups, 1e-3)
		case 9:
			x = b.Multiply(name, b.Same(name+".gate", b.Conv(name+".a", b.GlobalPool(name+".mean", x), c, model.Square(1, 1, 0),
				1, true), model.OpSigmoid), x)
		case 10:
			x = b.Multiply(name, x, b.Conv(name+".a", x, c, model.Square(3, 1, 1), 1, true))
		case 0:
			x = b.Pool(name, x, []model.Op{model.OpMaxPool, model.OpAvgPool}[rng.IntN(2)], model.Square(3, 1, 1))
		case 1:
			x = b.AdaptivePool(name, x, 1+rng.IntN(6))
		case 2:
			x = b.Add(name, x, dropped(b, rng, name, b.Conv(name+".a", x, c, model.Square(1, 1, 0), 1, true)))
		case 3:
			x = b.Concat(name, b.Conv(name+".a", x, 1+rng.IntN(5), model.Square(3, 1, 1), 1, true), x)
		case 4:
			x = b.BatchNorm(name+".n", b.Conv(name, x, 1+rng.IntN(17), model.Square(3, 1, 1), 1, false))
		case 5:
			x = b.Pad(name, x, model.Padding{Top: rng.IntN(3), Bottom: rng.IntN(3), Left: rng.IntN(3), Right: rng.IntN(3)})
		case 6:
			x = b.Upsample(name, x, model.Sides{H: 1 + rng.IntN(2), W: 1 + rng.IntN(2)})
		case 8:
			pad, side := rng.IntN(2), 2+rng.IntN(2)
			if b.Out(x)[1] == 1 || b.Out(x)[2] == 1 {
				pad = 0
			}
			x = b.ConvTranspose(name+" turned", x, 1+rng.IntN(9), model.Window{
				Kernel: model.Sides{H: side, W: 3}, Stride: model.Sides{H: 1 + rng.IntN(2), W: 1 + rng.IntN(2)},
				Pad: model.Padding{Top: pad, Bottom: pad, Left: pad, Right: pad},
			}, 1, true)
		case 7:
			x = b.PReLU(name, b.Conv(name+".a", x, 1+rng.IntN(17), model.Square(3, 2, 1), 1, true), 1)
			x = b.PReLU(name+".p", x, b.Out(x)[0])
		default:
			x = b.Conv(name, x, c*(1+rng.IntN(3)), model.Square(1+2*rng.IntN(2), 1, 1), []int{1, c}[rng.IntN(2)], true)
		}
		if k := rng.IntN(len(acts) + 3); k < len(acts) {
			x = b.Same(name+".s", x, acts[k])
		} else {
			x = b.LeakyReLU(name+".s", x, rng.Float64())
		}
	}
	switch rng.IntN(4) {
	case 3:
		w := model.Window{
			Kernel: model.Sides{H: 1 + rng.IntN(4), W: 1}, Stride: model.Sides{H: 1 + rng.IntN(2), W: 1},
			Dilation: model.Sides{H: 1 + rng.IntN(2), W: 1}, Pad: model.Padding{Top: 3, Bottom: 3},
		}
		x = b.Conv1D("conv1d", b.Sequence("sequence", x), 1+rng.IntN(20), w, 1, rng.IntN(2) == 0)
	case 0:
		x = b.GlobalPool("mean", x)
	case 1:
		x = b.GlobalMaxPool("max", x)
	}
	b.Dense("fc", b.Flatten("flat", x), 2+rng.IntN(5))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// drawWindows adds an attention within windows of an image, which may be no multiple of them.
func drawWindows(b *model.Builder, rng *rand.Rand, name string, x int) int {
	a := model.WindowAttention{
		Heads: 1 + rng.IntN(3), Window: model.Sides{H: 1 + rng.IntN(4), W: 1 + rng.IntN(4)}, Grid: rng.IntN(3) == 0,
		Cosine: rng.IntN(2) == 0, NoBias: rng.IntN(2) == 0,
	}
	if !a.Grid {
		a.Shift = model.Sides{H: rng.IntN(a.Window.H), W: rng.IntN(a.Window.W)}
	}
	return b.WindowAttention(name, b.Conv(name+".a", x, a.Heads*(1+rng.IntN(6)), model.Square(1, 1, 0), 1, true), a)
}

// drawSequences draws a network of rows of tokens from a seed, or of an image in patches; with a third of the tokens a
// language model.
func drawSequences(t *testing.T, seed uint64) *model.Graph {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 37))
	images, speaks := rng.IntN(4) == 0, rng.IntN(3) == 0
	width := 4 * (1 + rng.IntN(6))
	input := model.Shape{3 + rng.IntN(38)}
	if rng.IntN(2) == 0 { // so many positions share vectors where rows are few
		input[0] = (input[0] + 7) &^ 7
	}
	if rng.IntN(6) == 0 { // attention goes by blocks of 32, 64 and 128 positions
		input[0] += 50 + rng.IntN(200)
	}
	if images {
		input = model.Shape{1 + rng.IntN(3), 4 + rng.IntN(5), 4 + rng.IntN(5)}
	}
	b, x, tokens := model.NewBuilder(fmt.Sprintf("drawn %d", seed), input), 0, 0
	if images {
		x = b.Sequence("patches", b.Conv("patch", 0, width, model.Square(2, 2, 0), 1, true))
		x = b.ClassToken("class", x)
	} else {
		tokens = b.Embedding("tokens", 0, 5+rng.IntN(40), width, rng.IntN(2) == 0)
		x = tokens
	}
	if rng.IntN(3) > 0 {
		x = b.Positions("positions", x, rng.IntN(2) == 0)
	}
	for i := range 1 + rng.IntN(4) {
		x = drawSequenceLayer(b, rng, fmt.Sprint("n", i), x, speaks && !images)
	}
	switch {
	case images || !speaks:
		x = b.TakePosition("take", x, []string{model.TakeMean, model.TakeFirst, model.TakeLast}[rng.IntN(3)])
		b.Dense("fc", x, 2+rng.IntN(5))
	case b.Out(x)[0] == width && rng.IntN(2) == 0:
		b.TiedDense("head", x, tokens)
	default:
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		b.Dense("head", x, g.Vocabulary())
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// drawSequenceLayer adds a layer of sequences and what follows it. In a language model no position knows a later one.
func drawSequenceLayer(b *model.Builder, rng *rand.Rand, name string, x int, speaks bool) int {
	c := b.Out(x)[0]
	acts := []model.Op{model.OpGELU, model.OpGELUTanh, model.OpSiLU, model.OpReLU, model.OpTanh, model.OpSigmoid}
	recurrent := []model.Op{model.OpLSTM, model.OpGRU}[rng.IntN(2)]
	heads := []int{1, 2, (c + 1) / 2}[rng.IntN(3)]
	for c%heads != 0 {
		heads--
	}
	a := model.Attention{
		Heads: heads, Causal: speaks || rng.IntN(2) == 0,
		NoBias: rng.IntN(2) == 0,
	}
	if c/heads%2 == 0 {
		a.Theta = []float64{0, model.UsualTheta, 500000, 7}[rng.IntN(4)]
	}
	if heads%2 == 0 && rng.IntN(2) == 0 {
		a.KVHeads = heads / 2
	}
	switch rng.IntN(8) {
	case 0:
		return b.Recurrent(name, x, recurrent, 1+rng.IntN(20))
	case 1:
		if speaks {
			return b.Recurrent(name, x, recurrent, 17)
		}
		return b.Bidirectional(name, x, recurrent, 1+rng.IntN(12))
	case 2:
		side := 1 + rng.IntN(3)
		w := model.Window{
			Kernel: model.Sides{H: side, W: 1}, Stride: model.Sides{H: 1, W: 1}, Pad: model.Padding{Top: side - 1},
			Dilation: model.Sides{H: 1, W: 1},
		}
		return b.Same(name+".s", b.Conv1D("conv1d."+name, x, 2*(1+rng.IntN(10)), w, 1, rng.IntN(2) == 0), acts[rng.IntN(6)])
	case 3:
		y := b.MultiHeadAttention(name, b.LayerNorm(name+".norm", x, model.OpRMSNorm, 1e-3), a)
		return b.Add(name+".sum", x, dropped(b, rng, name, y))
	case 4:
		y := b.Dense(name, x, 1+rng.IntN(30))
		return b.Concat(name+".both", x, b.LayerNorm(name+".norm", y, model.OpLayerNorm, 1e-2))
	default:
		return b.Transformer(name, x, model.Transformer{
			Attention: a, Hidden: 1 + rng.IntN(30), PostNorm: rng.IntN(2) == 0, Activation: acts[rng.IntN(3)], Eps: 1e-3,
		})
	}
}

// dropped leaves out a branch for some rows of half of the networks.
func dropped(b *model.Builder, rng *rand.Rand, name string, x int) int {
	if rng.IntN(2) == 0 {
		return x
	}
	return b.DropPath(name+".drop", x, 0.3)
}

// drawBatch is a batch of a drawn network. Padding is at the end of rows, and no row has nothing else.
func drawBatch(g *model.Graph, rows int) (x []float32, y []int32) {
	x, y = batch(g, rows, 11)
	if n := g.Input().Len(); g.HasPadding() {
		for r := range rows {
			row := x[r*n : (r+1)*n]
			for i := range row {
				row[i] = max(row[i], 1)
			}
			clear(row[n-r%(n-1):])
		}
	}
	return x, y
}

// Gradients of drawn networks are PyTorch's of float64, on every path of kernels and on one thread and two.
// DISDEL_TEST_DRAWN draws that many, from DISDEL_TEST_SEED.
func TestGradientsOfDrawnNetworksArePyTorchs(t *testing.T) {
	python := cmp.Or(os.Getenv("DISDEL_TEST_TORCH"), "/usr/bin/python3")
	if exec.CommandContext(t.Context(), python, "-c", "import torch").Run() != nil {
		t.Skip("DISDEL_TEST_TORCH names no Python with torch")
	}
	count, seed := 20, uint64(1)
	if v, err := strconv.Atoi(os.Getenv("DISDEL_TEST_DRAWN")); err == nil {
		count, seed = v, 1000
	}
	if v, err := strconv.ParseUint(os.Getenv("DISDEL_TEST_SEED"), 10, 32); err == nil {
		seed = v << 16
	}
	if testing.Short() {
		count = 4
	}
	var steps []drawnStep
	for i := range count {
		draw, rows := drawSequences, []int{16, 8, 5, 3, 1}[i%5]
		if i%3 == 0 {
			draw, rows = drawImages, 16
		}
		steps = append(steps, drawStep(t, draw(t, seed+uint64(i)), rows))
	}
	data, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "steps.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python, "testdata/drawn.py", file).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func drawStep(t *testing.T, g *model.Graph, rows int) drawnStep {
	t.Helper()
	s := drawnStep{
		Nodes: g.Nodes, Weights: namedWeights(g), Gradients: map[string]disdel.Weights{}, Kept: map[string][]float32{},
	}
	for i := range g.Nodes {
		s.Ops = append(s.Ops, g.Nodes[i].Op.String())
	}
	s.X, s.Y = drawBatch(g, rows)
	for _, set := range testedSets() {
		for threads := 1; threads <= 2; threads++ {
			t.Setenv(kernel.Variable, set.Name)
			e := initialized(t, g, engine.Spec{BatchSize: rows, Optimizer: sgd1, Training: true, Threads: threads})
			if _, err := enginetest.Train(e, s.X, s.Y); err != nil {
				t.Fatal(err)
			}
			moved := engine.Weights(e)
			for i := range moved {
				for k, v := range moved[i].Data {
					moved[i].Data[k] = s.Weights[i].Data[k] - v
				}
			}
			for i := range e.layers {
				if l := &e.layers[i]; l.node.Op == model.OpDropPath {
					s.keep(t, e, l, rows)
				}
			}
			s.Gradients[fmt.Sprintf("%s on %d threads", set.Name, threads)] = moved
		}
	}
	return s
}

// keep notes which rows a layer left out in the step. They are the same on every path.
func (s *drawnStep) keep(t *testing.T, e *Engine, l *layer, rows int) {
	t.Helper()
	ones := make([]float32, l.v.Image.Lanes) // fewer are no chunk of a worker
	for i := range ones {
		ones[i] = 1
	}
	e.team.Run(func(w *kernel.Worker) { l.drop(w, e, ones, ones) })
	if before, ok := s.Kept[l.node.Name]; ok && !slices.Equal(before, ones[:rows]) {
		t.Errorf("%s keeps %v on one path, and %v on another", l.node.Name, before, ones[:rows])
	}
	s.Kept[l.node.Name] = ones[:rows]
}
