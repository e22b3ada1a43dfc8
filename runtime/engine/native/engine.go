package native

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Engine computes with one network. It is for one goroutine.
type Engine struct {
	g      *model.Graph
	cfg    Config
	plan   *plan.Plan
	mem    *slab
	team   *kernel.Team
	layers []layer
	params []param
	head   int // the node whose output the loss takes

	rate  float64 // learning rate
	steps int     // since ResetOptimizer
	norms []float64

	// One call's arguments and results, read and written by the team's workers.
	x        []float32
	labels   []int32
	rows     int
	training bool
	mask     []float32 // [lanes], 1 for lanes that hold rows
	out      []float32 // [rows][outputs]
	losses   []float64 // [rows]
	loss     float64
	odd      atomic.Bool // an input is not finite
	scale    float64     // of gradients
	job      func(*kernel.Worker)
	infer    func(*kernel.Worker)
}

// PlanOf is the plan that New would make an engine by: the exact bytes, without allocating them. It returns Invalid as New does.
func PlanOf(g *model.Graph, cfg Config) (*plan.Plan, error) {
	if cfg.Batch < 1 {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("a batch of %d rows", cfg.Batch)}
	}
	return plan.New(g, plan.Spec{Batch: cfg.Batch, Training: cfg.Training, Moments: cfg.Optimizer.Moments(), KeepGrads: cfg.ClipNorm > 0})
}

// New makes an engine with all weights zero and touches all its memory. It returns Invalid for a batch below 1 or an unknown
// loss, OOM for a plan that is larger than cfg.Memory, and Unavailable if the system has not that much memory.
func New(g *model.Graph, cfg Config) (*Engine, error) {
	if cfg.Loss == "" {
		cfg.Loss = CrossEntropy
	}
	if !knownLoss(cfg.Loss) {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("there is no loss %q", cfg.Loss), Hint: "losses: crossEntropy, binaryCrossEntropy, mse"}
	}
	p, err := PlanOf(g, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Memory > 0 && p.Bytes() > cfg.Memory {
		return nil, &disdel.Error{
			Kind: disdel.OOM, Op: "make engine", Msg: fmt.Sprintf("network %s with a batch of %d needs %v, and the action has %v", g.Name, cfg.Batch, p.Bytes(), cfg.Memory),
			Hint: "lower training.batchSize or raise the memory limit",
		}
	}
	set, err := kernel.Choose()
	if err != nil {
		return nil, err
	}
	mem, err := newSlab(p.Len)
	if err != nil {
		return nil, err
	}
	e := &Engine{g: g, cfg: cfg, plan: p, mem: mem, team: kernel.NewTeam(set, cfg.Threads, window(g)), rate: cfg.Optimizer.Rate()}
	e.build()
	return e, e.ResetOptimizer()
}

// window is the most pixels of a pool's or depthwise convolution's window.
func window(g *model.Graph) int {
	most := 1
	for i := range g.Nodes {
		n := &g.Nodes[i]
		most = max(most, n.Kernel.H*n.Kernel.W)
		if n.Op == model.OpGlobalAvgPool || n.Op == model.OpAdaptiveAvgPool {
			in := g.Nodes[n.Inputs[0]].Out
			most = max(most, in[1]*in[2])
		}
	}
	return most
}

func (e *Engine) build() {
	e.head = len(e.g.Nodes) - 1
	if n := e.g.Nodes[e.head]; n.Op == model.OpSoftmax {
		e.head = n.Inputs[0]
	}
	outputs := e.g.Output().Len()
	e.mask = make([]float32, e.plan.Lanes)
	e.out = make([]float32, e.cfg.Batch*outputs)
	e.losses = make([]float64, e.cfg.Batch)
	e.buildParams()
	e.norms = make([]float64, len(e.params))
	e.layers = make([]layer, len(e.g.Nodes))
	for i := range e.layers {
		e.layers[i] = e.layer(i)
	}
	for i := range e.params {
		l := &e.layers[e.params[i].Node]
		l.params = append(l.params, &e.params[i])
	}
	e.job = e.step
	e.infer = e.predict
}

// Plan is the engine's memory.
func (e *Engine) Plan() *plan.Plan { return e.plan }

// Kernels names the path that computes: avx512, avx2 or portable.
func (e *Engine) Kernels() string { return e.team.Kernels() }

// Close frees the engine's memory; it must not be used afterwards.
func (e *Engine) Close() error { return e.mem.free() }

// SetRate sets the learning rate of the steps to come, for schedules.
func (e *Engine) SetRate(rate float64) { e.rate = rate }

func (e *Engine) check(op string, values, rows int) error {
	if sample := e.g.Input().Len(); rows < 1 || rows > e.cfg.Batch || values != rows*sample {
		return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("%d values for %d rows of %d, at most %d rows a batch", values, rows, sample, e.cfg.Batch)}
	}
	return nil
}

func (e *Engine) checkLabels(op string, labels []int32) error {
	for _, y := range labels {
		if y < 0 || int(y) >= e.g.Output().Len() {
			return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf("label %d of %d classes", y, e.g.Output().Len())}
		}
	}
	return nil
}

