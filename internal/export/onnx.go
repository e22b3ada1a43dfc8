package export

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
	"github.com/disdel/disdel/model"
)

// The names of a graph's ends.
const (
	InputName  = "input"  // [rows channels height width], or [rows units]
	OutputName = "output" // [rows classes]: probabilities where the network ends in softmax
)

const (
	irVersion = 8
	opset     = 13
	largest   = math.MaxInt32 // bytes of a message of protobuf
)

// ConvertONNX writes a network with the weights of a safetensors file. Notes go into the file's metadata. It returns
// Invalid for a network that ONNX has no operators for, Corrupt for weights that are not its own, and OverLimit above
// 2 GB.
func ConvertONNX(w io.Writer, network disdel.Network, weights []byte, notes map[string]string) error {
	g, err := model.Build(network)
	if err != nil {
		return err
	}
	f, err := safetensors.Parse(weights)
	if err != nil {
		return err
	}
	list, err := safetensors.ToWeights(f)
	if err != nil {
		return err
	}
	return WriteONNX(w, g, list, notes)
}

// WriteONNX writes a network with its weights, in the order and layout of g.Params(); they are not copied. Errors are
// those of ConvertONNX.
func WriteONNX(w io.Writer, g *model.Graph, weights disdel.Weights, notes map[string]string) error {
	if err := fits(g, weights); err != nil {
		return err
	}
	t := &translator{source: g, at: make([]string, len(g.Nodes))}
	t.out.end(graphInput, InputName, g.Input())
	for i := range g.Nodes {
		if err := t.node(i); err != nil {
			return err
		}
	}
	t.out.end(graphOutput, OutputName, g.Output())
	for _, v := range weights {
		t.out.values(v.Name, v.Shape, v.Data)
	}
	t.out.text(graphName, g.Name)
	whole := wrapped(&t.out.message, notes)
	if whole.size() > largest {
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "write ONNX", Msg: "the model is larger than 2 GB, which ONNX files cannot be",
			Hint: "export it as safetensors",
		}
	}
	return whole.write(w)
}

// wrapped is a graph as a model.
func wrapped(g *message, notes map[string]string) *message {
	var whole, operators message
	whole.integer(modelVersion, irVersion)
	whole.text(modelProducer, "disdel")
	whole.text(modelRelease, disdel.APIVersion)
	whole.part(modelGraph, g)
	operators.integer(opsetNumber, opset)
	whole.part(modelOpset, &operators)
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		var note message
		note.text(noteKey, key)
		note.text(noteValue, notes[key])
		whole.part(modelNote, &note)
	}
	return &whole
}

// fits returns Corrupt unless weights are those of a network.
func fits(g *model.Graph, weights disdel.Weights) error {
	params := g.Params()
	bad := func(format string, args ...any) error {
		return &disdel.Error{Kind: disdel.Corrupt, Op: "write ONNX", Msg: fmt.Sprintf(format, args...)}
	}
	if len(weights) != len(params) {
		return bad("%d arrays of weights, and %s has %d", len(weights), g.Name, len(params))
	}
	for i, p := range params {
		if v := weights[i]; v.Name != p.Name || !slices.Equal(v.Shape, p.Shape) || len(v.Data) != p.Len() {
			return bad("array %q %v, where %s has %q %v", v.Name, v.Shape, g.Name, p.Name, p.Shape)
		}
	}
	return nil
}
