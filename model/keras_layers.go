package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// kerasOptions is what the layers below say in their config. Names and defaults: keras.io/api/layers.
type kerasOptions struct {
	Name            string          `json:"name"`
	BatchShape      []*int          `json:"batch_shape"`       // Keras 3
	BatchInputShape []*int          `json:"batch_input_shape"` // Keras 2
	DataFormat      string          `json:"data_format"`
	Trainable       *bool           `json:"trainable"`
	Filters         int             `json:"filters"`
	Units           int             `json:"units"`
	Kernel          kerasSides      `json:"kernel_size"`
	Pool            kerasSides      `json:"pool_size"`
	Strides         kerasSides      `json:"strides"`
	Dilation        kerasSides      `json:"dilation_rate"`
	Padding         json.RawMessage `json:"padding"`
	Groups          int             `json:"groups"`
	Multiplier      *int            `json:"depth_multiplier"`
	Bias            *bool           `json:"use_bias"`
	Activation      any             `json:"activation"`
	Axis            any             `json:"axis"`
	Epsilon         *float64        `json:"epsilon"`
	Momentum        *float64        `json:"momentum"`
	Scale           kerasScale      `json:"scale"`
	Center          *bool           `json:"center"`
	MaxValue        *float64        `json:"max_value"`
	NegativeSlope   float64         `json:"negative_slope"`
	Alpha           float64         `json:"alpha"` // Keras 2: of a LeakyReLU
	Threshold       float64         `json:"threshold"`
	Rate            float64         `json:"rate"`
	NoiseShape      any             `json:"noise_shape"`
	KeepDims        bool            `json:"keepdims"`
	TargetShape     []int           `json:"target_shape"`
	Size            kerasSides      `json:"size"`          // of UpSampling2D
	Interpolation   string          `json:"interpolation"` // of UpSampling2D

	Offset any `json:"offset"` // of Rescaling

	Vocabulary    int            `json:"input_dim"`  // of Embedding, as the next two
	Width         int            `json:"output_dim"` //
	Padded        bool           `json:"mask_zero"`
	Sequences     bool           `json:"return_sequences"` // of LSTM and GRU
	Inner         *kerasDocument `json:"layer"`            // of Bidirectional
	Merge         string         `json:"merge_mode"`
	OutputPadding any            `json:"output_padding"` // of Conv2DTranspose

	extra  map[string]json.RawMessage // everything, for what applies to any layer
	unread []string                   // options of another type than the field here
}

// kerasScale is "scale": on or off in a BatchNormalization, a factor in a Rescaling.
type kerasScale struct {
	on     *bool
	factor any
}

func (s *kerasScale) UnmarshalJSON(data []byte) error {
	s.factor = nil
	if json.Unmarshal(data, &s.on) == nil {
		return nil
	}
	s.on = nil
	return json.Unmarshal(data, &s.factor)
}

// read takes the options one by one: one that has another type than expected is remembered, and leaves the others
// alone.
func (o *kerasOptions) read(config json.RawMessage) {
	if json.Unmarshal(config, &o.extra) != nil {
		if len(config) > 0 {
			o.unread = append(o.unread, "config")
		}
		return
	}
	v := reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		option, tagged := v.Type().Field(i).Tag.Lookup("json")
		text, found := o.extra[option]
		if !tagged || !found {
			continue
		}
		if json.Unmarshal(text, v.Field(i).Addr().Interface()) != nil {
			v.Field(i).SetZero()
			o.unread = append(o.unread, option)
		}
	}
}

func (o *kerasOptions) inputShape() []*int {
	if o.BatchShape != nil {
		return o.BatchShape
	}
	return o.BatchInputShape
}

// kerasSides is one number for both sides, or [height width].
type kerasSides [2]int

func (s *kerasSides) UnmarshalJSON(data []byte) error {
	var one int
	if json.Unmarshal(data, &one) == nil {
		*s = kerasSides{one, one}
		return nil
	}
	var two []int
	if err := json.Unmarshal(data, &two); err != nil {
		return err
	}
	if len(two) == 1 { // of a sequence
		two = append(two, two[0])
	}
	if len(two) != 2 {
		return fmt.Errorf("%s is neither a number nor a pair", data)
	}
	*s = kerasSides(two)
	return nil
}

