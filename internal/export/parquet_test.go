package export

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/disdel/disdel"
)

// A row for each round, with the columns of CSV, and nothing where a round has no such figure.
func TestParquet(t *testing.T) {
	list := []disdel.Record{job("job-1", `a,"b`), job("job-2", "b")}
	var out bytes.Buffer
	if err := Text(&out, Parquet, list); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[line](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if r := rows[1]; r.Job != "job-1" || r.Name != `a,"b` || r.Round != 2 || *r.TrainLoss != 0.5 || *r.Accuracy != 0.75 ||
		r.TrainAccuracy != nil {
		t.Errorf("%+v", r)
	}
	var head bytes.Buffer
	if err := Text(&head, CSV, list); err != nil {
		t.Fatal(err)
	}
	names, _, _ := strings.Cut(head.String(), "\n")
	var columns []string
	for _, f := range parquet.SchemaOf(line{}).Fields() {
		columns = append(columns, f.Name())
	}
	if strings.Join(columns, ",") != names {
		t.Errorf("the columns are %v, and CSV's %s", columns, names)
	}
}
