package gorgonia

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
)

// Program is a network and its loss as an expression graph for one number of rows, all float32.
type Program struct {
	Graph  *gorgonia.ExprGraph
	Input  *gorgonia.Node // [rows and a sample's shape]
	Target *gorgonia.Node // [rows classes]: 1 at a row's label, 0 elsewhere
	Output *gorgonia.Node // [rows classes]: the largest value of a row is its class
	Loss   *gorgonia.Node // a scalar, the mean over the rows
	Params gorgonia.Nodes // what training changes by its gradient, with names of their own
	State  gorgonia.Nodes // what operations change as they run, such as batch norm's running statistics
	before func() error   // runs before the machine does
	after  func() error   // and after
}

// Builder builds a graph: for o.Rows() rows, and for training where o.Training() says so. It is called once for every
// number of rows that there are batches of, and must name its parameters alike every time. Their values come from
// outside.
type Builder func(o *Ops) (*Program, error)

// building is held while an expression graph is made: gorgonia keeps its table of types in a package variable without a
// lock, so that building two graphs at once races.
var building sync.Mutex

// compiled is a program with its machine.
type compiled struct {
	*Program
	rows     int // asked for
	training bool
	machine  gorgonia.VM
	out      gorgonia.Value
	loss     gorgonia.Value
}

func invalid(name, format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "compile network " + name, Msg: fmt.Sprintf(format, args...)}
}

// guard turns a panic of gorgonia into an error: it panics on shapes.
func guard(name string, err *error) {
	if r := recover(); r != nil {
		*err = invalid(name, "gorgonia refuses it: %v", r)
	}
}

// build calls a Builder and checks what it made.
func (e *Engine) build(o *Ops) (p *Program, err error) {
	defer guard(e.name, &err)
	if p, err = e.builder(o); err != nil {
		return nil, err
	}
	return p, e.checkProgram(p, o.Rows())
}

func (e *Engine) checkProgram(p *Program, rows int) error {
	if p == nil || p.Graph == nil || p.Input == nil || p.Target == nil || p.Output == nil || p.Loss == nil {
		return invalid(e.name, "the program lacks its graph, input, target, output or loss")
	}
	for _, c := range []struct {
		what string
		n    *gorgonia.Node
		want int
	}{
		{"input", p.Input, rows * e.sample},
		{"target", p.Target, rows * e.classes},
		{"output", p.Output, rows * e.classes},
		{"loss", p.Loss, 1},
	} {
		if got := c.n.Shape().TotalSize(); got != c.want {
			return invalid(e.name, "the %s has shape %v, %d values, and %d are needed for %d rows", c.what, c.n.Shape(), got,
				c.want, rows)
		}
	}
	if !p.Loss.IsScalar() {
		return invalid(e.name, "the loss has shape %v and must be a scalar", p.Loss.Shape())
	}
	seen := map[string]bool{}
	for _, n := range slices.Concat(gorgonia.Nodes{p.Input, p.Target, p.Output, p.Loss}, p.Params, p.State) {
		if n.Dtype() != tensor.Float32 {
			return invalid(e.name, "%s is %v, and must be float32", n.Name(), n.Dtype())
		}
	}
	for _, n := range slices.Concat(p.Params, p.State) {
		if n.Name() == "" || seen[n.Name()] || n.Op() != nil {
			return invalid(e.name, "parameter %q is no input node of the graph, or its name is empty or taken", n.Name())
		}
		seen[n.Name()] = true
	}
	return nil
}

// compile builds the graph for a number of rows and makes its machine.
func (e *Engine) compile(rows int, training bool) (c *compiled, err error) {
	building.Lock()
	defer building.Unlock()
	defer guard(e.name, &err)
	o, err := NewOps(OpsConfig{Rows: rows, Training: training, Threads: e.spec.Threads})
	if err != nil {
		return nil, err
	}
	o.random = e.random
	p, err := e.build(o)
	if err != nil {
		return nil, err
	}
	if e.params == nil {
		e.own(paramsOf(p))
	}
	if err := e.bind(p); err != nil {
		return nil, err
	}
	c = &compiled{Program: p, rows: rows, training: training}
	gorgonia.Read(p.Output, &c.out)
	gorgonia.Read(p.Loss, &c.loss)
	if !training {
		c.machine = newMachine(p.Graph, gorgonia.EvalMode())
		return c, nil
	}
	if len(p.Params) == 0 { // nothing to learn: the loss alone
		c.machine = newMachine(p.Graph, gorgonia.EvalMode())
		return c, nil
	}
	if _, err := gorgonia.Grad(p.Loss, p.Params...); err != nil {
		return nil, invalid(e.name, "there is no gradient: %v", err)
	}
	c.machine = newMachine(p.Graph, gorgonia.BindDualValues(p.Params...))
	return c, nil
}

// newMachine makes a machine that can be collected: gorgonia gives it a finalizer, which has nothing to do without
// CUDA, and what points to itself and has a finalizer stays for ever.
func newMachine(g *gorgonia.ExprGraph, opt gorgonia.VMOpt) gorgonia.VM {
	m := gorgonia.NewTapeMachine(g, opt)
	runtime.SetFinalizer(m, nil)
	return m
}

// bind gives the nodes of a program the engine's values.
func (e *Engine) bind(p *Program) error {
	trainable := 0
	for _, q := range e.params {
		if q.trainable {
			trainable++
		}
	}
	if len(p.Params) != trainable {
		return invalid(e.name, "it has %d parameters, and had %d when the graph was built first", len(p.Params), trainable)
	}
	for _, n := range slices.Concat(p.Params, p.State) {
		i, ok := e.index[n.Name()]
		if !ok {
			return invalid(e.name, "parameter %s was not there when the graph was built first", n.Name())
		}
		v := e.params[i].value
		if !n.Shape().Eq(v.Shape()) {
			return invalid(e.name, "parameter %s has shape %v, and had %v when the graph was built first", n.Name(), n.Shape(),
				v.Shape())
		}
		if err := gorgonia.Let(n, v); err != nil {
			return invalid(e.name, "parameter %s: %v", n.Name(), err)
		}
	}
	for _, n := range []*node{p.Input, p.Target} {
		if err := gorgonia.Let(n, tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(n.Shape()...))); err != nil {
			return invalid(e.name, "%s: %v", n.Name(), err)
		}
	}
	return nil
}

// run feeds rows and runs the machine; reset must follow once the values were read.
func (c *compiled) run(x []float32, labels []int32, classes int) error {
	fill(c.Input, x, c.rows)
	target, _ := c.Target.Value().Data().([]float32)
	clear(target)
	if len(labels) > 0 {
		for i := range len(target) / classes {
			target[i*classes+int(labels[i%len(labels)])] = 1
		}
	}
	if c.before != nil {
		if err := c.before(); err != nil {
			return err
		}
	}
	return c.machine.RunAll()
}

// fill copies rows into an input. A single row stands twice: the mean over the rows stays what it is.
func fill(n *gorgonia.Node, v []float32, rows int) {
	dst, _ := n.Value().Data().([]float32)
	copied := copy(dst, v)
	if rows < minBatch {
		copy(dst[copied:], v)
	}
}
