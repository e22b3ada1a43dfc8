package gorgonia

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native"
)

// Engine computes with one network. It is for one goroutine.
type Engine struct {
	name            string
	graph           *model.Graph // of the weights: a user's graph has one node
	cfg             native.Config
	builder         Builder
	sample, classes int // values of an input and of an output
	params          []param
	index           map[string]int // of params by name
	programs        []*compiled    // the last used last
	optimizer       optimizer
	source          *rand.PCG
	random          *rand.Rand // of dropout
}

// New makes an engine of a model graph with all weights zero. It returns Invalid for a batch below 1, an unknown loss and a
// network that is not this program's own.
func New(g *model.Graph, cfg native.Config) (*Engine, error) {
	if cfg.Loss == "" {
		cfg.Loss = crossEntropy
	}
	e := newEngine(g.Name, g.Input().Len(), g.Output().Len(), cfg)
	e.graph = g
	e.own(graphParams(g))
	e.builder = func(o *Ops) (*Program, error) { return compileGraph(g, o, e.params, cfg.Loss) }
	return e, e.start()
}

func newEngine(name string, sample, classes int, cfg native.Config) *Engine {
	source := rand.NewPCG(0, 0)
	return &Engine{name: name, cfg: cfg, sample: sample, classes: classes, index: map[string]int{}, source: source, random: rand.New(source)}
}

// own makes weights the engine's.
func (e *Engine) own(params []param) {
	e.params = params
	for i, p := range params {
		e.index[p.name] = i
	}
}

// start compiles for whole batches, so that what cannot be computed is refused at once.
func (e *Engine) start() error {
	if e.cfg.Batch < 1 {
		return &disdel.Error{Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("a batch of %d rows", e.cfg.Batch)}
	}
	if _, err := e.program(e.cfg.Batch, e.cfg.Training); err != nil {
		return err
	}
	if e.cfg.Training {
		var sizes []int
		for _, p := range e.params {
			if p.trainable {
				sizes = append(sizes, len(p.data))
			}
		}
		e.optimizer = newOptimizer(e.cfg.Optimizer, sizes)
	}
	return e.ResetOptimizer()
}

// program returns the graph for a number of rows. Two are kept for each purpose: an epoch has whole batches and one rest.
func (e *Engine) program(rows int, training bool) (*compiled, error) {
	const kept = 2
	var same []int
	for i, c := range e.programs {
		if c.training != training {
			continue
		}
		if c.rows == rows {
			e.programs = append(slices.Delete(e.programs, i, i+1), c)
			return c, nil
		}
		same = append(same, i)
	}
	c, err := e.compile(rows, training)
	if err != nil {
		return nil, err
	}
	if len(same) >= kept {
		if err := e.programs[same[0]].machine.Close(); err != nil {
			return nil, &disdel.Error{Kind: disdel.Internal, Op: "close a program", Err: err}
		}
		e.programs = slices.Delete(e.programs, same[0], same[0]+1)
	}
	e.programs = append(e.programs, c)
	return c, nil
}

// Close frees the engine; it must not be used afterwards.
func (e *Engine) Close() error {
	for _, p := range e.programs {
		if err := p.machine.Close(); err != nil {
			return &disdel.Error{Kind: disdel.Internal, Op: "close engine", Err: err}
		}
	}
	e.programs = nil
	return nil
}

// ResetOptimizer forgets all moments, counts steps from zero and starts dropout's numbers anew. The rate stays.
func (e *Engine) ResetOptimizer() error {
	if e.optimizer != nil {
		e.optimizer.state().reset()
	}
	e.source.Seed(uint64(e.cfg.Seed), dropoutStream)
	return nil
}

// SetSeed starts dropout's numbers anew from another seed.
func (e *Engine) SetSeed(seed int64) {
	e.cfg.Seed = seed
	e.source.Seed(uint64(seed), dropoutStream)
}

// SetRate sets the learning rate of the steps that follow.
func (e *Engine) SetRate(rate float64) {
	if e.optimizer != nil {
		e.optimizer.setRate(rate)
	}
}

func (e *Engine) check(op string, values, rows int) error {
	if rows < 1 || rows > e.cfg.Batch || values != rows*e.sample {
		return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("%d values for %d rows of %d, at most %d rows a batch", values, rows, e.sample, e.cfg.Batch)}
	}
	return nil
}

func (e *Engine) checkLabels(op string, labels []int32) error {
	for _, y := range labels {
		if y < 0 || int(y) >= e.classes {
			return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("label %d of %d classes", y, e.classes)}
		}
	}
	return nil
}

