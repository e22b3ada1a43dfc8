package service

import (
	"context"
	"fmt"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
)

// Judgement is how a model does on rows that are not those it was trained on.
type Judgement struct {
	Model    string  `json:"model"`
	Dataset  string  `json:"dataset"`
	Rows     int     `json:"rows"`
	HeldOut  bool    `json:"heldOut"` // they are what is held out of the data set; false: all of its rows
	Accuracy float64 `json:"accuracy"`
	Loss     float64 `json:"loss"` // cross-entropy, in nats, of a row on average
	// Confusion counts rows by their label and by the class that the model gave them: [labels classes].
	Confusion [][]int             `json:"confusion"`
	Classes   []ClassJudgement    `json:"classes"`
	Warnings  []string            `json:"warnings,omitempty"`
	Actions   []disdel.Activation `json:"actions"`
}

// ClassJudgement is how a model does on one class.
type ClassJudgement struct {
	Class int    `json:"class"`
	Name  string `json:"name,omitempty"`
	disdel.ClassFigures
}

// judgedAtOnce bounds the values of the rows that are in memory and on their way to actions at a time.
const judgedAtOnce = 16 << 20

// Judge has infer actions classify what is held out of a data set, or all of its rows where it holds none out, and
// holds the answers against the labels. Of the data set that a model has held out rows of by lot, it judges those of
// the model's own job. It returns NotFound for a data set, Invalid for one whose rows the model does not take, and the
// failure of an action.
func (s *Service) Judge(ctx context.Context, t *Trained, name string) (j Judgement, err error) {
	j = Judgement{Model: t.Ref(), Dataset: name}
	store, err := s.Datasets(ctx)
	if err != nil {
		return j, err
	}
	m, err := store.Manifest(ctx, name)
	if err != nil {
		return j, err
	}
	if err := t.takes(&m); err != nil {
		return j, err
	}
	shard, err := s.judged(ctx, store, t, &m, &j)
	if err != nil {
		return j, err
	}
	return j, s.judgeAll(ctx, t, shard, &j)
}

// takes returns why a model cannot classify the rows of a data set.
func (t *Trained) takes(m *dataset.Manifest) error {
	refuse := func(format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "evaluate " + t.Ref(), Msg: fmt.Sprintf(format, args...),
			Hint: "disdel dataset list shows what data sets hold",
		}
	}
	rows := m.Info(disdel.Split{Train: 1}).Resized(t.Data.Resize)
	switch input := t.Graph.Input(); {
	case t.Network.Sparse != nil || m.Sparse != nil:
		return refuse("models of sparse rows are judged by their jobs alone")
	case model.Shape(rows.Sample).Len() != input.Len():
		return refuse("%s takes rows of %d values (%s), and %s has %s", t.Ref(), input.Len(), input.Text(), m.Name,
			model.Shape(rows.Sample).Text())
	case m.Classes > t.Graph.Output().Len():
		return refuse("%s has %d classes, and %s knows %d", m.Name, m.Classes, t.Ref(), t.Graph.Output().Len())
	}
	return nil
}

// judged reads the rows that a model is judged by.
func (s *Service) judged(ctx context.Context, store *dataset.Store, t *Trained, m *dataset.Manifest, j *Judgement) (
	*dataset.Shard, error,
) {
	ref := disdel.DataRef{Name: m.Name, Checksum: m.Checksum(), Resize: t.Data.Resize, Split: disdel.Split{Train: 1}}
	if t.Data.Drawn && t.Data.Checksum == ref.Checksum {
		h, err := s.History(ctx)
		if err != nil {
			return nil, err
		}
		rec, err := h.Get(ctx, t.Job)
		if err != nil {
			j.Warnings = append(j.Warnings,
				fmt.Sprintf("the job of %s is not known any more, nor which rows it held out", t.Ref()))
		} else {
			ref.Split = rec.Job.Data.Split
		}
	}
	info := m.Info(ref.Split)
	if j.HeldOut = info.HeldOut > 0; j.HeldOut {
		return store.ReadHeldOut(ctx, ref, disdel.RowRange{End: info.HeldOut})
	}
	if t.Data.Checksum == ref.Checksum {
		j.Warnings = append(j.Warnings, t.Ref()+" was trained on these rows: on others it does worse")
	}
	return store.ReadTrain(ctx, ref, disdel.RowRange{End: info.Train})
}

// judgeAll asks about rows, as many at a time as may be in memory.
func (s *Service) judgeAll(ctx context.Context, t *Trained, shard *dataset.Shard, j *Judgement) error {
	size, classes := shard.SampleLen(), t.Graph.Output().Len()
	j.Confusion = make([][]int, classes)
	for i := range j.Confusion {
		j.Confusion[i] = make([]int, classes)
	}
	step := max(1, judgedAtOnce/size)
	for first := 0; first < shard.Len(); first += step {
		n := min(step, shard.Len()-first)
		x, labels, places := make([]float32, n*size), make([]int32, n), make([]int32, n)
		rows := make([][]float32, n)
		for i := range rows {
			places[i], rows[i] = int32(first+i), x[i*size:(i+1)*size]
		}
		shard.Batch(places, x, labels)
		said, err := s.Infer(ctx, t, rows)
		j.Actions = append(j.Actions, said.Actions...)
		if err != nil {
			return err
		}
		j.count(labels, said)
	}
	j.conclude(t.Labels)
	return nil
}

// count enters what was said of rows with labels.
func (j *Judgement) count(labels []int32, said Inference) {
	for i, label := range labels {
		j.Rows++
		j.Confusion[label][said.Classes[i]]++
		// What a float32 cannot tell from nothing is not taken for infinitely wrong.
		j.Loss -= math.Log(math.Max(float64(said.Probabilities[i][label]), math.SmallestNonzeroFloat32))
	}
}

// conclude works the figures out.
func (j *Judgement) conclude(names []string) {
	over := func(a, b int) float64 { return float64(a) / float64(max(1, b)) }
	right := 0
	for k := range j.Confusion {
		c := ClassJudgement{Class: k}
		if k < len(names) {
			c.Name = names[k]
		}
		rows, given, hit := 0, 0, j.Confusion[k][k]
		for i := range j.Confusion {
			rows += j.Confusion[k][i]
			given += j.Confusion[i][k]
		}
		right += hit
		c.ClassFigures = disdel.NewClassFigures(rows, given, hit)
		j.Classes = append(j.Classes, c)
	}
	j.Accuracy, j.Loss = over(right, j.Rows), j.Loss/float64(max(1, j.Rows))
}
