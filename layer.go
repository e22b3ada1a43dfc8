package disdel

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Layer is one entry of model.layers. In the file it is an object with one key, its kind: {dense: {units: 10}}.
// Which options a kind takes is the model folder's table; options not given are zero.
type Layer struct {
	Kind       string   `json:"-"`
	Name       string   `json:"name,omitempty"`       // "": its place in the list
	From       []string `json:"from,omitempty"`       // names of the layers it takes; none: the one before it
	Shape      []int    `json:"shape,omitempty"`      // input: what the network is made for
	Units      int      `json:"units,omitempty"`      // dense: outputs
	Filters    int      `json:"filters,omitempty"`    // conv: output channels
	Kernel     int      `json:"kernel,omitempty"`     // conv, pools: side of the square window
	Stride     int      `json:"stride,omitempty"`     // conv, pools
	Padding    int      `json:"padding,omitempty"`    // conv, pools, pad: zeros on every side
	Dilation   int      `json:"dilation,omitempty"`   // conv: pixels from one of the kernel to the next
	Groups     int      `json:"groups,omitempty"`     // conv: groups of channels; prelu: slopes
	First      int      `json:"first,omitempty"`      // channels: the first that it takes, counted from 0
	Bias       *bool    `json:"bias,omitempty"`       // conv, dense, multiHeadAttention: nil is true
	Eps        float64  `json:"eps,omitempty"`        // norms, transformer: 0 is 1e-5
	Momentum   float64  `json:"momentum,omitempty"`   // batchNorm: share of the newest batch; 0 is 0.1
	Scale      *bool    `json:"scale,omitempty"`      // batchNorm: nil is true
	Center     *bool    `json:"center,omitempty"`     // batchNorm: nil is true
	Rate       float64  `json:"rate,omitempty"`       // dropout: share of values dropped
	Slope      float64  `json:"slope,omitempty"`      // leakyRelu: 0 is 0.01
	Size       int      `json:"size,omitempty"`       // adaptiveAvgPool: side of the output; upsample: times
	Activation string   `json:"activation,omitempty"` // conv, dense: behind it; transformer: between its dense layers

	Vocabulary int     `json:"vocabulary,omitempty"` // embedding: tokens are 0 to Vocabulary-1
	Width      int     `json:"width,omitempty"`      // embedding: channels of its sequence
	Padded     *bool   `json:"padded,omitempty"`     // embedding: token 0 fills short rows; nil is false
	Learned    *bool   `json:"learned,omitempty"`    // positions: nil is true, false is sines
	Heads      int     `json:"heads,omitempty"`      // multiHeadAttention: that queries are of
	KVHeads    int     `json:"kvHeads,omitempty"`    // multiHeadAttention: that keys and values are of; 0: heads
	Grid       *bool   `json:"grid,omitempty"`       // windowAttention: pixels of windows lie apart; nil is false
	Cosine     *bool   `json:"cosine,omitempty"`     // windowAttention: scores are cosines; nil is false
	Shift      int     `json:"shift,omitempty"`      // windowAttention: of its windows, in pixels
	Causal     *bool   `json:"causal,omitempty"`     // multiHeadAttention: positions see none behind them; nil is false
	Rotary     *bool   `json:"rotary,omitempty"`     // multiHeadAttention: rotary positions; nil is false
	Theta      float64 `json:"theta,omitempty"`      // multiHeadAttention: base of rotary angles; 0 is 10000
	Hidden     int     `json:"hidden,omitempty"`     // transformer: units between its dense layers; 0: 4 x channels
	NormFirst  *bool   `json:"normFirst,omitempty"`  // transformer: norms before the sums, or behind; nil is true
	Take       string  `json:"take,omitempty"`       // takePosition: mean, first, last or ends

	Bidirectional *bool `json:"bidirectional,omitempty"` // lstm, gru: a second one reads backwards; nil is false

	// Windows that differ by side, which the file gives as lists under the names above. One that is not zero takes the
	// place of its number; one of equal sides is never read from a file.
	SizeHW     [2]int `json:"-"` // height, width
	ShiftHW    [2]int `json:"-"`
	KernelHW   [2]int `json:"-"` // height, width
	StrideHW   [2]int `json:"-"`
	DilationHW [2]int `json:"-"`
	PaddingAt  [4]int `json:"-"` // top, bottom, left, right
	SamePad    bool   `json:"-"` // padding: same, as TensorFlow pads
}