// set stores the sides as a layer has them.
func (s kerasSides) set(one *int, two *[2]int) {
	if *one = disdel.EqualSides(s[:]); *one == 0 {
		*two = s
	}
}

// kerasClass is how layers of a class are translated.
type kerasClass struct {
	add     func(k *kerasReader, l *kerasLayer) kerasTensor
	many    bool // takes two layers or more
	alone   bool // takes none
	weights bool
	window  bool // takes the zeros of a ZeroPadding2D
}

// kerasClasses is the table of what is supported.
var kerasClasses = map[string]kerasClass{
	"InputLayer": {
		alone: true,
		add:   func(k *kerasReader, l *kerasLayer) kerasTensor { return k.input(l.name, l.options.inputShape()) },
	},
	"Conv2D": {weights: true, window: true, add: kerasConv},
	"DepthwiseConv2D": {weights: true, window: true, add: func(k *kerasReader, l *kerasLayer) kerasTensor {
		k.multiplier(l)
		return k.conv(l, l.name, disdel.Layer{Kind: "depthwiseConv", Bias: l.options.noBias()})
	}},
	"SeparableConv2D":        {weights: true, window: true, add: kerasSeparable},
	"Dense":                  {weights: true, add: kerasDense},
	"BatchNormalization":     {weights: true, add: kerasBatchNorm},
	"Activation":             {add: kerasActivation},
	"ReLU":                   {add: kerasReLU},
	"MaxPooling2D":           {window: true, add: kerasMaxPool},
	"AveragePooling2D":       {window: true, add: kerasAvgPool},
	"LeakyReLU":              {add: kerasLeakyReLU},
	"GlobalAveragePooling2D": {add: kerasGlobalPool("globalAvgPool")},
	"GlobalMaxPooling2D":     {add: kerasGlobalPool("globalMaxPool")},
	"UpSampling2D":           {add: kerasUpsample},
	"Rescaling":              {add: kerasRescaling},
	"ZeroPadding2D":          {window: true, add: kerasZeros},
	"Flatten":                {add: kerasFlatten},
	"Reshape":                {add: kerasReshape},
	"Dropout":                {add: kerasDropout},
	"SpatialDropout2D":       {add: kerasDropout2D},
	"Add":                    {many: true, add: kerasAdd},
	"Multiply":               {many: true, add: kerasMultiply},
	"Concatenate":            {many: true, add: kerasConcat},
	"Conv2DTranspose":        {weights: true, add: kerasConvTranspose},
	"LayerNormalization":     {weights: true, add: kerasLayerNorm},
	"Embedding":              {weights: true, add: kerasEmbedding},
	"Conv1D":                 {weights: true, add: kerasConv1D},
	"LSTM":                   {weights: true, add: kerasRecurrent},
	"GRU":                    {weights: true, add: kerasRecurrent},
	"Bidirectional":          {weights: true, add: kerasBidirectional},
	"GlobalAveragePooling1D": {add: kerasMeanPosition},
	"NotEqual":               {add: kerasMask},
}

const onlyWindows = "ZeroPadding2D stands right before a convolution or pool"

// kerasHints helps with classes that are refused and have a stand-in.
var kerasHints = map[string]string{
	"Functional": "write the inner model's layers out",
	"Sequential": "write the inner model's layers out",
	"ELU":        `use Activation("elu")`,
	"Softmax":    `use Activation("softmax")`,
}

// common lists what is wrong with a layer whatever its class.
func (l *kerasLayer) common(class kerasClass) (faults []disdel.Fault) {
	fault := func(hint, format string, args ...any) {
		faults = append(faults, disdel.Fault{Path: l.name, Msg: fmt.Sprintf(format, args...), Hint: hint})
	}
	o := &l.options
	for _, option := range o.unread {
		fault(OwnCode, "its option %s is %.60s, which is not supported", option, o.text(option))
	}
	if f := o.DataFormat; f != "" && f != "channels_last" {
		fault("build the model with channels_last", "data_format %s is not supported", f)
	}
	if class.weights && o.Trainable != nil && !*o.Trainable {
		fault("set trainable = True before to_json()", "it is frozen, and every layer is trained here")
	}
	var keys []string
	for key, value := range o.extra {
		if (strings.HasSuffix(key, "_regularizer") || strings.HasSuffix(key, "_constraint")) &&
			!bytes.Equal(value, []byte("null")) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		fault("training.optimizer.sgd.weightDecay pulls all weights towards zero", "%s is not supported", key)
	}
	for i := range l.in {
		if l.in[i].pad != [4]int{} && !class.window {
			fault(onlyWindows, "it takes zeros that only a window can add")
		}
	}
	return faults
}

