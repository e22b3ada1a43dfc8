package python

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
)

// spec is what an engine is made for, with the description of its program.
type spec struct {
	engine.Spec
	network *disdel.CustomNetwork
	program *disdel.PythonNetwork
	layout  layout
	sample  int // values of a row
}

// Engine computes with one program. It is for one goroutine.
type Engine struct {
	spec
	memory    *shared
	control   *control
	versions  map[string]string
	footprint engine.Footprint
	state     []engine.Array
	start     disdel.Weights // statistics as the program makes them; nil: not known yet

	rate   float64
	seed   int64
	steps  int // of the optimiser, as State has it
	own    int // of the optimiser in the process
	round  int // grows with every round that begins
	course engine.Course
	slot   int  // that the next batch goes to
	staged int  // rows of the batch that waits in the other slot; 0: none
	ended  bool // the process is gone
}

func newEngine(s engine.Spec, c *disdel.CustomNetwork, b Backend) (e *Engine, err error) {
	e = &Engine{
		spec: spec{
			Spec: s, network: c, program: c.Python, layout: newLayout(&s, c), sample: model.Shape(c.Input).Len(),
		},
		footprint: footprintOf(&s, c), rate: s.Optimizer.Rate(), course: engine.Course{Worker: s.Place},
	}
	defer func() {
		if err != nil {
			e.Close() //nolint:errcheck // the first error says more
		}
	}()
	if e.memory, err = newShared(e.layout.Size); err != nil {
		return e, err
	}
	p, err := b.startProcess(&e.spec, e.memory)
	if err != nil {
		return e, err
	}
	e.control = newControl(p)
	if s.Context != nil {
		e.control.until(s.Context)
	}
	e.label("loading")
	return e, e.load()
}

// load waits for the worker and has it load the program.
func (e *Engine) load() error {
	hello, err := e.control.receive()
	if err != nil {
		return err
	}
	e.versions = hello.Versions
	l, err := e.control.ask("load", e.loading())
	if err != nil {
		return err
	}
	if l.Versions != nil {
		e.versions = l.Versions
	}
	e.state = engine.StateOf(&e.Spec, &e.steps, e.values)
	for i := range e.network.Params {
		a := e.state[i]
		e.state[i] = engine.NewFloatArray(a.Name, a.Shape, a.Role, e.floats(i, -1))
	}
	e.limit(firstStep)
	return nil
}

// dataShare is the share of the action's limit that the program's own memory may take with all others: an allocation
// fails below the share at which the runtime ends the action.
const dataShare = 95

// The kernel bounds memory that is asked for, not memory that is used: stacks of threads and ends of heaps come on top
// of what the action's limit leaves to the program. The first step starts most of the threads.
const (
	firstStep  = 160 * disdel.MB
	laterSteps = 24 * disdel.MB
)

// limit bounds the program's memory by what the action's limit leaves to it, and by so much more that it does not use.
func (e *Engine) limit(unused disdel.Bytes) {
	p := e.control.process
	p.files = statusField(p.pid, "RssFile")
	taken := statusField(os.Getpid(), "RssAnon") + statusField(p.pid, "RssAnon") + disdel.Bytes(e.layout.Size)
	if e.Memory > 0 {
		p.limitData(max(0, e.Memory/100*dataShare-taken) + unused)
	}
}

// loading is what a worker needs to know of the program.
func (e *Engine) loading() map[string]any {
	orNone := func(p []disdel.CustomParam) []disdel.CustomParam { return append([]disdel.CustomParam{}, p...) }
	arguments := e.program.Arguments
	if arguments == nil {
		arguments = map[string]any{}
	}
	return map[string]any{
		"folder": e.Code, "file": e.program.File, "entry": e.program.Entry, "arguments": arguments, "form": e.program.Form,
		"input": e.network.Input, "classes": e.network.Classes, "batch": e.BatchSize, "loss": e.lossName(),
		"training": e.Training, "threads": max(1, e.Threads), "optimizer": e.Optimizer, "clipNorm": e.ClipNorm,
		"params": orNone(e.network.Params), "integers": orNone(e.program.Integers),
		"moments": append([]string{}, momentNames(&e.Spec)...), "layout": e.layout,
	}
}

// lossName is the loss of the engine, else that of the description.
func (e *Engine) lossName() string { return cmp.Or(e.Loss, e.program.Loss, "crossEntropy") }

// values are those of parameter i of the graph: of its weights for moment -1, else of that moment.
func (e *Engine) values(i, moment int) engine.Values {
	if k := i - len(e.network.Params); k >= 0 {
		return integers(part[int64](e.memory, e.layout.Integers[k], model.Shape(e.program.Integers[k].Shape).Len()))
	}
	return e.floats(i, moment)
}

