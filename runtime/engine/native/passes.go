package native

import (
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// sliced computes the steps of a slice of a network.
type sliced struct {
	*Engine
	unkept [2][]float32 // running statistics that a batch norm changes when it computes a micro-batch again
	forth  func(*kernel.Worker)
	back   func(*kernel.Worker)
	update func(*kernel.Worker)
	again  bool // a micro-batch is being computed again
	tokens []float32
	shared []float32 // the gradient of the weight that another slice has, too
}

func (e *Engine) buildSlice() {
	if e.g.Slice == nil {
		return
	}
	s := &sliced{Engine: e}
	if e.slice = s; !e.spec.Training {
		return
	}
	s.forth, s.back, s.update = s.computeForward, s.computeBackward, e.updateAll
	widest := 0
	for i := range e.layers {
		if m := e.layers[i].mean; m != nil {
			widest = max(widest, len(m.value))
		}
	}
	s.unkept = [2][]float32{make([]float32, widest), make([]float32, widest)}
}

// Passes implements engine.Engine.
func (e *Engine) Passes() engine.Passes {
	if e.slice == nil {
		return nil
	}
	return e.slice
}

// lanesOf are the values of so many rows in a region of an image.
func lanesOf(values []float32, im plan.Image, rows int) engine.Lanes {
	return engine.Lanes{Values: values[:im.Len()], Rows: rows, Span: im.Span()}
}

// Inputs implements engine.Passes.
func (s *sliced) Inputs(rows int) engine.Lanes {
	in := &s.layers[0]
	return lanesOf(in.out, in.v.Image, rows)
}

// Forward implements engine.Passes.
func (s *sliced) Forward(p engine.Pass) (out engine.Lanes, err error) {
	if err := s.begin(p, false); err != nil {
		return out, err
	}
	s.team.Run(s.forth)
	if err := s.end(); err != nil {
		return out, err
	}
	head := &s.layers[s.head]
	return lanesOf(head.out, head.v.Image, p.Input.Rows), nil
}

// Recompute implements engine.Passes.
func (s *sliced) Recompute(p engine.Pass) (gradient engine.Lanes, err error) {
	if err := s.begin(p, true); err != nil {
		return gradient, err
	}
	s.team.Run(s.forth)
	if err := s.end(); err != nil {
		return gradient, err
	}
	head := &s.layers[s.head]
	return lanesOf(head.grad, head.v.Image, p.Input.Rows), nil
}

// Predict implements engine.Passes.
func (s *sliced) Predict(p engine.Pass) ([]float32, error) {
	err := s.checkInference("predict", p)
	if err == nil {
		err = s.check("predict", p.Input)
	}
	if err != nil {
		return nil, err
	}
	s.tokens = p.Tokens
	s.pieces(p.Input, dataset.Target{})
	return s.out[:p.Input.Rows*outputs(s.g)], nil
}

// Measure implements engine.Passes.
func (s *sliced) Measure(p engine.Pass) (disdel.Metrics, error) {
	if err := s.checkInference("evaluate", p); err != nil {
		return disdel.Metrics{}, err
	}
	s.tokens = p.Tokens
	return s.Evaluate(dataset.Batch{Input: p.Input, Target: p.Target})
}

// checkInference refuses a micro-batch of an engine that trains, one that is computed in several pieces, and tokens
// that do not fit.
func (s *sliced) checkInference(op string, p engine.Pass) error {
	bad := func(format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf(format, args...)}
	}
	switch most := s.plan.Spec.BatchSize; {
	case s.spec.Training:
		return bad("the engine was made for training")
	case p.Input.Rows > most:
		return bad("a micro-batch of %d rows, and a slice computes at most %d", p.Input.Rows, most)
	case s.g.ReadsTokens() && len(p.Tokens) != p.Input.Rows*s.g.Slice.Whole.Input().Len():
		return bad("%d tokens for %d rows", len(p.Tokens), p.Input.Rows)
	}
	return nil
}

// Backward implements engine.Passes.
func (s *sliced) Backward(p engine.Pass) (back engine.Lanes, m disdel.Metrics, err error) {
	if err := s.begin(p, true); err != nil {
		return back, m, err
	}
	if !s.g.Slice.Leaves() {
		s.team.Run(s.forth)
	}
	if !s.odd.Load() && finite(s.loss) {
		s.team.Run(s.back)
	}
	if err := s.end(); err != nil {
		return back, m, err
	}
	if in := &s.layers[0]; s.g.Slice.Enters() {
		back = lanesOf(in.grad, in.v.Image, p.Input.Rows)
	}
	m = disdel.Metrics{Rows: p.Rows, Correct: -1}
	if !s.g.Slice.Leaves() && p.First+p.Input.Rows == p.Rows {
		m.Loss = s.loss / float64(max(1, s.counted))
		if p.Target.Values == nil && !s.g.PredictsTokens() {
			m.Correct = s.correct
		}
	}
	return back, m, nil
}

// Squares implements engine.Passes.
func (s *sliced) Squares() []float64 {
	if s.spec.ClipNorm <= 0 {
		return nil
	}
	return s.norms[:len(s.g.Params())]
}

