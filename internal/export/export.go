package export

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/disdel/disdel"
)

// Format is how jobs are written.
type Format string

// The formats.
const (
	CSV         Format = "csv"         // a line for each round of each job
	JSONL       Format = "jsonl"       // a line for each job, its whole record
	Parquet     Format = "parquet"     // what CSV has, with types
	TensorBoard Format = "tensorboard" // a folder of event files, a folder for each job
	MLflow      Format = "mlflow"      // a folder as MLflow's file store, up to MLflow 3.12; see MLflowServer
)

// Formats are all of them.
var Formats = []Format{CSV, JSONL, Parquet, TensorBoard, MLflow}

// Folder says whether a format is a folder and not a text.
func (f Format) Folder() bool { return f == TensorBoard || f == MLflow }

// Known says whether there is such a format.
func (f Format) Known() bool { return slices.Contains(Formats, f) }

// Text writes jobs as CSV, JSONL or Parquet. It returns the errors of w.
func Text(w io.Writer, format Format, list []disdel.Record) error {
	if format == Parquet {
		return writeParquet(w, list)
	}
	if format == JSONL {
		out := json.NewEncoder(w)
		for i := range list {
			if err := out.Encode(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	out := csv.NewWriter(w)
	head := []string{"job", "name", "status", "model", "dataset", "round"}
	for _, s := range scalars {
		head = append(head, s.name)
	}
	out.Write(head) //nolint:errcheck // Error tells
	for i := range list {
		r := &list[i]
		for k := range r.Rounds {
			line := []string{
				string(r.ID), r.Job.Metadata.Name, r.Status.String(), modelText(&r.Job.Model), r.Data.Name,
				strconv.Itoa(r.Rounds[k].Round + 1),
			}
			for _, s := range scalars {
				line = append(line, numberText(s.value(&r.Rounds[k])))
			}
			out.Write(line) //nolint:errcheck // Error tells
		}
	}
	out.Flush()
	return out.Error()
}

// modelText names the network of a job: by its name or its file, else by its layers.
func modelText(m *disdel.Model) string {
	if name := m.NetworkName(); name != "" || len(m.Layers) == 0 {
		return name
	}
	return disdel.Counted(len(m.Layers), "layer")
}

// scalar is a figure of a round.
type scalar struct {
	name  string // of the column
	tag   string // with its group, as TensorBoard has them
	value func(*disdel.Round) *float64
}

var scalars = []scalar{
	{"train_loss", "loss/train", func(r *disdel.Round) *float64 { return &r.TrainLoss }},
	{"loss", "loss/held-out", func(r *disdel.Round) *float64 { return r.Loss }},
	{"accuracy", "accuracy/held-out", func(r *disdel.Round) *float64 { return r.Accuracy }},
	{"train_accuracy", "accuracy/train", func(r *disdel.Round) *float64 { return r.TrainAccuracy }},
	{"seconds", "time/seconds", func(r *disdel.Round) *float64 { return new(r.Duration.Seconds()) }},
	{"rmse", "rmse/held-out", valueOf(disdel.MetricRMSE)},
	{"mae", "mae/held-out", valueOf(disdel.MetricMAE)},
	{"r2", "r2/held-out", valueOf(disdel.MetricR2)},
	{"f1", "f1/held-out", valueOf(disdel.MetricF1)},
	{"micro_f1", "micro_f1/held-out", valueOf(disdel.MetricMicroF1)},
	{"top5", "top5/held-out", valueOf(disdel.MetricTop5)},
}

// valueOf returns a round's value of a metric.
func valueOf(name string) func(*disdel.Round) *float64 {
	m, _ := disdel.FindMetric(name)
	return func(r *disdel.Round) *float64 { return m.Value(r.Figures()) }
}

func numberText(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// Write writes jobs as a folder, which must not exist or be empty, so that nothing of somebody else's is touched. It
// returns Invalid for one that is neither.
func Write(folder string, format Format, list []disdel.Record) error {
	if err := claim(folder); err != nil {
		return err
	}
	var err error
	switch format {
	case TensorBoard:
		err = tensorboard(folder, list)
	case MLflow:
		err = mlflow(folder, list)
	default:
		return &disdel.Error{Kind: disdel.Invalid, Op: "export jobs", Msg: fmt.Sprintf("%q is no folder's format", format)}
	}
	if err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "export jobs", Msg: folder, Err: err}
	}
	return nil
}
