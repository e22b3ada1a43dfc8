package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// kerasOf is a Sequential of layers, each its class and its config without braces.
func kerasOf(layers ...[2]string) []byte {
	var list []string
	for i, l := range layers {
		list = append(list, fmt.Sprintf(`{"class_name": %q, "config": {"name": "l%d"%s}}`, l[0], i,
			strings.TrimSuffix(", "+l[1], ", ")))
	}
	return []byte(`{"class_name": "Sequential", "config": {"name": "m", "layers": [` + strings.Join(list, ",") + `]}}`)
}

var (
	image28 = [2]string{"InputLayer", `"batch_shape": [null, 28, 28, 1]`}
	flat    = [2]string{"Flatten", ""}
)

// Most tutorials begin with Rescaling(1/255): data sets are kept as 0 to 1, so that it has been done already.
func TestKerasRescalingByWhatWasDoneAlready(t *testing.T) {
	dense := [2]string{"Dense", `"units": 10, "activation": "softmax"`}
	for _, c := range []struct{ options, want string }{
		{`"scale": 0.00392156862745098, "offset": 0.0`, ""},
		{`"scale": 0.00392156862745098`, ""},
		{`"scale": 1.0, "offset": 0`, ""},
		{`"scale": 0.00784313725490196, "offset": -1`, "l1: a Rescaling by 0.00784314 with offset -1 is not supported"},
		{`"scale": [0.1, 0.2], "offset": 0`, "l1: a Rescaling of scale [0.1, 0.2] and offset 0 is not supported"},
		{`"scale": true`, "l1: a Rescaling of scale true"},
		{``, "l1: a Rescaling of scale"},
	} {
		g, err := FromKeras(kerasOf(image28, [2]string{"Rescaling", c.options}, flat, dense))
		switch {
		case c.want == "" && (err != nil || len(g.Nodes) != 4):
			t.Errorf("%s: %v", c.options, err)
		case c.want != "" && (!errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.options, err, c.want)
		}
	}
	_, err := FromKeras(kerasOf(image28, [2]string{"Activation", `"activation": "relu"`},
		[2]string{"Rescaling", `"scale": 0.00392156862745098`}, flat, dense))
	if !errors.Is(err, disdel.Invalid) ||
		!strings.Contains(err.Error(),
			"l2: a Rescaling by 0.00392157 with offset 0 is not supported but as the first layer") {
		t.Errorf("in the middle: %v", err)
	}
}

// An option of another type than expected is refused with the layer's and its own name, and leaves the others alone.
func TestKerasOptionsOfAnotherTypeAreNamed(t *testing.T) {
	dense := [2]string{"Dense", `"units": 10`}
	for _, c := range []struct {
		layer [2]string
		want  string
	}{
		{[2]string{"Dense", `"units": "ten"`}, `l2: its option units is "ten", which is not supported`},
		{[2]string{"Dense", `"units": 1.5`}, "l2: its option units is 1.5"},
		{[2]string{"Dense", `"units": 3, "use_bias": "yes"`}, `l2: its option use_bias is "yes"`},
		{[2]string{"Dense", `"units": 1e30`}, "l2: its option units is 1e30"},
		{[2]string{"BatchNormalization", `"scale": 0.5`}, "l2: its option scale is 0.5"},
		{[2]string{"BatchNormalization", `"epsilon": []`}, "l2: its option epsilon is []"},
		{[2]string{"Dropout", `"rate": {"class_name": "Schedule"}`}, `l2: its option rate is {"class_name": "Schedule"}`},
		{[2]string{"Reshape", `"target_shape": 7`}, "l2: its option target_shape is 7"},
	} {
		_, err := FromKeras(kerasOf(image28, flat, c.layer, dense))
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "json:") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%v: %v, want %q", c.layer, err, c.want)
		}
	}
	// A layer that is not supported at all is refused for that alone.
	_, err := FromKeras(kerasOf(image28, [2]string{"ConvLSTM1D", `"kernel_size": [3], "filters": "x"`}))
	var faults *disdel.Faults
	if !errors.As(err, &faults) || len(faults.Faults) != 1 ||
		!strings.Contains(faults.Faults[0].Hint, "supported: Activation, Add,") {
		t.Errorf("%v", err)
	}
}

