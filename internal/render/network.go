package render

import (
	"errors"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
)

// Network is a network of the zoo or of Keras as -o json shows it.
type Network struct {
	Name                string             `json:"name"`
	Title               string             `json:"title"`
	Input               []int              `json:"input"`
	Classes             int                `json:"classes"`
	Parameters          int64              `json:"parameters"`
	TrainableParameters int64              `json:"trainableParameters"`
	Activations         int64              `json:"activations"` // outputs of convolutions and dense layers for one sample
	MACs                int64              `json:"macs"`
	Layers              []model.LayerCount `json:"layers,omitempty"`
}

// List is the networks of the zoo, and the models trained so far.
type List struct {
	Networks []Network          `json:"networks"`
	Models   []modelstore.Model `json:"models"`
}

// Build describes a network. It returns what model.Build returns.
func Build(n disdel.Network, title string) (Network, error) {
	g, err := model.Build(n)
	if err != nil {
		return Network{}, err
	}
	return DescribeNetwork(g, n.Name, title), nil
}

// Networks describes the zoo and the models of sparse rows, without their layers.
func Networks() (list []Network, err error) {
	for _, e := range model.Zoo() {
		n, err := Build(disdel.Network{Name: e.Name, Input: e.Input, Classes: e.Classes}, e.Title)
		if err != nil {
			return list, err
		}
		list = append(list, n)
	}
	sparse, err := SparseNetworks()
	list = append(list, sparse...)
	for i := range list {
		list[i].Layers = nil
	}
	return list, err
}

// OfKeras describes the network of a file that Keras wrote. It returns *disdel.Faults for what it cannot read.
func OfKeras(text []byte, file string) (Network, error) {
	g, err := model.FromKeras(text)
	var faults *disdel.Faults
	if errors.As(err, &faults) {
		for i := range faults.Faults { // a layer has no line
			faults.Faults[i].Path = file + ": layer " + faults.Faults[i].Path
		}
	}
	if err != nil {
		return Network{}, err
	}
	return DescribeNetwork(g, file, "Network of Keras"), nil
}

// DescribeNetwork describes a graph.
func DescribeNetwork(g *model.Graph, name, title string) Network {
	c := g.Count()
	return Network{
		Name: name, Title: title, Input: g.Input(), Classes: g.Output().Len(), Parameters: c.Trainable + c.NonTrainable,
		TrainableParameters: c.Trainable, Activations: c.ActivationsA, MACs: c.MACs, Layers: c.Layers,
	}
}

// Tensor is one array of a model's weights, under the name it has in the file.
type Tensor struct {
	Name      string `json:"name"`
	Shape     []int  `json:"shape"`
	Values    int    `json:"values"`
	Trainable bool   `json:"trainable"`
}

// Trained is a trained model as -o json shows it.
type Trained struct {
	modelstore.Model
	Layers  []model.LayerCount `json:"layers"`
	Tensors []Tensor           `json:"tensors"`
}

// Of describes a trained model. It builds its network: the names of its layers are those of its weights. It returns
// what model.Build returns.
func Of(m *modelstore.Model) (Trained, error) {
	g, err := model.Build(m.Network)
	if err != nil {
		return Trained{}, err
	}
	doc := Trained{Model: *m, Layers: g.Count().Layers}
	for _, p := range g.Params() {
		doc.Tensors = append(doc.Tensors, Tensor{Name: p.Name, Shape: p.Shape, Values: p.Len(), Trainable: p.Trainable})
	}
	return doc, nil
}