// text is an option as the file has it.
func (o *kerasOptions) text(option string) string {
	if text, ok := o.extra[option]; ok {
		return string(text)
	}
	return "no object"
}

// supported lists the classes that can be taken over.
func supported() string {
	return "supported: " + strings.Join(slices.Sorted(maps.Keys(kerasClasses)), ", ") + "; else " + OwnCode
}

// needs faults an input of the wrong kind; what is unknown passes.
func (k *kerasReader) needs(l *kerasLayer, image bool, hint string) {
	for _, in := range l.in {
		switch {
		case in.unknown || in.image == image && !in.sequence:
		case in.sequence:
			k.fault(l.name, cmp.Or(hint, "put GlobalAveragePooling1D before it"), "its input is a sequence")
		case image:
			k.fault(l.name, hint, "it takes images, and its input is a vector")
		default:
			k.fault(l.name, hint, "it takes vectors, and its input is an image")
		}
	}
}

// one is the name of the layer that l takes.
func (l *kerasLayer) one() string { return l.in[0].from }

// noBias is our bias option: absent where there is one.
func (o *kerasOptions) noBias() *bool { return unlessTrue(o.Bias) }

// unlessTrue drops an option that says what holds anyway.
func unlessTrue(v *bool) *bool {
	if isTrue(v) {
		return nil
	}
	return v
}

// activation is a layer's activation as ours, "" for none.
func (k *kerasReader) activation(l *kerasLayer) string {
	if l.options.Activation == nil {
		return ""
	}
	name, ok := l.options.Activation.(string)
	if ok && name == "linear" {
		return ""
	}
	for i := range layerKinds {
		if kind := &layerKinds[i]; ok && kind.activation != OpUnknown && name == kind.kerasName() {
			return kind.name
		}
	}
	k.fault(l.name, "use "+kerasActivations()+" or linear; else "+OwnCode, "activation %v is not supported",
		l.options.Activation)
	return ""
}

// notInKeras is in the place of the name that Keras has for an activation.
const notInKeras = "-"

// kerasName is what Keras calls an activation.
func (k *layerKind) kerasName() string { return cmp.Or(k.keras, k.name) }

// kerasActivations lists the activations that can be taken over.
func kerasActivations() string {
	var names []string
	for i := range layerKinds {
		if k := &layerKinds[i]; k.activation != OpUnknown && k.keras != notInKeras {
			names = append(names, k.kerasName())
		}
	}
	return strings.Join(names, ", ")
}

// isPositive says whether an activation has no value below 0.
func isPositive(activation string) bool {
	k := activationOf(activation)
	return k != nil && !k.negative
}

// padding sets a window's padding: the layer's own and the zeros before it. Both at once would need the size of the
// image.
func (k *kerasReader) padding(l *kerasLayer, to *disdel.Layer) {
	var own string
	if err := json.Unmarshal(l.options.Padding, &own); len(l.options.Padding) > 0 &&
		(err != nil || own != "same" && own != "valid") {
		k.fault(l.name, "use same or valid", "padding %s is not supported", l.options.Padding)
	}
	zeros := l.in[0].pad
	switch {
	case own == "same" && zeros != [4]int{}:
		k.fault(l.name, "use valid after ZeroPadding2D", "padding same on top of zeros is not supported")
	case own == "same":
		to.SamePad = true
	default:
		if to.Padding = disdel.EqualSides(zeros[:]); to.Padding == 0 {
			to.PaddingAt = zeros
		}
	}
}

// multiplier refuses what would need to know the channels.
func (k *kerasReader) multiplier(l *kerasLayer) {
	if m := l.options.Multiplier; m != nil && *m != 1 {
		k.fault(l.name, "use 1", "depth_multiplier %d is not supported", *m)
	}
}

