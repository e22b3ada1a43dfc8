package gorgonia

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// Engine computes with one network. It is for one goroutine.
type Engine struct {
	name            string
	graph           *model.Graph // of the weights: a user's graph has one node
	spec            engine.Spec
	builder         Builder
	sample, classes int // values of an input and of an output
	params          []param
	index           map[string]int // of params by name
	programs        []*compiled    // the last used last
	optimizer       optimizer
	source          *rand.PCG
	random          *rand.Rand // of dropout
}

// New makes an engine of a model graph with all weights zero. It returns Invalid for a batch below 1, an unknown loss
// and a network that is not this program's own.
func New(s engine.Spec) (*Engine, error) {
	if s.Loss == "" {
		s.Loss = crossEntropy
	}
	g := s.Graph
	e := newEngine(g.Name, g.Input().Len(), g.Output().Len(), s)
	e.own(graphParams(g))
	e.builder = func(o *Ops) (*Program, error) { return compileGraph(g, o, e.params, s.Loss) }
	if err := e.start(); err != nil {
		return nil, err
	}
	return e, nil
}

func newEngine(name string, sample, classes int, s engine.Spec) *Engine {
	source := rand.NewPCG(0, 0)
	return &Engine{
		name: name, spec: s, graph: s.Graph, sample: sample, classes: classes, index: map[string]int{}, source: source,
		random: rand.New(source),
	}
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
	if e.spec.BatchSize < 1 {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine",
			Msg: fmt.Sprintf("a batch of %d rows", e.spec.BatchSize),
		}
	}
	if _, err := e.program(e.spec.BatchSize, e.spec.Training); err != nil {
		return err
	}
	if e.spec.Training {
		var sizes []int
		for _, p := range e.params {
			if p.trainable {
				sizes = append(sizes, len(p.data))
			}
		}
		e.optimizer = newOptimizer(e.spec.Optimizer, sizes)
	}
	e.resetMoments()
	return nil
}

// program returns the graph for a number of rows. Two are kept for each purpose: an epoch has whole batches and one
// rest.
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

// Footprint is what New was expected to take.
func (e *Engine) Footprint() engine.Footprint { return footprintOf(e.spec) }

// Kernels names the path of the kernels that some of its operations are.
func (e *Engine) Kernels() string {
	set, err := kernel.Choose()
	if err != nil {
		return ""
	}
	return set.Name
}

// Reset puts the arrays of a role back to what they are before the first step, and with the moments dropout's numbers.
// The rate stays. It returns Invalid for weights, which Init draws.
func (e *Engine) Reset(r engine.Role) error {
	switch r {
	case engine.Moment:
		e.resetMoments()
	case engine.Statistic:
		for i, q := range e.graph.Params() { // in the order of e.params
			if start := engine.StartOf(e.graph, q); !q.Trainable {
				for k := range e.params[i].data {
					e.params[i].data[k] = start
				}
			}
		}
	case engine.Weight:
		return &disdel.Error{Kind: disdel.Invalid, Op: "reset state", Msg: "weights have no start but Init's"}
	}
	return nil
}

func (e *Engine) resetMoments() {
	if e.optimizer != nil {
		e.optimizer.state().reset()
	}
	e.source.Seed(uint64(e.spec.Seed), dropoutStream)
}

// SetSeed starts dropout's numbers anew from another seed.
func (e *Engine) SetSeed(seed int64) {
	e.spec.Seed = seed
	e.source.Seed(uint64(seed), dropoutStream)
}

// SetRate sets the learning rate of the steps that follow.
func (e *Engine) SetRate(rate float64) {
	if e.optimizer != nil {
		e.optimizer.setRate(rate)
	}
}

func (e *Engine) check(op string, in dataset.Matrix) error {
	if in.Rows < 1 || in.Rows > e.spec.BatchSize || len(in.Values) != in.Rows*e.sample {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: op,
			Msg: fmt.Sprintf("%d values for %d rows of %d, at most %d rows a batch", len(in.Values), in.Rows, e.sample,
				e.spec.BatchSize),
		}
	}
	return nil
}

