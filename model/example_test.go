package model_test

import (
	"fmt"
	"log"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// A network of the zoo is made for an input and a number of classes.
func ExampleBuild() {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.Input().Text(), "in,", g.Output().Len(), "out")
	// Output: 1x28x28 in, 10 out
}

// The layers below the last one keep their weights. A job file says that as model.init.freeze.
func ExampleGraph_Freeze() {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		log.Fatal(err)
	}
	if err := g.Freeze(disdel.Init{Freeze: "*", Except: "fc3"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.HasFrozen(), g.FrozenLayers(), g.Count().Trainable)
	fmt.Println(disdel.AsError(g.Freeze(disdel.Init{Freeze: "fc4"})).Msg)
	// Output:
	// true [conv1 conv2 fc1 fc2] 850
	// there is no layer with given weights for fc4
}

// A training step keeps the outputs of three blocks, and computes those of the layers between them again. A layer in
// the middle of a block cannot be kept alone.
func ExampleGraph_Kept() {
	g, err := model.Build(disdel.Network{Name: "resnet18", Input: []int{3, 64, 64}, Classes: 10})
	if err != nil {
		log.Fatal(err)
	}
	kept, err := g.Kept(disdel.Recompute("layer1, layer2, layer3").Layers())
	if err != nil {
		log.Fatal(err)
	}
	for _, at := range kept {
		fmt.Println(g.Nodes[at].Name)
	}
	_, err = g.Kept([]string{"layer1.0.conv1"})
	fmt.Println(disdel.AsError(err).Msg)
	fmt.Println(disdel.AsError(err).Hint)
	// Output:
	// layer1.1.relu2
	// layer2.1.relu2
	// layer3.1.relu2
	// layer1.0.conv1 is in the middle of a residual block
	// write layer1.0.add instead of layer1.0.conv1: the block ends there
}

// Only the adapters of two layers and the last layer, which is drawn, learn: 2,298 of 63,154 weights.
func ExampleGraph_Adapt() {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		log.Fatal(err)
	}
	lora := disdel.LoRA{Rank: 2, Alpha: 4, Layers: "fc*"}
	if err := g.Adapt(disdel.Init{Except: "fc3"}, lora); err != nil {
		log.Fatal(err)
	}
	fmt.Println(lora.Names(), g.AdaptedLayers(), g.Count().Trainable)
	for _, p := range g.Params() {
		if g.AdapterOf(p) == model.AdapterUp {
			fmt.Println(p.Name, p.Shape)
		}
	}
	fmt.Println(g.WholeLayers(), lora.Factor())
	fmt.Println(model.AdapterArrays("fc1"))
	// Output:
	// [fc*] [fc1 fc2] 2298
	// fc1.lora_B.weight [120 2]
	// fc2.lora_B.weight [84 2]
	// [fc3] 2
	// fc1.weight fc1.lora_A.weight fc1.lora_B.weight
}