// conv adds a convolution with everything but its filters and bias.
func (k *kerasReader) conv(l *kerasLayer, name string, to disdel.Layer) kerasTensor {
	k.needs(l, true, "")
	k.padding(l, &to)
	to.Activation = k.activation(l)
	l.options.Kernel.set(&to.Kernel, &to.KernelHW)
	notOne(l.options.Strides).set(&to.Stride, &to.StrideHW)
	notOne(l.options.Dilation).set(&to.Dilation, &to.DilationHW)
	return kerasTensor{from: k.emit(name, to, l.one()), image: true, positive: isPositive(to.Activation)}
}

// notOne drops what holds anyway.
func notOne(s kerasSides) kerasSides {
	if s == (kerasSides{1, 1}) {
		return kerasSides{}
	}
	return s
}

func kerasConv(k *kerasReader, l *kerasLayer) kerasTensor {
	groups := l.options.Groups
	if groups == 1 {
		groups = 0
	}
	return k.conv(l, l.name,
		disdel.Layer{Kind: "conv", Filters: l.options.Filters, Groups: groups, Bias: l.options.noBias()})
}

// kerasSeparable is a depthwise convolution without bias and a 1x1 convolution, which has the activation.
func kerasSeparable(k *kerasReader, l *kerasLayer) kerasTensor {
	k.multiplier(l)
	point := disdel.Layer{
		Kind: "conv", Filters: l.options.Filters, Kernel: 1, Bias: l.options.noBias(),
		Activation: k.activation(l),
	}
	l.options.Activation = nil
	deep := k.conv(l, l.name+".depthwise", disdel.Layer{Kind: "depthwiseConv", Bias: new(bool)})
	return kerasTensor{from: k.emit(l.name, point, deep.from), image: true, positive: isPositive(point.Activation)}
}

// kerasDense refuses images: there Keras takes each pixel apart.
func kerasDense(k *kerasReader, l *kerasLayer) kerasTensor {
	if !l.in[0].sequence {
		k.needs(l, false, "put Flatten or GlobalAveragePooling2D before it")
	}
	to := disdel.Layer{Kind: "dense", Units: l.options.Units, Bias: l.options.noBias(), Activation: k.activation(l)}
	return kerasTensor{
		from: k.emit(l.name, to, l.one()), positive: isPositive(to.Activation), sequence: l.in[0].sequence,
	}
}

// channelAxis says whether an axis, a number or a list of one, is that of the channels.
func channelAxis(axis any, image bool) bool {
	if l := list(axis); len(l) == 1 {
		axis = l[0]
	}
	return axis == nil || axis == -1.0 || image && axis == 3.0 || !image && axis == 1.0
}

func kerasBatchNorm(k *kerasReader, l *kerasLayer) kerasTensor {
	o, in := &l.options, l.in[0]
	if in.sequence {
		k.fault(l.name, "use LayerNormalization", "its input is a sequence")
	}
	eps, momentum := 1e-3, 0.99 // Keras' defaults
	if o.Epsilon != nil {
		eps = *o.Epsilon
	}
	if o.Momentum != nil {
		momentum = *o.Momentum
	}
	momentum = math.Round((1-momentum)*1e12) / 1e12 // 1 - 0.99 is not 0.01
	if !in.unknown && !channelAxis(o.Axis, in.image) {
		k.fault(l.name, "use axis -1", "axis %v is not supported", o.Axis)
	}
	if eps <= 0 || momentum <= 0 || momentum > 1 {
		k.fault(l.name, "", "epsilon must be above 0, and momentum at least 0 and below 1")
	}
	if o.Scale.factor != nil {
		k.fault(l.name, "write true or false", "its option scale is %v, which is not supported", o.Scale.factor)
	}
	to := disdel.Layer{
		Kind: "batchNorm", Eps: eps, Momentum: momentum, Scale: unlessTrue(o.Scale.on),
		Center: unlessTrue(o.Center),
	}
	return kerasTensor{from: k.emit(l.name, to, l.one()), image: in.image}
}

// activate adds an activation, or continues from the input where there is none.
func (k *kerasReader) activate(l *kerasLayer, kind string) kerasTensor {
	out := l.in[0]
	if kind != "" {
		out.from, out.positive, out.data = k.emit(l.name, disdel.Layer{Kind: kind}, l.one()), isPositive(kind), false
	}
	return out
}

func kerasActivation(k *kerasReader, l *kerasLayer) kerasTensor {
	return k.activate(l, k.activation(l))
}

