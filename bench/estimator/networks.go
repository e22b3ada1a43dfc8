package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// wide is few dense layers of many units: almost all of the network is one array.
func (g *generator) wide() network {
	n := network{input: g.pick([]int{1, 28, 28}, []int{3, 32, 32}, []int{1, 1, g.between(200, 3000)})}
	width := length(n.input)
	for range g.between(1, 3) {
		units := min(g.between(400, 8000), max(16, most/max(1, width)))
		n.dense(units, g.activation())
		width = units
	}
	return n
}

// deep is dozens to hundreds of narrow dense layers.
func (g *generator) deep() network {
	n := network{input: g.pick([]int{1, 8, 8}, []int{1, 28, 28}, []int{1, 1, g.between(4, 60)})}
	units, activation := g.between(6, 40), g.activation()
	for range g.between(60, 300) {
		n.dense(units, activation)
	}
	return n
}

// residual is blocks of convolutions and batch norms with shortcuts.
func (g *generator) residual(least, most int) network {
	n := network{input: g.pick([]int{3, 32, 32}, []int{1, 28, 28}, []int{3, g.between(20, 48), g.between(20, 48)})}
	filters := g.between(4, 24)
	n.add("conv: {name: b0, filters: %d, kernel: 3, padding: same, stride: %d}", filters, g.between(1, 2))
	for i := range g.between(least, most) {
		n.add("conv: {filters: %d, kernel: %d, padding: same, bias: false}", filters, g.pickInt(1, 3, 3, 5))
		n.add("batchNorm: {name: n%d}", i)
		n.add("add: {from: [b%d, n%d]}", i, i)
		n.add("relu: {name: b%d}", i+1)
	}
	n.add("globalAvgPool:")
	return n
}

// separable is depthwise and pointwise convolutions in turn.
func (g *generator) separable() network {
	n := network{input: []int{3, g.between(24, 64), g.between(24, 64)}}
	filters := g.between(8, 32)
	n.add("conv: {filters: %d, kernel: 3, stride: 2, padding: same, activation: relu6}", filters)
	for range g.between(2, 8) {
		filters += g.between(0, 24)
		n.add("depthwiseConv: {kernel: %d, padding: same, bias: false}", g.pickInt(3, 5))
		n.add("batchNorm:")
		n.add("conv: {filters: %d, kernel: 1, activation: %s}", filters, g.activation())
	}
	n.add("globalAvgPool:")
	return n
}

// plain is convolutions, pools and a dense layer.
func (g *generator) plain() network {
	n := network{input: g.pick([]int{1, 28, 28}, []int{3, 32, 32}, []int{1, 12, 12})}
	for i := range g.between(1, 3) {
		n.add("conv: {filters: %d, kernel: 3, padding: same, activation: %s}", g.between(4, 32)<<i, g.activation())
		n.add("%s: {kernel: 2}", g.pickString("maxPool", "avgPool"))
	}
	n.dense(g.between(16, 200), g.activation())
	return n
}

// tiny is for rows of a few values.
func (g *generator) tiny() network {
	n := network{input: []int{1, 1, g.between(4, 16)}}
	for range g.between(1, 3) {
		n.dense(g.between(4, 32), g.activation())
	}
	return n
}

// large takes images of hundreds of pixels a side.
func (g *generator) large() network {
	n := network{input: []int{g.pickInt(1, 3), g.between(150, 500), g.between(150, 500)}}
	for range g.between(2, 4) {
		n.add("conv: {filters: %d, kernel: %d, stride: %d, padding: same, activation: %s}", g.between(4, 16),
			g.pickInt(3, 5, 7), g.between(2, 3), g.activation())
	}
	if g.IntN(2) == 0 {
		n.add("globalAvgPool:")
	}
	n.dense(g.between(8, 64), g.activation())
	return n
}

// imported is a Sequential of Keras, as model.to_json() writes it.
func (g *generator) imported() network {
	n := network{input: g.pick([]int{1, 28, 28}, []int{3, 32, 32}, []int{3, 48, 48})}
	type layer struct {
		Class  string         `json:"class_name"`
		Config map[string]any `json:"config"`
	}
	layers := []layer{{
		"InputLayer",
		map[string]any{"name": "in", "batch_shape": []any{nil, n.input[1], n.input[2], n.input[0]}},
	}}
	add := func(class string, config map[string]any) {
		config["name"] = fmt.Sprintf("%s_%d", strings.ToLower(class), len(layers))
		layers = append(layers, layer{class, config})
	}
	for i := range g.between(1, 3) {
		for range g.between(1, 3) {
			add("Conv2D", map[string]any{
				"filters": g.between(8, 24) << i, "kernel_size": []int{3, 3}, "strides": []int{1, 1},
				"padding": g.pickString("same", "same", "valid"), "use_bias": false, "activation": "linear",
			})
			add("BatchNormalization",
				map[string]any{"axis": 3, "momentum": 0.99, "epsilon": 0.001, "center": true, "scale": true})
			add("ReLU", map[string]any{})
		}
		add("MaxPooling2D", map[string]any{"pool_size": []int{2, 2}, "strides": []int{2, 2}, "padding": "same"})
	}
	add("Flatten", map[string]any{})
	add("Dense", map[string]any{"units": g.between(16, 256), "activation": "relu"})
	add("Dropout", map[string]any{"rate": 0.25})
	add("Dense", map[string]any{"units": g.classes, "activation": "softmax"})
	text, err := json.Marshal(map[string]any{
		"class_name": "Sequential",
		"config":     map[string]any{"name": "sequential", "layers": layers},
	})
	if err != nil {
		panic("bench: plain data cannot fail to encode: " + err.Error())
	}
	n.keras = string(text)
	return n
}

// known is a network of the zoo at a size that nobody chose.
func (g *generator) known() network {
	side := g.between(32, 72)
	switch name := g.pickString("resnet18", "mobilenetv1", "resnet20-cifar", "resnet32-cifar-b", "lenet5", "mlp",
		"vgg16-cifar"); name {
	case "lenet5", "mlp":
		return network{zoo: name, input: []int{1, 28, 28}}
	case "resnet18", "mobilenetv1":
		return network{zoo: name, input: []int{3, side, side}}
	default:
		return network{zoo: name, input: []int{3, 32, 32}}
	}
}

// any is one of the networks that are neither very large nor of very large rows.
func (g *generator) any() network {
	return g.among((*generator).wide, (*generator).plain, func(g *generator) network { return g.residual(2, 12) },
		(*generator).separable, (*generator).known, (*generator).imported)()
}

func (g *generator) among(of ...func(*generator) network) func() network {
	f := of[g.IntN(len(of))]
	return func() network { return f(g) }
}

// network is what a trial trains: a name of the zoo, a list of layers, or Keras' text.
type network struct {
	zoo, keras string
	layers     []string
	input      []int
}

func (n *network) add(format string, args ...any) {
	n.layers = append(n.layers, fmt.Sprintf(format, args...))
}

func (n *network) dense(units int, activation string) {
	n.add("dense: {units: %d, activation: %s}", units, activation)
}

func length(shape []int) int {
	n := 1
	for _, v := range shape {
		n *= v
	}
	return n
}
