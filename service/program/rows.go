package program

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/disdel/disdel"
)

// Rows are files with the rows of a program's own data set, as NumPy arrays.
type Rows struct {
	Images, Labels         string
	TestImages, TestLabels string // of held-out rows, "" where the program has none
}

// ReadRows has a program read its own data set (Task.dataset) and writes the rows into a folder. The program runs as the
// user does, in its own folder, since data may lie anywhere. o needs Python only; its Timeout counts for the whole
// data set. ReadRows returns the errors of Describe; Invalid also for rows that do not fit each other, with the number
// of the row.
func ReadRows(ctx context.Context, o Options, folder string) (rows Rows, err error) {
	d := description{Options: o}
	if d.Timeout == 0 {
		d.Timeout = installTimeout
	}
	if err := d.prepare(); err != nil {
		return rows, err
	}
	defer os.RemoveAll(d.temp) //nolint:errcheck // nothing in it is needed
	i, needs, err := d.environment(ctx)
	if err != nil {
		return rows, err
	}
	from := d.source
	if info, err := os.Stat(from); err == nil && !info.IsDir() {
		from = filepath.Dir(from)
	}
	s := d.asUser()
	s.dir, s.variables = from, append(s.variables, "PYTHONPATH="+d.modules)
	answer, err := d.askIn(ctx, s, i, map[string]any{
		"folder": from, "file": needs.File, "entry": d.Python.Entry, "arguments": d.Python.Arguments, "to": folder,
		"timeoutS": d.Timeout.Seconds(),
	})
	if err != nil {
		return rows, err
	}
	var counts struct{ Test int }
	if err := json.Unmarshal(answer, &counts); err != nil {
		return rows, &disdel.Error{Kind: disdel.Internal, Op: d.op(), Msg: "its answer cannot be read", Err: err}
	}
	file := func(name string) string { return filepath.Join(folder, name+".npy") }
	rows = Rows{Images: file("train-x"), Labels: file("train-y")}
	if counts.Test > 0 {
		rows.TestImages, rows.TestLabels = file("test-x"), file("test-y")
	}
	return rows, nil
}
