package modeltext

import (
	"context"
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/infer"
)

// Inference is what a model said, as -o json shows it.
type Inference struct {
	Model         string              `json:"model"`
	Accuracy      *float64            `json:"accuracy,omitempty"` // of the model on the rows held out of its training
	Classes       []int               `json:"classes"`
	Names         []string            `json:"names,omitempty"`
	Labels        []int32             `json:"labels,omitempty"` // as the input has them
	Right         *int                `json:"right,omitempty"`  // how many classes are the labels
	Probabilities [][]float32         `json:"probabilities"`
	Warnings      []string            `json:"warnings,omitempty"`
	Actions       []disdel.Activation `json:"actions"`

	// Of a model of sparse rows, instead of classes: a prediction for each row, or items for each user.
	Predictions     []float32            `json:"predictions,omitempty"`
	Targets         []float32            `json:"targets,omitempty"` // as the input has them
	Recommendations []disdel.Recommended `json:"recommendations,omitempty"`
}

// Answer has a model of a service answer for the rows of a file.
func Answer(ctx context.Context, s *infer.Predictor, m *infer.Model, file string, text []byte) (Inference, error) {
	if m.Network.Sparse != nil {
		return answerSparse(ctx, s, m, file, text)
	}
	inputs, err := m.Read(file, text)
	if err != nil {
		return Inference{}, err
	}
	doc := Inference{Model: m.Ref(), Warnings: terminal.NonEmpty(m.Warning(inputs.Rows), better(m))}
	if m.Data.HeldOut > 0 {
		doc.Accuracy = &m.Accuracy
	}
	said, err := s.Infer(ctx, m, inputs.Rows)
	doc.Classes, doc.Probabilities, doc.Actions = said.Classes, said.Probabilities, said.Actions
	doc.compare(inputs.Labels, m.Labels)
	return doc, err
}

// Measured is a model with its accuracy.
func Measured(m *modelstore.Model) string {
	if m.Data.HeldOut == 0 {
		return m.Ref() + ", accuracy unknown: nothing was held out"
	}
	if m.Network.Sparse != nil {
		return fmt.Sprintf("%s, %s held out", m.Ref(), m.Scores.Text())
	}
	return fmt.Sprintf("%s, accuracy %.4f held out", m.Ref(), m.Accuracy)
}

// better says that an older version of a model is better by much.
func better(m *infer.Model) string {
	if m.Better == nil {
		return ""
	}
	return fmt.Sprintf("%s is the newest version, and an older one is better: %s; disdel infer %s", m.Ref(),
		Measured(m.Better), m.Better.Ref())
}

// compare names the classes and holds them against the labels that the input came with.
func (d *Inference) compare(labels []int32, names []string) {
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

// PrintInference is a table of answers, a row each.
func PrintInference(w io.Writer, doc Inference) {
	if doc.Predictions != nil || doc.Recommendations != nil {
		printSparse(w, doc)
		return
	}
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
