package infer

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/model"
)

// Evaluation is how well a model predicts the labels of a data set.
type Evaluation struct {
	Model         string  `json:"model"`
	Dataset       string  `json:"dataset"`
	Rows          int     `json:"rows"`
	HeldOut       bool    `json:"heldOut"` // the rows are the held-out part of the data set; false: all rows
	Accuracy      float64 `json:"accuracy"`
	disdel.Scores         // of numbers, instead of the accuracy
	Loss          float64 `json:"loss"` // mean of a row, as the job counts it
	// Confusion counts rows by their label and by the class that the model gave them: [labels classes].
	Confusion [][]int             `json:"confusion"`
	Classes   []ClassEvaluation   `json:"classes"`
	Warnings  []string            `json:"warnings,omitempty"`
	Actions   []disdel.Activation `json:"actions"`

	top5 int    // rows whose class is among the most probable
	loss string // of the job, "" if it is not known
}

// ClassEvaluation is how well a model predicts one class.
type ClassEvaluation struct {
	Class int    `json:"class"`
	Name  string `json:"name,omitempty"`
	disdel.ClassFigures
}

// evaluatedAtOnce bounds the values of the rows in memory and on their way to actions.
const evaluatedAtOnce = 16 << 20

// Evaluate has infer actions classify the held-out rows of a data set, or all rows if it holds none out, and compares
// the answers with the labels. If the model's job held out random rows of this data set, Evaluate uses those. It
// returns NotFound for a data set, Invalid for one whose rows the model does not take, and the failure of an action.
func (s *Predictor) Evaluate(ctx context.Context, t *Model, name string) (e Evaluation, err error) {
	e = Evaluation{Model: t.Ref(), Dataset: name}
	set, err := s.cfg.FindDataset(ctx, name)
	if err != nil {
		return e, err
	}
	m := set.Manifest
	if err := t.takes(&m); err != nil {
		return e, err
	}
	h, err := t.from.History(ctx)
	if err != nil {
		return e, err
	}
	job, unknown := h.Get(ctx, t.Job)
	e.loss = job.Job.Training.Loss
	shard, err := evaluatedRows(ctx, set.Store, t, &m, &job, unknown != nil, &e)
	if err != nil {
		return e, err
	}
	return e, s.evaluateRows(ctx, t, shard, &e)
}

// takes returns why a model cannot classify the rows of a data set.
func (t *Model) takes(m *dataset.Manifest) error {
	if err := t.classifies(); err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "evaluate " + t.Ref(), Msg: fmt.Sprintf(format, args...),
			Hint: "disdel dataset list shows what data sets hold",
		}
	}
	rows := m.Info(disdel.Split{Train: 1}).Resized(t.Data.Resize)
	switch input := t.Graph.Input(); {
	case t.Network.Sparse != nil || m.Sparse != nil:
		return refuse("models of sparse rows are evaluated by their jobs only")
	case model.Shape(rows.Sample).Len() != input.Len():
		return refuse("%s takes rows of %d values (%s), and %s has %s", t.Ref(), input.Len(), input.Text(), m.Name,
			model.Shape(rows.Sample).Text())
	case t.otherTargets(m) != "":
		return refuse("%s", t.otherTargets(m))
	case m.Classes > t.Graph.Output().Len():
		return refuse("%s has %d classes, and %s knows %d", m.Name, m.Classes, t.Ref(), t.Graph.Output().Len())
	}
	return nil
}

// otherTargets says how the targets of a data set differ from those of the model; "" if they do not.
func (t *Model) otherTargets(m *dataset.Manifest) string {
	asked, has := disdel.DataInfo{Targets: t.Network.Targets}, disdel.DataInfo{Targets: m.Targets}
	if len(asked.Targets) == len(has.Targets) && asked.MultiLabel() == has.MultiLabel() {
		return ""
	}
	word := "target"
	if has.MultiLabel() {
		word = "label"
	}
	return fmt.Sprintf("%s predicts %s, and %s has %s", t.Ref(), disdel.Counted(len(asked.Targets), asked.TargetWord()),
		m.Name, disdel.Counted(len(has.Targets), word))
}

// evaluatedRows reads the rows that a model is evaluated on. job is the model's, if it is known.
func evaluatedRows(
	ctx context.Context, store *dataset.Store, t *Model, m *dataset.Manifest, job *disdel.Record, unknown bool,
	e *Evaluation,
) (*dataset.Shard, error) {
	ref := disdel.DataRef{Name: m.Name, Checksum: m.Checksum(), Resize: t.Data.Resize, Split: disdel.Split{Train: 1}}
	if t.Data.Drawn && t.Data.Checksum == ref.Checksum {
		if unknown {
			e.Warnings = append(e.Warnings,
				fmt.Sprintf("the job of %s is not known any more, nor which rows it held out", t.Ref()))
		} else {
			ref.Split = job.Job.Data.Split
		}
	}
	info := m.Info(ref.Split)
	if e.HeldOut = info.HeldOut > 0; e.HeldOut {
		return store.ReadHeldOut(ctx, ref, disdel.RowRange{End: info.HeldOut})
	}
	if t.Data.Checksum == ref.Checksum {
		e.Warnings = append(e.Warnings, t.Ref()+" was trained on these rows: on others it does worse")
	}
	return store.ReadTrain(ctx, ref, disdel.RowRange{End: info.Train})
}

