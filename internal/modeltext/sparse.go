package modeltext

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/service/infer"
)

// answerSparse has a model of sparse rows answer what a file asks.
func answerSparse(ctx context.Context, s *infer.Predictor, m *infer.Model, file string, text []byte) (Inference,
	error,
) {
	in, err := m.ReadSparse(file, text)
	if err != nil {
		return Inference{}, err
	}
	doc := Inference{Model: m.Ref(), Targets: in.Targets, Classes: []int{}, Probabilities: [][]float32{}}
	said, err := s.InferSparse(ctx, m, in.SparseAsk)
	doc.Predictions, doc.Recommendations, doc.Actions = said.Predictions, said.Recommendations, said.Actions
	return doc, err
}

// printSparse is a table of predictions, a row each, or of items, a user each.
func printSparse(w io.Writer, doc Inference) {
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

// SparseNetworks describes the models of sparse rows, all of whose sizes come from a job's data set, at sizes such as
// are usual.
func SparseNetworks() (list []Network, err error) {
	for _, m := range model.SparseModels() {
		d := disdel.DataInfo{
			Sample: []int{shownColumns}, Classes: m.Classes, Train: 1,
			Sparse: &disdel.SparseData{Entries: shownEntries, Most: shownEntries},
		}
		if m.Ratings {
			d.Sample = []int{shownUsers + shownItems}
			d.Sparse = &disdel.SparseData{Entries: 2, Most: 2, Ones: true, Users: shownUsers, Items: shownItems}
		}
		n, err := Build(m.Describe(d, 0, disdel.Init{}), m.Title+"; sizes come from the data set")
		if err != nil {
			return list, err
		}
		list = append(list, n)
	}
	return list, nil
}

// SparseNetwork describes one of them; ok is false for other names.
func SparseNetwork(name string) (n Network, ok bool) {
	list, err := SparseNetworks()
	for _, n := range list {
		if n.Name == name && err == nil {
			return n, true
		}
	}
	return n, false
}