// Sides whose product wraps around are refused, in whatever way they come.
func TestInputsBeyondAnyMachineAreRefused(t *testing.T) {
	dense := [2]string{"Dense", `"units": 10`}
	for _, shape := range []string{
		"3037000500, 3037000500, 4", "4294967296, 4294967296, 1", "9223372036854775807, 2, 1",
		"1099511627776, 2",
	} {
		if _, err := FromKeras(kerasOf([2]string{"InputLayer", `"batch_shape": [null, ` + shape + `]`}, flat,
			dense)); !errors.Is(err, disdel.Invalid) {
			t.Errorf("Keras %s: %v, want Invalid", shape, err)
		}
	}
	huge := []int{3037000500, 3037000500, 4}
	for name, n := range map[string]disdel.Network{
		"data": {Name: "mlp", Input: huge, Classes: 10},
		"input": {
			Layers: []disdel.Layer{{Kind: "input", Shape: huge}, {Kind: "dense", Units: 2}}, Input: []int{1, 8, 8},
			Classes: 2,
		},
		"wraps": {Layers: []disdel.Layer{{Kind: "dense", Units: 2}}, Input: []int{1 << 32, 1 << 32, 1}, Classes: 2},
		"zero":  {Layers: []disdel.Layer{{Kind: "dense", Units: 2}}, Input: []int{1, 0, 8}, Classes: 2},
		"below": {Layers: []disdel.Layer{{Kind: "dense", Units: 2}}, Input: []int{-1, 8, 8}, Classes: 2},
		"none":  {Layers: []disdel.Layer{{Kind: "dense", Units: 2}}, Classes: 2},
	} {
		if _, err := Build(n); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v, want Invalid", name, err)
		}
	}
	if faults := CheckLayers("l",
		[]disdel.Layer{{Kind: "input", Shape: huge}, {Kind: "dense", Units: 2}}); len(faults) == 0 {
		t.Error("a layer's shape is not checked")
	}
}

// Long files take no longer than their length: names are looked up, faults are shown as far as anybody reads them.
func TestManyLayersAndFaultsAreBounded(t *testing.T) {
	var layers [][2]string
	for range mostLayers + 1 {
		layers = append(layers, [2]string{"ConvLSTM2D", ""})
	}
	if _, err := FromKeras(kerasOf(layers...)); !errors.Is(err, disdel.Invalid) ||
		!strings.Contains(err.Error(), "it has 10001 layers, and at most 10000 are read") {
		t.Errorf("too many layers: %.200v", err)
	}
	_, err := FromKeras(kerasOf(layers[:mostLayers]...))
	var faults *disdel.Faults
	if !errors.As(err, &faults) || len(faults.Faults) != mostFaults+1 ||
		!strings.Contains(faults.Faults[mostFaults].Msg, "and 9951 more faults") {
		t.Errorf("%.200v", err)
	}
	var own []disdel.Layer
	for range 5000 {
		own = append(own, disdel.Layer{Kind: "add", From: []string{strings.Repeat("x", 90), "y"}})
	}
	if got := CheckLayers("model.layers", own); len(got) != mostFaults+1 {
		t.Errorf("%d faults", len(got))
	}
}