func (e *Engine) checkBatch(op string, b *dataset.Batch) error {
	if err := e.check(op, b.Input); err != nil {
		return err
	}
	classes := b.Target.Classes
	if len(classes) != b.Input.Rows {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: op,
			Msg: fmt.Sprintf("%d labels for %d rows", len(classes), b.Input.Rows),
		}
	}
	for _, y := range classes {
		if y < 0 || int(y) >= e.classes {
			return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("label %d of %d classes", y, e.classes)}
		}
	}
	return nil
}

// Step trains on one batch and returns the mean loss of the rows before the step. It returns Invalid for a batch that
// does not fit and Diverged for a loss or a gradient that is not finite; then no weight was changed.
func (e *Engine) Step(b dataset.Batch) (disdel.Metrics, error) {
	const op = "train"
	if err := e.checkBatch(op, &b); err != nil {
		return disdel.Metrics{}, err
	}
	if e.optimizer == nil {
		return disdel.Metrics{}, &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: "the engine was made for inference"}
	}
	p, err := e.program(b.Input.Rows, true)
	if err != nil {
		return disdel.Metrics{}, err
	}
	restore := e.keepState()
	loss, err := e.step(p, b.Input.Values, b.Target.Classes)
	if err != nil {
		restore()
		return disdel.Metrics{}, err
	}
	out, _ := p.out.Data().([]float32) // a copy of the forward pass's output
	return disdel.Metrics{Rows: b.Input.Rows, Loss: loss, Correct: e.correct(out, b.Target.Classes)}, nil
}

