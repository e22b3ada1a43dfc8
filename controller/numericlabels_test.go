package controller

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// Each job judges its data set again: an earlier version may have added one whose labels are numbers to predict. Labels
// that a person called classes are never refused.
func TestNumbersToPredictAreRefusedWithEachJob(t *testing.T) {
	ctx, folder := t.Context(), t.TempDir()
	store, err := dataset.OpenStore(ctx, "file://"+folder)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	odd := func(k int) string { return strconv.Itoa(2*k + 1) }
	for name, c := range map[string]struct {
		classes, each int
		label         func(k int) string // nil: its number
		insists       bool
		says          string // of the fault; "": there is none
		note          string
	}{
		"counts":    {classes: 300, each: 12, label: odd, says: "300 different"},
		"fractions": {classes: 30, each: 2, label: func(k int) string { return strconv.Itoa(k) + ".5" }, says: "such as 0.5"},
		"insisted":  {classes: 300, each: 2, label: odd, insists: true},
		"ages":      {classes: 100, each: 2, label: strconv.Itoa, note: "100 numbers are taken for classes. "},
		"meant":     {classes: 100, each: 2, insists: true},
		"row ids":   {classes: 100, each: 1, label: strconv.Itoa, says: "100 different"},
		"texts":     {classes: 300, each: 1, label: func(k int) string { return "name" + strconv.Itoa(k) }},
		"few":       {classes: 10, each: 2},
	} {
		in := dataset.DenseInput{
			Name: strings.ReplaceAll(name, " ", "-"), Shape: []int{1, 1, 2}, Classes: c.classes, LabelClasses: c.insists,
			Each: func(yield func(dataset.DenseRow) error) error {
				for i := range c.classes * c.each {
					if err := yield(dataset.DenseRow{Values: []float32{1, 2}, Label: int32(i % c.classes)}); err != nil {
						return err
					}
				}
				return nil
			},
		}
		for k := 0; k < c.classes && c.label != nil; k++ {
			in.ClassNames = append(in.ClassNames, c.label(k))
		}
		if err := addedBefore(ctx, folder, store, in); err != nil {
			t.Fatal(name, err)
		}
		job := disdel.Job{}
		job.Data.Source, job.Training.BatchSize = "dataset://"+in.Name, 4
		job.Model.Layers = []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: c.classes}}
		r, err := Resolve(ctx, job, store, "job.yaml", func(string) (int, int) { return 0, 0 }, nil)
		var faults *disdel.Faults
		if refused := errors.As(err, &faults); refused != (c.says != "") {
			t.Errorf("%s: %v", name, err)
		} else if refused && (len(faults.Faults) != 1 || faults.Faults[0].Path != "data.source" ||
			!strings.Contains(faults.Faults[0].Msg, c.says) ||
			!strings.Contains(faults.Faults[0].Hint, "--label-classes")) {
			t.Errorf("%s: %+v", name, faults.Faults)
		}
		if notes := strings.Join(r.Notes, "; "); strings.Contains(notes, c.note) == (notes == "") && c.note != "" ||
			c.note == "" && notes != "" {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
}

// addedBefore stores a data set in a folder as versions did that judged no labels, unless a person called them classes.
func addedBefore(ctx context.Context, folder string, store *dataset.Store, in dataset.DenseInput) error {
	insists := in.LabelClasses
	in.LabelClasses = true
	m, err := store.AddDense(ctx, in, false)
	if err != nil || insists {
		return err
	}
	m.LabelClasses = false
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	manifest := filepath.Join(folder, in.Name, "manifest.json")
	return errors.Join(os.WriteFile(manifest, append(text, '\n'), 0o600),
		os.WriteFile(manifest+".sha256", []byte(m.Checksum()+"\n"), 0o600))
}
