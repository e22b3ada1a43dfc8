package expr

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gorgonia.org/gorgonia"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// Engine computes with one network. It is for one goroutine.
type Engine struct {
	g         *model.Graph
	cfg       engine.Config
	batch     int // rows of the compiled graphs
	params    []param
	training  *program // nil until Step needs it
	inference *program // nil until Evaluate or Predict needs it
	optimizer optimizer
	rng       *rand.Rand
	classes   int
}

// minBatch keeps gorgonia from taking a batch of one row for a vector.
const minBatch = 2

// New makes an engine with all weights zero. It returns Invalid for a batch below 1, an unknown loss, and a layer that the
// engine cannot compute rightly.
func New(g *model.Graph, cfg engine.Config) (*Engine, error) {
	if cfg.Batch < 1 {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("a batch of %d rows", cfg.Batch)}
	}
	if cfg.Loss == "" {
		cfg.Loss = "crossEntropy"
	}
	e := &Engine{g: g, cfg: cfg, batch: max(cfg.Batch, minBatch), params: newParams(g), classes: g.Output().Len()}
	sizes := make([]int, len(e.params))
	for i, p := range e.params {
		sizes[i] = len(p.data)
	}
	if cfg.Training {
		e.optimizer = newOptimizer(cfg.Optimizer, sizes)
	}
	var err error
	if cfg.Training {
		e.training, err = compile(g, e.params, e.batch, true, cfg.Loss)
	} else {
		e.inference, err = compile(g, e.params, e.batch, false, "")
	}
	if err != nil {
		return nil, err
	}
	return e, e.ResetOptimizer()
}

// Close frees the engine; it must not be used afterwards.
func (e *Engine) Close() error {
	for _, p := range []*program{e.training, e.inference} {
		if p == nil {
			continue
		}
		if err := p.machine.Close(); err != nil {
			return &disdel.Error{Kind: disdel.Internal, Op: "close engine", Err: err}
		}
	}
	return nil
}

// ResetOptimizer forgets all moments and starts dropout's random numbers anew.
func (e *Engine) ResetOptimizer() error {
	if e.optimizer != nil {
		e.optimizer.reset()
	}
	e.rng = rand.New(rand.NewPCG(uint64(e.cfg.Seed), 0xd20b))
	return nil
}

func (e *Engine) check(op string, values, rows int) error {
	if sample := e.g.Input().Len(); rows < 1 || rows > e.cfg.Batch || values != rows*sample {
		return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("%d values for %d rows of %d, at most %d rows a batch", values, rows, sample, e.cfg.Batch)}
	}
	return nil
}

// fill copies rows into an input and zeroes the rest, which pads a short batch.
func fill(n *gorgonia.Node, v []float32) {
	dst, _ := n.Value().Data().([]float32)
	clear(dst[copy(dst, v):])
}

// Step trains on one batch: x is [rows C H W], labels [rows]. It returns the mean loss of the rows before the step. It
// returns Invalid for a batch that does not fit and Diverged for a loss that is not finite; then no weight was changed.
func (e *Engine) Step(x []float32, labels []int32) (float64, error) {
	if err := e.check("train", len(x), len(labels)); err != nil {
		return 0, err
	}
	if e.training == nil {
		return 0, &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: "the engine was made for inference"}
	}
	p := e.training
	fill(p.x, x)
	if err := e.setTarget(p, labels); err != nil {
		return 0, err
	}
	for _, m := range p.masks {
		e.drop(m)
	}
	if err := p.machine.RunAll(); err != nil {
		return 0, &disdel.Error{Kind: disdel.Internal, Op: "train", Err: err}
	}
	defer p.machine.Reset()
	loss := float64(p.loss.Data().(float32))
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return 0, &disdel.Error{Kind: disdel.Diverged, Op: "train", Msg: fmt.Sprintf("the loss is %v", loss), Hint: "lower the learning rate, or check the data's scale"}
	}
	return loss, e.update(p)
}

