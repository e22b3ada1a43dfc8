// Command digits-gorgonia is an action that trains a gorgonia graph of its own on 8x8 digits: a convolution of disdel's
// kernels between gorgonia's operations.
//
//	go build -o bin/digits-gorgonia ./examples/gorgonia
//	disdel dataset add digits
//	disdel submit examples/gorgonia/job.yaml --action bin/digits-gorgonia
package main

import (
	"os"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/disdel/disdel/actions/custom"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/gorgonia"
)

func main() {
	os.Exit(custom.Main(gorgonia.Network{Name: "digits-gorgonia", Sample: []int{1, 8, 8}, Classes: 10, Build: build}))
}

const filters = 12

// build makes the graph for a number of rows. Must panics, and disdel reports it, where gorgonia refuses a shape.
func build(o *gorgonia.Ops) (*gorgonia.Program, error) {
	g := G.NewGraph()
	x := G.NewTensor(g, tensor.Float32, 4, G.WithName("x"), G.WithShape(o.Rows(), 1, 8, 8))
	y := G.NewMatrix(g, tensor.Float32, G.WithName("y"), G.WithShape(o.Rows(), 10)) // 1 at the label

	// Weights are drawn by the job's seed; those made of Zeroes start from zero.
	kernel := G.NewTensor(g, tensor.Float32, 4, G.WithName("conv.weight"), G.WithShape(filters, 1, 3, 3))
	bias := G.NewVector(g, tensor.Float32, G.WithName("conv.bias"), G.WithShape(filters), G.WithInit(G.Zeroes()))
	weight := G.NewMatrix(g, tensor.Float32, G.WithName("out.weight"), G.WithShape(filters*4*4, 10))
	shift := G.NewMatrix(g, tensor.Float32, G.WithName("out.bias"), G.WithShape(1, 10), G.WithInit(G.Zeroes()))

	conv, err := o.Conv2d(x, kernel, bias, model.Square(3, 1, 1), 1)
	if err != nil {
		return nil, err
	}
	pool := G.Must(G.MaxPool2D(G.Must(G.Tanh(conv)), tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
	flat := G.Must(G.Reshape(pool, tensor.Shape{o.Rows(), filters * 4 * 4}))
	logits := G.Must(G.BroadcastAdd(G.Must(G.Mul(flat, weight)), shift, nil, []byte{0}))
	logs := G.Must(G.LogSoftMax(logits))
	loss := G.Must(G.Mul(G.Must(G.Sum(G.Must(G.HadamardProd(logs, y)))), G.NewConstant(-1/float32(o.Rows()))))
	return &gorgonia.Program{
		Graph: g, Input: x, Target: y, Output: G.Must(G.Exp(logs)), Loss: loss, Params: G.Nodes{kernel, bias, weight, shift},
	}, nil
}
