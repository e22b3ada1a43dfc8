package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// FromKeras builds the graph of a network that Keras 2 or 3 wrote with model.to_json(), Sequential or Functional, at
// the input that the file gives. Images are [height width channels] there and [channels height width] here. Layers keep
// their names; how weights start is not taken over.
//
// What cannot be taken over exactly is refused, all of it at once as *disdel.Faults whose paths are the names of
// layers. Text that is no model at all is an error of kind Invalid.
func FromKeras(data []byte) (*Graph, error) {
	layers, err := KerasLayers(data)
	if err != nil {
		return nil, err
	}
	return buildLayers("keras", disdel.Network{Input: layers[0].Shape, Layers: layers})
}

// KerasLayers is FromKeras as the list of layers that a job file could have given, the first an input. A job carries it
// instead of Keras' text, which is some twenty times as long.
func KerasLayers(data []byte) ([]disdel.Layer, error) {
	if err := saved(data); err != nil {
		return nil, err
	}
	k := &kerasReader{tensors: map[string]kerasTensor{}}
	if err := plainly(k.model(data)); err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read the network of Keras", Msg: "this is not what model.to_json() writes", Err: err,
			Hint: `open("my.json", "w").write(model.to_json())`,
		}
	}
	if len(k.faults) == 0 {
		k.faults = checkLayers(k.layers, func(i int) string { return layerName(i, &k.layers[i]) })
	}
	if len(k.faults) == 0 {
		if _, err := buildLayers("keras", disdel.Network{Input: k.layers[0].Shape, Layers: k.layers}); err != nil {
			return nil, err
		}
		return k.layers, nil
	}
	return nil, &disdel.Faults{Faults: fewFaults(k.faults)}
}

// mostLayers bounds a file of Keras: ten times the largest network that Keras comes with.
const mostLayers = 10000

// plainly says in words what is wrong with a text that is no JSON of a model.
func plainly(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("it is no JSON, from byte %d on", syntax.Offset)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("its field %s is a JSON %s", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("it is a JSON %s, not an object", kind.Value)
	default:
		return err
	}
}

// saved says what a file is that holds a whole model, weights and all, by its first bytes; nil for text.
func saved(data []byte) error {
	what := ""
	switch {
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		what = "a zip archive, as model.save(\"my.keras\") writes it"
	case bytes.HasPrefix(data, []byte("\x89HDF\r\n\x1a\n")):
		what = "an HDF5 file, as model.save(\"my.h5\") writes it"
	default:
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read the network of Keras", Msg: "this is " + what +
			", not the network's text; its weights are not read either",
		Hint: `open("my.json", "w").write(model.to_json())`,
	}
}

// kerasDocument is a model or one of its layers: both have a class and a config.
type kerasDocument struct {
	Class   string            `json:"class_name"`
	Name    string            `json:"name"`
	Config  json.RawMessage   `json:"config"`
	Inbound []json.RawMessage `json:"inbound_nodes"`
}

type kerasConfig struct {
	Name       string          `json:"name"`
	Layers     []kerasDocument `json:"layers"`
	Outputs    any             `json:"output_layers"`
	BuildShape []*int          `json:"build_input_shape"`
}

// kerasTensor is what a layer of Keras puts out.
type kerasTensor struct {
	from     string // our layer
	unknown  bool   // of a layer that was refused: nothing more is said about it
	image    bool   // [channels height width], else a vector or a sequence
	sequence bool   // [channels positions]
	mask     bool   // where tokens are no padding, which only the option mask may take
	positive bool   // no value is below 0
	data     bool   // the input itself
	pad      [4]int // zeros that the next window has to add: top, bottom, left, right
}

// kerasReader turns layers of Keras into ours.
type kerasReader struct {
	faults  []disdel.Fault
	layers  []disdel.Layer
	tensors map[string]kerasTensor // by the name of Keras' layer
}