// Clip implements engine.Passes.
func (s *sliced) Clip(squares []float64) error {
	s.scale = s.scaleOf(squares)
	s.team.Run(s.update)
	return s.pages.failure()
}

// Shared implements engine.Passes.
func (s *sliced) Shared() (weight []float32, trained bool) {
	for i := range s.layers {
		if l := &s.layers[i]; l.node.Lent || l.node.Borrows {
			return l.weight.value[:l.weight.used], l.trains()
		}
	}
	return nil, false
}

// sharedGradient is the number of values of the gradient of a shared weight.
func (s *sliced) sharedGradient() int {
	if weight, trained := s.Shared(); trained {
		return len(weight)
	}
	return 0
}

// readsMasks tells whether node 1 is the tokens of masks.
func (e *Engine) readsMasks() bool { return e.slice != nil && e.g.Slice.Tokens }

// giveBack copies the gradient of a weight that an embedding in another slice has, where l has such a weight.
func (e *Engine) giveBack(w *kernel.Worker, l *layer) {
	if l.node.Borrows && l.trains() {
		w.Copy(e.slice.shared, l.weight.grad[:l.weight.used])
		w.Sync()
	}
}

// begin makes the engine ready for a micro-batch, which is computed the first time or on the way back.
func (s *sliced) begin(p engine.Pass, back bool) error {
	if err := s.checkPass(p, back); err != nil {
		return err
	}
	if begins := p.First == 0 && back != s.g.Slice.Leaves(); begins {
		s.steps++
		s.weigh(p.Target.Classes)
		if s.counted = p.Rows; s.g.PredictsTokens() {
			s.counted = s.targets(p.Tokens)
		}
	}
	s.odd.Store(false)
	s.batch, s.first, s.again = p.Rows, p.First, back
	s.shared, s.tokens = p.Shared, nil
	if s.g.ReadsTokens() {
		n := s.g.Slice.Whole.Input().Len()
		s.tokens = p.Tokens[p.First*n:][:p.Input.Rows*n]
	}
	s.prepare(p.Input.Values, s.part(p.Target, p.Input.Rows), p.Input.Rows, true)
	return nil
}

// end forgets what was given, and returns what went wrong.
func (s *sliced) end() error {
	s.x, s.target, s.first, s.again = nil, dataset.Target{}, 0, false
	if err := s.pages.failure(); err != nil {
		return err
	}
	return s.diverged()
}

// checkPass refuses micro-batches that do not fit.
func (s *sliced) checkPass(p engine.Pass, back bool) error {
	rows, leaves, enters := p.Input.Rows, s.g.Slice.Leaves(), s.g.Slice.Enters()
	bad := func(format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: fmt.Sprintf(format, args...)}
	}
	switch {
	case !s.spec.Training:
		return bad("the engine was made for inference")
	case rows < 1 || rows > s.plan.Spec.BatchSize || p.First < 0 || p.First+rows > p.Rows ||
		!enters && len(p.Input.Values) != rows*s.g.Input().Len():
		return bad("%d values for %d rows from row %d of %d", len(p.Input.Values), rows, p.First, p.Rows)
	case !leaves && !back:
		return bad("the last stage computes forward and backward at once")
	case s.g.ReadsTokens() && len(p.Tokens) != p.Rows*s.g.Slice.Whole.Input().Len():
		return bad("%d tokens for %d rows", len(p.Tokens), p.Rows)
	case back && len(p.Shared) != s.sharedGradient():
		return bad("a shared gradient of %d values instead of %d", len(p.Shared), s.sharedGradient())
	}
	if !enters {
		if err := s.checkTokens("train", p.Input.Values); err != nil {
			return err
		}
	}
	if leaves {
		return nil
	}
	whole := dataset.Batch{Input: dataset.Matrix{Rows: p.Rows}, Target: p.Target}
	return s.checkTargets("train", &whole)
}

// computeForward is one worker's part of a micro-batch forward, with the loss in the network's last slice.
func (s *sliced) computeForward(w *kernel.Worker) {
	e := s.Engine
	w.Rounding(false)
	x := e.x
	if e.g.Slice.Enters() {
		x = e.layers[0].out[:e.layers[0].v.Image.Len()]
	}
	e.checkInputs(w, x)
	w.Sync()
	if e.odd.Load() {
		return
	}
	e.forward(w)
	if !e.g.Slice.Leaves() {
		e.lossOf(w, true)
	}
	w.Sync()
}

// computeBackward is one worker's part of a micro-batch backward, once the gradient of the outputs is there.
func (s *sliced) computeBackward(w *kernel.Worker) {
	e := s.Engine
	w.Rounding(false)
	e.backward(w)
	if e.spec.ClipNorm > 0 && e.lastPass() {
		e.square(w)
	}
	w.Sync()
}

// statistics are the running statistics that a batch norm's forward pass changes.
func (e *Engine) statistics(l *layer) [2][]float32 {
	s := e.slice
	if s == nil || !s.again || !e.g.Slice.Leaves() {
		return l.running()
	}
	n := len(l.mean.value)
	return [2][]float32{s.unkept[0][:n], s.unkept[1][:n]}
}