// layerOptions is a Layer's options as JSON has them: windows are a number or a list.
type layerOptions struct {
	Name       string     `json:"name,omitempty"`
	From       oneOrMore  `json:"from,omitempty"`
	Shape      []int      `json:"shape,omitempty"`
	Units      int        `json:"units,omitempty"`
	Filters    int        `json:"filters,omitempty"`
	Kernel     windowSide `json:"kernel,omitzero"`
	Stride     windowSide `json:"stride,omitzero"`
	Padding    padding    `json:"padding,omitzero"`
	Dilation   windowSide `json:"dilation,omitzero"`
	Groups     int        `json:"groups,omitempty"`
	First      int        `json:"first,omitempty"`
	Bias       *bool      `json:"bias,omitempty"`
	Eps        float64    `json:"eps,omitempty"`
	Momentum   float64    `json:"momentum,omitempty"`
	Scale      *bool      `json:"scale,omitempty"`
	Center     *bool      `json:"center,omitempty"`
	Rate       float64    `json:"rate,omitempty"`
	Slope      float64    `json:"slope,omitempty"`
	Size       windowSide `json:"size,omitzero"`
	Activation string     `json:"activation,omitempty"`

	Vocabulary int        `json:"vocabulary,omitempty"`
	Width      int        `json:"width,omitempty"`
	Padded     *bool      `json:"padded,omitempty"`
	Learned    *bool      `json:"learned,omitempty"`
	Heads      int        `json:"heads,omitempty"`
	KVHeads    int        `json:"kvHeads,omitempty"`
	Grid       *bool      `json:"grid,omitempty"`
	Cosine     *bool      `json:"cosine,omitempty"`
	Shift      windowSide `json:"shift,omitzero"`
	Causal     *bool      `json:"causal,omitempty"`
	Rotary     *bool      `json:"rotary,omitempty"`
	Theta      float64    `json:"theta,omitempty"`
	Hidden     int        `json:"hidden,omitempty"`
	NormFirst  *bool      `json:"normFirst,omitempty"`
	Take       string     `json:"take,omitempty"`

	Bidirectional *bool `json:"bidirectional,omitempty"`
}

func (o layerOptions) layer(kind string) Layer {
	return Layer{
		Kind: kind, Name: o.Name, From: o.From, Shape: o.Shape, Units: o.Units, Filters: o.Filters, Groups: o.Groups,
		Bias: o.Bias,
		Eps:  o.Eps, Momentum: o.Momentum, Scale: o.Scale, Center: o.Center, Rate: o.Rate, Activation: o.Activation,
		Kernel: o.Kernel.one, Stride: o.Stride.one, Dilation: o.Dilation.one, Padding: o.Padding.one,
		KernelHW: o.Kernel.two, StrideHW: o.Stride.two, DilationHW: o.Dilation.two, PaddingAt: o.Padding.four,
		SamePad: o.Padding.same, Vocabulary: o.Vocabulary, Width: o.Width, Padded: o.Padded,
		Learned: o.Learned, Heads: o.Heads, KVHeads: o.KVHeads, Causal: o.Causal, Rotary: o.Rotary,
		Hidden: o.Hidden, NormFirst: o.NormFirst, Take: o.Take, Slope: o.Slope, Size: o.Size.one, SizeHW: o.Size.two,
		Bidirectional: o.Bidirectional, First: o.First, Theta: o.Theta, Grid: o.Grid, Cosine: o.Cosine,
		Shift: o.Shift.one, ShiftHW: o.Shift.two,
	}
}

// MarshalJSON writes {kind: {options}}.
func (l Layer) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]layerOptions{l.Kind: {
		Name: l.Name, From: l.From, Shape: l.Shape, Units: l.Units, Filters: l.Filters, Groups: l.Groups, Bias: l.Bias,
		Eps: l.Eps, Momentum: l.Momentum, Scale: l.Scale, Center: l.Center, Rate: l.Rate, Activation: l.Activation,
		Kernel: windowSide{l.Kernel, l.KernelHW}, Stride: windowSide{l.Stride, l.StrideHW},
		Dilation: windowSide{l.Dilation, l.DilationHW},
		Padding:  padding{l.Padding, l.PaddingAt, l.SamePad}, Vocabulary: l.Vocabulary, Width: l.Width,
		Padded: l.Padded, Learned: l.Learned, Heads: l.Heads, KVHeads: l.KVHeads, Causal: l.Causal,
		Rotary: l.Rotary, Hidden: l.Hidden, NormFirst: l.NormFirst, Take: l.Take, Slope: l.Slope,
		Size: windowSide{l.Size, l.SizeHW}, Bidirectional: l.Bidirectional, First: l.First, Theta: l.Theta,
		Grid: l.Grid, Cosine: l.Cosine, Shift: windowSide{l.Shift, l.ShiftHW},
	}})
}

