package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/jobtext"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/service"
)

func modelCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "model", Usage: "list, show and export networks and trained models",
		Subcommands: []*cli.Command{modelList(u), modelShow(u), modelExport(u)},
		Action:      commandline.NeedSubcommand,
	}
}

// networkDocument is a network of the zoo or of Keras as -o json shows it.
type networkDocument struct {
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

type modelListDocument struct {
	Networks []networkDocument  `json:"networks"`
	Models   []modelstore.Model `json:"models"`
}

func describeNetwork(n disdel.Network, title string) (networkDocument, error) {
	g, err := model.Build(n)
	if err != nil {
		return networkDocument{}, err
	}
	return describeGraph(g, n.Name, title), nil
}

func describeGraph(g *model.Graph, name, title string) networkDocument {
	c := g.Count()
	return networkDocument{
		Name: name, Title: title, Input: g.Input(), Classes: g.Output().Len(), Parameters: c.Trainable + c.NonTrainable,
		TrainableParameters: c.Trainable, Activations: c.ActivationsA, MACs: c.MACs, Layers: c.Layers,
	}
}

func modelList(u *ui) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the networks that jobs may name, and the models trained so far",
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 0, 0); err != nil {
				return err
			}
			return withService(c, u, storage, func(ctx context.Context, s *service.Service) error {
				store, err := s.Models(ctx)
				if err != nil {
					return err
				}
				doc := modelListDocument{Models: []modelstore.Model{}}
				for _, e := range model.Zoo() {
					n, err := describeNetwork(disdel.Network{Name: e.Name, Input: e.Input, Classes: e.Classes}, e.Title)
					if err != nil {
						return err
					}
					n.Layers = nil
					doc.Networks = append(doc.Networks, n)
				}
				trained, faults := store.List(ctx)
				doc.Models = append(doc.Models, trained...)
				return errors.Join(u.Show(doc, func(w io.Writer) { printModels(w, doc) }), faults)
			})
		},
	}
}

func printModels(w io.Writer, doc modelListDocument) {
	rows := [][]string{{"NETWORK", "INPUT", "PARAMETERS", "MACS", "TITLE"}}
	for _, n := range doc.Networks {
		rows = append(rows, []string{
			n.Name, model.Shape(n.Input).Text(), fmt.Sprint(n.Parameters), fmt.Sprint(n.MACs),
			n.Title,
		})
	}
	terminal.Table(w, terminal.Fitted(w, rows, "MACS", "TITLE")...)
	fmt.Fprintln(w)
	if len(doc.Models) == 0 {
		fmt.Fprintln(w, "no trained models yet: disdel quickstart")
		return
	}
	rows = [][]string{{"MODEL", "NETWORK", "DATA", "ACCURACY", "LOSS", "LEARNED", "EPOCHS", "SIZE", "CREATED", "JOB"}}
	for i := range doc.Models {
		m := &doc.Models[i]
		rows = append(rows, []string{
			m.Ref(), networkName(m.Network), m.Data.Name, jobtext.Decimals(m.Accuracy, evaluated(m)),
			jobtext.Decimals(m.Loss, evaluated(m)), learnedText(m.Learned), fmt.Sprint(m.Epochs),
			m.Size.String(), m.Created.Local().Format("2006-01-02 15:04"), string(m.Job),
		})
	}
	terminal.Table(w, terminal.Fitted(w, rows, "JOB", "SIZE", "EPOCHS", "LOSS", "DATA", "CREATED")...)
}

func networkName(n disdel.Network) string {
	if n.Custom != nil {
		return n.Custom.Name
	}
	if n.Name != "" {
		return n.Name
	}
	return fmt.Sprintf("%d layers", len(n.Layers))
}

