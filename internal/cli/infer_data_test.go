package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/infer"
)

// oneRow answers for a data set of one row, whose class has a name.
type oneRow struct {
	client.Models
	name string
	err  error // at its end
}

func (m oneRow) AnswerData(_ context.Context, _ string, _ infer.DataRequest, to infer.DataSink) (
	out infer.DataAnswers, err error,
) {
	out.DataHead = infer.DataHead{Model: "m:v1", Rows: 1, Classes: 1, Names: []string{m.name}}
	if err := to.Begin(out.DataHead); err != nil {
		return out, err
	}
	row := infer.DataRow{Classified: &infer.Classified{Name: m.name, Probabilities: []float32{1}}}
	return out, errors.Join(to.Take(row), m.err)
}

// The name of a class does nothing to the terminal that lines go to, and is the same for who reads them.
func TestLinesOnATerminalAreClean(t *testing.T) {
	var out bytes.Buffer
	u := terminal.New(strings.NewReader(""), &out, &bytes.Buffer{})
	name := "cat\u009b31m\x1b[2J\u202e"
	if err := inferToOutput(t.Context(), u, oneRow{name: name}, "m", infer.DataRequest{}); err != nil {
		t.Fatal(err)
	}
	var row infer.DataRow
	if err := json.Unmarshal(out.Bytes(), &row); err != nil || row.Name != name ||
		strings.ContainsAny(out.String(), "\u009b\x1b\u202e") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// Where answers have not come whole there is no file, and nothing of one.
func TestAnswersThatAreNotWholeLeaveNoFile(t *testing.T) {
	dir := t.TempDir()
	u := terminal.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	lost := &disdel.Error{Kind: disdel.Lost, Op: "infer", Msg: "gone"}
	err := inferToFile(t.Context(), u, oneRow{err: lost}, "m", infer.DataRequest{}, filepath.Join(dir, "said.csv"))
	if left, readable := os.ReadDir(dir); !errors.Is(err, disdel.Lost) || len(left) > 0 || readable != nil {
		t.Errorf("%v, and %v is left", err, left)
	}
}
