package export

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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

// What PyArrow reads of it is what CSV says.
func TestParquetForPyArrow(t *testing.T) {
	python := os.Getenv("DISDEL_TEST_PYARROW")
	if python == "" {
		t.Skip("DISDEL_TEST_PYARROW names no Python with PyArrow")
	}
	file := filepath.Join(t.TempDir(), "rounds.parquet")
	var out bytes.Buffer
	if err := Text(&out, Parquet, []disdel.Record{job("job-1", "a")}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), python, "-c",
		"import sys, pyarrow.parquet as p; print(p.read_table(sys.argv[1]).to_pylist())", file).CombinedOutput()
	if want := "'round': 2, 'train_loss': 0.5, 'loss': 0.25, 'accuracy': 0.75, 'train_accuracy': None"; err != nil ||
		!strings.Contains(string(said), want) {
		t.Errorf("%s, %v", said, err)
	}
}
