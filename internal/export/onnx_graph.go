package export

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/disdel/disdel"
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
	float32s, int32s, int64s    = 1, 6, 7
	booleans, doubles           = 9, 11
	kindFloat, kindInt, kindSet = 1, 2, 7
	kindText                    = 3
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

func text(name, v string) attribute {
	a := attribute{name: name}
	a.m.text(attributeText, v)
	a.m.integer(attributeKind, kindText)
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

// message is a message of protobuf in pieces, so that what is large in it is where it was.
type message struct {
	pieces [][]byte
	open   []byte // the last piece, as long as something may be added to it
	closed int    // bytes of the pieces
}

// The kinds of fields, as protobuf's encoding has them.
const (
	kindVarint = 0
	kindBytes  = 2
	kindFixed4 = 5
)

func (m *message) size() int { return m.closed + len(m.open) }

func (m *message) tag(field, kind int) {
	m.open = binary.AppendUvarint(m.open, uint64(field)<<3|uint64(kind))
}

// integer adds a number; those below 0 take ten bytes.
func (m *message) integer(field int, v int64) {
	m.tag(field, kindVarint)
	m.open = binary.AppendUvarint(m.open, uint64(v))
}

func (m *message) float(field int, v float32) {
	m.tag(field, kindFixed4)
	m.open = binary.LittleEndian.AppendUint32(m.open, math.Float32bits(v))
}

func (m *message) text(field int, v string) {
	m.tag(field, kindBytes)
	m.open = append(binary.AppendUvarint(m.open, uint64(len(v))), v...)
}

// large adds bytes that are not to change until the message is written.
func (m *message) large(field int, data []byte) {
	m.tag(field, kindBytes)
	m.open = binary.AppendUvarint(m.open, uint64(len(data)))
	m.piece(data)
}

func (m *message) piece(data []byte) {
	m.pieces = append(m.pieces, m.open, data)
	m.closed += len(m.open) + len(data)
	m.open = nil
}

// part adds a message, which is not to be added to any more.
func (m *message) part(field int, v *message) {
	m.tag(field, kindBytes)
	m.open = binary.AppendUvarint(m.open, uint64(v.size()))
	for _, p := range v.pieces {
		m.piece(p)
	}
	m.open = append(m.open, v.open...)
}

// write writes the message.
func (m *message) write(w io.Writer) error {
	for _, p := range append(m.pieces, m.open) {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// wrapped is a graph as a model.
func wrapped(g *message) *message {
	var file, operators message
	file.integer(modelVersion, irVersion)
	file.text(modelProducer, "disdel")
	file.text(modelRelease, disdel.APIVersion)
	file.part(modelGraph, g)
	operators.integer(opsetNumber, opset)
	file.part(modelOpset, &operators)
	return &file
}

// finish writes a model with its notes.
func (m *message) finish(w io.Writer, notes map[string]string) error {
	if m.notes(notes); m.size() > largest {
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "write ONNX", Msg: "the model is larger than 2 GB, which ONNX files cannot be",
			Hint: "export it as safetensors",
		}
	}
	return m.write(w)
}

// notes adds the metadata of a model.
func (m *message) notes(notes map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		var note message
		note.text(noteKey, key)
		note.text(noteValue, notes[key])
		m.part(modelNote, &note)
	}
}

// AppendNotes writes metadata behind a whole ONNX file, which then has both: messages of protobuf may be joined.
func AppendNotes(w io.Writer, notes map[string]string) error {
	var file message
	file.notes(notes)
	return file.write(w)
}

// ModelNotes are the notes of ConvertONNX about a trained model: where it comes from, and the names of its classes.
func ModelNotes(ref, data, checksum string, classes []string) (map[string]string, error) {
	notes := map[string]string{"model": ref, "data": data, "checksum": checksum}
	if len(classes) > 0 {
		names, err := json.Marshal(classes)
		if err != nil {
			return nil, err
		}
		notes["classes"] = string(names)
	}
	return notes, nil
}
