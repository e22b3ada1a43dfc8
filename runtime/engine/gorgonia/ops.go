package gorgonia

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/runtime/engine/native/kernel"
	"github.com/disdel/disdel/runtime/engine/native/plan"
)

// Ops makes operations for one expression graph: those of the engine's kernels, which gorgonia lacks or has wrong.
// Images are [rows channels height width], vectors [rows units], values float32. Operations of one Ops share their
// working memory, so that only one of them may run at a time, as a machine of gorgonia does it. Errors are Invalid.
type Ops struct {
	set      kernel.Set
	threads  int
	rows     int
	training bool
	random   *rand.Rand
	made     int
	taps     int // most pixels of a window
	team     *kernel.Team
	work     arena
}

// OpsConfig is what an Ops is made for.
type OpsConfig struct {
	Rows     int // of a batch; what Rows returns
	Training bool
	Threads  int   // workers of an operation; 0 is one
	Seed     int64 // of dropout
}

// NewOps returns an Ops. It returns Invalid where the environment names kernels that this processor has not.
func NewOps(cfg OpsConfig) (*Ops, error) {
	set, err := kernel.Choose()
	if err != nil {
		return nil, err
	}
	return &Ops{
		set: set, threads: max(cfg.Threads, 1), rows: cfg.Rows, training: cfg.Training, taps: 1,
		random: rand.New(rand.NewPCG(uint64(cfg.Seed), dropoutStream)),
	}, nil
}

// dropoutStream tells dropout's numbers from others of the same seed.
const dropoutStream = 0xd20b

// Rows is how many rows a batch of the graph has, at least 2: gorgonia takes a batch of one row for a vector.
func (o *Ops) Rows() int { return max(o.rows, minBatch) }

// Training tells whether the graph is for training: dropout drops, and batch norm goes by the batch.
func (o *Ops) Training() bool { return o.training }

// minBatch keeps gorgonia from taking a batch of one row for a vector.
const minBatch = 2

// run has every worker do f. Buffers are taken before.
func (o *Ops) run(f func(w *kernel.Worker)) {
	if o.team == nil {
		o.team = kernel.NewTeam(o.set, o.threads, o.taps)
	}
	o.team.Run(f)
}

// window makes room for a window of n pixels.
func (o *Ops) window(n int) {
	if n > o.taps {
		o.taps, o.team = n, nil
	}
}

// arena lends buffers for the time of one operation, the same ones every time.
type arena struct {
	slots [][]float32
	next  int
}

// slack is room behind a buffer that kernels may read, never use.
const slack = 2048

func (a *arena) reset() { a.next = 0 }

// take lends n values, whatever they are.
func (a *arena) take(n int) []float32 {
	if a.next == len(a.slots) {
		a.slots = append(a.slots, nil)
	}
	if cap(a.slots[a.next]) < n+slack {
		a.slots[a.next] = make([]float32, n+slack)
	}
	a.next++
	return a.slots[a.next-1][:n]
}

// takeZero lends n zeros.
func (a *arena) takeZero(n int) []float32 {
	v := a.take(n)
	clear(v[:cap(v)])
	return v
}

// image is how kernels hold an array of [rows channels height width] or [rows units].
func image(s tensor.Shape) plan.Image {
	im := plan.Image{C: s[1], H: 1, W: 1, Lanes: plan.Padded(s[0])}
	if len(s) == 4 {
		im.H, im.W = s[2], s[3]
	}
	return im
}

// refuse is the error of an operation that cannot be made.
func refuse(op, format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: "make operation " + op, Msg: fmt.Sprintf(format, args...)}
}

// check refuses inputs that are not float32 or of another rank.
func check(op string, n *gorgonia.Node, ranks ...int) error {
	if n.Dtype() != tensor.Float32 {
		return refuse(op, "%s is %v, not float32", n.Name(), n.Dtype())
	}
	for _, r := range ranks {
		if n.Shape().Dims() == r {
			return nil
		}
	}
	return refuse(op, "%s has shape %v, and %v sides are needed", n.Name(), n.Shape(), ranks)
}

// checkLen refuses a parameter of another number of values.
func checkLen(op string, n *gorgonia.Node, want int) error {
	if n == nil {
		return nil
	}
	if err := check(op, n, 1, 2, 4); err != nil {
		return err
	}
	if got := n.Shape().TotalSize(); got != want {
		return refuse(op, "%s has %d values, and %d are needed", n.Name(), got, want)
	}
	return nil
}

// compute fills out from the values of an operation's inputs.
type compute func(out []float32, in [][]float32)

// kernelOp is a gorgonia operation of our own. It computes into a buffer that it keeps, where gorgonia's stock
// operations make a new tensor at every step. One belongs to one node of one graph.
type kernelOp struct {
	ops   *Ops
	name  string
	id    int // unique in its Ops, so that gorgonia merges no two nodes into one
	in    []tensor.Shape
	shape tensor.Shape // of the output
	out   []float32
	run   compute
	// grads makes what computes the gradient of each input, nil where there is none. Their inputs are this op's own, then
	// its output, then the output's gradient. Those of one call may share what they compute.
	grads func() []compute
}

// The interfaces of gorgonia that decide what a machine can do with an operation.
var (
	_ gorgonia.SDOp = (*kernelOp)(nil)
	_ gorgonia.ADOp = (*kernelOp)(nil)
)

