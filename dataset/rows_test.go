package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// denseRowsOf is a small data set with a row held out, and sparseRowsOf one of sparse rows.
func denseRowsOf(bytes bool) DenseInput {
	in := DenseInput{
		Name: "a", Title: "Rows", Shape: []int{1, 1, 2}, Classes: 2, ClassNames: []string{"cat", "dog"}, Bytes: bytes,
		Understood: Interpretation{Kind: "a table", Rows: 2, Classes: []ClassRows{{"cat", 1}, {"dog", 1}}},
	}
	in.Each = func(yield func(DenseRow) error) error {
		for i, label := range []int32{0, 1, 1} {
			row := DenseRow{Label: label, HeldOut: i == 2}
			if bytes {
				row.Bytes = []byte{byte(i), 255}
			} else {
				row.Values = []float32{float32(i), -1.5}
			}
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}
	return in
}

func sparseRowsOf(ones bool) SparseInput {
	in := SparseInput{Name: "a", Title: "Clicks", Columns: 5, Classes: 2, Ones: ones}
	in.Each = func(yield func(SparseRow) error) error {
		for i, index := range [][]int32{{0, 4}, {}, {2}, {1, 2, 3}} {
			row := SparseRow{Index: index, Target: float32(i % 2), HeldOut: i == 3}
			if !ones {
				row.Value = []float32{0.5, 1.5, -2}[:len(index)]
			}
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}
	in.Bayes = func() float64 { return 0.125 }
	return in
}

// added stores a data set in a store of its own.
func added(t *testing.T, dense *DenseInput, sparse *SparseInput) Manifest {
	t.Helper()
	s, err := OpenStore(context.Background(), "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var m Manifest
	for range 2 { // what is there already is read again, and changes nothing
		if dense != nil {
			m, err = s.AddDense(context.Background(), *dense, false)
		} else {
			m, err = s.AddSparse(context.Background(), *sparse, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// Rows that were sent are stored as they would have been where they come from, to the last byte.
func TestRowsTravel(t *testing.T) {
	for _, plain := range []bool{false, true} {
		var sent bytes.Buffer
		in := denseRowsOf(plain)
		if err := WriteDenseRows(&sent, in); err != nil {
			t.Fatal(err)
		}
		dense, sparse, err := ReadRows("a", bytes.NewReader(sent.Bytes()))
		if err != nil || sparse != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(added(t, &in, nil), added(t, dense, nil)); diff != "" {
			t.Errorf("dense, bytes %v: %s", plain, diff)
		}
		if dense.Understood.Kind != "a table" {
			t.Errorf("%+v", dense.Understood)
		}
		sent.Reset()
		clicks := sparseRowsOf(plain)
		if err := WriteSparseRows(&sent, clicks); err != nil {
			t.Fatal(err)
		}
		if dense, sparse, err = ReadRows("a", bytes.NewReader(sent.Bytes())); err != nil || dense != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(added(t, nil, &clicks), added(t, nil, sparse)); diff != "" {
			t.Errorf("sparse, ones %v: %s", plain, diff)
		}
	}
}

// A data set in memory goes the same way.
func TestRowsOfMemoryTravel(t *testing.T) {
	in := Input{
		Name: "a", Scale: 1.0 / 255,
		Train: Samples{Shape: []int{1, 1, 2}, U8: []byte{1, 2, 3, 4}, Labels: []int32{0, 1}},
	}
	in.Test = &Samples{Shape: []int{1, 1, 2}, U8: []byte{5, 6}, Labels: []int32{1}}
	rows, err := in.Dense()
	if err != nil {
		t.Fatal(err)
	}
	m := added(t, &rows, nil)
	if m.Train.Rows != 2 || m.Test.Rows != 1 || m.DType != "U8" || m.Scale != in.Scale || m.Classes != 2 {
		t.Errorf("%+v", m)
	}
}

// Rows that did not come whole, and what nobody wrote as rows, are refused wherever they break off.
func TestRowsThatAreNone(t *testing.T) {
	var sent bytes.Buffer
	if err := WriteSparseRows(&sent, sparseRowsOf(false)); err != nil {
		t.Fatal(err)
	}
	whole := sent.Bytes()
	for n := range whole {
		_, sparse, err := ReadRows("a", bytes.NewReader(whole[:n]))
		if err == nil {
			err = sparse.Each(func(SparseRow) error { return nil })
		}
		if !errors.Is(err, disdel.Corrupt) {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
	}
	for _, head := range []any{
		map[string]any{}, map[string]any{"dense": map[string]any{"shape": []int{1 << 20, 1 << 20, 1 << 20}, "classes": 2}},
	} {
		text, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		made := append([]byte(rowsMagic), byte(len(text)), 0, 0, 0)
		if _, _, err := ReadRows("a", bytes.NewReader(append(made, text...))); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// Rows from a client are read to their end or refused, whatever they contain.
func FuzzRows(f *testing.F) {
	for _, plain := range []bool{false, true} {
		var dense, sparse bytes.Buffer
		err := errors.Join(
			WriteDenseRows(&dense, denseRowsOf(plain)), WriteSparseRows(&sparse, sparseRowsOf(plain)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(dense.Bytes())
		f.Add(sparse.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dense, sparse, err := ReadRows("a", bytes.NewReader(data))
		switch {
		case err != nil:
		case dense != nil:
			dense.Each(func(DenseRow) error { return nil }) //nolint:errcheck // it may break off
		default:
			sparse.Each(func(SparseRow) error { return nil }) //nolint:errcheck // it may break off
		}
	})
}