// evaluateRows asks the model about rows, as many at once as may be in memory.
func (s *Predictor) evaluateRows(ctx context.Context, t *Model, shard *dataset.Shard, e *Evaluation) error {
	size, classes := shard.SampleLen(), t.Graph.Output().Len()
	sums, several := disdel.NewErrorSums(t.Network.Targets), disdel.NewLabelSums(len(t.Network.Targets))
	if len(t.Network.Targets) == 0 {
		e.Confusion = make([][]int, classes)
	}
	for i := range e.Confusion {
		e.Confusion[i] = make([]int, classes)
	}
	step := max(1, evaluatedAtOnce/size)
	for first := 0; first < shard.Len(); first += step {
		n := min(step, shard.Len()-first)
		x, labels, places := make([]float32, n*size), make([]int32, n), make([]int32, n)
		rows := make([][]float32, n)
		for i := range rows {
			places[i], rows[i] = int32(first+i), x[i*size:(i+1)*size]
		}
		shard.Batch(places, x, labels)
		result, err := s.Infer(ctx, t, rows)
		e.Actions = append(e.Actions, result.Actions...)
		if err != nil {
			return err
		}
		if targets := shard.Targets(); targets != nil {
			if targets = targets[first*classes:][:n*classes]; t.Network.MultiLabel() {
				e.countLabels(several, result, targets)
				continue
			}
			e.countNumbers(sums, result, targets)
			continue
		}
		e.count(labels, result, t.Graph)
	}
	e.conclude(t.Labels)
	switch {
	case t.Network.MultiLabel():
		e.Accuracy, e.Scores = several.Scores()
	case len(t.Network.Targets) > 0:
		e.Scores = sums.Scores()
	}
	return nil
}

// countNumbers counts the errors of rows of numbers.
func (e *Evaluation) countNumbers(sums *disdel.ErrorSums, result Result, targets []float32) {
	for _, outputs := range result.Probabilities {
		row := targets[:len(outputs)]
		targets = targets[len(outputs):]
		sums.Add(outputs, row)
		e.Rows++
		for k, v := range outputs {
			e.Loss += numberLoss(e.loss, float64(v)-float64(row[k])) / float64(len(outputs))
		}
	}
}

// countLabels counts the answers for rows of several labels. The loss is the binary cross-entropy.
func (e *Evaluation) countLabels(sums *disdel.LabelSums, result Result, targets []float32) {
	for _, outputs := range result.Probabilities {
		row := targets[:len(outputs)]
		targets = targets[len(outputs):]
		sums.Add(outputs, row)
		e.Rows++
		for k, p := range outputs {
			if row[k] == 0 {
				p = 1 - p
			}
			e.Loss += surprise(p) / float64(len(outputs))
		}
	}
}

// count counts the results of rows with labels.
func (e *Evaluation) count(labels []int32, result Result, g *model.Graph) {
	softmax := g.Nodes[len(g.Nodes)-1].Op == model.OpSoftmax || g.Custom() != nil
	for i, label := range labels {
		e.Rows++
		e.Confusion[label][result.Classes[i]]++
		e.top5 += disdel.CountTop5(result.Probabilities[i], labels[i:i+1])
		e.Loss += classLoss(e.loss, result.Probabilities[i], int(label), softmax)
	}
}

// numberLoss is the loss of an error, in deviations, as a job with this loss counts it: its square for "".
func numberLoss(loss string, off float64) float64 {
	switch far := math.Abs(off); {
	case loss == disdel.LossHuber && far > 1:
		return far - 0.5
	case loss == disdel.LossHuber:
		return off * off / 2
	case loss == disdel.LossMAE:
		return far
	default:
		return off * off
	}
}

// surprise is the negative logarithm of a probability. One that a float32 rounds to 0 does not make it infinite.
func surprise(p float32) float64 { return -math.Log(max(float64(p), math.SmallestNonzeroFloat32)) }

// classLoss is the loss of a row with a label, as a job with this loss counts it: cross-entropy for "". Without softmax
// the outputs may be of any size.
func classLoss(loss string, outputs []float32, label int, softmax bool) (sum float64) {
	if loss != disdel.LossMSE && loss != disdel.LossBinaryCrossEntropy {
		if softmax {
			return surprise(outputs[label])
		}
		top := float64(slices.Max(outputs))
		for _, v := range outputs {
			sum += math.Exp(float64(v) - top)
		}
		return math.Log(sum) - (float64(outputs[label]) - top)
	}
	for k, v := range outputs {
		off := v
		if k == label {
			off = 1 - v
		}
		if loss == disdel.LossMSE {
			sum += float64(off) * float64(off)
		} else {
			sum += surprise(1 - off)
		}
	}
	return sum / float64(len(outputs))
}

// conclude computes the figures of the classes and of all rows.
func (e *Evaluation) conclude(names []string) {
	over := func(a, b int) float64 { return float64(a) / float64(max(1, b)) }
	right := 0
	for k := range e.Confusion {
		c := ClassEvaluation{Class: k}
		if k < len(names) {
			c.Name = names[k]
		}
		rows, predicted, hit := 0, 0, e.Confusion[k][k]
		for i := range e.Confusion {
			rows += e.Confusion[k][i]
			predicted += e.Confusion[i][k]
		}
		right += hit
		c.ClassFigures = disdel.NewClassFigures(rows, predicted, hit)
		e.Classes = append(e.Classes, c)
	}
	e.Accuracy, e.Loss = over(right, e.Rows), e.Loss/float64(max(1, e.Rows))
	if len(e.Confusion) > disdel.TopClasses {
		e.Top5 = new(over(e.top5, e.Rows))
	}
}