// UnmarshalJSON reads {kind: {options}}; null options are empty ones.
func (l *Layer) UnmarshalJSON(data []byte) error {
	var entry map[string]*layerOptions
	if err := json.Unmarshal(data, &entry); err != nil {
		return err
	}
	if len(entry) != 1 {
		return &Error{Kind: Invalid, Op: "parse layer", Msg: "a layer is an object with one key, its kind"}
	}
	for kind, options := range entry {
		if options == nil {
			options = &layerOptions{}
		}
		*l = options.layer(kind)
	}
	return nil
}

// oneOrMore is a name or a list of names.
type oneOrMore []string

func (n *oneOrMore) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil && !isNull(data) {
		*n = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(n))
}

func isNull(data []byte) bool { return bytes.Equal(bytes.TrimSpace(data), []byte("null")) }

// windowSide is a number for both sides, or [height width].
type windowSide struct {
	one int
	two [2]int
}

func (s windowSide) MarshalJSON() ([]byte, error) {
	if s.two != [2]int{} {
		return json.Marshal(s.two)
	}
	return json.Marshal(s.one)
}

func (s *windowSide) UnmarshalJSON(data []byte) error {
	v, err := numbers(data, 2)
	if err != nil {
		return err
	}
	s.one, s.two = EqualSides(v), [2]int{}
	if s.one == 0 {
		copy(s.two[:], v)
	}
	return nil
}

// padding is a number for all sides, "same", or [top bottom left right].
type padding struct {
	one  int
	four [4]int
	same bool
}

func (p padding) MarshalJSON() ([]byte, error) {
	switch {
	case p.same:
		return json.Marshal("same")
	case p.four != [4]int{}:
		return json.Marshal(p.four)
	default:
		return json.Marshal(p.one)
	}
}

func (p *padding) UnmarshalJSON(data []byte) error {
	if *p = (padding{}); string(data) == `"same"` {
		p.same = true
		return nil
	}
	v, err := numbers(data, 4)
	if err != nil {
		return err
	}
	if p.one = EqualSides(v); p.one == 0 {
		copy(p.four[:], v)
	}
	return nil
}

// numbers reads one number, or a list of count.
func numbers(data []byte, count int) ([]int, error) {
	var one int
	if json.Unmarshal(data, &one) == nil {
		return []int{one}, nil
	}
	var all []int
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	if len(all) != count {
		return nil, &Error{Kind: Invalid, Op: "parse layer", Msg: "a window is one number, or a list with one for every side"}
	}
	return all, nil
}

// EqualSides is the number that all sides of a window have, or 0 where they differ: a window has one spelling in a
// Layer.
func EqualSides(sides []int) int {
	if len(sides) == 0 || slices.Min(sides) != slices.Max(sides) {
		return 0
	}
	return sides[0]
}

// CustomNetwork is what the controller knows of a network that only a program of the user's can compute: an expression
// graph in an action's own binary, or a Python program. The binary prints it as JSON when it is run with the argument
// describe.
type CustomNetwork struct {
	Name        string        `json:"name"`
	Input       []int         `json:"input"`   // of one sample
	Classes     int           `json:"classes"` // outputs
	Params      []CustomParam `json:"params"`
	Activations int64         `json:"activations"` // values that the graph computes for one sample, forward
	Backward    int64         `json:"backward"`    // and for its gradients

	Python *PythonNetwork `json:"python,omitempty"` // nil: the network of an action's own binary
}

// Arrays lists what a custom network keeps: its parameters, then a Python program's buffers of whole numbers, which are
// arrays that are not trained.
func (n *CustomNetwork) Arrays() []CustomParam {
	if n.Python == nil {
		return n.Params
	}
	out := slices.Clone(n.Params)
	for _, p := range n.Python.Integers {
		p.Trainable = false
		out = append(out, p)
	}
	return out
}

// CustomParam is one array of a custom network's weights.
type CustomParam struct {
	Name      string   `json:"name"`
	Shape     []int    `json:"shape"`
	Trainable bool     `json:"trainable"`
	Fill      *float32 `json:"fill,omitempty"` // what it starts from; nil: drawn by model.init
}
