package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/commandline"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

func inferCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "infer", Usage: "classify inputs with a trained model, as an action", ArgsUsage: "MODEL",
		Description: "MODEL is NAME, for its newest version, or NAME:vN. FILE is JSON ({\"inputs\": [[...], ...]}, a list " +
			"of rows, or one row,\n" +
			"each a list or nested as the image) or a NumPy .npy array, with values scaled as in training; - is JSON on " +
			"standard input.\n" +
			"Labels beside the inputs are compared with the answers.\n\n" +
			"   disdel dataset sample digits --row 7 > digit.json\n   disdel infer digits-cnn --input digit.json -o json",
		Flags: []cli.Flag{&cli.StringFlag{Name: "input", Aliases: []string{"i"}, Usage: "`FILE` of inputs"}, actionFlag},
		Action: func(c *cli.Context) error {
			if err := commandline.Operands(c, 1, 1); err != nil {
				return err
			}
			if c.String("input") == "" {
				return commandline.NeedsFlag(c, "--input FILE")
			}
			return withService(c, u, storage|actions,
				func(ctx context.Context, s *service.Service) error { return infer(ctx, c, u, s) })
		},
	}
}

// inferDocument is the answer of infer.
type inferDocument struct {
	Model         string              `json:"model"`
	Accuracy      *float64            `json:"accuracy,omitempty"` // of the model on the rows held out of its training
	Classes       []int               `json:"classes"`
	Names         []string            `json:"names,omitempty"`
	Labels        []int32             `json:"labels,omitempty"` // as the input has them
	Right         *int                `json:"right,omitempty"`  // how many classes are the labels
	Probabilities [][]float32         `json:"probabilities"`
	Warnings      []string            `json:"warnings,omitempty"`
	Actions       []disdel.Activation `json:"actions"`
}

func infer(ctx context.Context, c *cli.Context, u *ui, s *service.Service) error {
	name, file := c.Args().First(), c.String("input")
	m, err := s.Trained(ctx, name)
	if err != nil {
		return err
	}
	text, err := readInput(u, file)
	if err != nil {
		return err
	}
	inputs, err := m.Read(file, text)
	if err != nil {
		return err
	}
	doc := inferDocument{Model: m.Ref(), Warnings: terminal.NonEmpty(m.Doubt(inputs.Rows), better(m))}
	u.Say("model  %s", measured(&m.Model))
	if m.Data.HeldOut > 0 {
		doc.Accuracy = &m.Accuracy
	}
	for _, w := range doc.Warnings {
		u.Say("warning: %s", w)
	}
	said, err := s.Infer(ctx, m, inputs.Rows)
	if err != nil {
		return err
	}
	doc.Classes, doc.Probabilities, doc.Actions = said.Classes, said.Probabilities, said.Actions
	doc.compare(inputs.Labels, m.Labels)
	return u.Show(doc, func(w io.Writer) { printInference(w, doc) })
}

// measured is a model with its accuracy.
func measured(m *modelstore.Model) string {
	if m.Data.HeldOut == 0 {
		return m.Ref() + ", accuracy unknown: nothing was held out"
	}
	return fmt.Sprintf("%s, accuracy %.4f held out", m.Ref(), m.Accuracy)
}

// better says that an older version of a model is better by much.
func better(m *service.Trained) string {
	if m.Better == nil {
		return ""
	}
	return fmt.Sprintf("%s is the newest version, and an older one is better: %s; disdel infer %s", m.Ref(),
		measured(m.Better), m.Better.Ref())
}

// compare names the classes and holds them against the labels that the input came with.
func (d *inferDocument) compare(labels []int32, names []string) {
	right := 0
	for i, k := range d.Classes {
		if len(names) > 0 {
			d.Names = append(d.Names, className(names, k))
		}
		if i < len(labels) && int(labels[i]) == k {
			right++
		}
	}
	if labels != nil {
		d.Labels, d.Right = labels, &right
	}
}

func className(names []string, k int) string {
	if k < 0 || k >= len(names) {
		return ""
	}
	return names[k]
}

func printInference(w io.Writer, doc inferDocument) {
	head := []string{"INPUT", "CLASS", "NAME"}
	if doc.Labels != nil {
		head = append(head, "LABEL")
	}
	rows := [][]string{append(head, "PROBABILITY")}
	for i, k := range doc.Classes {
		row := []string{fmt.Sprint(i), fmt.Sprint(k), className(doc.Names, i)}
		if doc.Labels != nil {
			row = append(row, fmt.Sprint(doc.Labels[i]))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.4f", doc.Probabilities[i][k])))
	}
	terminal.Table(w, rows...)
	if doc.Right != nil {
		fmt.Fprintf(w, "\n%d of %d right\n", *doc.Right, len(doc.Classes))
	}
}