func kerasReLU(k *kerasReader, l *kerasLayer) kerasTensor {
	o := &l.options
	if o.NegativeSlope != 0 || o.Threshold != 0 || o.MaxValue != nil && *o.MaxValue != 6 {
		k.fault(l.name, "", "only max_value 6 or none, without negative_slope and threshold, is supported")
	}
	if o.MaxValue != nil {
		return k.activate(l, "relu6")
	}
	return k.activate(l, "relu")
}

func kerasLeakyReLU(k *kerasReader, l *kerasLayer) kerasTensor {
	slope := cmp.Or(l.options.NegativeSlope, l.options.Alpha)
	if !(slope > 0 && slope <= 1) {
		k.fault(l.name, OwnCode, "a slope of %g is not supported; it is above 0 and at most 1", slope)
	}
	out := l.in[0]
	out.from = k.emit(l.name, disdel.Layer{Kind: "leakyRelu", Slope: slope}, l.one())
	out.positive, out.data = false, false
	return out
}

func kerasDropout2D(k *kerasReader, l *kerasLayer) kerasTensor {
	k.needs(l, true, "")
	out := l.in[0]
	if l.options.Rate != 0 {
		out.from, out.data = k.emit(l.name, disdel.Layer{Kind: "dropout2d", Rate: l.options.Rate}, l.one()), false
	}
	return out
}

func (k *kerasReader) pool(l *kerasLayer, kind string) kerasTensor {
	k.needs(l, true, "")
	to := disdel.Layer{Kind: kind}
	k.padding(l, &to)
	if l.options.Pool == (kerasSides{}) {
		l.options.Pool = kerasSides{2, 2} // Keras' default
	}
	l.options.Pool.set(&to.Kernel, &to.KernelHW)
	if l.options.Strides != l.options.Pool {
		l.options.Strides.set(&to.Stride, &to.StrideHW)
	}
	return kerasTensor{from: k.emit(l.name, to, l.one()), image: true, positive: l.in[0].positive}
}

func kerasUpsample(k *kerasReader, l *kerasLayer) kerasTensor {
	k.needs(l, true, "")
	if how := l.options.Interpolation; how != "" && how != "nearest" {
		k.fault(l.name, "use nearest", "interpolation %s is not supported", how)
	}
	if l.options.Size == (kerasSides{}) {
		l.options.Size = kerasSides{2, 2} // Keras' default
	}
	to := disdel.Layer{Kind: "upsample"}
	l.options.Size.set(&to.Size, &to.SizeHW)
	return kerasTensor{from: k.emit(l.name, to, l.one()), image: true, positive: l.in[0].positive}
}

// kerasRescaling takes a layer that changes nothing, and a first one that brings 0..255 to 0..1: data sets are kept
// that way.
func kerasRescaling(k *kerasReader, l *kerasLayer) kerasTensor {
	scale, ok := l.options.Scale.factor.(float64)
	offset, number := l.options.Offset.(float64)
	ok = ok && (number || l.options.Offset == nil)
	switch in := l.in[0]; {
	case ok && offset == 0 && (scale == 1 || in.data && math.Abs(scale*255-1) < 1e-4):
		return in
	case ok && in.data:
		k.fault(l.name, "data sets have inputs of 0 to 1 already: take the layer out, or write Rescaling(1/255)",
			"a Rescaling by %.6g with offset %g is not supported", scale, offset)
	case ok:
		k.fault(l.name, "take the layer out; the one before or after it can learn the factor",
			"a Rescaling by %.6g with offset %g is not supported but as the first layer", scale, offset)
	default:
		k.fault(l.name, "take the layer out: data sets have inputs of 0 to 1 already",
			"a Rescaling of scale %.60s and offset %.60s is not supported", l.options.text("scale"), l.options.text("offset"))
	}
	return kerasTensor{unknown: true}
}

// kerasMaxPool pads with what is below every value, which zeros are not where values are negative.
func kerasMaxPool(k *kerasReader, l *kerasLayer) kerasTensor {
	if in := l.in[0]; in.pad != [4]int{} && !in.positive {
		k.fault(l.name, "put the zeros after a ReLU", "zeros before a max pool count as values, and others may be below them")
	}
	return k.pool(l, "maxPool")
}