func modelShow(u *ui) *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show a network's layers, or a trained model", ArgsUsage: "NAME",
		Description: "NAME is a network of the zoo, or a trained model: NAME for its newest version, NAME:vN for one.\n" +
			"   A NAME that ends in .json, or --keras, is a file of Keras' model.to_json().\n\n" +
			"   disdel model show lenet5 --input 1x28x28\n   disdel model show digits-cnn:v1\n   disdel model show --keras my.json",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "input", Usage: "shape `CxHxW` of a network's input"},
			&cli.IntFlag{Name: "classes", Usage: "`NUMBER` of a network's outputs"},
			&cli.BoolFlag{Name: "layers", Usage: "show a trained model's layers and the tensors of its weights, too"},
			&cli.StringFlag{Name: "keras", Usage: "show the network of a `FILE` that Keras wrote"},
		},
		Action: func(c *cli.Context) error {
			if c.IsSet("keras") {
				if err := commandline.Operands(c, 0, 0); err != nil {
					return err
				}
				return showKeras(c, u, c.String("keras"))
			}
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			if slices.Contains([]string{".json", ".keras", ".h5", ".hdf5"}, strings.ToLower(filepath.Ext(c.Args().First()))) {
				return showKeras(c, u, c.Args().First())
			}
			return withService(c, u, storage,
				func(ctx context.Context, s *service.Service) error { return showModel(ctx, c, u, s, c.Args().First()) })
		},
	}
}

// showKeras shows a network at the only input and with the only outputs that its file gives.
func showKeras(c *cli.Context, u *ui, file string) error {
	for _, flag := range []string{"input", "classes"} {
		if c.IsSet(flag) {
			return &disdel.Error{
				Kind: disdel.Invalid,
				Msg:  fmt.Sprintf("--%s does not go with a file of Keras, which says it", flag),
			}
		}
	}
	text, err := readInput(u, file)
	if err != nil {
		return err
	}
	g, err := model.FromKeras(text)
	var faults *disdel.Faults
	if errors.As(err, &faults) {
		for i := range faults.Faults { // a layer has no line
			faults.Faults[i].Path = file + ": layer " + faults.Faults[i].Path
		}
	}
	if err != nil {
		return err
	}
	doc := describeGraph(g, file, "Network of Keras")
	return u.Show(doc, func(w io.Writer) { printNetwork(w, doc) })
}

// showModel prefers a trained model where both exist, unless the flags ask for a network.
func showModel(ctx context.Context, c *cli.Context, u *ui, s *service.Service, name string) error {
	store, err := s.Models(ctx)
	if err != nil {
		return err
	}
	m, err := store.Get(ctx, name)
	e, isNetwork := model.Find(name)
	switch {
	case err == nil && !c.IsSet("input") && !c.IsSet("classes"):
		return showTrained(c, u, &m)
	case !isNetwork && strings.Contains(name, ":"):
		return err
	case !isNetwork && disdel.KindOf(err) == disdel.NotFound:
		hint := "disdel model list"
		if near := model.Nearest(name); near != "" {
			hint = "disdel model show " + near
		}
		return &disdel.Error{
			Kind: disdel.NotFound, Op: "show model",
			Msg: fmt.Sprintf("there is no network or trained model %q", name), Hint: hint,
		}
	case !isNetwork:
		return err
	}
	n := disdel.Network{Name: name, Input: e.Input, Classes: e.Classes}
	if text := c.String("input"); text != "" {
		if n.Input, err = parseShape(text); err != nil {
			return err
		}
	}
	if c.IsSet("classes") {
		n.Classes = c.Int("classes")
	}
	doc, err := describeNetwork(n, e.Title)
	if err != nil {
		return err
	}
	return u.Show(doc, func(w io.Writer) { printNetwork(w, doc) })
}