// Parameters are in the order in which updates have them; those of batch norms that are not trained are among them.
func ExampleParam() {
	g, err := model.Build(disdel.Network{Input: []int{1, 8, 8}, Classes: 2, Layers: []disdel.Layer{
		{Kind: "batchNorm", Name: "bn"}, {Kind: "dense", Name: "fc", Units: 2},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range g.Params() {
		fmt.Println(p.Name, p.Shape, p.Len(), p.Trainable)
	}
	// Output:
	// bn.weight [1] 1 true
	// bn.bias [1] 1 true
	// bn.running_mean [1] 1 false
	// bn.running_var [1] 1 false
	// fc.weight [2 64] 128 true
	// fc.bias [2] 2 true
}

// A Builder takes layers one after another, each on the output of an earlier one; the first mistake is kept to the end.
func ExampleBuilder() {
	b := model.NewBuilder("residual", model.Shape{3, 8, 8})
	first := b.Conv("conv1", 0, 16, model.Square(3, 1, 1), 1, true)
	second := b.Conv("conv2", b.Same("relu1", first, model.OpReLU), 16, model.Square(3, 1, 1), 1, true)
	sum := b.Add("sum", first, second)
	b.Dense("classes", b.Flatten("flat", b.Pool("pool", sum, model.OpMaxPool, model.Square(2, 2, 0))), 10)
	g, err := b.Graph()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(g.Nodes), "nodes, output", g.Output())

	b = model.NewBuilder("wrong", model.Shape{3, 8, 8})
	b.Dense("classes", b.Pool("pool", 0, model.OpMaxPool, model.Square(9, 1, 0)), 10)
	_, err = b.Graph()
	fmt.Println(err)
	// Output:
	// 8 nodes, output [10]
	// build network wrong: layer pool: a window of 9 (stride 1, dilation 1) does not fit 8 pixels with padding 0 and 0
}

// A convolution over the positions of a text keeps their number, and reads none behind.
func ExampleBuilder_Conv1D() {
	b := model.NewBuilder("text", model.Shape{20})
	w := model.Window{Kernel: model.Sides{H: 3, W: 1}, Pad: model.Padding{Top: 2}}
	x := b.Conv1D("conv", b.Embedding("tokens", 0, 100, 8, false), 16, w, 1, true)
	fmt.Println(b.Out(x))
	// Output: [16 20]
}

// Squeeze and excitation: the means of an image's channels decide by how much each channel is multiplied.
func ExampleBuilder_Multiply() {
	b := model.NewBuilder("squeeze", model.Shape{16, 7, 7})
	x := b.Same("act", b.Conv("fc1", b.GlobalPool("mean", 0), 4, model.Square(1, 1, 0), 1, true), model.OpReLU)
	gate := b.Same("gate", b.Conv("fc2", x, 16, model.Square(1, 1, 0), 1, true), model.OpSigmoid)
	fmt.Println(b.Out(gate), b.Out(b.Multiply("scale", gate, 0)))
	// Output: [16 1 1] [16 7 7]
}

// Half of the channels, and all of them with those of two groups in turn.
func ExampleBuilder_Channels() {
	b := model.NewBuilder("shuffle", model.Shape{16, 7, 7})
	half := b.Channels("half", 0, 8, 0, 1)
	fmt.Println(b.Out(half), b.Out(b.Channels("shuffled", 0, 0, 0, 2)))
	// Output: [8 7 7] [16 7 7]
}

// A transposed convolution makes an image twice as large, as a decoder does.
func ExampleBuilder_ConvTranspose() {
	b := model.NewBuilder("decoder", model.Shape{8, 7, 7})
	x := b.ConvTranspose("up", 0, 4, model.Square(4, 2, 1), 1, true)
	fmt.Println(b.Out(x))
	// Output: [4 14 14]
}

// Zeros around an image, learned slopes below 0, and pixels that are repeated.
func ExampleBuilder_Upsample() {
	b := model.NewBuilder("larger", model.Shape{8, 5, 5})
	x := b.PReLU("slopes", b.Pad("zeros", 0, model.Padding{Top: 1, Left: 2}), 8)
	x = b.Upsample("twice", x, model.Sides{H: 2, W: 2})
	g, err := b.Graph()
	if err != nil {
		panic(err)
	}
	fmt.Println(b.Out(x), g.Params()[0].Name, g.Params()[0].Shape)
	// Output: [8 12 14] slopes.weight [8]
}

// What a layer holds and computes for one sample.
func ExampleGraph_Count() {
	g, err := model.Build(disdel.Network{
		Input: []int{1, 8, 8}, Classes: 10,
		Layers: []disdel.Layer{{Kind: "conv", Filters: 4, Kernel: 3, Padding: 1}, {Kind: "dense", Units: 10}},
	})
	if err != nil {
		log.Fatal(err)
	}
	c := g.Count()
	for _, l := range c.Layers {
		fmt.Println(l.Op, l.Output, "parameters", l.Parameters, "products", l.MACs)
	}
	fmt.Println("in all", c.Trainable, "trainable parameters,", c.MACs, "products")
	// Output:
	// conv [4 8 8] parameters 40 products 2304
	// flatten [256] parameters 0 products 0
	// dense [10] parameters 2570 products 2560
	// in all 2610 trainable parameters, 4864 products
}

// The zoo knows its networks by name, and what a person probably meant.
func ExampleFind() {
	entry, ok := model.Find("resnet50")
	fmt.Println(entry.Title, entry.Input.Text(), entry.Classes, ok)
	_, ok = model.Find("resnet-50")
	fmt.Println(ok, model.Nearest("resnet-50"))
	fmt.Println(len(model.Zoo()) > 10)
	// Output:
	// ResNet-50 with stride in the 3x3 convolutions (torchvision) 3x224x224 1000 true
	// false resnet50
	// true
}

// Programs ask which layers a job file may have, and with which options.
func ExampleFindKind() {
	fmt.Println(model.LayerKinds()[:3], model.Activations())
	kind, _ := model.FindKind("maxPool")
	fmt.Println(kind.Meaning)
	for _, o := range kind.Options {
		fmt.Printf("%s, required %v, else %q\n", o.Name, o.Required, o.Default)
	}
	fmt.Println(len(model.Kinds()) == len(model.LayerKinds()))
	// Output:
	// [adaptiveAvgPool add avgPool] [relu relu6 sigmoid tanh hardSwish gelu geluTanh silu leakyRelu elu softplus hardSigmoid softmax]
	// The largest value of a window.
	// kernel, required true, else ""
	// stride, required false, else "the kernel"
	// padding, required false, else "0"
	// true
}

// All faults of a job file's layers, with their places.
func ExampleCheckLayers() {
	for _, fault := range model.CheckLayers("model.layers", []disdel.Layer{
		{Kind: "conv", Filters: 8}, {Kind: "desne", Units: 10},
	}) {
		fmt.Printf("%s: %s (%s)\n", fault.Path, fault.Msg, fault.Hint)
	}
	// Output:
	// model.layers[0].conv.kernel: conv needs kernel ()
	// model.layers[1]: there is no kind of layer "desne" (did you mean "dense"?)
}

const kerasText = `{"class_name": "Sequential", "config": {"name": "mlp", "layers": [
	{"class_name": "InputLayer", "config": {"batch_shape": [null, 64], "name": "pixels"}},
	{"class_name": "Dense", "config": {"name": "hidden", "units": 32, "activation": "relu", "use_bias": true}},
	{"class_name": "Dense", "config": {"name": "choice", "units": 1, "activation": "sigmoid", "use_bias": true}}]}}`

// A network that Keras wrote with model.to_json().
func ExampleFromKeras() {
	g, err := model.FromKeras([]byte(kerasText))
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range g.Params() {
		fmt.Println(p.Name, p.Shape)
	}
	// Output:
	// hidden.weight [32 64]
	// hidden.bias [32]
	// choice.weight [1 32]
	// choice.bias [1]
}

// A choice between two classes is often written as one output with sigmoid; two with softmax say the same.
func ExampleTwoOutputs() {
	layers, err := model.KerasLayers([]byte(kerasText))
	if err != nil {
		log.Fatal(err)
	}
	two, ok := model.TwoOutputs(layers)
	last := two[len(two)-1]
	fmt.Println(ok, last.Kind, last.Units, last.Activation)
	// Output:
	// true dense 2 softmax
}

// Padding "same" as TensorFlow has it puts the odd zero at the end.
func ExampleWithOutputs() {
	layers := []disdel.Layer{{Kind: "dense", Units: 8}, {Kind: "relu"}, {Kind: "dense", Units: 10}, {Kind: "softmax"}}
	three, ok := model.WithOutputs(layers, 3)
	fmt.Println(three[2].Units, ok)
	// Output: 3 true
}

func ExampleGraph_Head() {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Head())
	// Output: fc3 true
}

func ExampleWindow_SamePad() {
	w := model.Square(3, 2, 0).SamePad(224, 224)
	fmt.Printf("%+v\n", w.Pad)
	// Output: {Top:0 Bottom:1 Left:0 Right:1}
}

func ExampleSparseModel_Describe() {
	fmt.Println(len(model.SparseModels()), "models of sparse rows; pfm is probably", model.NearestSparse("pfm"))
	m, _ := model.FindSparse("pmf")
	network := m.Describe(disdel.DataInfo{
		Sample: []int{943 + 1682}, Classes: 1, Train: 90_000, HeldOut: 10_000,
		Sparse: &disdel.SparseData{Entries: 200_000, Most: 2, Ones: true, Users: 943, Items: 1682, Mean: 3.53},
	}, 0, disdel.Init{Seed: 42})
	g, err := model.Build(network)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range g.Params() {
		fmt.Println(p.Name, p.Shape)
	}
	// Output:
	// 3 models of sparse rows; pfm is probably pmf
	// users.weight [943 20]
	// users.bias [943]
	// items.weight [1682 20]
	// items.bias [1682]
}

// A network is cut where one array crosses: here between two blocks of ResNet.
func ExampleGraph_Sliced() {
	g, err := model.Build(disdel.Network{Name: "resnet50", Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	cuts := g.Cuts()
	second, err := g.Sliced(cuts[1], len(g.Nodes))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(cuts)+1, "stages at most")
	fmt.Println(second.Nodes[1].Name, second.Input().Text(), second.Slice.Enters(), second.Slice.Leaves())
	fmt.Println(second.Slice.Index(1) == cuts[1], second.Slice.FirstParam() > 0)
	// Output:
	// 18 stages at most
	// layer1.1.conv1 256x8x8 true false
	// true true
}

// The last slice of a language model computes with the weight of the embedding, which the first one trains.
func ExampleGraph_Borrowed() {
	g, err := model.Build(disdel.Network{Name: "gpt-tiny", Input: []int{1, 1, 24}, Classes: 280, NextToken: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	cuts := g.Cuts()
	last, err := g.Sliced(cuts[len(cuts)-1], len(g.Nodes))
	if err != nil {
		fmt.Println(err)
		return
	}
	p, ok := last.Borrowed()
	fmt.Println(p.Name, p.Shape, ok, last.ReadsTokens())
	// Output: tokens.weight [280 128] true true
}

// Slices are the smallest parts that an action can compute by itself.
func ExampleGraph_Slices() {
	g, err := model.Build(disdel.Network{Name: "vgg16-cifar", Input: []int{3, 32, 32}, Classes: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := g.Slices()
	if err != nil {
		fmt.Println(err)
		return
	}
	last := parts[len(parts)-1]
	fmt.Println(len(parts), last.Nodes[1].Name, last.Input().Text(), model.SliceRows, "rows at once")
	// Output: 16 fc3 4096 16 rows at once
}