func shapes(nodes gorgonia.Nodes) []tensor.Shape {
	out := make([]tensor.Shape, len(nodes))
	for i, n := range nodes {
		out[i] = n.Shape().Clone()
	}
	return out
}

// apply adds the node of an operation to its inputs' graph.
func (o *Ops) apply(name string, out tensor.Shape, run compute, grads func() []compute,
	inputs ...*gorgonia.Node,
) (*gorgonia.Node, error) {
	o.made++
	op := &kernelOp{ops: o, name: name, id: o.made, in: shapes(inputs), shape: out, run: run, grads: grads}
	n, err := gorgonia.ApplyOp(op, inputs...)
	if err != nil {
		return nil, refuse(name, "%v", err)
	}
	return n, nil
}

// Arity is the number of inputs.
func (o *kernelOp) Arity() int { return len(o.in) }

// Type is a function of float32 tensors of the inputs' ranks.
func (o *kernelOp) Type() hm.Type {
	types := make([]hm.Type, 0, len(o.in)+1)
	for _, s := range append(append([]tensor.Shape{}, o.in...), o.shape) {
		types = append(types, gorgonia.TensorType{Dims: s.Dims(), Of: tensor.Float32})
	}
	return hm.NewFnType(types...)
}

// InferShape is the output's shape, whatever the inputs say: they were checked when the graph was built.
func (o *kernelOp) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return o.shape.Clone(), nil
}

// Do computes into the op's own buffer and returns it under a new header: the machine gives registers to other
// operations, and those may write into what they find there, and reshape it, once nobody needs it any more.
func (o *kernelOp) Do(values ...gorgonia.Value) (gorgonia.Value, error) {
	in, err := o.inputs(values)
	if err != nil {
		return nil, err
	}
	if o.out == nil {
		o.out = make([]float32, o.shape.TotalSize())
	}
	o.compute(o.run, o.out, in)
	return tensor.New(tensor.WithShape(o.shape...), tensor.WithBacking(o.out)), nil
}

func (o *kernelOp) compute(f compute, out []float32, in [][]float32) {
	o.ops.work.reset()
	f(out, in)
}

func (o *kernelOp) inputs(values []gorgonia.Value) ([][]float32, error) {
	in := make([][]float32, len(values))
	for i, v := range values {
		if v == nil {
			return nil, refuse(o.name, "input %d has no value", i)
		}
		data, ok := v.Data().([]float32)
		if !ok || i < len(o.in) && len(data) != o.in[i].TotalSize() {
			return nil, refuse(o.name, "input %d is %v, not float32 %v", i, v.Shape(), o.in[i])
		}
		in[i] = data
	}
	return in, nil
}

// ReturnsPtr, CallsExtern and OverwritesInput tell gorgonia's compiler that an op keeps to memory of its own.
func (o *kernelOp) ReturnsPtr() bool { return true }

// CallsExtern is false: kernels are Go and assembly.
func (o *kernelOp) CallsExtern() bool { return false }

// OverwritesInput is none.
func (o *kernelOp) OverwritesInput() int { return -1 }

func (o *kernelOp) String() string { return fmt.Sprintf("%s#%d", o.name, o.id) }

// WriteHash tells ops apart, those of another Ops too.
func (o *kernelOp) WriteHash(h hash.Hash) { fmt.Fprintf(h, "%s %p", o, o.ops) }

// Hashcode is the hash of WriteHash.
func (o *kernelOp) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

func (o *kernelOp) gradients() []compute {
	if o.grads == nil {
		return make([]compute, len(o.in))
	}
	return o.grads()
}

// DiffWRT says which inputs have gradients.
func (o *kernelOp) DiffWRT(int) []bool {
	out := make([]bool, len(o.in))
	for i, g := range o.gradients() {
		out[i] = g != nil
	}
	return out
}

// SymDiff makes the nodes of the gradients.
func (o *kernelOp) SymDiff(inputs gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	all := append(append(gorgonia.Nodes{}, inputs...), output, grad)
	out := make(gorgonia.Nodes, len(inputs))
	for i, g := range o.gradients() {
		if g == nil {
			continue
		}
		n, err := o.ops.apply(fmt.Sprintf("%s gradient %d", o.name, i), o.in[i], g, nil, all...)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

// DoDiff adds to the gradients that the nodes hold: automatic differentiation.
func (o *kernelOp) DoDiff(_ gorgonia.ExecutionContext, inputs gorgonia.Nodes, output *gorgonia.Node) error {
	values := make([]gorgonia.Value, 0, len(inputs)+2)
	for _, n := range inputs {
		values = append(values, n.Value())
	}
	dy, err := output.Grad()
	if err != nil {
		return err
	}
	in, err := o.inputs(append(values, output.Value(), dy))
	if err != nil {
		return err
	}
	for i, g := range o.gradients() {
		if g == nil {
			continue
		}
		if err := o.addGrad(inputs[i], g, in); err != nil {
			return err
		}
	}
	return nil
}

func (o *kernelOp) addGrad(n *gorgonia.Node, g compute, in [][]float32) error {
	v, err := n.Grad()
	if err != nil {
		return err
	}
	sum, ok := v.Data().([]float32)
	if !ok || len(sum) != n.Shape().TotalSize() {
		return refuse(o.name, "the gradient of %s is not float32 %v", n.Name(), n.Shape())
	}
	d := make([]float32, len(sum))
	o.compute(g, d, in)
	for k, x := range d {
		sum[k] += x
	}
	return nil
}
