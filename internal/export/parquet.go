package export

import (
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/disdel/disdel"
)

// line is a round of a job, with the columns that CSV has.
type line struct {
	Job           string   `parquet:"job"`
	Name          string   `parquet:"name"`
	Status        string   `parquet:"status"`
	Model         string   `parquet:"model"`
	Dataset       string   `parquet:"dataset"`
	Round         int64    `parquet:"round"`
	TrainLoss     *float64 `parquet:"train_loss"`
	Loss          *float64 `parquet:"loss"`
	Accuracy      *float64 `parquet:"accuracy"`
	TrainAccuracy *float64 `parquet:"train_accuracy"`
	Seconds       *float64 `parquet:"seconds"`
	RMSE          *float64 `parquet:"rmse"`
	MAE           *float64 `parquet:"mae"`
	R2            *float64 `parquet:"r2"`
	F1            *float64 `parquet:"f1"`
	MicroF1       *float64 `parquet:"micro_f1"`
	Top5          *float64 `parquet:"top5"`
}

// writeParquet writes a row for each round of each job.
func writeParquet(w io.Writer, list []disdel.Record) error {
	out := parquet.NewGenericWriter[line](w)
	for i := range list {
		r := &list[i]
		for k := range r.Rounds {
			v := make([]*float64, len(scalars))
			for n, s := range scalars {
				v[n] = s.value(&r.Rounds[k])
			}
			row := line{
				string(r.ID), r.Job.Metadata.Name, r.Status.String(), r.Job.Model.NetworkName(), r.Data.Name, int64(r.Rounds[k].Round + 1),
				v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10],
			}
			if _, err := out.Write([]line{row}); err != nil {
				return err
			}
		}
	}
	return out.Close()
}
