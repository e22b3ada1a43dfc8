package expr

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// kernelOp is a gorgonia operation of our own: it computes into a buffer that it keeps, where gorgonia's stock operations
// make a new tensor at every step. One op belongs to one node of one graph.
type kernelOp struct {
	name  string
	id    uint32 // unique in a graph, so that gorgonia merges no two nodes into one
	in    []tensor.Shape
	shape tensor.Shape // of the output
	out   []float32
	// run fills out from the inputs' values.
	run func(out []float32, in [][]float32)
	// grads makes the operation of each input's gradient; nil where that input needs none. Their inputs are this op's own
	// inputs, then its output, then the output's gradient.
	grads []func() *kernelOp
}

// newOp makes an op for inputs and an output of fixed shapes.
func (c *compiler) newOp(name string, out tensor.Shape, in []tensor.Shape, run func(out []float32, in [][]float32), grads ...func() *kernelOp) *kernelOp {
	c.ops++
	data := make([]float32, out.TotalSize())
	return &kernelOp{name: name, id: c.ops, in: in, shape: out, out: data, run: run, grads: grads}
}

// gradOp makes the op of a gradient, whose inputs are those of op, its output and the gradient of that.
func (c *compiler) gradOp(name string, of tensor.Shape, in []tensor.Shape, out tensor.Shape, run func(d []float32, in [][]float32)) *kernelOp {
	all := append(append([]tensor.Shape{}, in...), out, out)
	return c.newOp(name, of, all, run)
}

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

// Do computes into the op's own buffer and returns it under a new header: the machine gives registers to other operations,
// and those may write into what they find there, and reshape it, once nobody needs it any more.
func (o *kernelOp) Do(values ...gorgonia.Value) (gorgonia.Value, error) {
	in := make([][]float32, len(values))
	for i, v := range values {
		data, ok := v.Data().([]float32)
		if !ok || len(data) != o.in[i].TotalSize() {
			return nil, fmt.Errorf("%s: input %d is %v, not float32 %v", o.name, i, v.Shape(), o.in[i])
		}
		in[i] = data
	}
	o.run(o.out, in)
	return tensor.New(tensor.WithShape(o.shape...), tensor.WithBacking(o.out)), nil
}

func (o *kernelOp) ReturnsPtr() bool      { return true }
func (o *kernelOp) CallsExtern() bool     { return false }
func (o *kernelOp) OverwritesInput() int  { return -1 }
func (o *kernelOp) String() string        { return fmt.Sprintf("%s#%d", o.name, o.id) }
func (o *kernelOp) WriteHash(h hash.Hash) { fmt.Fprint(h, o.String()) }

func (o *kernelOp) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// DiffWRT says which inputs have gradients.
func (o *kernelOp) DiffWRT(int) []bool {
	out := make([]bool, len(o.in))
	for i := range o.grads {
		out[i] = o.grads[i] != nil
	}
	return out
}

// SymDiff makes the nodes of the gradients.
func (o *kernelOp) SymDiff(inputs gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	all := append(append(gorgonia.Nodes{}, inputs...), output, grad)
	out := make(gorgonia.Nodes, len(inputs))
	for i, make := range o.grads {
		if make == nil {
			continue
		}
		n, err := gorgonia.ApplyOp(make(), all...)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}