// A single sigmoid output is how people write a choice between two classes.
func TestASingleSigmoidBecomesTwoOutputs(t *testing.T) {
	one := disdel.Layer{Kind: "dense", Units: 1, Activation: "sigmoid", Name: "out"}
	plain := disdel.Layer{Kind: "dense", Units: 1, Name: "out"}
	for name, layers := range map[string][]disdel.Layer{
		"activation": {{Kind: "dense", Units: 4}, one}, "layer": {{Kind: "dense", Units: 4}, plain, {Kind: "sigmoid"}},
		"named": {plain, {Kind: "sigmoid", From: []string{"out"}}},
	} {
		before := fmt.Sprint(layers)
		out, ok := TwoOutputs(layers)
		g, err := Build(disdel.Network{Layers: out, Input: []int{1, 1, 3}, Classes: 2})
		if !ok || err != nil || g.Output().Len() != 2 || g.Nodes[len(g.Nodes)-1].Op != OpSoftmax ||
			fmt.Sprint(layers) != before {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
	for name, layers := range map[string][]disdel.Layer{
		"none": {}, "two": {{Kind: "dense", Units: 2, Activation: "sigmoid"}}, "linear": {plain},
		"alone": {{Kind: "sigmoid"}}, "relu": {{Kind: "dense", Units: 1, Activation: "relu"}, {Kind: "sigmoid"}},
	} {
		if _, ok := TwoOutputs(layers); ok {
			t.Errorf("%s was changed", name)
		}
	}
}

// Whatever a description says, Build gives a graph whose counts can be computed with or an error, and takes no memory
// by them.
func FuzzBuild(f *testing.F) {
	for _, n := range []disdel.Network{
		{Name: "mlp", Input: []int{1, 8, 8}, Classes: 10},
		{Name: "resnet18", Input: []int{3, 3037000500, 3037000500}, Classes: 10},
		{Name: "digits-cnn", Input: []int{4294967296, 4294967296, 1}, Classes: -1},
		{
			Input: []int{-1, 8, 8}, Classes: 3,
			Layers: []disdel.Layer{{Kind: "conv", Filters: 2, Kernel: 3}, {Kind: "dense", Units: 3}},
		},
		{
			Input: []int{1, 8, 8}, Classes: 3,
			Layers: []disdel.Layer{{Kind: "input", Shape: []int{1 << 40, 1 << 40}}, {Kind: "add", From: []string{"0", "0"}}},
		},
		{
			Input: []int{4}, Classes: 2,
			Custom: &disdel.CustomNetwork{
				Name: "c", Input: []int{4}, Classes: 2,
				Params: []disdel.CustomParam{{Name: "w", Shape: []int{2, 4}}},
			},
		},
	} {
		text, err := json.Marshal(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var n disdel.Network
		if json.Unmarshal(data, &n) != nil {
			return
		}
		before := heapAllocs()
		g, err := Build(n)
		if took, most := heapAllocs()-before, uint64(8<<20+2000*len(data)); took > most {
			t.Fatalf("%d bytes were allocated for %d", took, len(data))
		}
		if err != nil {
			if !errors.Is(err, disdel.Invalid) {
				t.Fatalf("%v, want Invalid", err)
			}
			return
		}
		if c := g.Count(); c.Trainable < 0 || c.NonTrainable < 0 || c.MACs < 0 || g.Input().Len() < 1 ||
			g.Output().Len() < 1 {
			t.Fatalf("%+v", c)
		}
	})
}

func heapAllocs() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// A leaky ReLU keeps its slope, by the name of Keras 3 or of Keras 2; channels are dropped, and a largest value is taken.
func TestKerasLayersOfImagesAreTaken(t *testing.T) {
	g, err := FromKeras(kerasOf(image28, [2]string{"LeakyReLU", `"negative_slope": 0.3`},
		[2]string{"LeakyReLU", `"alpha": 0.2`}, [2]string{"SpatialDropout2D", `"rate": 0.5`},
		[2]string{"UpSampling2D", `"size": [2, 2], "interpolation": "nearest"`}, [2]string{"GlobalMaxPooling2D", ""},
		[2]string{"Dense", `"units": 3, "activation": "elu"`}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range g.Nodes[1:] {
		got = append(got, fmt.Sprint(n.Op, n.Slope, n.Rate, n.Kernel.H))
	}
	want := "[leakyRelu 0.3 0 0 leakyRelu 0.2 0 0 dropout2d 0 0.5 0 " +
		"upsample 0 0 2 maxPool 0 0 56 flatten 0 0 0 dense 0 0 0 elu 0 0 0]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	_, err = FromKeras(kerasOf(image28, [2]string{"LeakyReLU", `"negative_slope": 0`}, flat))
	if err == nil || !strings.Contains(err.Error(), "a slope of 0 is not supported") {
		t.Error(err)
	}
}

// A Multiply of a Functional model becomes our layer: the gate of squeeze and excitation.
func TestKerasMultiplies(t *testing.T) {
	layer := func(class, name, config, inputs string) string {
		return fmt.Sprintf(`{"class_name": %q, "name": %q, "config": {"name": %q%s}, "inbound_nodes": [%s]}`, class, name,
			name, config, inputs)
	}
	from := func(names ...string) string {
		var list []string
		for _, name := range names {
			list = append(list, fmt.Sprintf(`[%q, 0, 0, {}]`, name))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	network := func(gates ...string) []byte {
		return []byte(`{"class_name": "Functional", "config": {"name": "m", "layers": [` + strings.Join([]string{
			layer("InputLayer", "x", `, "batch_shape": [null, 8, 8, 3]`, ""),
			layer("GlobalAveragePooling2D", "mean", `, "keepdims": true`, from("x")),
			layer("Activation", "gate", `, "activation": "sigmoid"`, from("mean")),
			layer("Multiply", "scaled", "", from(gates...)),
			layer("Flatten", "flat", "", from("scaled")),
			layer("Dense", "fc", `, "units": 2, "activation": "softmax"`, from("flat")),
		}, ",") + `], "input_layers": [["x", 0, 0]], "output_layers": [["fc", 0, 0]]}}`)
	}
	g, err := FromKeras(network("gate", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if n := g.Nodes[3]; n.Op != OpMultiply || n.Out.Len() != 8*8*3 {
		t.Errorf("layer %s is %v of %v", n.Name, n.Op, n.Out)
	}
	_, err = FromKeras(network("gate", "x", "mean"))
	if err == nil || !strings.Contains(err.Error(), "two layers, not 3") {
		t.Errorf("three layers: %v", err)
	}
}

// What disdel lacks runs as the user's own code, and the end of every message says so.
func TestRefusalsEndWithOwnCode(t *testing.T) {
	keras := func(class, options string) []disdel.Fault {
		_, err := FromKeras(fmt.Appendf(nil, `{"class_name": "Sequential", "config": [{"class_name": "InputLayer",
			"config": {"name": "in", "batch_shape": [null, 8, 8, 1]}}, {"class_name": %q, "config": {"name": "a"%s}}]}`,
			class, options))
		var faults *disdel.Faults
		if !errors.As(err, &faults) {
			t.Fatalf("%s: %v", class, err)
		}
		return faults.Faults
	}
	for name, faults := range map[string][]disdel.Fault{
		"layer":            CheckLayers("model.layers", []disdel.Layer{{Kind: "crf"}}),
		"Keras class":      keras("ConvLSTM2D", ""),
		"Keras option":     keras("Reshape", `, "target_shape": [4, 4, 4]`),
		"Keras noise":      keras("Dropout", `, "rate": 0.5, "noise_shape": [1, 8]`),
		"Keras activation": keras("Conv2D", `, "filters": 2, "kernel_size": [3, 3], "activation": "snake"`),
	} {
		if len(faults) == 0 || !strings.HasSuffix(faults[len(faults)-1].Hint, OwnCode) {
			t.Errorf("%s: %v", name, faults)
		}
	}
}