func kerasAvgPool(k *kerasReader, l *kerasLayer) kerasTensor { return k.pool(l, "avgPool") }

// kerasGlobalPool makes a vector, unless keepdims keeps an image of one pixel.
func kerasGlobalPool(kind string) func(k *kerasReader, l *kerasLayer) kerasTensor {
	return func(k *kerasReader, l *kerasLayer) kerasTensor {
		k.needs(l, true, "")
		out := kerasTensor{image: l.options.KeepDims, positive: l.in[0].positive}
		out.from = k.emit(l.name, disdel.Layer{Kind: kind}, l.one())
		if !out.image {
			out.from = k.emit(l.name+".flatten", disdel.Layer{Kind: "flatten"}, out.from)
		}
		return out
	}
}

// kerasZeros leaves its zeros to the next window. They may be a number, [height, width] or [[top, bottom], [left,
// right]].
func kerasZeros(k *kerasReader, l *kerasLayer) kerasTensor {
	k.needs(l, true, "")
	out := l.in[0]
	pad, ok := zeros(l.options.Padding)
	if !ok {
		k.fault(l.name, "", "padding %s cannot be read", l.options.Padding)
	}
	for i := range pad {
		out.pad[i] += pad[i]
	}
	return out
}

func zeros(text json.RawMessage) (pad [4]int, ok bool) {
	var sides kerasSides
	var all [2]kerasSides
	switch {
	case len(text) == 0:
		pad = [4]int{1, 1, 1, 1} // Keras' default
	case json.Unmarshal(text, &sides) == nil:
		pad = [4]int{sides[0], sides[0], sides[1], sides[1]}
	case json.Unmarshal(text, &all) == nil:
		pad = [4]int{all[0][0], all[0][1], all[1][0], all[1][1]}
	default:
		return pad, false
	}
	return pad, slices.Min(pad[:]) >= 0
}

func kerasFlatten(k *kerasReader, l *kerasLayer) kerasTensor {
	return kerasTensor{
		from: k.emit(l.name, disdel.Layer{Kind: "flatten"}, l.one()), positive: l.in[0].positive,
		data: l.in[0].data,
	}
}

// kerasReshape knows vectors alone.
func kerasReshape(k *kerasReader, l *kerasLayer) kerasTensor {
	if len(l.options.TargetShape) != 1 {
		k.fault(l.name, OwnCode, "a Reshape to %v is not supported, only to a vector", l.options.TargetShape)
	}
	return kerasFlatten(k, l)
}

func kerasDropout(k *kerasReader, l *kerasLayer) kerasTensor {
	out := l.in[0]
	if l.options.NoiseShape != nil {
		k.fault(l.name, OwnCode, "noise_shape is not supported")
	}
	if l.options.Rate != 0 {
		out.from, out.data = k.emit(l.name, disdel.Layer{Kind: "dropout", Rate: l.options.Rate}, l.one()), false
	}
	return out
}

// join adds a layer that takes several.
func (k *kerasReader) join(l *kerasLayer, kind string) kerasTensor {
	out := kerasTensor{image: l.in[0].image, sequence: l.in[0].sequence, positive: true}
	from := make([]string, len(l.in))
	for i, in := range l.in {
		from[i], out.positive = in.from, out.positive && in.positive
	}
	if len(from) < 2 {
		k.fault(l.name, "", "it takes two layers or more, not %d", len(from))
	}
	out.from = k.emit(l.name, disdel.Layer{Kind: kind}, from...)
	return out
}

func kerasAdd(k *kerasReader, l *kerasLayer) kerasTensor { return k.join(l, "add") }

// kerasMultiply takes two layers, as ours does: of one shape, or an image and a value for each channel.
func kerasMultiply(k *kerasReader, l *kerasLayer) kerasTensor {
	if len(l.in) > 2 {
		k.fault(l.name, "multiply two of them, and the result with the next", "it multiplies two layers, not %d", len(l.in))
	}
	out := k.join(l, "multiply")
	for _, in := range l.in {
		out.image = out.image || in.image
	}
	return out
}

func kerasConcat(k *kerasReader, l *kerasLayer) kerasTensor {
	k.needs(l, true, "")
	if !channelAxis(l.options.Axis, true) {
		k.fault(l.name, "use axis -1", "axis %v is not supported", l.options.Axis)
	}
	return k.join(l, "concat")
}
