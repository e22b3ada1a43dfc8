package model

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

func kerasFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "keras", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The files are written by hand after Keras 2.1, 2.15 and 3.10; the sums beside them are those of model.summary().
func TestKerasNetworksHaveTheSizesOfKeras(t *testing.T) {
	for _, c := range []struct {
		file                   string
		input, output          []int
		trainable, other, macs int64
	}{
		// Conv 8 x 9 + 8 on 26x26; conv 16 x 72 on 7x7; norm 2 x 16 and 2 x 16; dense 784 x 10 + 10.
		{"keras2-sequential", []int{1, 28, 28}, []int{10}, 80 + 1152 + 32 + 7850, 32, 26*26*8*9 + 7*7*16*72 + 7840},
		{"keras2-mlp", []int{784}, []int{10}, 784*32 + 32 + 330, 0, 784*32 + 320},
		// Conv 2 x 9 + 2 on 6x6; pool to 3x3; conv 2 x 5 + 5 on one pixel.
		{"keras2-functional", []int{1, 8, 8}, []int{5}, 20 + 15, 0, 36*2*9 + 10},
		// Conv 4 x 9 on 9x9, norm 4 and 2 x 4; depthwise 4 x 9 on 4x4; separable 4 x 9 and 4 x 4 + 4; dense 8 x 3 + 3.
		{"keras3-functional", []int{3, 9, 9}, []int{3}, 36 + 4 + 36 + 36 + 20 + 27, 8, 81*4*9 + 64*9 + 64*9 + 64*4 + 24},
	} {
		g, err := FromKeras(kerasFile(t, c.file))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		n := g.Count()
		got := []any{[]int(g.Input()), []int(g.Output()), n.Trainable, n.NonTrainable, n.MACs}
		if diff := cmp.Diff([]any{c.input, c.output, c.trainable, c.other, c.macs}, got); diff != "" {
			t.Errorf("%s: input, output, trainable, other, MACs (-want +got):\n%s", c.file, diff)
		}
	}
}

// Padding, norms and branches are Keras' own, under Keras' names.
func TestKerasLayersKeepTheirMeaning(t *testing.T) {
	g, err := FromKeras(kerasFile(t, "keras3-functional"))
	if err != nil {
		t.Fatal(err)
	}
	if n := node(t, g, "conv"); n.Kernel != (Sides{1, 3}) || n.Pad != (Padding{Left: 1, Right: 1}) || n.Bias {
		t.Errorf("conv: %+v", n)
	}
	if n := node(t, g, "bn"); n.Eps != 1e-3 || n.Momentum != 0.01 || !n.NoScale || n.NoCenter {
		t.Errorf("bn: %+v", n)
	}
	if n := node(t, g, "deep"); n.Pad != (Padding{Bottom: 1, Right: 1}) || n.Groups != 4 ||
		g.Nodes[n.Inputs[0]].Op != OpReLU6 {
		t.Errorf("deep: %+v", n)
	}
	if n := node(t, g, "pool"); n.CountPad || n.Pad != (Padding{1, 1, 1, 1}) {
		t.Errorf("pool: %+v", n)
	}
	add := node(t, g, "add")
	if a, b := g.Nodes[add.Inputs[0]].Name, g.Nodes[add.Inputs[1]].Name; a != "deep" || b != "sep.relu" {
		t.Errorf("add takes %s and %s", a, b)
	}
	if g.Nodes[len(g.Nodes)-1].Op != OpSoftmax {
		t.Error("the last layer is no softmax")
	}
	g, err = FromKeras(kerasFile(t, "keras2-functional"))
	if err != nil {
		t.Fatal(err)
	}
	if n := node(t, g, "pool1"); n.Pad != (Padding{1, 1, 1, 1}) || n.Stride != (Sides{2, 2}) {
		t.Errorf("pool1: %+v", n)
	}
}

// A job carries the layers as JSON, and an action builds the same graph from them.
func TestKerasLayersTravelAsJSON(t *testing.T) {
	for _, file := range []string{"keras2-sequential", "keras2-mlp", "keras2-functional", "keras3-functional"} {
		layers, err := KerasLayers(kerasFile(t, file))
		if err != nil {
			t.Fatal(err)
		}
		if faults := CheckLayers("model.layers", layers); len(faults) > 0 {
			t.Errorf("%s: %v", file, faults)
		}
		sent, err := json.Marshal(disdel.Network{Layers: layers, Input: layers[0].Shape, Classes: 10})
		if err != nil {
			t.Fatal(err)
		}
		var got disdel.Network
		if err := json.Unmarshal(sent, &got); err != nil {
			t.Fatal(err)
		}
		want, err := FromKeras(kerasFile(t, file))
		if err != nil {
			t.Fatal(err)
		}
		g, err := Build(got)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Nodes, g.Nodes); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
}