// floats are the values of a parameter that is no whole number, as values has them.
func (e *Engine) floats(i, moment int) engine.Floats {
	n := model.Shape(e.network.Params[i].Shape).Len()
	if moment < 0 {
		return part[float32](e.memory, e.layout.Weights[i], n)
	}
	trained := 0
	for _, q := range e.network.Params[:i] {
		if q.Trainable {
			trained++
		}
	}
	return part[float32](e.memory, e.layout.Moments[moment][trained], n)
}

// Init implements engine.Engine. The program draws its own weights, with all generators seeded.
func (e *Engine) Init(init disdel.Init) error {
	e.label("init")
	_, err := e.ask("init", map[string]any{"seed": init.Seed})
	e.own = 0 // the network is a new one, and so is its optimiser
	return err
}

// ask sends a request to the program. After a failure the process may be in any state: Close is all that is left.
func (e *Engine) ask(op string, fields any) (answer, error) {
	if e.ended || !e.control.process.alive() {
		return answer{}, &disdel.Error{Kind: disdel.Crashed, Op: operation, Msg: "the program's process has ended"}
	}
	a, err := e.control.ask(op, fields)
	e.ended = !e.control.process.alive()
	return a, err
}

// SetRate implements engine.Engine.
func (e *Engine) SetRate(rate float64) { e.rate = rate }

// SetSeed implements engine.Engine. A new seed begins a round.
func (e *Engine) SetSeed(seed int64) {
	e.seed = seed
	e.round++
}

// stepSeed spreads the seed of the round over its steps: generators of the program start from it at each step, so that
// none of their states has to be kept.
func (e *Engine) stepSeed() int64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
	x := uint64(e.seed) + uint64(e.steps)*golden
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // the finaliser of SplitMix64
	x = (x ^ x>>27) * 0x94d049bb133111eb
	const bits = 31 // generators of NumPy take 32
	return int64((x ^ x>>31) >> (64 - bits))
}

// stepping is a request for a step.
type stepping struct {
	Slot   int     `json:"slot"`
	Rows   int     `json:"rows"`
	Rate   float64 `json:"rate"`
	Base   float64 `json:"base"`
	Steps  int     `json:"steps"`
	Seed   int64   `json:"seed"`
	Round  int     `json:"round"`
	Epoch  int     `json:"epoch"`
	Epochs int     `json:"epochs"`
	Batch  int     `json:"batch"`
}

// Step implements engine.Engine. Correct is -1 where the program does not say how many rows are right.
func (e *Engine) Step(b dataset.Batch) (disdel.Metrics, error) {
	if err := e.Stage(b); err != nil {
		return disdel.Metrics{}, err
	}
	return e.StepStaged(nil)
}

// Ahead implements engine.Engine: a batch can be written while the program computes with another one.
func (e *Engine) Ahead() engine.Ahead { return e }

// Passes implements engine.Engine: it computes whole networks.
func (*Engine) Passes() engine.Passes { return nil }

// Stage implements engine.Ahead.
func (e *Engine) Stage(b dataset.Batch) error {
	const op = "train"
	if !e.Training {
		return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: "the engine was made for inference"}
	}
	if err := e.check(op, &b, true); err != nil {
		return err
	}
	if !kernel.Finite(b.Input.Values) {
		k := slices.IndexFunc(b.Input.Values, func(v float32) bool { return v-v != 0 })
		return &disdel.Error{
			Kind: disdel.Diverged, Op: op, Msg: fmt.Sprintf("value %d of row %d is not finite", k%e.sample, k/e.sample),
			Hint: "check the data set",
		}
	}
	e.write(&b)
	e.staged = b.Input.Rows
	return nil
}

// write copies a batch to the slot of the next step.
func (e *Engine) write(b *dataset.Batch) {
	copy(part[float32](e.memory, e.layout.X[e.slot], e.BatchSize*e.sample), b.Input.Values)
	copy(part[int32](e.memory, e.layout.Y[e.slot], e.BatchSize), b.Target.Classes)
}

