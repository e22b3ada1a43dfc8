package native

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
	"github.com/disdel/disdel/runtime/engine/slab"
)

// Engine computes with one network. It is for one goroutine.
type Engine struct {
	g      *model.Graph
	spec   engine.Spec
	plan   *plan.Plan
	mem    *slab.Slab
	team   *kernel.Team
	slice  *sliced // nil: the network is a whole one
	layers []layer
	backs  []layer // as backward passes see them, with outputs that were computed again; layers where none is
	params []param
	head   int // the node whose output the loss takes

	rate  float64 // learning rate
	steps int     // since ResetOptimizer
	norms []float64
	open  openMoment // a moment that is kept elsewhere and is being read or set
	pages *pages     // the file of the moments; nil: there is none
	zeros []float32  // the gradients of idle taps, a part of them at a time

	// One call's arguments and results, read and written by the team's workers.
	x         []float32
	target    dataset.Target // without either field, only outputs are computed
	rows      int
	batch     int       // rows of a step, of which rows are one pass
	all       []float32 // inputs of all passes of a step
	first     int       // row of the call that x begins with: large batches are computed in pieces
	training  bool
	mask      []float32 // [lanes], 1 for lanes that hold rows
	out       []float32 // [rows][outputs]
	losses    []float64 // [rows]
	right     []bool    // [rows]: the largest output was at the label
	correct   int       // rows of the last call with labels that were right
	loss      float64
	weighed   float64     // sum of the class weights of the batch
	counted   int         // targets of the batch: rows, or of a language model positions
	positions []float64   // of a language model: [positions][lanes] losses
	hits      []bool      // of a language model: the outputs of those positions were right
	padded    bool        // of a language model: token 0 is no target
	length    int         // tokens of a row that is shorter than others; 0: rows are whole
	text      []float32   // with plan.Spec.Text: the tokens whose keys and values are kept
	odd       atomic.Bool // an input is not finite
	scale     float64     // of gradients
	stale     bool        // weights were set since batch norms that convolutions compute were worked out
	predicted []int32     // classes of the rows of the last evaluation
	job       func(*kernel.Worker)
	infer     func(*kernel.Worker)
}

// New makes an engine with all weights zero and touches all its memory. It returns Invalid for a batch below 1 or an
// unknown loss, OOM for a plan that is larger than s.Memory, and Unavailable if the system has not that much memory.
func New(s engine.Spec) (*Engine, error) {
	if s.Loss == "" {
		s.Loss = CrossEntropy
	}
	if !knownLoss(s.Loss) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine", Msg: fmt.Sprintf("there is no loss %q", s.Loss),
			Hint: "losses: " + strings.Join(lossNames, ", "),
		}
	}
	if s.LabelSmoothing != 0 && (s.Loss != CrossEntropy || s.LabelSmoothing < 0 || s.LabelSmoothing >= 1) {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "make engine",
			Msg:  fmt.Sprintf("a label smoothing of %g with the loss %s", s.LabelSmoothing, s.Loss),
			Hint: "use a share from 0 up to 1, with crossEntropy",
		}
	}
	if err := checkClassWeights(&s); err != nil {
		return nil, err
	}
	if err := checkLanguage(&s); err != nil {
		return nil, err
	}
	p, err := PlanOf(s)
	if err != nil {
		return nil, err
	}
	if s.Memory > 0 && p.Bytes() > s.Memory {
		return nil, &disdel.Error{
			Kind: disdel.OOM, Op: "make engine",
			Msg: fmt.Sprintf("network %s with a batch of %d needs %v, and the action has %v",
				s.Graph.Name, s.BatchSize, p.Bytes(), s.Memory),
			Hint: "lower training.batchSize or raise the memory limit",
		}
	}
	set, err := kernel.Choose()
	if err != nil {
		return nil, err
	}
	mem, err := slab.New(p.Len)
	if err != nil {
		return nil, err
	}
	team := kernel.NewTeam(set, s.Threads, window(s.Graph))
	e := &Engine{g: s.Graph, spec: s, plan: p, mem: mem, team: team, rate: s.Optimizer.Rate()}
	e.build()
	if err := e.openPages(); err != nil {
		e.Close() //nolint:errcheck // the first error counts
		return nil, err
	}
	return e, nil
}

// openPages makes the file of the moments, if there is one, and sets all moments to zero.
func (e *Engine) openPages() (err error) {
	if e.pages != nil {
		err = e.pages.open()
	}
	if err == nil {
		err = e.resetMoments()
	}
	return err
}

// window is the most pixels of a pool's or depthwise convolution's window.
func window(g *model.Graph) int {
	maximum := 1
	for i := range g.Nodes {
		n := &g.Nodes[i]
		maximum = max(maximum, n.Kernel.H*n.Kernel.W)
		if n.Op == model.OpGlobalAvgPool || n.Op == model.OpAdaptiveAvgPool {
			in := g.Nodes[n.Inputs[0]].Out
			maximum = max(maximum, in[1]*in[2])
		}
	}
	return maximum
}