// correct counts the rows of outputs, [rows classes], whose largest value is at their label.
func (e *Engine) correct(out []float32, labels []int32) (n int) {
	for i, class := range engine.Largest(out[:len(labels)*e.classes], e.classes) {
		if class == labels[i] {
			n++
		}
	}
	return n
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
	return &disdel.Error{
		Kind: disdel.Diverged, Op: op, Msg: fmt.Sprintf("the %s is %v", what, v),
		Hint: "lower the learning rate, or check the data's scale",
	}
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
	limit := e.spec.ClipNorm
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

// forward runs the inference graph and returns its output, [rows classes], valid until the next call, and the mean
// loss.
func (e *Engine) forward(op string, in dataset.Matrix, labels []int32) (out []float32, c *compiled, err error) {
	if c, err = e.program(in.Rows, false); err != nil {
		return nil, nil, err
	}
	err = c.run(in.Values, labels, e.classes)
	c.machine.Reset()
	if err != nil {
		return nil, nil, &disdel.Error{Kind: disdel.Internal, Op: op, Err: err}
	}
	out, _ = c.out.Data().([]float32)
	return out[:in.Rows*e.classes], c, nil
}

// Evaluate returns the mean loss of the rows and how many have their largest output at the label.
func (e *Engine) Evaluate(b dataset.Batch) (disdel.Metrics, error) {
	const op = "evaluate"
	if err := e.checkBatch(op, &b); err != nil {
		return disdel.Metrics{}, err
	}
	labels := b.Target.Classes
	out, c, err := e.forward(op, b.Input, labels)
	if err != nil {
		return disdel.Metrics{}, err
	}
	mean, err := c.lossValue(op)
	return disdel.Metrics{
		Rows: b.Input.Rows, Loss: mean, Correct: e.correct(out, labels), Classes: engine.Largest(out, e.classes),
		Top5: disdel.CountTop5(out, labels),
	}, err
}

// Predict returns the network's output for rows: probabilities where it ends in softmax.
func (e *Engine) Predict(b dataset.Batch) (dataset.Matrix, error) {
	const op = "predict"
	if err := e.check(op, b.Input); err != nil {
		return dataset.Matrix{}, err
	}
	out, _, err := e.forward(op, b.Input, nil)
	return dataset.Matrix{Rows: b.Input.Rows, Columns: e.classes, Values: slices.Clone(out)}, err
}

// Ahead implements engine.Engine: batches are read where they lie.
func (*Engine) Ahead() engine.Ahead { return nil }

// Passes implements engine.Engine: it computes whole networks.
func (*Engine) Passes() engine.Passes { return nil }

// Listener implements engine.Engine.
func (*Engine) Listener() engine.Listener { return nil }

// State lists views of the engine's arrays.
func (e *Engine) State() []engine.Array {
	var out []engine.Array
	for i := range e.params {
		p := &e.params[i]
		role := engine.Weight
		if !p.trainable {
			role = engine.Statistic
		}
		out = append(out, engine.NewArray(p.name, p.shape, role, view{p, p.data}))
	}
	if e.optimizer == nil {
		return out
	}
	m := e.optimizer.state()
	out = append(out, engine.NewArray(engine.StepCount, []int{1}, engine.Moment, engine.StepValues(&m.steps)))
	for i, name := range m.names {
		k := 0
		for j := range e.params {
			if p := &e.params[j]; p.trainable {
				out = append(out, engine.NewArray(p.name+"."+name, p.shape, engine.Moment, view{p, m.arrays[i][k]}))
				k++
			}
		}
	}
	return out
}

// view reads and writes an array of weights, or one of its moments, in PyTorch's layout. It differs from gorgonia's for
// dense weights only, which gorgonia has as [in out].
type view struct {
	param *param
	data  []float32
}

// ReadAt implements engine.Values.
func (v view) ReadAt(dst []float32, at int) {
	if !v.param.dense {
		copy(dst, v.data[at:])
		return
	}
	v.each(len(dst), at, func(there, here int) { dst[there] = v.data[here] })
}

// WriteAt implements engine.Values.
func (v view) WriteAt(src []float32, at int) {
	if !v.param.dense {
		copy(v.data[at:], src)
		return
	}
	v.each(len(src), at, func(there, here int) { v.data[here] = src[there] })
}

// each calls f with the places of n values from at on: there, counted from at, and here, of a dense layer's weights.
func (v view) each(n, at int, f func(there, here int)) {
	outputs, inputs := v.param.shape[0], v.param.shape[1]
	row, column := at/inputs, at%inputs
	for k := range n {
		f(k, column*outputs+row)
		if column++; column == inputs {
			row, column = row+1, 0
		}
	}
}

type node = gorgonia.Node

// param is one array of weights as gorgonia holds it.
type param struct {
	name      string
	shape     []int // outside
	trainable bool
	value     *tensor.Dense // shares data
	data      []float32
	isInput   bool // a user's node came with a value
	dense     bool // stored [in out], the transpose of PyTorch's layout: gorgonia multiplies it as it is
}

// graphParams are the weights of a model graph, zero.
func graphParams(g *model.Graph) []param {
	var out []param
	for _, p := range g.Params() {
		n := g.Nodes[p.Node]
		q := param{name: p.Name, shape: p.Shape, trainable: p.Trainable, data: make([]float32, p.Len())}
		shape := tensor.Shape(p.Shape).Clone()
		switch {
		case n.Op == model.OpDense && len(p.Shape) == 2:
			q.dense, shape = true, tensor.Shape{p.Shape[1], p.Shape[0]}
		case len(p.Shape) == 1 && len(n.Out) == 3:
			shape = tensor.Shape{1, p.Shape[0], 1, 1}
		case len(p.Shape) == 1:
			shape = tensor.Shape{1, p.Shape[0]}
		}
		q.value = tensor.New(tensor.WithShape(shape...), tensor.WithBacking(q.data))
		out = append(out, q)
	}
	return out
}

// paramsOf are the weights of a user's graph, with the values that its nodes have.
func paramsOf(p *Program) []param {
	var out []param
	add := func(n *node, trainable bool) {
		q := param{
			name: n.Name(), shape: slices.Clone(n.Shape()), trainable: trainable,
			data: make([]float32, n.Shape().TotalSize()),
		}
		if v := n.Value(); v != nil {
			values, _ := v.Data().([]float32)
			q.isInput = copy(q.data, values) == len(q.data)
		}
		q.value = tensor.New(tensor.WithShape(n.Shape().Clone()...), tensor.WithBacking(q.data))
		out = append(out, q)
	}
	for _, n := range p.Params {
		add(n, true)
	}
	for _, n := range p.State {
		add(n, false)
	}
	return out
}

// Init sets the weights that a training starts from: engine.InitWeights.
func (e *Engine) Init(init disdel.Init) error {
	return engine.SetWeights(e, engine.InitWeights(e.graph, init))
}