func (k *kerasReader) fault(layer, hint, format string, args ...any) {
	k.faults = append(k.faults, disdel.Fault{Path: layer, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

// model reads a whole document; its error says that the text is none.
func (k *kerasReader) model(data []byte) error {
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '"' { // json.dump(model.to_json()) encodes twice
		var inner string
		if err := json.Unmarshal(text, &inner); err != nil {
			return err
		}
		data = []byte(inner)
	}
	var doc kerasDocument
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	config, err := doc.config()
	switch {
	case err != nil:
		return err
	case len(config.Layers) == 0:
		return errors.New("it has no layers")
	case len(config.Layers) > mostLayers:
		return fmt.Errorf("it has %d layers, and at most %d are read", len(config.Layers), mostLayers)
	}
	switch doc.Class {
	case "Sequential":
		k.sequential(config)
	case "Functional", "Model":
		k.functional(config)
	default:
		return fmt.Errorf("its class is %q, neither Sequential nor Functional", doc.Class)
	}
	return nil
}

// config reads what a model is made of; the first versions of Keras 2 gave a Sequential's layers alone.
func (d *kerasDocument) config() (kerasConfig, error) {
	var c kerasConfig
	if bytes.HasPrefix(bytes.TrimSpace(d.Config), []byte("[")) {
		return c, json.Unmarshal(d.Config, &c.Layers)
	}
	if len(d.Config) == 0 {
		return c, errors.New("it has no config")
	}
	return c, json.Unmarshal(d.Config, &c)
}

func (k *kerasReader) sequential(c kerasConfig) {
	var before []string
	for i := range c.Layers {
		l := k.read(&c.Layers[i])
		if i == 0 && l.class != "InputLayer" {
			shape := l.options.inputShape()
			if shape == nil {
				shape = c.BuildShape
			}
			k.tensors["input"] = k.input("input", shape)
			before = []string{"input"}
		}
		k.add(l, before)
		before = []string{l.name}
	}
	k.finish(before)
}

func (k *kerasReader) functional(c kerasConfig) {
	for i := range c.Layers {
		l := k.read(&c.Layers[i])
		inputs, err := kerasInputs(c.Layers[i].Inbound)
		if err != nil {
			k.fault(l.name, OwnCode, "%s", err)
			k.tensors[l.name] = kerasTensor{unknown: true}
			continue
		}
		k.add(l, inputs)
	}
	var outputs []string
	if _, flat := first(c.Outputs).(string); flat { // Keras 3 of a single output
		c.Outputs = []any{c.Outputs}
	}
	for _, o := range list(c.Outputs) {
		name, _ := first(o).(string)
		outputs = append(outputs, name)
	}
	k.finish(outputs)
}

// finish checks that the network has one output, which is our last layer.
func (k *kerasReader) finish(outputs []string) {
	if len(outputs) != 1 {
		k.fault("output", "", "the network has %d outputs; it needs one", len(outputs))
		return
	}
	out, ok := k.tensors[outputs[0]]
	switch {
	case !ok:
		k.fault("output", "", "there is no layer %q", outputs[0])
	case out.unknown || len(k.faults) > 0:
	case out.pad != [4]int{}:
		k.fault(outputs[0], onlyWindows, "nothing takes its zeros")
	case out.from != layerName(len(k.layers)-1, &k.layers[len(k.layers)-1]):
		k.fault(outputs[0], "take out the layers that lead nowhere", "the output is not the last layer")
	}
}

// kerasLayer is one layer on its way.
type kerasLayer struct {
	name, class string
	options     kerasOptions
	in          []kerasTensor
}

// read decodes a layer's options.
func (k *kerasReader) read(d *kerasDocument) *kerasLayer {
	l := &kerasLayer{name: d.Name, class: d.Class}
	l.options.read(d.Config)
	if l.name == "" {
		l.name = l.options.Name
	}
	return l
}

// add translates a layer that takes the outputs of inputs, or says why not.
func (k *kerasReader) add(l *kerasLayer, inputs []string) {
	unknown := false
	for _, name := range inputs {
		in, ok := k.tensors[name]
		if !ok {
			k.fault(l.name, "", "it takes the output of %q, and no layer before it has that name", name)
		}
		if in.mask {
			k.fault(l.name, OwnCode, "it takes the result of a comparison")
		}
		unknown = unknown || !ok || in.unknown
		l.in = append(l.in, in)
	}
	if _, taken := k.tensors[l.name]; taken || l.name == "" {
		k.fault(l.name, "", "its name is taken, or it has none")
		return
	}
	class, ok := kerasClasses[l.class]
	before, out := len(k.faults), kerasTensor{}
	switch {
	case !ok:
		k.fault(l.name, cmp.Or(kerasHints[l.class], supported()), "layers of class %.60s are not supported", l.class)
	case class.alone != (len(l.in) == 0) || !class.many && len(l.in) > 1:
		k.fault(l.name, "", "a %s cannot take %d layers", l.class, len(l.in))
	default:
		k.faults = append(k.faults, l.common(class)...)
		if len(l.options.unread) == 0 {
			out = class.add(k, l)
		}
	}
	out.unknown = out.unknown || unknown || len(k.faults) > before
	k.tensors[l.name] = out
}

// emit adds one of our layers behind those of l's inputs, and returns its name.
func (k *kerasReader) emit(name string, layer disdel.Layer, from ...string) string {
	layer.Name = name
	if len(k.layers) == 0 || len(from) != 1 || from[0] != layerName(len(k.layers)-1, &k.layers[len(k.layers)-1]) {
		layer.From = from
	}
	k.layers = append(k.layers, layer)
	return name
}

// input starts the list with an input of the shape that Keras gives: [batch height width channels], [batch height
// width] for images of one channel, or [batch units].
func (k *kerasReader) input(name string, batch []*int) kerasTensor {
	var shape []int
	for _, side := range batch[min(1, len(batch)):] {
		if side == nil || *side < 1 {
			k.fault(name, "give the model an input of fixed size", "its input has a side without size")
			return kerasTensor{unknown: true}
		}
		shape = append(shape, *side)
	}
	if len(shape) > 0 && tooLarge(shape) {
		k.fault(name, "", "an input of %v is beyond any machine", shape)
		return kerasTensor{unknown: true}
	}
	switch len(shape) {
	case 1:
	case 2:
		shape = []int{1, shape[0], shape[1]}
	case 3:
		shape = []int{shape[2], shape[0], shape[1]}
	default:
		k.fault(name, "give the model an input, or call model.build", "its input has %d sides; an image has 3 and a vector 1",
			len(shape))
		return kerasTensor{unknown: true}
	}
	if len(k.layers) > 0 {
		k.fault(name, "", "a second input")
		return kerasTensor{unknown: true}
	}
	l := disdel.Layer{Kind: "input", Shape: shape, Name: name}
	if name == "input" { // what the data itself is called
		l.Name = ""
	}
	k.layers = append(k.layers, l)
	return kerasTensor{from: layerName(0, &l), image: len(shape) == 3, data: true}
}

// kerasInputs reads the names of the layers that a layer takes, as Keras 2 or Keras 3 writes them.
func kerasInputs(nodes []json.RawMessage) ([]string, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	if len(nodes) > 1 {
		return nil, errors.New("it is used more than once, and layers that share weights are not supported")
	}
	var node any
	if err := json.Unmarshal(nodes[0], &node); err != nil {
		return nil, err
	}
	call, ok := node.(map[string]any)
	if !ok {
		return kerasInputs2(node)
	}
	options, _ := call["kwargs"].(map[string]any)
	delete(options, "mask") // layers know where padding is
	if len(kerasHistories(options)) > 0 {
		return nil, errors.New("it takes a layer by keyword, which is not supported")
	}
	return historyNames(kerasHistories(call["args"]))
}

// kerasInputs2 reads Keras 2's [["name", node, tensor, {}], ...].
func kerasInputs2(node any) ([]string, error) {
	if _, flat := first(node).(string); flat {
		node = []any{node}
	}
	var histories [][]any
	for _, item := range list(node) {
		h := list(item)
		if len(h) > 3 {
			options, _ := h[3].(map[string]any)
			for name := range options {
				if name != "training" && name != "mask" {
					return nil, fmt.Errorf("it is called with %s, which is not supported", name)
				}
			}
		}
		histories = append(histories, h)
	}
	return historyNames(histories)
}

// kerasHistories finds the tensors of Keras 3 in a call's arguments, in order.
func kerasHistories(v any) [][]any {
	var out [][]any
	for _, item := range list(v) {
		out = append(out, kerasHistories(item)...)
	}
	object, _ := v.(map[string]any)
	if config, ok := object["config"].(map[string]any); ok && object["class_name"] == "__keras_tensor__" {
		return append(out, list(config["keras_history"]))
	}
	for _, item := range object {
		out = append(out, kerasHistories(item)...)
	}
	return out
}

// historyNames reads [name, node, tensor]; a layer that is used once has only the first node and tensor.
func historyNames(histories [][]any) ([]string, error) {
	var out []string
	for _, h := range histories {
		name, ok := first(h).(string)
		if !ok || len(h) < 3 || slices.ContainsFunc(h[1:3], func(v any) bool { return v != 0.0 }) {
			return nil, errors.New("its inputs cannot be read: each must be a layer with one output that is used once")
		}
		out = append(out, name)
	}
	return out, nil
}

func list(v any) []any { l, _ := v.([]any); return l }

func first(v any) any {
	if l := list(v); len(l) > 0 {
		return l[0]
	}
	return nil
}

// kerasEmbedding makes a sequence of the data's tokens.
func kerasEmbedding(k *kerasReader, l *kerasLayer) kerasTensor {
	o := &l.options
	if in := l.in[0]; !in.unknown && (!in.data || in.image) {
		k.fault(l.name, "put it first: its input is the data, rows of tokens", "it takes no tokens")
	}
	to := disdel.Layer{Kind: "embedding", Vocabulary: o.Vocabulary, Width: o.Width}
	if o.Padded {
		to.Padded = &o.Padded
	}
	return kerasTensor{from: k.emit(l.name, to, l.one()), sequence: true}
}

// kerasMask takes the comparison with token 0 that Keras writes behind an Embedding with mask_zero.
func kerasMask(k *kerasReader, l *kerasLayer) kerasTensor {
	if !l.in[0].data || !slices.ContainsFunc(k.layers, func(e disdel.Layer) bool { return isSet(e.Padded) }) {
		k.fault(l.name, OwnCode, "only the mask of an Embedding with mask_zero is supported")
	}
	return kerasTensor{mask: true}
}

// sequences faults inputs that are no sequences.
func (k *kerasReader) sequences(l *kerasLayer) {
	if in := l.in[0]; !in.unknown && !in.sequence {
		k.fault(l.name, "put an Embedding first", "its input is no sequence")
	}
}

// kerasConv1D pads as TensorFlow does, or with causal only before the first position.
func kerasConv1D(k *kerasReader, l *kerasLayer) kerasTensor {
	k.sequences(l)
	o := &l.options
	to := disdel.Layer{
		Kind: "conv1d", Filters: o.Filters, Kernel: o.Kernel[0], Stride: notOne(o.Strides)[0],
		Dilation: notOne(o.Dilation)[0], Bias: o.noBias(), Activation: k.activation(l),
	}
	if o.Groups > 1 {
		to.Groups = o.Groups
	}
	switch padding := strings.Trim(string(o.Padding), `"`); padding {
	case "same":
		to.SamePad = true
	case "causal":
		to.PaddingAt = [4]int{max(1, o.Dilation[0]) * (o.Kernel[0] - 1)}
	case "valid", "":
	default:
		k.fault(l.name, "use same, valid or causal", "padding %.60s is not supported", padding)
	}
	return kerasTensor{from: k.emit(l.name, to, l.one()), sequence: true, positive: isPositive(to.Activation)}
}

// kerasConvTranspose takes away what Keras does: with same, an image grows by exactly its strides.
func kerasConvTranspose(k *kerasReader, l *kerasLayer) kerasTensor {
	k.needs(l, true, "")
	o := &l.options
	to := disdel.Layer{Kind: "convTranspose", Filters: o.Filters, Bias: o.noBias(), Activation: k.activation(l)}
	stride := o.Strides
	for i := range stride {
		stride[i] = max(1, stride[i])
		more := o.Kernel[i] - stride[i]
		if more < 0 || o.OutputPadding != nil || max(o.Dilation[0], o.Dilation[1]) > 1 {
			k.fault(l.name, OwnCode, "strides above the kernel, output_padding and dilation_rate are not supported")
			break
		}
		if same := strings.Trim(string(o.Padding), `"`); same == "same" {
			to.PaddingAt[2*i], to.PaddingAt[2*i+1] = more/2, more-more/2
		}
	}
	if to.Padding = disdel.EqualSides(to.PaddingAt[:]); to.Padding > 0 {
		to.PaddingAt = [4]int{}
	}
	o.Kernel.set(&to.Kernel, &to.KernelHW)
	notOne(stride).set(&to.Stride, &to.StrideHW)
	return kerasTensor{from: k.emit(l.name, to, l.one()), image: true, positive: isPositive(to.Activation)}
}

// recurrent checks what LSTM and GRU can be told. Keras' defaults are PyTorch's layers.
func (k *kerasReader) recurrent(l *kerasLayer) {
	k.sequences(l)
	o := &l.options
	usual := map[string]any{
		"activation": "tanh", "recurrent_activation": "sigmoid", "use_bias": true, "go_backwards": false, "stateful": false,
		"return_state": false, "time_major": false, "reset_after": true, "dropout": 0.0, "recurrent_dropout": 0.0,
	}
	for _, option := range slices.Sorted(maps.Keys(usual)) {
		var v any
		if json.Unmarshal(o.extra[option], &v) == nil && v != nil && v != usual[option] {
			k.fault(l.name, OwnCode, "%s %v is not supported, only %v", option, v, usual[option])
		}
	}
}

// kerasRecurrent gives the last position, unless return_sequences keeps all.
func kerasRecurrent(k *kerasReader, l *kerasLayer) kerasTensor {
	k.recurrent(l)
	to := disdel.Layer{Kind: strings.ToLower(l.class), Units: l.options.Units}
	return k.taken(l, l.options.Sequences, k.emit(l.name, to, l.one()), TakeLast)
}

// taken is a sequence, or one of its positions as a vector.
func (k *kerasReader) taken(l *kerasLayer, all bool, from, take string) kerasTensor {
	if all {
		return kerasTensor{from: from, sequence: true}
	}
	return kerasTensor{from: k.emit(l.name+".take", disdel.Layer{Kind: "takePosition", Take: take}, from)}
}

// kerasBidirectional joins the channels of two recurrent layers.
func kerasBidirectional(k *kerasReader, l *kerasLayer) kerasTensor {
	o := &l.options
	if o.Inner == nil || o.Inner.Class != "LSTM" && o.Inner.Class != "GRU" || o.Merge != "concat" {
		k.fault(l.name, OwnCode, "only an LSTM or a GRU with merge_mode concat is supported here")
		return kerasTensor{unknown: true}
	}
	inner := k.read(o.Inner)
	inner.name, inner.in = l.name, l.in
	k.recurrent(inner)
	to := disdel.Layer{Kind: strings.ToLower(inner.class), Units: inner.options.Units, Bidirectional: new(true)}
	return k.taken(l, inner.options.Sequences, k.emit(l.name, to, l.one()), TakeEnds)
}

func kerasMeanPosition(k *kerasReader, l *kerasLayer) kerasTensor {
	k.sequences(l)
	return k.taken(l, false, l.one(), TakeMean)
}

func kerasLayerNorm(k *kerasReader, l *kerasLayer) kerasTensor {
	o, in := &l.options, l.in[0]
	eps := 1e-3 // Keras' default
	if o.Epsilon != nil {
		eps = *o.Epsilon
	}
	if !in.unknown && !in.image && !in.sequence || !isTrue(o.Scale.on) || !isTrue(o.Center) {
		k.fault(l.name, OwnCode, "only images and sequences with scale and center are supported")
	}
	if !channelAxis(o.Axis, in.image) && !(in.sequence && fmt.Sprint(o.Axis) == "[2]") {
		k.fault(l.name, "use axis -1", "axis %v is not supported", o.Axis)
	}
	out := kerasTensor{image: in.image, sequence: in.sequence}
	out.from = k.emit(l.name, disdel.Layer{Kind: "layerNorm", Eps: eps}, l.one())
	return out
}
