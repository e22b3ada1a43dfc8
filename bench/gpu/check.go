package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// bounds are how far losses may be apart, as a share of 1 + the loss: in float32 both engines add up in another order,
// in the others what is multiplied is rounded too.
var bounds = []struct {
	precision disdel.Precision
	loss      float64
}{{disdel.PrecisionFloat32, 2e-3}, {disdel.PrecisionTF32, 2e-2}, {disdel.PrecisionBF16, 1e-1}}

// How far float32 gradients may be apart, as a share of their length. The more layers, the more another order of sums
// comes to: PyTorch's and the processor's engine's are 4e-7 apart for LeNet-5, 0.006 for MobileNet and 0.12 for
// ResNet-152. What rounded products come to nobody has measured, and nothing bounds it.
const (
	apart     = 0.02
	deepApart = 0.25
	deep      = 40 // layers with products
)

const (
	checkBatch = 8
	checkSide  = 64 // images larger than this are made smaller, where the network allows it
)

// first is what all weights of a check are drawn by.
var first = disdel.Init{Seed: 1}

// checked is how a network is trained for a check: by a rate of 1, weights move by the gradient.
func checked(g *model.Graph) engine.Spec {
	return engine.Spec{
		Graph: g, BatchSize: checkBatch, Training: true, Threads: runtime.NumCPU(), Seed: 1, Exact: true,
		Optimizer: disdel.Optimizer{SGD: &disdel.SGD{LearningRate: 1}},
	}
}

// stepped is what a step came to.
type stepped struct {
	loss     float64
	gradient []float32 // by all weights, in the order of the network
}

// compared is how far a step is from what it should be.
type compared struct {
	want, got float64 // losses
	gradient  float64 // the length of the difference, over that of the gradient
}

func compare(want, got stepped) compared {
	var difference, length float64
	for i, v := range want.gradient {
		d := float64(got.gradient[i]) - float64(v)
		difference, length = difference+d*d, length+float64(v)*float64(v)
	}
	return compared{want.loss, got.loss, math.Sqrt(difference / length)}
}

// within tells that a float32 step, or one of rounded products, of a network is no farther away than it may be.
func (c compared) within(g *model.Graph, loss float64, rounded bool) bool {
	products := 0
	for i := range g.Nodes {
		if op := g.Nodes[i].Op; op == model.OpConv || op == model.OpDense {
			products++
		}
	}
	most := apart
	if products > deep {
		most = deepApart
	}
	return math.Abs(c.got-c.want) <= loss*(1+math.Abs(c.want)) && (rounded || c.gradient <= most)
}

// String says it in the report.
func (c compared) String() string {
	return fmt.Sprintf("losses %.5f and %.5f, gradients %.2g of their length apart", c.want, c.got, c.gradient)
}

// trial is a step that both engines make.
type trial struct {
	name  string
	spec  engine.Spec
	batch dataset.Batch
}

// check makes a step of networks on both engines, from the same weights, and one of extreme log-odds. It is one step: of
// deep networks with batch norms the second one's loss is another for every order of sums.
func check(out io.Writer, b [2]engine.Backend, networks []model.Entry) error {
	fmt.Fprintf(out, "\n## A step of each network, batch %d: processor, GPU\n\n", checkBatch)
	odds, err := extremeOdds(1)
	if err != nil {
		return err
	}
	wrong, err := odds.steps(out, b)
	if err != nil {
		return err
	}
	for _, e := range networks {
		g, err := smaller(e)
		if err != nil {
			return err
		}
		n, err := trial{e.Name, checked(g), random(g, checkBatch, 0)}.steps(out, b)
		if err != nil {
			return err
		}
		wrong += n
	}
	if wrong > 0 {
		return &disdel.Error{Kind: disdel.Internal, Op: "check", Msg: fmt.Sprintf("%d steps differ or failed", wrong)}
	}
	return nil
}

// extremeOdds is a network that ends in sigmoids, most of which round to 0 or 1: a loss that reads them has lost their
// logarithms and gradients.
func extremeOdds(seed uint64) (trial, error) {
	b := model.NewBuilder("extreme log-odds", model.Shape{1, 8, 8})
	b.Same("last", b.Dense("fc", b.Flatten("flatten", 0), 5), model.OpSigmoid)
	g, err := b.Graph()
	if err != nil {
		return trial{}, err
	}
	t := trial{g.Name, checked(g), random(g, checkBatch, seed)}
	t.spec.Loss = disdel.LossBinaryCrossEntropy
	for i := range t.batch.Input.Values {
		t.batch.Input.Values[i] *= 100
	}
	return t, nil
}

// steps makes the step on the processor, then in each precision on the GPU. It returns how many differ or failed.
func (t trial) steps(out io.Writer, b [2]engine.Backend) (wrong int, err error) {
	s, shape := t.spec, []int(t.spec.Graph.Input())
	want, err := step(b[0], s, t.batch)
	if err != nil {
		return 0, err
	}
	for _, p := range bounds {
		s.Precision = p.precision
		got, err := step(b[1], s, t.batch)
		if errors.Is(err, disdel.Unavailable) && p.precision != disdel.PrecisionFloat32 {
			continue // an older device
		}
		if err != nil { // the others are checked all the same
			fmt.Fprintf(out, "- %s %v, %s: FAILED: %v\n", t.name, shape, p.precision, err)
			wrong++
			continue
		}
		c, verdict := compare(want, got), "ok"
		if !c.within(s.Graph, p.loss, p.precision != disdel.PrecisionFloat32) {
			verdict = "APART"
			wrong++
		}
		fmt.Fprintf(out, "- %s %v, %s: %v: %s\n", t.name, shape, p.precision, c, verdict)
	}
	return wrong, nil
}

// smaller is a network for smaller images than its own, where it can be had.
func smaller(e model.Entry) (*model.Graph, error) {
	n := disdel.Network{Name: e.Name, Input: e.Input, Classes: e.Classes}
	if len(e.Input) == 3 && e.Input[1] > checkSide {
		n.Input = []int{e.Input[0], checkSide, checkSide}
		if g, err := model.Build(n); err == nil {
			return g, nil
		}
		n.Input = e.Input
	}
	return model.Build(n)
}

// step makes one on a batch.
func step(b engine.Backend, s engine.Spec, data dataset.Batch) (out stepped, err error) {
	e, err := b.New(s)
	if err != nil {
		return out, err
	}
	defer func() {
		if closed := e.Close(); err == nil {
			err = closed
		}
	}()
	if err := e.Init(first); err != nil {
		return out, err
	}
	before := engine.Copies(engine.Of(e.State(), engine.Weight))
	m, err := e.Step(data)
	if err != nil {
		return out, err
	}
	out.loss = m.Loss
	for i, after := range engine.Copies(engine.Of(e.State(), engine.Weight)) {
		for k, v := range after.Data {
			out.gradient = append(out.gradient, before[i].Data[k]-v)
		}
	}
	return out, nil
}

// random is a batch by a seed.
func random(g *model.Graph, rows int, seed uint64) dataset.Batch {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := dataset.Dense(rows, make([]float32, rows*g.Input().Len()), make([]int32, rows))
	for i := range b.Input.Values {
		b.Input.Values[i] = float32(rng.NormFloat64())
	}
	for i := range b.Target.Classes {
		b.Target.Classes[i] = rng.Int32N(int32(g.Output().Len()))
	}
	return b
}