// StepStaged implements engine.Ahead.
func (e *Engine) StepStaged(during func() error) (m disdel.Metrics, err error) {
	rows := e.staged
	if rows == 0 {
		return m, &disdel.Error{Kind: disdel.Invalid, Op: "train", Msg: "no batch was staged"}
	}
	if err := e.prepare(); err != nil {
		return m, err
	}
	e.label(fmt.Sprintf("step %d", e.steps+1))
	request := stepping{
		Slot: e.slot, Rows: rows, Rate: e.rate, Base: e.Optimizer.Rate(), Steps: e.own, Seed: e.stepSeed(), Round: e.round,
		Epoch: e.course.Epoch, Epochs: e.course.Epochs, Batch: e.BatchSize,
	}
	e.staged, e.slot = 0, (e.slot+1)%slots
	if err := e.control.send("step", request); err != nil {
		e.ended = true
		return m, err
	}
	var failed error
	if during != nil {
		failed = during()
	}
	a, err := e.control.receive()
	if err != nil {
		e.ended = !e.control.process.alive()
		return m, err
	}
	if e.own == 0 {
		e.limit(laterSteps)
	}
	e.steps++
	e.own++
	if m, err = e.metrics("train", rows, &a); err != nil {
		return m, err
	}
	return m, failed
}

// prepare has the process forget its optimiser's state where State was written meanwhile: the next step makes it of the
// shared moments.
func (e *Engine) prepare() error {
	if e.ended || !e.control.process.alive() {
		return &disdel.Error{Kind: disdel.Crashed, Op: operation, Msg: "the program's process has ended"}
	}
	if e.own == e.steps || e.opaque() && e.steps > 0 {
		return nil
	}
	if _, err := e.ask("reset", struct{}{}); err != nil {
		return err
	}
	if e.own = e.steps; e.opaque() {
		e.own = 0
	}
	return nil
}

// opaque tells whether the optimiser's state is the process's own: a new process begins without it.
func (e *Engine) opaque() bool { return e.Optimizer.Own != nil && e.Optimizer.Own.Opaque }

// metrics reads an answer about a batch.
func (e *Engine) metrics(op string, rows int, a *answer) (disdel.Metrics, error) {
	m := disdel.Metrics{Rows: rows, Correct: -1}
	if a.Correct != nil && *a.Correct >= 0 && *a.Correct <= rows {
		m.Correct = *a.Correct
	}
	if a.Loss == nil || math.IsNaN(*a.Loss) || math.IsInf(*a.Loss, 0) {
		return m, &disdel.Error{
			Kind: disdel.Diverged, Op: op, Msg: "the program's loss is not finite",
			Hint: "lower the learning rate, set training.clipNorm, or check the data's scale",
		}
	}
	m.Loss = *a.Loss
	return m, nil
}

// batchRequest asks for an evaluation or a prediction.
type batchRequest struct {
	Slot int `json:"slot"`
	Rows int `json:"rows"`
}

// Evaluate implements engine.Engine.
func (e *Engine) Evaluate(b dataset.Batch) (m disdel.Metrics, err error) {
	const op = "evaluate"
	if err := e.check(op, &b, true); err != nil {
		return m, err
	}
	e.staged = 0
	e.write(&b)
	e.label(op)
	rows := b.Input.Rows
	a, err := e.ask(op, batchRequest{e.slot, rows})
	if err != nil {
		return m, err
	}
	if m, err = e.metrics(op, rows, &a); err != nil || m.Correct < 0 {
		return m, err
	}
	m.Classes, m.Top5 = part[int32](e.memory, e.layout.Labels, rows), -1 // the program says classes only
	for i, k := range m.Classes {
		if k < 0 || int(k) >= e.network.Classes {
			return m, &disdel.Error{
				Kind: disdel.Invalid, Op: operation,
				Msg:  fmt.Sprintf("the program says class %d of row %d, and there are %d", k, i, e.network.Classes),
				Hint: "correct the program and submit the job again",
			}
		}
	}
	return m, nil
}

// Predict implements engine.Engine.
func (e *Engine) Predict(b dataset.Batch) (dataset.Matrix, error) {
	const op = "predict"
	if err := e.check(op, &b, false); err != nil {
		return dataset.Matrix{}, err
	}
	e.staged = 0
	e.write(&b)
	e.label(op)
	rows := b.Input.Rows
	if _, err := e.ask(op, batchRequest{e.slot, rows}); err != nil {
		return dataset.Matrix{}, err
	}
	n := e.network.Classes
	outputs := part[float32](e.memory, e.layout.Outputs, rows*n)
	return dataset.Matrix{Rows: rows, Columns: n, Values: slices.Clone(outputs)}, nil
}

// check returns Invalid for a batch that does not fit.
func (e *Engine) check(op string, b *dataset.Batch, target bool) error {
	bad := func(format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Invalid, Op: op, Msg: fmt.Sprintf(format, args...)}
	}
	rows := b.Input.Rows
	switch {
	case rows < 1 || rows > e.BatchSize:
		return bad("a batch of %d rows, and the engine takes 1 to %d", rows, e.BatchSize)
	case b.Input.Start != nil || len(b.Input.Values) != rows*e.sample:
		return bad("%d values for %d rows of %d", len(b.Input.Values), rows, e.sample)
	case !target:
		return nil
	case len(b.Target.Classes) != rows:
		return bad("%d labels for %d rows", len(b.Target.Classes), rows)
	}
	for i, y := range b.Target.Classes {
		if y < 0 || int(y) >= e.network.Classes {
			return bad("row %d has class %d of %d", i, y, e.network.Classes)
		}
	}
	return nil
}

