package service

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/model"
)

// DataQuestion asks a model about the rows of a data set.
type DataQuestion struct {
	Dataset string          // NAME, or NAME@CHECKSUM, the beginning of the data set's: of no other version
	Part    disdel.DataPart // "": all
	Keep    bool            // the answers stay beside the models
}

// DataHead is what is known of answers before the first.
type DataHead struct {
	Model    string          `json:"model"`
	Dataset  string          `json:"dataset"`
	Checksum string          `json:"checksum"` // of the data set
	Part     disdel.DataPart `json:"part"`
	Rows     int             `json:"rows"`
	Classes  int             `json:"classes"` // probabilities of each row; 0: of sparse rows, which have a prediction each
	Names    []string        `json:"names,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
}

// Answered is what a model said of one row of a data set: of a dense one Classified, of a sparse one Predicted.
type Answered struct {
	Row int `json:"row"` // its number in the part, from 0
	*Classified
	*Predicted
}

// Classified is what a model said of a dense row.
type Classified struct {
	Class         int       `json:"class"`
	Name          string    `json:"name,omitempty"` // of the class
	Label         int32     `json:"label"`          // as the data set has it
	Probabilities []float32 `json:"probabilities"`
}

// Predicted is what a model said of a sparse row.
type Predicted struct {
	Prediction float32 `json:"prediction"`
	Target     float32 `json:"target"` // as the data set has it
}

// DataSink takes answers as they come: what is known of all, then row after row, each good until the next.
type DataSink interface {
	Begin(head DataHead) error
	Take(row Answered) error
}

// DataAnswers is how a data set was answered for.
type DataAnswers struct {
	DataHead
	Right   int                 `json:"right"`             // rows whose class is their label
	Address string              `json:"address,omitempty"` // blob URL that the keys of answers are below which were kept
	Answers []disdel.AnswersRef `json:"answers,omitempty"` // in the order of the rows
	Actions []disdel.Activation `json:"actions"`
}

// InferData has infer actions, several side by side, read rows of a data set, and answer for them. Each writes its
// answers beside the models, from where they come to the sink in the order of the rows, and are deleted, unless they
// are to be kept; a nil sink takes none. Whatever goes wrong, and where ctx ends, nothing of them stays. It returns
// NotFound for the data set, Conflict for another version than the one that was asked for, Invalid for rows that the
// model does not take, the failure of an action that was not tried again, and what the sink returns.
func (s *Service) InferData(
	ctx context.Context, t *Trained, ask DataQuestion, to DataSink,
) (out DataAnswers, err error) {
	d, err := s.dataOf(ctx, t, ask)
	if err != nil {
		return out, err
	}
	return s.inferData(ctx, t, d, ask.Keep, to)
}

// inferData is InferData of rows that were found.
func (s *Service) inferData(ctx context.Context, t *Trained, d dataAsk, keep bool, to DataSink) (out DataAnswers,
	err error,
) {
	out.DataHead = d.head
	q, end, err := s.question(ctx, t, d.asking(t))
	if err != nil {
		return out, err
	}
	defer end()
	if q.shelf, err = s.Models(ctx); err != nil {
		return out, err
	}
	q.folder = path.Join(answersFolder, q.pkg)
	over, err := s.waits(ctx, q)
	if err != nil {
		return out, err
	}
	defer func() { // also where the context has ended
		ctx, e := context.WithoutCancel(ctx), error(nil)
		if keep && err == nil {
			e = q.shelf.KeepAnswers(ctx, q.folder, out.Answers)
		} else {
			e = q.shelf.DiscardAnswers(ctx, q.folder)
		}
		if e = errors.Join(e, over(ctx, e == nil)); err == nil {
			err = e
		}
	}()
	if err := q.shelf.WantAnswers(ctx, q.folder); err != nil {
		return out, err
	}
	if keep {
		out.Address = disdel.Redacted(q.request.Models)
	}
	demand, err := s.demand(ctx, q, d.parts())
	if err != nil { // what is refused at once has no first line
		return out, err
	}
	if to != nil {
		if err := to.Begin(d.head); err != nil {
			return out, err
		}
	}
	leave, err := s.room(ctx, demand)
	if err != nil {
		return out, err
	}
	defer leave()
	err = q.answer(ctx, d, to, &out, keep)
	return out, err
}

// dataAsk is rows of a data set that a model is asked about.
type dataAsk struct {
	disdel.DataAsk          // rows: all that are asked about
	head           DataHead // as who asks counts the rows
	manifest       dataset.Manifest
	rows           int // of one action
	drawn          bool
	changing       disdel.Bytes // of a row while it is resized
}

// asking is what the estimate of an action goes by.
func (d *dataAsk) asking(t *Trained) estimator.Input {
	return estimator.Input{
		Graph: t.Graph, BatchSize: min(inferBatch, d.rows), Rows: d.rows, Part: d.manifest.Train.Rows + d.manifest.Test.Rows,
		Drawn: d.drawn, SampleBytes: d.manifest.SampleSize() + besideAnswers, Resizing: d.changing,
	}
}

// besideAnswers is what an action holds for each row besides: its label and its class, and both as they are written.
const besideAnswers = 12

// dataOf finds the data set, and holds it against the model.
func (s *Service) dataOf(ctx context.Context, t *Trained, ask DataQuestion) (d dataAsk, err error) {
	store, err := s.Datasets(ctx)
	if err != nil {
		return d, err
	}
	name, version, _ := strings.Cut(ask.Dataset, "@")
	if d.manifest, err = store.Manifest(ctx, name); err != nil {
		return d, err
	}
	m := &d.manifest
	d.Data = disdel.DataRef{URL: s.storage("datasets"), Name: name, Checksum: m.Checksum(), Resize: t.Data.Resize}
	d.Data.Split = disdel.Split{Train: 1} // which nothing is read by, unless partOf says so
	if !strings.HasPrefix(d.Data.Checksum, version) && !strings.HasPrefix(d.Data.Checksum, "sha256:"+version) {
		return d, &disdel.Error{
			Kind: disdel.Conflict, Op: "infer",
			Msg:  fmt.Sprintf("%s has checksum %s, not %.80s", name, d.Data.Checksum, version),
			Hint: "disdel dataset show " + name,
		}
	}
	if err := t.answersFor(m); err != nil {
		return d, err
	}
	d.head = DataHead{
		Model: t.Ref(), Dataset: name, Checksum: d.Data.Checksum, Part: ask.Part, Classes: t.Graph.Output().Len(),
		Names: t.Labels,
	}
	if t.Network.Sparse != nil {
		d.head.Classes = 0
	}
	if d.head.Part == "" {
		d.head.Part = disdel.PartAll
	}
	if err := s.partOf(ctx, t, &d); err != nil {
		return d, err
	}
	if d.head.Rows = d.Rows.Len(); d.head.Rows == 0 {
		return d, &disdel.Error{
			Kind: disdel.Invalid, Op: "infer", Msg: fmt.Sprintf("the part %s of %s has no rows", d.head.Part, name),
			Hint: "--part all takes every row",
		}
	}
	info := m.Info(d.Data.Split).Resized(t.Data.Resize)
	d.changing = info.ChangeBytes()
	d.rows = rowsOfAction(d.head.Rows, int(m.SampleSize()), 4*max(1, d.head.Classes), t.Graph.Count().MACs)
	if low, high, err := store.Range(ctx, d.manifest); err == nil { // not of sparse rows
		if doubt := t.Doubt([][]float32{{low, high}}); doubt != "" {
			d.head.Warnings = []string{doubt}
		}
	}
	return d, nil
}

// answersFor returns why a model cannot answer for the rows of a data set. Which classes they have is nothing to it.
func (t *Trained) answersFor(m *dataset.Manifest) error {
	refuse := func(format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "infer", Msg: fmt.Sprintf(format, args...),
			Hint: "disdel dataset list shows what data sets hold",
		}
	}
	n := t.Network.Sparse
	rows := m.Info(disdel.Split{Train: 1}).Resized(t.Data.Resize)
	switch input := t.Graph.Input(); {
	case (n != nil) != (m.Sparse != nil):
		return refuse("of %s and %s only one is of sparse rows", t.Ref(), m.Name)
	case n == nil && model.Shape(rows.Sample).Len() != input.Len():
		return refuse("%s takes rows of %d values (%s), and %s has %s", t.Ref(), input.Len(), input.Text(), m.Name,
			model.Shape(rows.Sample).Text())
	case n != nil && m.Sample[0] != input[0]:
		return refuse("%s knows %d columns, and %s has %d", t.Ref(), input[0], m.Name, m.Sample[0])
	case n != nil && (n.Users != m.Sparse.Users || n.Items != m.Sparse.Items):
		return refuse("%s knows %d users and %d items, and %s has %d and %d", t.Ref(), n.Users, n.Items, m.Name,
			m.Sparse.Users, m.Sparse.Items)
	case n != nil && m.Sparse.Most > n.Most:
		return refuse("a row of %s has %d entries, and none that %s was trained on has more than %d", m.Name, m.Sparse.Most,
			t.Ref(), n.Most)
	}
	return nil
}

// partOf finds the rows of the part that is asked for. They are counted as they are stored, but where the model's own
// job has drawn by lot which of them it held out.
func (s *Service) partOf(ctx context.Context, t *Trained, d *dataAsk) error {
	m, whole := &d.manifest, d.manifest.Train.Rows+d.manifest.Test.Rows
	d.DataAsk.Part = disdel.PartAll
	switch part := d.head.Part; {
	case part == disdel.PartAll:
		d.Rows = disdel.RowRange{End: whole}
	case part != disdel.PartTrain && part != disdel.PartTest:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "infer", Msg: fmt.Sprintf("there is no part %.40q", part),
			Hint: "the parts are all, train and test",
		}
	case m.Test.Rows > 0 && part == disdel.PartTrain:
		d.Rows = disdel.RowRange{End: m.Train.Rows}
	case m.Test.Rows > 0:
		d.Rows = disdel.RowRange{Start: m.Train.Rows, End: whole}
	case t.Data.Drawn && t.Data.Checksum == d.Data.Checksum:
		split, err := s.splitOf(ctx, t)
		if err != nil {
			return err
		}
		info := m.Info(split)
		d.Data.Split, d.DataAsk.Part, d.drawn = split, part, true
		if d.Rows = (disdel.RowRange{End: info.Train}); part == disdel.PartTest {
			d.Rows.End = info.HeldOut
		}
	case part == disdel.PartTrain:
		d.Rows = disdel.RowRange{End: whole}
	}
	return nil
}

// splitOf is how the model's job divided its data set.
func (s *Service) splitOf(ctx context.Context, t *Trained) (disdel.Split, error) {
	h, err := s.History(ctx)
	if err != nil {
		return disdel.Split{}, err
	}
	rec, err := h.Get(ctx, t.Job)
	if disdel.KindOf(err) == disdel.NotFound {
		err = &disdel.Error{
			Kind: disdel.NotFound, Op: "infer", Err: err, Hint: "--part all takes every row",
			Msg: fmt.Sprintf("the job of %s is not known any more, nor which rows it held out", t.Ref()),
		}
	}
	return rec.Job.Data.Split, err
}