// Step trains on one batch: x is [rows C H W], labels [rows]. It returns the mean loss of the rows before the step. It
// returns Invalid for a batch that does not fit and Diverged for a loss or a gradient that is not finite; then no weight was
// changed.
func (e *Engine) Step(x []float32, labels []int32) (float64, error) {
	const op = "train"
	if err := e.check(op, len(x), len(labels)); err != nil {
		return 0, err
	}
	if err := e.checkLabels(op, labels); err != nil {
		return 0, err
	}
	if e.optimizer == nil {
		return 0, &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: "the engine was made for inference"}
	}
	p, err := e.program(len(labels), true)
	if err != nil {
		return 0, err
	}
	restore := e.keepState()
	loss, err := e.step(p, x, labels)
	if err != nil {
		restore()
	}
	return loss, err
}

func (e *Engine) step(p *compiled, x []float32, labels []int32) (float64, error) {
	defer p.machine.Reset()
	if err := p.run(x, labels, e.classes); err != nil {
		return 0, &disdel.Error{Kind: disdel.Internal, Op: "train", Err: err}
	}
	grads, err := e.gradients(p)
	if err != nil {
		return 0, err
	}
	defer func() { // gorgonia adds to what a bound gradient holds
		for _, g := range grads {
			clear(g)
		}
	}()
	loss, err := p.lossValue("train")
	if err != nil {
		return 0, err
	}
	if err := e.update(grads); err != nil {
		return 0, err
	}
	if p.after != nil {
		err = p.after()
	}
	return loss, err
}

func diverged(op, what string, v float64) error {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		return nil
	}
	return &disdel.Error{Kind: disdel.Diverged, Op: op, Msg: fmt.Sprintf("the %s is %v", what, v), Hint: "lower the learning rate, or check the data's scale"}
}

func (c *compiled) lossValue(op string) (float64, error) {
	v, ok := c.loss.Data().(float32)
	if !ok {
		return 0, &disdel.Error{Kind: disdel.Internal, Op: op, Msg: fmt.Sprintf("the loss is a %T", c.loss.Data())}
	}
	return float64(v), diverged(op, "loss", float64(v))
}

// keepState copies what operations change as they run, to put it back after a step that failed.
func (e *Engine) keepState() (restore func()) {
	old := make([][]float32, len(e.params))
	for i, p := range e.params {
		if !p.trainable {
			old[i] = slices.Clone(p.data)
		}
	}
	return func() {
		for i, v := range old {
			copy(e.params[i].data, v)
		}
	}
}

// gradients are those of the trainable parameters, in the order of params.
func (e *Engine) gradients(p *compiled) ([][]float32, error) {
	out := make([][]float32, 0, len(p.Params))
	for _, q := range e.params {
		if !q.trainable {
			continue
		}
		i := slices.IndexFunc(p.Params, func(n *node) bool { return n.Name() == q.name })
		v, err := p.Params[i].Grad()
		if err != nil {
			return nil, &disdel.Error{Kind: disdel.Internal, Op: "train", Msg: "gradient of " + q.name, Err: err}
		}
		grad, ok := v.Data().([]float32)
		if !ok || len(grad) != len(q.data) {
			return nil, &disdel.Error{Kind: disdel.Internal, Op: "train", Msg: "gradient of " + q.name + " has another shape"}
		}
		out = append(out, grad)
	}
	return out, nil
}

func (e *Engine) update(grads [][]float32) error {
	limit := e.cfg.ClipNorm
	if limit <= 0 {
		limit = math.Inf(1)
	}
	if err := diverged("train", "gradient", clipNorm(grads, limit)); err != nil {
		return err
	}
	e.optimizer.next()
	k := 0
	for _, p := range e.params {
		if p.trainable {
			e.optimizer.step(k, p.data, grads[k])
			k++
		}
	}
	return nil
}

// forward runs the inference graph and returns its output, [rows classes], valid until the next call, and the mean loss.
func (e *Engine) forward(op string, x []float32, rows int, labels []int32) (out []float32, c *compiled, err error) {
	if err := e.check(op, len(x), rows); err != nil {
		return nil, nil, err
	}
	if c, err = e.program(rows, false); err != nil {
		return nil, nil, err
	}
	err = c.run(x, labels, e.classes)
	c.machine.Reset()
	if err != nil {
		return nil, nil, &disdel.Error{Kind: disdel.Internal, Op: op, Err: err}
	}
	out, _ = c.out.Data().([]float32)
	return out[:rows*e.classes], c, nil
}

// Evaluate returns the sum of the rows' losses and how many rows have their largest output at the label.
func (e *Engine) Evaluate(x []float32, labels []int32) (lossSum float64, correct int, err error) {
	const op = "evaluate"
	if err := e.checkLabels(op, labels); err != nil {
		return 0, 0, err
	}
	out, c, err := e.forward(op, x, len(labels), labels)
	if err != nil {
		return 0, 0, err
	}
	for i, y := range labels {
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
	}
	mean, err := c.lossValue(op)
	return mean * float64(len(labels)), correct, err
}

// Predict returns the network's output for rows of x, [rows classes]: probabilities where it ends in softmax.
func (e *Engine) Predict(x []float32, rows int) ([]float32, error) {
	out, _, err := e.forward("predict", x, rows, nil)
	return slices.Clone(out), err
}