// prepare sets up a call on rows of x.
func (e *Engine) prepare(x []float32, labels []int32, rows int, training bool) {
	e.x, e.labels, e.training = x, labels, training
	if rows == e.rows {
		return
	}
	e.rows = rows
	for l := range e.mask {
		e.mask[l] = 0
		if l < rows {
			e.mask[l] = 1
		}
	}
	for i := range e.layers {
		v := &e.layers[i].v
		v.Conv.ActiveRows, v.Pool.ActiveRows = plan.Padded(rows), plan.Padded(rows)
		e.layers[i].norm.Rows = rows
	}
}

// Step trains on one batch: x is [rows C H W], labels [rows]. It returns the mean loss of the rows before the step. It
// returns Invalid for a batch that does not fit and Diverged for an input or a loss that is not finite; then no weight was
// changed, but batch norms have counted the batch where its loss is what was not finite.
func (e *Engine) Step(x []float32, labels []int32) (float64, error) {
	if err := e.check("train", len(x), len(labels)); err != nil {
		return 0, err
	}
	if err := e.checkLabels("train", labels); err != nil {
		return 0, err
	}
	if !e.cfg.Training {
		return 0, &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: "the engine was made for inference"}
	}
	e.prepare(x, labels, len(labels), true)
	e.steps++
	e.odd.Store(false)
	e.team.Run(e.job)
	e.x, e.labels = nil, nil
	if e.odd.Load() {
		return 0, &disdel.Error{Kind: disdel.Diverged, Op: "train", Msg: "an input of the batch is not finite", Hint: "check the data for NaN and infinities"}
	}
	if !finite(e.loss) {
		return 0, &disdel.Error{
			Kind: disdel.Diverged, Op: "train", Msg: fmt.Sprintf("the loss is %v", e.loss),
			Hint: "lower the learning rate, set training.clipNorm, or check the data's scale",
		}
	}
	return e.loss, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// step is one worker's part of a step.
func (e *Engine) step(w *kernel.Worker) {
	e.checkInputs(w)
	w.Sync()
	if e.odd.Load() {
		return
	}
	e.forward(w)
	e.lossOf(w, true)
	if !finite(e.loss) {
		return
	}
	e.backward(w)
	if e.cfg.ClipNorm > 0 {
		e.clip(w)
	}
}

// checkInputs looks for values that tanh, sigmoid and relu6 would hide from the loss, and not from the weights. The sum of squares
// tells, at the speed of the memory, that all are finite; where it is not, it may only be large.
func (e *Engine) checkInputs(w *kernel.Worker) {
	from, to := len(e.x)*w.ID/w.N/lanes*lanes, len(e.x)*(w.ID+1)/w.N/lanes*lanes
	if w.ID == w.N-1 {
		to = len(e.x)
	}
	whole := from + (to-from)/lanes*lanes
	if sum := w.SquareSum(e.x[from:whole]); !finite(sum) && !allFinite(e.x[from:whole]) || !allFinite(e.x[whole:to]) {
		e.odd.Store(true)
	}
}

// lanes is what vectors of every path divide.
const lanes = 16

func allFinite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}

func (e *Engine) predict(w *kernel.Worker) {
	e.forward(w)
	e.lossOf(w, false)
}

// forward computes every node.
func (e *Engine) forward(w *kernel.Worker) {
	in := &e.layers[0]
	w.Import(in.out, in.v.Image, in.v.Border, e.x, e.rows)
	w.Sync()
	for i := 1; i < len(e.layers); i++ {
		e.layers[i].forward(w, e)
		w.Sync()
	}
}

// backward computes every gradient that is needed, the last layer's first, and updates weights on the way.
func (e *Engine) backward(w *kernel.Worker) {
	for i := e.head; i > 0; i-- {
		l := &e.layers[i]
		if len(l.grad) == 0 {
			continue
		}
		l.backward(w, e)
		w.Sync()
		if e.cfg.ClipNorm <= 0 {
			e.update(w, l.params)
			w.Sync()
		}
	}
}

// Predict returns the network's output for rows of x, [rows outputs]: probabilities where it ends in softmax.
func (e *Engine) Predict(x []float32, rows int) ([]float32, error) {
	if err := e.check("predict", len(x), rows); err != nil {
		return nil, err
	}
	e.prepare(x, nil, rows, false)
	e.team.Run(e.infer)
	e.x = nil
	return append([]float32(nil), e.out[:rows*e.g.Output().Len()]...), nil
}

// Evaluate returns the sum of the rows' losses and how many rows have their largest output at the label. It returns Invalid
// as Step does, and Diverged for a loss that is not finite.
func (e *Engine) Evaluate(x []float32, labels []int32) (lossSum float64, correct int, err error) {
	if err := e.check("evaluate", len(x), len(labels)); err != nil {
		return 0, 0, err
	}
	if err := e.checkLabels("evaluate", labels); err != nil {
		return 0, 0, err
	}
	e.prepare(x, labels, len(labels), false)
	e.team.Run(e.infer)
	e.x, e.labels = nil, nil
	classes := e.g.Output().Len()
	for i, y := range labels {
		if largest(e.out[i*classes:(i+1)*classes]) == int(y) {
			correct++
		}
	}
	lossSum = e.loss * float64(len(labels))
	if !finite(lossSum) {
		return 0, 0, &disdel.Error{Kind: disdel.Diverged, Op: "evaluate", Msg: fmt.Sprintf("the loss is %v", lossSum)}
	}
	return lossSum, correct, nil
}

func largest(row []float32) int {
	best := 0
	for k, v := range row {
		if v > row[best] {
			best = k
		}
	}
	return best
}
