package infer

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

// DataRequest asks for a prediction for each row of a data set.
type DataRequest struct {
	Dataset string          // NAME, or NAME@CHECKSUM with the beginning of the checksum, for this version only
	Part    disdel.DataPart // "": all
	Keep    bool            // keep the answers beside the models

	// RowsPerAction bounds the rows that one action answers for. 0: as many as the action's memory and time allow.
	RowsPerAction int
}

// DataHead describes the answers before the first one.
type DataHead struct {
	Model    string          `json:"model"`
	Dataset  string          `json:"dataset"`
	Checksum string          `json:"checksum"` // of the data set
	Part     disdel.DataPart `json:"part"`
	Rows     int             `json:"rows"`
	Classes  int             `json:"classes"` // probabilities of each row; 0: sparse rows, which have one prediction each
	Names    []string        `json:"names,omitempty"`
	Targets  []string        `json:"targets,omitempty"` // names of the numbers that a network predicts for each row
	Warnings []string        `json:"warnings,omitempty"`
}

// DataRow is the prediction for one row of a data set: Classified for a dense row, Predicted for a sparse one, or
// Numbers for a dense row of numbers to predict.
type DataRow struct {
	Row int `json:"row"` // number in the part, from 0
	*Classified
	*Predicted
	*Numbers
}

// Numbers is the prediction of a network of numbers, each in the unit of its target, or the probabilities of labels.
type Numbers struct {
	Values []float64 `json:"values"`
	Given  []float64 `json:"numbers"`       // in the data set
	Yes    []string  `json:"yes,omitempty"` // labels with a probability of at least disdel.LabelThreshold
}

// Classified is the prediction for a dense row.
type Classified struct {
	Class         int       `json:"class"`
	Name          string    `json:"name,omitempty"` // of the class
	Label         int32     `json:"label"`          // in the data set
	Probabilities []float32 `json:"probabilities"`
}

// Predicted is the prediction for a sparse row.
type Predicted struct {
	Prediction float32 `json:"prediction"`
	Target     float32 `json:"target"` // as the data set has it
}

// DataSink receives the answers: first the head, then row after row. A row is valid until the next call.
type DataSink interface {
	Begin(head DataHead) error
	Take(row DataRow) error
}

// DataAnswers summarises the answers for a data set.
type DataAnswers struct {
	DataHead
	Right   int                 `json:"right"`             // rows whose class is their label
	Address string              `json:"address,omitempty"` // blob URL of the folder of kept answers
	Answers []disdel.AnswersRef `json:"answers,omitempty"` // in the order of the rows
	Actions []disdel.Activation `json:"actions"`
}

