package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/dataset/sparse"
	"github.com/disdel/disdel/internal/client"
)

// Tables, sparse rows and whatever else a client reads arrive at a server as they would be stored here, are told what
// is doubtful about them, and are refused where they are wrong.
func TestRowsOfAnyFormatAreUploaded(t *testing.T) {
	h := newHouse(t, Config{MaxUpload: 64 << 10})
	at, err := client.Remote(client.Server{URL: h.URL, Token: h.tokens["ann admin"]})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	from := dataset.TextSource("table.csv", "width,color,label\n1,red,a\n2,blue,b\n3,red,b\n")
	in, err := dense.CSV{Source: from}.Input("table")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the same again changes nothing
		set, err := at.Data.AddDense(ctx, in, false)
		if err != nil || set.Train.Rows != 3 || len(set.ClassNames) != 2 || set.Understood == nil ||
			!strings.Contains(set.Understood.Kind, "CSV") {
			t.Fatalf("%+v, %v", set, err)
		}
	}
	own, err := dataset.OpenStore(ctx, "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	here, err := own.AddDense(ctx, in, false)
	there, err2 := at.Data.Get(ctx, "table")
	if err := errors.Join(err, err2); err != nil || here.Checksum() != there.Checksum {
		t.Errorf("it is another one there: %v", err)
	}
	rows, err := sparse.Libsvm{Source: dataset.TextSource("rows", "1 1:0.5 3:2\n0 2:1\n1 1:1\n")}.Input("clicks")
	if err != nil {
		t.Fatal(err)
	}
	if set, err := at.Data.AddSparse(ctx, rows, false); err != nil || set.Sparse == nil || set.Classes != 2 {
		t.Errorf("%+v, %v", set, err)
	}

	in.Each = func(yield func(dataset.DenseRow) error) error {
		return yield(dataset.DenseRow{Values: make([]float32, 4), Label: 7})
	}
	if _, err := at.Data.AddDense(ctx, in, true); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a label of no class: %v", err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	in.Each = func(yield func(dataset.DenseRow) error) error {
		for range 64 << 10 {
			if err := yield(dataset.DenseRow{Values: []float32{rng.Float32(), 0, 1}, Label: 1}); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := at.Data.AddDense(ctx, in, true); err == nil {
		t.Error("rows without end are taken")
	}
	if set, err := at.Data.Get(ctx, "table"); err != nil || set.Checksum != here.Checksum() {
		t.Errorf("what was there is gone: %v", err)
	}
}

// What is no rows is said to be none, and a reader may not add them.
func TestWhatIsNoRows(t *testing.T) {
	h := newHouse(t, Config{})
	status, data := h.ask("ann admin", "PUT", "/api/v1/datasets/a", "no rows", "Content-Type", dataset.RowsType)
	if status != 400 || !bytes.Contains(data, []byte("these are no rows")) {
		t.Errorf("%d %s", status, data)
	}
	if status, _ := h.ask("ann read", "PUT", "/api/v1/datasets/a", json.RawMessage("{}"), "Content-Type",
		dataset.RowsType); status != 403 {
		t.Errorf("%d", status)
	}
}

// A server holds labels to the same rule as a table is held to, whoever sends the rows, unless the client insists.
func TestRowsOfPricesAreRefused(t *testing.T) {
	h := newHouse(t, Config{})
	at, err := client.Remote(client.Server{URL: h.URL, Token: h.tokens["ann admin"]})
	if err != nil {
		t.Fatal(err)
	}
	lot := rand.New(rand.NewPCG(3, 1))
	in := dataset.DenseInput{Name: "houses", Shape: []int{1, 1, 1}, Classes: 300}
	for k := range in.Classes {
		in.ClassNames = append(in.ClassNames, strconv.Itoa(1000*k+lot.IntN(1000)))
	}
	in.Each = func(yield func(dataset.DenseRow) error) error {
		for k := range in.Classes {
			if err := yield(dataset.DenseRow{Values: []float32{float32(k)}, Label: int32(k)}); err != nil {
				return err
			}
		}
		return nil
	}
	_, err = at.Data.AddDense(context.Background(), in, false)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "300 different numbers") {
		t.Errorf("prices are taken for classes: %v", err)
	}
	if _, err := at.Data.Get(context.Background(), "houses"); !errors.Is(err, disdel.NotFound) {
		t.Errorf("a part of it was added: %v", err)
	}
	in.LabelClasses = true
	if set, err := at.Data.AddDense(context.Background(), in, false); err != nil || set.Classes != 300 {
		t.Errorf("insisted: %+v, %v", set, err)
	}
}

// An uploaded IDX file is answered with what it was taken for: the rows of each part, those of each class, the layout,
// and the class of the first row.
func TestUploadedIDXFilesAreUnderstood(t *testing.T) {
	h := newHouse(t, Config{})
	hwc := func(rows int) []byte { return idx(make([]byte, rows*2*4*3), rows, 2, 4, 3) }
	for name, c := range map[string]struct {
		fields map[string]string
		files  map[string][]byte
		want   dataset.Interpretation
	}{
		"images": {
			map[string]string{"layout": "hwc", "classes": "cat,dog,owl"},
			map[string][]byte{
				"images": hwc(5), "labels": idx([]byte{1, 0, 1, 1, 0}, 5), "test-images": hwc(2), "test-labels": idx([]byte{2, 0}, 2),
			},
			dataset.Interpretation{
				Kind: "IDX arrays", Values: "bytes, as 0..1 from 0..255, of 2x4 pixels in 3 channels", Rows: 5, HeldOut: 2,
				Classes: []dataset.ClassRows{{Name: "cat", Rows: 2}, {Name: "dog", Rows: 3}, {Name: "owl"}},
				Example: dataset.Example{Place: "row 0", Class: "dog"},
			},
		},
		"features": {
			nil,
			map[string][]byte{"images": idx(make([]byte, 4*7), 4, 7), "labels": idx([]byte{2, 0, 1, 2}, 4)},
			dataset.Interpretation{
				Kind: "IDX arrays", Values: "bytes, as 0..1 from 0..255, in 7 columns", Rows: 4,
				Classes: []dataset.ClassRows{{Name: "0", Rows: 1}, {Name: "1", Rows: 1}, {Name: "2", Rows: 2}},
				Example: dataset.Example{Place: "row 0", Class: "2"},
			},
		},
	} {
		status, data := h.form(name, c.fields, c.files)
		var doc struct {
			Understood dataset.Interpretation `json:"understood"`
		}
		if err := json.Unmarshal(data, &doc); err != nil || status != 201 {
			t.Fatalf("%s: %d %s %v", name, status, data, err)
		}
		if diff := cmp.Diff(c.want, doc.Understood); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