// State implements engine.Engine.
func (e *Engine) State() []engine.Array { return e.state }

// Reset implements engine.Engine. Statistics start as the program makes them.
func (e *Engine) Reset(r engine.Role) error {
	switch r {
	case engine.Moment:
		for m := range e.layout.Moments {
			for i, p := range e.network.Params {
				if p.Trainable {
					clear(e.floats(i, m))
				}
			}
		}
		e.steps = 0
		return e.forget()
	case engine.Statistic:
		return e.resetStatistics()
	default:
		return &disdel.Error{Kind: disdel.Invalid, Op: "reset", Msg: "a " + r.String() + " has no start to be set back to"}
	}
}

// resetStatistics sets statistics to those of a new network. The first time, the program has to make one.
func (e *Engine) resetStatistics() error {
	statistics := engine.Of(e.state, engine.Statistic)
	if e.start == nil && len(statistics) > 0 {
		weights := engine.Copies(engine.Of(e.state, engine.Weight))
		if err := e.Init(disdel.Init{}); err != nil {
			return err
		}
		e.start = engine.Copies(statistics)
		for i, a := range engine.Of(e.state, engine.Weight) {
			if err := a.Set(weights[i]); err != nil {
				return err
			}
		}
	}
	for i, a := range statistics {
		if err := a.Set(e.start[i]); err != nil {
			return err
		}
	}
	return nil
}

// forget has the process drop its optimiser's state, where it has one.
func (e *Engine) forget() error {
	if e.own == 0 {
		return nil
	}
	if _, err := e.ask("reset", struct{}{}); err != nil {
		return err
	}
	e.own = 0
	return nil
}

// Footprint implements engine.Engine.
func (e *Engine) Footprint() engine.Footprint { return e.footprint }

// Kernels implements engine.Engine: the versions and threads that the bits depend on.
func (e *Engine) Kernels() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(e.versions)) {
		parts = append(parts, name+" "+e.versions[name])
	}
	return strings.Join(append(parts, fmt.Sprintf("threads %d", max(1, e.Threads))), ", ")
}

// Listener implements engine.Engine.
func (e *Engine) Listener() engine.Listener { return e }

// Until implements engine.Listener.
func (e *Engine) Until(ctx context.Context) (alive bool) {
	e.control.until(ctx)
	p := e.control.process
	p.stdout.begin()
	p.stderr.begin()
	return !e.ended && p.alive()
}

// BeginEpoch implements engine.Listener.
func (e *Engine) BeginEpoch(c engine.Course) { e.course = c }

// Process implements engine.Listener: a worker may be forked from a template.
func (e *Engine) Process() int {
	if p := e.control.process; p.handle > 0 {
		return p.pid
	}
	return 0
}

// EndRound implements engine.Listener.
func (e *Engine) EndRound() error {
	e.label("end of round")
	_, err := e.ask("round", struct{}{})
	if err == nil {
		err = e.checkWeights()
	}
	for _, o := range []*output{e.control.process.stdout, e.control.process.stderr} {
		o.drain()
		o.end()
	}
	return err
}

// checkWeights returns Diverged for weights that are not finite, with the name of their array.
func (e *Engine) checkWeights() error {
	for i, p := range e.network.Params {
		if !kernel.Finite(e.floats(i, -1)) {
			return &disdel.Error{
				Kind: disdel.Diverged, Op: operation, Msg: p.Name + " is not finite at the end of the round",
				Hint: "lower the learning rate, set training.clipNorm, or check the data's scale",
			}
		}
	}
	return nil
}

// label names what the program does before each line that it prints.
func (e *Engine) label(doing string) {
	text := doing
	if e.Training {
		text = fmt.Sprintf("worker %d, %s", e.course.Worker, doing)
	}
	e.control.process.stdout.labelled(text)
	e.control.process.stderr.labelled(text)
}

// Close implements engine.Engine. It ends the process and all that it has started.
func (e *Engine) Close() error {
	if e.control != nil {
		p := e.control.process
		if p.alive() && !e.ended {
			e.control.until(context.Background())
			if e.control.send("stop", struct{}{}) == nil {
				waitFor(p.ended, stopWait)
			}
		}
		e.control.release()
		p.release()
		e.control = nil
	}
	if e.memory == nil {
		return nil
	}
	memory := e.memory
	e.memory = nil
	return memory.close()
}
