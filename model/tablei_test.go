package model_test

import (
	"fmt"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// Table I by hand, as the numbers stand beside the layers of the networks' own papers: VGG-16's and LeNet-5's are those
// of Count, since they have a bias everywhere and no batch norm; ResNet-50's lack 2 values for each of 26,560 channels
// that are normed and have the 26,560 biases that it has not.
func TestTableIIsCountedAsPrinted(t *testing.T) {
	for _, c := range []struct {
		network                 string
		input                   []int
		classes                 int
		parameters, activations int64
	}{
		{"lenet5", []int{1, 28, 28}, 10, 61_706, 6_518},
		{"vgg16-cifar", []int{3, 32, 32}, 10, 33_638_218, 284_682},
		{"resnet50", []int{3, 224, 224}, 1000, 25_530_472, 11_114_984},
		{"mobilenetv1", []int{3, 32, 32}, 100, 3_293_572, 63_588},
		{"mobilenetv1", []int{3, 224, 224}, 1000, 4_216_072, 3_111_912},
	} {
		g, err := model.Build(disdel.Network{Name: c.network, Input: c.input, Classes: c.classes})
		if err != nil {
			t.Fatal(err)
		}
		if p, a := g.TableI(); p != c.parameters || a != c.activations {
			t.Errorf("%s at %v: %d parameters and %d outputs, want %d and %d", c.network, c.input, p, a, c.parameters,
				c.activations)
		}
	}
}

// A depthwise-separable layer is one line of the paper's Table I.
func ExampleGraph_TableI() {
	g, err := model.Build(disdel.Network{
		Input: []int{8, 4, 4}, Layers: []disdel.Layer{
			{Kind: "conv", Filters: 8, Kernel: 3, Padding: 1, Groups: 8}, {Kind: "conv", Filters: 16, Kernel: 1},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.TableI()) // 8 x 3^2 + 8 x 16 + 16, and 16 x 4 x 4
	// Output: 216 256
}