func (e *Engine) build() {
	e.head = len(e.g.Nodes) - 1
	if e.plan.Spec.ByLoss(e.g, e.head) {
		e.head = e.g.Nodes[e.head].Inputs[0]
	}
	e.mask = make([]float32, e.plan.Lanes)
	if !e.g.Slice.Leaves() || !e.spec.Training { // others hand their outputs on as they are
		e.out = make([]float32, e.spec.BatchSize*outputs(e.g))
	}
	if e.padded = e.g.HasPadding(); e.g.PredictsTokens() && !e.plan.Spec.Text {
		n := e.g.Output()[1] * e.plan.Lanes
		e.positions, e.hits = make([]float64, n), make([]bool, n)
	}
	e.losses, e.right = make([]float64, e.spec.BatchSize), make([]bool, e.spec.BatchSize)
	e.buildParams()
	e.norms = make([]float64, len(e.params))
	idle := func(p param) bool { return p.idleAt() < len(p.value) }
	if e.spec.Training && slices.ContainsFunc(e.params, idle) {
		e.zeros = make([]float32, 4096)
	}
	e.layers = make([]layer, len(e.g.Nodes))
	for i := range e.layers {
		e.layers[i] = e.layer(i)
	}
	if e.plan.Spec.Text {
		e.layers[e.head].kind = lastPosition{}
	}
	for i := range e.layers {
		e.layers[i].follow(e)
	}
	for i := range e.params {
		l := &e.layers[e.params[i].Node]
		l.params = append(l.params, &e.params[i])
	}
	e.backs = e.layersBack()
	e.job, e.infer, e.stale = e.step, e.predict, true
	e.buildSlice()
}

// Plan is the engine's memory.
func (e *Engine) Plan() *plan.Plan { return e.plan }

// Kernels names the path that computes: avx512bf16, avx512, avx2, neon or portable.
func (e *Engine) Kernels() string { return e.team.Kernels(e.plan.Spec.Halves) }

// Close frees the engine's memory; it must not be used afterwards.
func (e *Engine) Close() error {
	err := e.mem.Free()
	if e.pages != nil {
		err = errors.Join(err, e.pages.close())
	}
	return err
}

// Footprint is the engine's memory by category.
func (e *Engine) Footprint() engine.Footprint { return footprintOf(e.plan, e.spec.BatchSize) }

// SetRate sets the learning rate of the steps to come, for schedules.
func (e *Engine) SetRate(rate float64) { e.rate = rate }

// step is one worker's part of a step.
func (e *Engine) step(w *kernel.Worker) {
	w.Rounding(e.plan.Spec.Halves)
	if e.first == 0 {
		e.checkInputs(w, e.all)
		w.Sync()
		if e.odd.Load() {
			return
		}
	}
	e.forward(w)
	e.lossOf(w, true)
	if !finite(e.loss) {
		return
	}
	e.backward(w)
	if e.spec.ClipNorm > 0 && e.lastPass() {
		e.clip(w)
	}
}

func (e *Engine) predict(w *kernel.Worker) {
	w.Rounding(false)
	e.forward(w)
	e.lossOf(w, false)
}

// forward computes every node.
func (e *Engine) forward(w *kernel.Worker) {
	in := &e.layers[0]
	switch {
	case e.training && e.g.Slice.Enters(): // they are there, see Inputs
	case e.plan.ByRows:
		w.RowsImport(in.out, in.v.Image, in.v.Border, e.x, e.rows)
	default:
		w.Import(in.out, in.v.Image, in.v.Border, e.x, e.rows)
	}
	if e.readsMasks() {
		t := &e.layers[1]
		w.Import(t.out, t.v.Image, t.v.Border, e.slice.tokens, e.rows)
	}
	e.scaleNorms(w)
	w.Sync()
	e.settle(w, in)
	for i := 1; i < len(e.layers); i++ {
		e.layers[i].forward(w, e)
		e.settle(w, &e.layers[i])
	}
}

// backward computes all gradients that are needed, from the last layer on, and updates weights on the way.
func (e *Engine) backward(w *kernel.Worker) {
	for i := e.head; i > 0; i-- {
		l := &e.backs[i]
		if len(l.grad) == 0 {
			continue
		}
		for _, k := range e.plan.Again[i] {
			e.backs[k].forward(w, e)
		}
		l.backward(w, e)
		e.giveBack(w, l)
		if len(l.params) == 0 {
			continue
		}
		if e.plan.Spec.SumGrads {
			e.sum(w, l.params)
		}
		if e.spec.ClipNorm <= 0 && e.lastPass() {
			e.update(w, l.params)
			w.Sync()
		}
	}
}

// lastPass tells whether a step has no rows behind those of this pass.
func (e *Engine) lastPass() bool { return e.first+e.rows == e.batch }
