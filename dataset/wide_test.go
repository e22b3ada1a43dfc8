package dataset

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// wideInput is a table of so many columns and two rows.
func wideInput(columns int) DenseInput {
	in := DenseInput{Name: "wide", Shape: []int{1, 1, columns}, Classes: 2, Label: "label"}
	for i := range columns {
		in.Columns = append(in.Columns, Column{Name: fmt.Sprint("g", i), Kind: ColumnNumber, Low: 1, High: 2, Factor: 1.0 / 3})
	}
	values := make([]float32, columns)
	in.Each = func(yield func(DenseRow) error) error {
		return errors.Join(yield(DenseRow{Values: values}), yield(DenseRow{Values: values, Label: 1}))
	}
	return in
}

// A table of more columns than a server takes is stored in one line and read again. It is not sent to a server, and the
// refusal says where it can be used.
func TestAWideTableIsStoredAndNotSent(t *testing.T) {
	s, err := OpenStore(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	in := wideInput(mostColumns + 1)
	m, err := s.AddDense(t.Context(), in, false)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Manifest(t.Context(), "wide")
	if err != nil || again.Checksum() != m.Checksum() || len(again.Columns) != len(in.Columns) {
		t.Fatalf("%d columns, %v", len(again.Columns), err)
	}
	if size, lines := len(m.encode()), strings.Count(string(m.encode()), "\n"); size > 100*len(in.Columns) || lines != 1 {
		t.Errorf("its manifest has %d bytes in %d lines", size, lines)
	}
	err = WriteDenseRows(io.Discard, in)
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "a server takes at most 65536") {
		t.Errorf("it is sent: %v", err)
	}
}

// A manifest that would be too large to be read is refused when its data set is added.
func TestAManifestThatCannotBeReadIsNotStored(t *testing.T) {
	m := Manifest{Name: "wide"}
	if err := m.checkStored(largestManifest); err != nil {
		t.Error(err)
	}
	if err := m.checkStored(largestManifest + 1); !errors.Is(err, disdel.Invalid) {
		t.Errorf("%v", err)
	}
}