func parseShape(text string) ([]int, error) {
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

func printNetwork(w io.Writer, d networkDocument) {
	fmt.Fprintf(w, "%s: %s\ninput %s, %d classes, %d parameters (%d trainable), %d activations, %d multiply-accumulates a sample\n\n",
		terminal.OneLine(d.Name), terminal.OneLine(d.Title), model.Shape(d.Input).Text(), d.Classes, d.Parameters,
		d.TrainableParameters, d.Activations, d.MACs)
	printCounts(w, d.Layers)
}

func printCounts(w io.Writer, list []model.LayerCount) {
	rows := [][]string{{"LAYER", "OP", "OUTPUT", "PARAMETERS", "ACTIVATIONS", "MACS"}}
	for _, l := range list {
		rows = append(rows, []string{
			l.Name, l.Op, model.Shape(l.Output).Text(), fmt.Sprint(l.Parameters),
			fmt.Sprint(l.Activations), fmt.Sprint(l.MACs),
		})
	}
	terminal.Table(w, rows...)
}

// tensorDocument is one array of a model's weights, under the name it has in the file.
type tensorDocument struct {
	Name      string `json:"name"`
	Shape     []int  `json:"shape"`
	Values    int    `json:"values"`
	Trainable bool   `json:"trainable"`
}

// trainedDocument is a trained model as -o json shows it.
type trainedDocument struct {
	modelstore.Model
	Layers  []model.LayerCount `json:"layers"`
	Tensors []tensorDocument   `json:"tensors"`
}

// showTrained builds the network of a trained model: the names of its layers are those of its weights.
func showTrained(c *cli.Context, u *ui, m *modelstore.Model) error {
	g, err := model.Build(m.Network)
	if err != nil {
		return err
	}
	doc := trainedDocument{Model: *m, Layers: g.Count().Layers}
	for _, p := range g.Params() {
		doc.Tensors = append(doc.Tensors,
			tensorDocument{Name: p.Name, Shape: p.Shape, Values: p.Len(), Trainable: p.Trainable})
	}
	return u.Show(doc, func(w io.Writer) {
		printModel(w, m)
		if c.Bool("layers") {
			fmt.Fprintln(w)
			printCounts(w, doc.Layers)
			fmt.Fprintln(w)
			printTensors(w, doc.Tensors)
		}
	})
}

func printTensors(w io.Writer, list []tensorDocument) {
	rows := [][]string{{"TENSOR", "SHAPE", "VALUES"}}
	for _, t := range list {
		rows = append(rows, []string{t.Name, model.Shape(t.Shape).Text(), fmt.Sprint(t.Values)})
	}
	terminal.Table(w, rows...)
}

func printModel(w io.Writer, m *modelstore.Model) {
	fmt.Fprintf(w, "model     %s\nnetwork   %s, input %s, %d classes\n",
		terminal.OneLine(m.Ref()), terminal.OneLine(networkName(m.Network)), model.Shape(m.Network.Input).Text(),
		m.Network.Classes)
	if len(m.Labels) > 0 {
		fmt.Fprintf(w, "classes   %s\n", terminal.OneLine(strings.Join(m.Labels, ", ")))
	}
	if m.Inputs != nil {
		fmt.Fprintf(w, "inputs    %.4g to %.4g\n", m.Inputs.Low, m.Inputs.High)
	}
	fmt.Fprintf(w, "data      %s (%d rows)\naccuracy  %s\ntrained   %s by %s, %s, job %s\nweights   %s, %s, %s\n",
		terminal.OneLine(m.Data.Name), m.Data.Train, modelAccuracy(m), terminal.Counted(m.Epochs, "epoch"),
		terminal.Counted(m.Workers, "worker"),
		m.Created.Local().Format("2006-01-02 15:04:05"), terminal.OneLine(string(m.Job)), terminal.OneLine(m.Path), m.Size,
		terminal.OneLine(strings.TrimPrefix(m.Checksum, "sha256:")))
	for _, text := range m.Warnings {
		fmt.Fprintf(w, "warning   %s\n", terminal.Clean(text))
	}
}

// evaluated tells whether a model's accuracy is one that was measured.
func evaluated(m *modelstore.Model) bool {
	return m.Data.HeldOut > 0 && (m.Evaluated == nil || *m.Evaluated)
}

func modelAccuracy(m *modelstore.Model) string {
	switch {
	case evaluated(m):
		return fmt.Sprintf("%.4f held out, loss %.4f", m.Accuracy, m.Loss)
	case m.Data.HeldOut == 0:
		return "- no rows held out"
	default:
		return "- not evaluated"
	}
}

// learnedText is whether a model learned anything, "-" where nobody knows.
func learnedText(learned *bool) string {
	switch {
	case learned == nil:
		return "-"
	case *learned:
		return "yes"
	default:
		return "no"
	}
}