// InferData has parallel infer actions read rows of a data set and answer for them. Each action writes its answers
// beside the models; from there they go to the sink in the order of the rows. A nil sink takes none. The files are
// deleted, unless the request keeps them, and in any case if InferData fails. It returns NotFound for the data set,
// Conflict for another version than the requested one, and Invalid for rows that the model does not take. It also
// returns the failure of an action that is not retried, and errors of the sink.
func (s *Predictor) InferData(
	ctx context.Context, t *Model, ask DataRequest, to DataSink,
) (out DataAnswers, err error) {
	if err := t.classifies(); err != nil {
		return out, err
	}
	d, err := s.dataOf(ctx, t, ask)
	if err != nil {
		return out, err
	}
	out.DataHead = d.head
	q, end, err := s.newQuery(ctx, t, d.estimateInput(t))
	if err != nil {
		return out, err
	}
	defer end()
	if q.shelf, err = s.cfg.Models(ctx); err != nil {
		return out, err
	}
	q.folder = path.Join(answersFolder, q.pkg)
	over, err := s.waits(ctx, q)
	if err != nil {
		return out, err
	}
	defer func() { // also where the context has ended
		ctx, e := context.WithoutCancel(ctx), error(nil)
		if ask.Keep && err == nil {
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
	if ask.Keep {
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
	leave, err := s.reserve(ctx, demand)
	if err != nil {
		return out, err
	}
	defer leave()
	err = q.answer(ctx, d, to, &out, ask.Keep)
	return out, err
}

// dataRows are the rows of a data set that a query is about.
type dataRows struct {
	disdel.DataAsk          // Rows: all of them
	head           DataHead // counts rows as the caller does
	manifest       dataset.Manifest
	rows           int // of one action
	drawn          bool
	changing       disdel.Bytes // of a row, while it is resized
}

// estimateInput is the input of the estimate for one action.
func (d *dataRows) estimateInput(t *Model) estimator.Input {
	return estimator.Input{
		Graph: t.Graph, BatchSize: min(inferBatch, d.rows), Rows: d.rows, Part: d.manifest.Train.Rows + d.manifest.Test.Rows,
		Drawn: d.drawn, SampleBytes: d.manifest.SampleSize() + besideAnswers, Resizing: d.changing,
	}
}

// besideAnswers is what an action holds for each row besides its values and answers: label and class, twice.
const besideAnswers = 12

// dataOf finds the rows of a request, and checks that the model takes them.
func (s *Predictor) dataOf(ctx context.Context, t *Model, ask DataRequest) (d dataRows, err error) {
	name, version, _ := strings.Cut(ask.Dataset, "@")
	set, err := s.cfg.FindDataset(ctx, name)
	if err != nil {
		return d, err
	}
	d.manifest = set.Manifest
	m := &d.manifest
	d.Data = disdel.DataRef{URL: set.URL, Name: m.Name, Checksum: m.Checksum(), Resize: t.Data.Resize}
	d.Data.Split = disdel.Split{Train: 1} // which nothing is read by, unless partOf says so
	if !strings.HasPrefix(d.Data.Checksum, version) && !strings.HasPrefix(d.Data.Checksum, "sha256:"+version) {
		return d, &disdel.Error{
			Kind: disdel.Conflict, Op: "infer",
			Msg:  fmt.Sprintf("%s has checksum %s, not %.80s", name, d.Data.Checksum, version),
			Hint: "disdel dataset show " + name,
		}
	}
	if err := t.checkData(m); err != nil {
		return d, err
	}
	d.head = DataHead{
		Model: t.Ref(), Dataset: name, Checksum: d.Data.Checksum, Part: ask.Part, Classes: t.Graph.Output().Len(),
		Names: t.Labels,
	}
	if t.Network.Sparse != nil {
		d.head.Classes = 0
	}
	for _, target := range t.Network.Targets {
		d.head.Classes, d.head.Targets = 0, append(d.head.Targets, target.Name)
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
	d.rows = rowsOfAction(d.head.Rows, int(m.SampleSize()), 4*t.Graph.Output().Len(), t.Graph.Count().MACs)
	if ask.RowsPerAction > 0 {
		d.rows = ask.RowsPerAction
	}
	if low, high, err := set.Store.Range(ctx, d.manifest); err == nil { // not of sparse rows
		if doubt := t.Warning([][]float32{{low, high}}); doubt != "" {
			d.head.Warnings = []string{doubt}
		}
	}
	return d, nil
}

// checkData returns why a model cannot answer for the rows of a data set. Their classes do not matter.
func (t *Model) checkData(m *dataset.Manifest) error {
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
	case t.otherTargets(m) != "":
		return refuse("%s", t.otherTargets(m))
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

// partOf finds the rows of the requested part. Rows are numbered as they are stored, except if the model's own job drew
// the held-out rows at random.
func (s *Predictor) partOf(ctx context.Context, t *Model, d *dataRows) error {
	m, all := &d.manifest, d.manifest.Train.Rows+d.manifest.Test.Rows
	d.DataAsk.Part = disdel.PartAll
	switch part := d.head.Part; {
	case part == disdel.PartAll:
		d.Rows = disdel.RowRange{End: all}
	case part != disdel.PartTrain && part != disdel.PartTest:
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "infer", Msg: fmt.Sprintf("there is no part %.40q", part),
			Hint: "the parts are all, train and test",
		}
	case m.Test.Rows > 0 && part == disdel.PartTrain:
		d.Rows = disdel.RowRange{End: m.Train.Rows}
	case m.Test.Rows > 0:
		d.Rows = disdel.RowRange{Start: m.Train.Rows, End: all}
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
		d.Rows = disdel.RowRange{End: all}
	}
	return nil
}

// splitOf returns how the model's job split its data set.
func (s *Predictor) splitOf(ctx context.Context, t *Model) (disdel.Split, error) {
	h, err := t.from.History(ctx)
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
