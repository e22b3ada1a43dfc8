package export

import (
	"encoding/binary"

	"github.com/disdel/disdel/internal/safetensors"
)

// Field numbers of the messages of onnx.proto.
const (
	modelVersion, modelProducer, modelRelease, modelGraph, modelOpset, modelNote = 1, 2, 3, 7, 8, 14
	opsetNumber                                                                  = 2
	noteKey, noteValue                                                           = 1, 2
	graphNode, graphName, graphArray, graphInput, graphOutput                    = 1, 2, 5, 11, 12
	nodeInput, nodeOutput, nodeName, nodeOperator, nodeAttribute                 = 1, 2, 3, 4, 5
	attributeName, attributeFloat, attributeInt, attributeInts, attributeKind    = 1, 2, 3, 8, 20
	arraySide, arrayKind, arrayName, arrayData                                   = 1, 2, 8, 9
	valueName, valueType                                                         = 1, 2
	typeTensor, tensorKind, tensorShape, shapeSide, sideValue, sideName          = 1, 1, 2, 1, 1, 2
)

// Kinds of values and of attributes.
const (
	float32s, int64s            = 1, 7
	kindFloat, kindInt, kindSet = 1, 2, 7
)

// graph is an ONNX graph that is being written.
type graph struct{ message }

// attribute is an option of an operator.
type attribute struct {
	name string
	m    message
}

func integer(name string, v int64) attribute {
	a := attribute{name: name}
	a.m.integer(attributeInt, v)
	a.m.integer(attributeKind, kindInt)
	return a
}

func number(name string, v float64) attribute {
	a := attribute{name: name}
	a.m.float(attributeFloat, float32(v))
	a.m.integer(attributeKind, kindFloat)
	return a
}

func integers(name string, list ...int) attribute {
	a := attribute{name: name}
	for _, v := range list {
		a.m.integer(attributeInts, int64(v))
	}
	a.m.integer(attributeKind, kindSet)
	return a
}

// operator is a node: what it computes, of which values, and which value it gives.
type operator struct {
	name, kind string
	in         []string
	out        string
	attributes []attribute
}

func (g *graph) operator(o operator) {
	var n message
	for _, in := range o.in {
		n.text(nodeInput, in)
	}
	n.text(nodeOutput, o.out)
	n.text(nodeName, o.name)
	n.text(nodeOperator, o.kind)
	for _, a := range o.attributes {
		var m message
		m.text(attributeName, a.name)
		m.open = append(m.open, a.m.open...)
		n.part(nodeAttribute, &m)
	}
	g.part(graphNode, &n)
}

// values adds an array of float32; v is not to change until the graph is written.
func (g *graph) values(name string, shape []int, v []float32) {
	g.array(name, shape, float32s, safetensors.FromFloat32s(name, shape, v).Data)
}

// numbers adds a list of integers.
func (g *graph) numbers(name string, list ...int) {
	var data []byte
	for _, v := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	g.array(name, []int{len(list)}, int64s, data)
}

func (g *graph) array(name string, shape []int, kind int64, data []byte) {
	var t message
	for _, side := range shape {
		t.integer(arraySide, int64(side))
	}
	t.integer(arrayKind, kind)
	t.text(arrayName, name)
	t.large(arrayData, data)
	g.part(graphArray, &t)
}

// end is an input or an output: any number of rows of a shape.
func (g *graph) end(field int, name string, shape []int) {
	var rows, sides, tensor, kind, value message
	rows.text(sideName, "rows")
	sides.part(shapeSide, &rows)
	for _, v := range shape {
		var side message
		side.integer(sideValue, int64(v))
		sides.part(shapeSide, &side)
	}
	tensor.integer(tensorKind, float32s)
	tensor.part(tensorShape, &sides)
	kind.part(typeTensor, &tensor)
	value.text(valueName, name)
	value.part(valueType, &kind)
	g.part(field, &value)
}
