package render

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/service/infer"
)

// written is a file of some answers.
func written(t *testing.T, ending string, head infer.DataHead, rows ...infer.DataRow) string {
	t.Helper()
	var out bytes.Buffer
	w, err := NewAnswerWriter(ending, &out)
	if err == nil {
		err = w.Begin(head)
	}
	for _, row := range rows {
		if err == nil {
			err = w.Take(row)
		}
	}
	if err != nil {
		t.Fatal(ending, err)
	}
	return out.String()
}

// Answers are written as tables, lines and arrays are, and their numbers are read to the same bits.
func TestRowsAreWritten(t *testing.T) {
	third := float32(1) / 3
	denseRows := []infer.DataRow{
		{Row: 7, Classified: &infer.Classified{Class: 1, Name: "a,b", Label: -1, Probabilities: []float32{third, 1e-40}}},
		{Row: 8, Classified: &infer.Classified{Name: "c", Label: 1, Probabilities: []float32{1, 0}}},
	}
	head := infer.DataHead{Rows: 2, Classes: 2, Names: []string{"c", "a,b"}}
	want := "row,class,name,label,p0,p1\n7,1,\"a,b\",-1,0.33333334,1e-40\n8,0,c,1,1,0\n"
	if got := written(t, ".CSV", head, denseRows...); got != want {
		t.Errorf("%s", got)
	}
	head.Names = nil
	if got := written(t, ".csv", head, denseRows[1]); got != "row,class,label,p0,p1\n8,0,1,1,0\n" {
		t.Errorf("%s", got)
	}
	want = `{"row":7,"class":1,"name":"a,b","label":-1,"probabilities":[0.33333334,1e-40]}` + "\n"
	if got := written(t, ".jsonl", head, denseRows[0]); got != want {
		t.Errorf("%s", got)
	}
	values, shape, err := dense.ReadNPY([]byte(written(t, ".npy", head, denseRows...)))
	if err != nil || !cmp.Equal(shape, []int{2, 2}) || !cmp.Equal(values, []float32{third, 1e-40, 1, 0}) {
		t.Errorf("%v of shape %v, %v", values, shape, err)
	}
	sparse := infer.DataRow{Row: 3, Predicted: &infer.Predicted{Prediction: third, Target: 4}}
	head = infer.DataHead{Rows: 1}
	if got := written(t, ".csv", head, sparse); got != "row,prediction,target\n3,0.33333334,4\n" {
		t.Errorf("%s", got)
	}
	if got := written(t, ".jsonl", head, sparse); got != `{"row":3,"prediction":0.33333334,"target":4}`+"\n" {
		t.Errorf("%s", got)
	}
	text := written(t, ".npy", head, sparse)
	values, shape, err = dense.ReadNPY([]byte(text))
	if err != nil || !cmp.Equal(shape, []int{1}) || !cmp.Equal(values, []float32{third}) || (len(text)-4)%64 != 0 {
		t.Errorf("%v of shape %v, %d bytes, %v", values, shape, len(text), err)
	}
}

// What is no number has no line of JSON, and a format that there is not is told with those that there are.
func TestRowsThatCannotBeWritten(t *testing.T) {
	w, err := NewAnswerWriter(".jsonl", &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	nan := infer.DataRow{Classified: &infer.Classified{Probabilities: []float32{float32(math.NaN())}}}
	if err := w.Take(nan); !errors.Is(err, disdel.Diverged) {
		t.Errorf("%v", err)
	}
	if _, err := NewAnswerWriter(".parquet", &bytes.Buffer{}); !errors.Is(err, disdel.Invalid) ||
		!strings.Contains(disdel.AsError(err).Hint, ".npy") {
		t.Errorf("%v", err)
	}
}

// A network that does not end in softmax or sigmoid answers with plain outputs, and its table says so.
func TestPlainOutputsAreNoProbabilities(t *testing.T) {
	graph := func(activation string) *model.Graph {
		g, err := model.Build(disdel.Network{Input: []int{1, 2, 2}, Classes: 3, Layers: []disdel.Layer{
			{Kind: "flatten"}, {Kind: "dense", Units: 3, Activation: activation},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for activation, word := range map[string]string{
		"": "OUTPUT", "relu": "OUTPUT", "softmax": "PROBABILITY", "sigmoid": "PROBABILITY",
	} {
		doc := Inference{
			Classes: []int{1}, Probabilities: [][]float32{{-3, 1.5, 0}}, PlainOutputs: endsPlain(graph(activation)),
		}
		var one, files bytes.Buffer
		PrintInference(&one, doc)
		PrintFileAnswers(&files, FileAnswers{Files: []FileAnswer{{File: "a.png", Inference: doc}}})
		for _, text := range []string{one.String(), files.String()} {
			if head, _, _ := strings.Cut(text, "\n"); !strings.HasSuffix(strings.TrimSpace(head), word) {
				t.Errorf("after %q: %q, want %s", activation, head, word)
			}
		}
	}
}
