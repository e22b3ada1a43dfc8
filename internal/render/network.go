package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/service/infer"
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

// ModelList is the networks of the zoo, and the models trained so far.
type ModelList struct {
	Networks []Network          `json:"networks"`
	Models   []modelstore.Model `json:"models"`
}

// buildNetwork describes a network. It returns what model.Build returns.
func buildNetwork(n disdel.Network, title string) (Network, error) {
	g, err := model.Build(n)
	if err != nil {
		return Network{}, err
	}
	return describeNetwork(g, n.Name, title), nil
}

// Networks describes the zoo and the models of sparse rows, without their layers.
func Networks() (list []Network, err error) {
	for _, e := range model.Zoo() {
		n, err := buildNetwork(disdel.Network{Name: e.Name, Input: e.Input, Classes: e.Classes}, e.Title)
		if err != nil {
			return list, err
		}
		list = append(list, n)
	}
	sparse, err := sparseNetworks()
	list = append(list, sparse...)
	for i := range list {
		list[i].Layers = nil
	}
	return list, err
}

// KerasNetwork describes the network of a file that Keras wrote. It returns *disdel.Faults for what it cannot read.
func KerasNetwork(text []byte, file string) (Network, error) {
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
	return describeNetwork(g, file, "Network of Keras"), nil
}

// ImportedNetwork describes the network of an ONNX file. It returns what model.Build returns.
func ImportedNetwork(n disdel.Network, file, title string) (Network, error) {
	g, err := model.Build(n)
	if err != nil {
		return Network{}, err
	}
	return describeNetwork(g, file, title), nil
}

// describeNetwork describes a graph.
func describeNetwork(g *model.Graph, name, title string) Network {
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

// TrainedModel is a trained model, and the document of model show -o json.
type TrainedModel struct {
	modelstore.Model
	Layers  []model.LayerCount `json:"layers"`
	Tensors []Tensor           `json:"tensors"`
}

// DescribeModel describes a trained model. It builds the network for the names of layers and weights, and returns the
// errors of model.Build.
func DescribeModel(m *modelstore.Model) (TrainedModel, error) {
	g, err := model.Build(m.Network)
	if err != nil {
		return TrainedModel{}, err
	}
	doc := TrainedModel{Model: *m, Layers: g.Count().Layers}
	for _, p := range g.Params() {
		doc.Tensors = append(doc.Tensors, Tensor{Name: p.Name, Shape: p.Shape, Values: p.Len(), Trainable: p.Trainable})
	}
	return doc, nil
}

// NamedNetwork describes a network by name, from the zoo or for sparse rows. input is channels x height x width
// ("1x28x28"; empty for the network's own), classes the number of outputs (nil for its own). It returns NotFound for an
// unknown name, with the closest one, and Invalid for an impossible shape.
func NamedNetwork(name, input string, classes *int) (Network, error) {
	if n, ok := sparseNetwork(name); ok {
		return n, nil
	}
	e, ok := model.Find(name)
	if !ok {
		return Network{}, unknown(name)
	}
	n := disdel.Network{Name: name, Input: e.Input, Classes: e.Classes}
	if input != "" {
		var err error
		if n.Input, err = shape(input); err != nil {
			return Network{}, err
		}
	}
	if classes != nil {
		n.Classes = *classes
	}
	return buildNetwork(n, e.Title)
}

func unknown(name string) error {
	hint := "disdel model list"
	if near := model.Nearest(name); near != "" {
		hint = "disdel model show " + near
	}
	return &disdel.Error{
		Kind: disdel.NotFound, Op: "show model",
		Msg: fmt.Sprintf("there is no network or trained model %q", name), Hint: hint,
	}
}

// shape reads channels x height x width.
func shape(text string) ([]int, error) {
	var c, h, w int
	if n, err := fmt.Sscanf(text, "%dx%dx%d", &c, &h, &w); err != nil || n != 3 ||
		fmt.Sprintf("%dx%dx%d", c, h, w) != text {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Msg: fmt.Sprintf("%q is no shape", text),
			Hint: "write channels x height x width: 1x28x28",
		}
	}
	return []int{c, h, w}, nil
}

// answerSparse has a model of sparse rows answer what a file asks.
func answerSparse(ctx context.Context, s *infer.Predictor, m *infer.Model, file string, text []byte) (Inference,
	error,
) {
	in, err := m.ReadSparse(file, text)
	if err != nil {
		return Inference{}, err
	}
	doc := Inference{Model: m.Ref(), Targets: in.Targets, Classes: []int{}, Probabilities: [][]float32{}}
	answers, err := s.InferSparse(ctx, m, in.SparseAsk)
	doc.Predictions, doc.Recommendations, doc.Actions = answers.Predictions, answers.Recommendations, answers.Actions
	return doc, err
}

// printSparseModel is a table of predictions, a row each, or of items, a user each.
func printSparseModel(w io.Writer, doc Inference) {
	if doc.Recommendations != nil {
		rows := [][]string{{"USER", "RANK", "ITEM", "PREDICTION"}}
		for _, r := range doc.Recommendations {
			for i, item := range r.Items {
				rows = append(rows, []string{
					fmt.Sprint(r.User), fmt.Sprint(i + 1), fmt.Sprint(item), fmt.Sprintf("%.4f", r.Scores[i]),
				})
			}
		}
		terminal.Table(w, rows...)
		return
	}
	head, squares := []string{"INPUT", "PREDICTION"}, 0.0
	targets := len(doc.Targets) > 0
	if targets {
		head = append(head, "TARGET")
	}
	rows := [][]string{head}
	for i, p := range doc.Predictions {
		row := []string{fmt.Sprint(i), fmt.Sprintf("%.4f", p)}
		if targets && i < len(doc.Targets) {
			row = append(row, fmt.Sprint(doc.Targets[i]))
			d := float64(p) - float64(doc.Targets[i])
			squares += d * d
		}
		rows = append(rows, row)
	}
	terminal.Table(w, rows...)
	if targets {
		fmt.Fprintf(w, "\nroot of the mean squared error %.4f\n", math.Sqrt(squares/float64(max(1, len(doc.Predictions)))))
	}
}

// The sizes at which models of sparse rows are shown without a data set: those of MovieLens-100K, and of MLLess' jobs
// on Criteo's clicks.
const (
	shownUsers, shownItems = 943, 1682
	shownColumns           = 100_013
	shownEntries           = 39
)

// sparseNetworks describes the models of sparse rows at usual sizes, because their real sizes come from a job's data
// set.
func sparseNetworks() (list []Network, err error) {
	for _, m := range model.SparseModels() {
		d := disdel.DataInfo{
			Sample: []int{shownColumns}, Classes: m.Classes, Train: 1,
			Sparse: &disdel.SparseData{Entries: shownEntries, Most: shownEntries},
		}
		if m.Ratings {
			d.Sample = []int{shownUsers + shownItems}
			d.Sparse = &disdel.SparseData{Entries: 2, Most: 2, Ones: true, Users: shownUsers, Items: shownItems}
		}
		n, err := buildNetwork(m.Describe(d, 0, disdel.Init{}), m.Title+"; sizes come from the data set")
		if err != nil {
			return list, err
		}
		list = append(list, n)
	}
	return list, nil
}

// sparseNetwork describes one model of sparse rows; ok is false for other names.
func sparseNetwork(name string) (n Network, ok bool) {
	list, err := sparseNetworks()
	for _, n := range list {
		if n.Name == name && err == nil {
			return n, true
		}
	}
	return n, false
}