func (e *Engine) setTarget(p *program, labels []int32) error {
	target, _ := p.target.Value().Data().([]float32)
	clear(target)
	n := float32(len(labels))
	for i, y := range labels {
		if y < 0 || int(y) >= e.classes {
			return &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: fmt.Sprintf("label %d of %d classes", y, e.classes)}
		}
		at := i*e.classes + int(y)
		if e.cfg.Loss == "crossEntropy" {
			target[at] = -1 / n
		} else {
			target[at] = 1
		}
	}
	if p.weight == nil {
		return nil
	}
	weight, _ := p.weight.Value().Data().([]float32)
	for i := range weight {
		weight[i] = 0
		if i < len(labels)*e.classes {
			weight[i] = 1 / (n * float32(e.classes))
		}
	}
	return nil
}

// drop draws a mask: 0 for a dropped value, else 1/(1-rate), so that the mean stays.
func (e *Engine) drop(m mask) {
	keep := float32(1 / (1 - m.rate))
	for i := range m.data {
		m.data[i] = 0
		if e.rng.Float64() >= m.rate {
			m.data[i] = keep
		}
	}
}

// update applies the gradients and zeroes them, because gorgonia adds to what a bound gradient holds.
func (e *Engine) update(p *program) error {
	e.optimizer.next()
	for k, n := range p.params {
		g, err := n.Grad()
		if err != nil {
			return &disdel.Error{Kind: disdel.Internal, Op: "train", Msg: "gradient of " + e.params[k].Name, Err: err}
		}
		grad, ok := g.Data().([]float32)
		if !ok || len(grad) != len(e.params[k].data) {
			return &disdel.Error{Kind: disdel.Internal, Op: "train", Msg: "gradient of " + e.params[k].Name + " has another shape"}
		}
		e.optimizer.step(k, e.params[k].data, grad)
		clear(grad)
	}
	return nil
}

// forward runs the inference graph and returns its output, [rows classes], valid until the next call.
func (e *Engine) forward(x []float32, rows int) ([]float32, error) {
	if err := e.check("predict", len(x), rows); err != nil {
		return nil, err
	}
	if e.inference == nil {
		p, err := compile(e.g, e.params, e.batch, false, "")
		if err != nil {
			return nil, err
		}
		e.inference = p
	}
	p := e.inference
	fill(p.x, x)
	if err := p.machine.RunAll(); err != nil {
		return nil, &disdel.Error{Kind: disdel.Internal, Op: "predict", Err: err}
	}
	p.machine.Reset()
	out, _ := p.out.Data().([]float32)
	return out[:rows*e.classes], nil
}

// Evaluate returns the sum of the rows' losses and how many rows have their largest output at the label.
func (e *Engine) Evaluate(x []float32, labels []int32) (lossSum float64, correct int, err error) {
	out, err := e.forward(x, len(labels))
	if err != nil {
		return 0, 0, err
	}
	for i, y := range labels {
		if y < 0 || int(y) >= e.classes {
			return 0, 0, &disdel.Error{Kind: disdel.Invalid, Op: "evaluate", Msg: fmt.Sprintf("label %d of %d classes", y, e.classes)}
		}
		row := out[i*e.classes : (i+1)*e.classes]
		best := 0
		for k, v := range row {
			if v > row[best] {
				best = k
			}
		}
		if best == int(y) {
			correct++
		}
		lossSum += e.rowLoss(row, int(y))
	}
	if math.IsNaN(lossSum) || math.IsInf(lossSum, 0) {
		return 0, 0, &disdel.Error{Kind: disdel.Diverged, Op: "evaluate", Msg: fmt.Sprintf("the loss is %v", lossSum)}
	}
	return lossSum, correct, nil
}

// rowLoss is the loss of one row's output: probabilities for cross-entropy.
func (e *Engine) rowLoss(row []float32, y int) float64 {
	if e.cfg.Loss == "crossEntropy" {
		const tiny = 1e-38 // the smallest normal float32, so that a probability of 0 costs much, not infinitely much
		return -math.Log(math.Max(float64(row[y]), tiny))
	}
	sum := 0.0
	for k, v := range row {
		d := float64(v)
		if k == y {
			d--
		}
		sum += d * d
	}
	return sum / float64(len(row))
}

// Predict returns the network's output for rows of x, [rows classes]: probabilities where it ends in softmax.
func (e *Engine) Predict(x []float32, rows int) ([]float32, error) {
	out, err := e.forward(x, rows)
	return append([]float32(nil), out...), err
}