// A network made for vectors takes images of as many pixels; one made for other images says so.
func TestKerasNetworksHoldTheirInputAgainstTheData(t *testing.T) {
	mlp, err := KerasLayers(kerasFile(t, "keras2-mlp"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(disdel.Network{Layers: mlp, Input: []int{1, 28, 28}, Classes: 10}); err != nil {
		t.Error(err)
	}
	_, err = Build(disdel.Network{Layers: mlp, Input: []int{3, 32, 32}, Classes: 10})
	if want := "the network is made for [784], and the data has [3 32 32]"; !errors.Is(err, disdel.Invalid) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want Invalid with %q", err, want)
	}
}

func TestKerasFaultsComeAllAtOnceWithTheLayersName(t *testing.T) {
	_, err := FromKeras(kerasFile(t, "refused"))
	var faults *disdel.Faults
	if !errors.As(err, &faults) || !errors.Is(err, disdel.Invalid) {
		t.Fatalf("got %v, want Faults", err)
	}
	var got []string
	for _, f := range faults.Faults {
		got = append(got, f.Path+": "+f.Msg)
	}
	want := []string{
		"first: data_format channels_first is not supported",
		"decayed: kernel_regularizer is not supported",
		"decayed: activation swish is not supported",
		"lstm: its input is no sequence",
		"pixels: it takes vectors, and its input is an image",
		"negative: zeros before a max pool count as values, and others may be below them",
		"between: it takes zeros that only a window can add",
		"both: padding same on top of zeros is not supported",
		"axis: axis 1 is not supported",
		"frozen: it is frozen, and every layer is trained here",
		"leaky: only max_value 6 or none, without negative_slope and threshold, is supported",
		"twice: depth_multiplier 2 is not supported",
		`lost: it takes the output of "nowhere", and no layer before it has that name`,
		"shared: it is used more than once, and layers that share weights are not supported",
		"image: a Reshape to [4 4 12] is not supported, only to a vector",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextThatIsNoKerasModelIsInvalid(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "it is no JSON, from byte 0 on"},
		{"PK\x03\x04....", "this is a zip archive"},
		{"\x89HDF\r\n\x1a\n....", "this is an HDF5 file"},
		{`{"class_name": 7}`, "its field class_name is a JSON number"},
		{"{}", "it has no config"},
		{"[1]", "it is a JSON array, not an object"},
		{`{"class_name": "Sequential", "config": {}}`, "it has no layers"},
		{`{"class_name": "MyModel", "config": {"layers": [{}]}}`, `its class is "MyModel"`},
	} {
		_, err := FromKeras([]byte(c.text))
		if e := disdel.AsError(err); err == nil || e.Kind != disdel.Invalid || !strings.Contains(err.Error(), c.want) ||
			e.Hint == "" {
			t.Errorf("%q: got %v, want Invalid with %q", c.text, err, c.want)
		}
	}
}

// json.dump(model.to_json(), f) is a common slip: a text of JSON within JSON.
func TestKerasTextMayBeEncodedTwice(t *testing.T) {
	twice, err := json.Marshal(string(kerasFile(t, "keras2-mlp")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FromKeras(twice); err != nil {
		t.Error(err)
	}
}

// Whatever the text, FromKeras gives a graph or an error that says why.
func FuzzFromKeras(f *testing.F) {
	for _, name := range []string{"keras2-sequential", "keras2-mlp", "keras2-functional", "keras3-functional", "refused"} {
		f.Add(kerasFile(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := FromKeras(data)
		if err != nil {
			if !errors.Is(err, disdel.Invalid) || err.Error() == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, n := range g.Nodes {
			if n.Out.Len() < 1 {
				t.Fatalf("%s has shape %v", n.Name, n.Out)
			}
		}
		if c := g.Count(); c.Trainable < 0 || c.MACs < 0 {
			t.Fatalf("%d parameters, %d MACs", c.Trainable, c.MACs)
		}
	})
}
