package infer

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/dataset/sparse"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
)

// typedRow is a row of a Parquet file.
type typedRow struct {
	Half   *float32 `parquet:"half,optional"`
	Whole  float64  `parquet:"whole"`
	ID     int64    `parquet:"id"`
	Town   *string  `parquet:"town,optional"`
	Rooms  int32    `parquet:"rooms"`
	Garden bool     `parquet:"garden"`
	What   string   `parquet:"what"`
}

// drawnParquet draws a Parquet file of several row groups.
func drawnParquet(t *testing.T, rng *rand.Rand) []byte {
	t.Helper()
	rows := make([]typedRow, 200)
	for i := range rows {
		half, town := float32(rng.NormFloat64()), []string{"Ulm", "Bonn", "São Paulo", "7"}[rng.IntN(4)]
		rows[i] = typedRow{
			Half: &half, Whole: 100 * rng.NormFloat64(), ID: math.MaxInt64 - rng.Int64N(1<<20), Town: &town,
			Rooms: int32(rng.IntN(9)) - 1, Garden: rng.IntN(2) == 0, What: string(rune('a' + rng.IntN(3))),
		}
		if rng.IntN(9) == 0 {
			rows[i].Half = nil
		}
		if rng.IntN(9) == 0 {
			rows[i].Town = nil
		}
		if rng.IntN(9) == 0 {
			rows[i].Whole = math.NaN()
		}
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[typedRow](&out, parquet.MaxRowsPerRowGroup(70))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Rows of a Parquet file become the values and labels that the data set of the same file has, bit for bit. Columns that
// the model does not take are not looked at.
func TestParquetRowsAreTheRowsOfTheDataSet(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(51, seed))
		file := drawnParquet(t, rng)
		csv := dense.CSV{
			Source: dataset.TextSource("rows.parquet", string(file)), Label: "what", Skip: []string{"id"},
			Kinds: map[string]dataset.ColumnKind{"rooms": []dataset.ColumnKind{"number", "category"}[rng.IntN(2)]},
		}
		if rng.IntN(2) == 0 {
			csv.Missing = []string{"-1"}
		}
		in, err := csv.Input("drawn")
		if err != nil {
			t.Fatal(err)
		}
		var want [][]float32
		var labels []int32
		if err := in.Each(func(r dataset.DenseRow) error {
			want, labels = append(want, slices.Clone(r.Values)), append(labels, r.Label)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		m := modelOf(t, &in)
		for name, most := range map[string]int{"rows.parquet": 0, "rows.csv": 1 << 10} { // by content
			m.MostRows = most
			got, err := m.Read(name, file)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if !slices.EqualFunc(got.Rows, want, slices.Equal) || !slices.Equal(got.Labels, labels) {
				t.Errorf("seed %d, %s: the rows differ", seed, name)
			}
		}
		m.MostRows = 199
		if _, err := m.Read("rows.parquet", file); disdel.KindOf(err) != disdel.OverLimit {
			t.Errorf("seed %d: 200 rows of 199: %v", seed, err)
		}
		m.MostRows = 1 << 10
		spoiled := slices.Clone(file)
		for range 1 + rng.IntN(3) {
			spoiled[rng.IntN(len(spoiled))] ^= byte(1 + rng.IntN(255))
		}
		m.Read("rows.parquet", spoiled) //nolint:errcheck // it may be read, and does not panic
	}
}

// A Parquet file without a column of the model is refused, with the column's name.
func TestAParquetFileWithoutAColumnIsRefused(t *testing.T) {
	in, err := dense.CSV{Source: dataset.TextSource("a.csv", "half,size,y\n1,1,u\n2,5,v\n3,2,u\n4,1,v\n")}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = modelOf(t, &in).Read("rows.parquet", drawnParquet(t, rand.New(rand.NewPCG(1, 1))))
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "the file has no size") {
		t.Error(err)
	}
}

// sparseModel is a model that was trained on rows of a LIBSVM file, as far as reading rows needs one.
func sparseModel(t *testing.T, file string) (*Model, [][]int32, []float32) {
	t.Helper()
	in, err := sparse.Libsvm{Source: dataset.TextSource("a.libsvm", file)}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]int32
	var targets []float32
	if err := in.Each(func(r dataset.SparseRow) error {
		rows, targets = append(rows, slices.Clone(r.Index)), append(targets, r.Target)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	data := disdel.DataInfo{
		Sample: []int{in.Columns}, Classes: in.Classes, Sparse: &disdel.SparseData{Most: 20, FromZero: in.FromZero},
	}
	network := disdel.Network{Sparse: &disdel.SparseNetwork{Most: 20}}
	g := &model.Graph{Nodes: []model.Node{{Out: model.Shape{in.Columns}}}}
	return &Model{Model: modelstore.Model{Network: network, Labels: in.ClassNames, Data: data}, Graph: g}, rows, targets
}

// Rows of a LIBSVM file become the rows and targets that the data set of the same file has, whether its columns count
// from 0 or from 1, and also in a part of the file.
func TestLibsvmRowsAreTheRowsOfTheDataSet(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(52, seed))
		base, lines := rng.IntN(2), []string{}
		for i := range 30 {
			line := []string{[]string{"-1", "+1"}[i%2]}
			if seed%3 == 0 {
				line[0] = fmt.Sprint(i)
			}
			for column := base; column < base+40; column++ {
				if i == 0 || rng.IntN(4) == 0 {
					if len(line) <= 20 {
						line = append(line, fmt.Sprintf("%d:%.3f", column, rng.Float64()))
					}
				}
			}
			lines = append(lines, strings.Join(line, " "))
		}
		m, rows, targets := sparseModel(t, strings.Join(lines, "\n"))
		at := rng.IntN(29)
		in, err := m.ReadSparse("ask", []byte(strings.Join(lines[at:], "\n")))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, row := range in.Rows {
			if !slices.Equal(row.Index, rows[at+i]) {
				t.Errorf("seed %d: row %d has the columns %v, not %v", seed, at+i, row.Index, rows[at+i])
			}
		}
		if len(in.Rows) != 30-at || !slices.Equal(in.Targets, targets[at:]) {
			t.Errorf("seed %d: targets %v, not %v", seed, in.Targets, targets[at:])
		}
	}
}

// What a model cannot take of a LIBSVM file is told with its line, in the file's own numbers of columns.
func TestLibsvmRowsThatAModelDoesNotTakeAreTold(t *testing.T) {
	m, _, _ := sparseModel(t, "a 1:1 3:1\nb 2:1\n")
	for text, want := range map[string]string{
		"a 1:1\nb 4:1\n": "line 2: it has column 4, and the columns of the model's file go from 1 to 3",
		"a 0:1\n":        "line 1: it has column 0", "a 1:x\n": "is no value",
		"a " + strings.Repeat("1:1 ", 1): "", "# nothing\n": "there are no rows",
	} {
		_, err := m.ReadSparse("ask.txt", []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
	if in, err := m.ReadSparse("ask", []byte("c 1:1\na 2:1\n")); err != nil || in.Targets != nil || len(in.Rows) != 2 {
		t.Errorf("a class that the model does not know: %+v, %v", in, err)
	}
}

// idxOf is an IDX file of bytes.
func idxOf(shape []int, data []byte) []byte {
	file := []byte{0, 0, 8, byte(len(shape))}
	for _, side := range shape {
		file = binary.BigEndian.AppendUint32(file, uint32(side))
	}
	return append(file, data...)
}

// Images of an IDX file become the values that the data set of such files has. gzip is unpacked.
func TestIDXImagesAreTheRowsOfTheDataSet(t *testing.T) {
	pixels := []byte{0, 1, 128, 255, 7, 8, 9, 10}
	file := idxOf([]int{2, 2, 2}, pixels)
	g, err := model.Build(disdel.Network{
		Input: []int{1, 2, 2}, Classes: 2, Layers: []disdel.Layer{{Kind: "flatten"}, {Kind: "dense", Units: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{Graph: g}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(file); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"t10k-images-idx3-ubyte": file, "t10k-images-idx3-ubyte.gz": packed.Bytes(),
	} {
		name, data, err := m.Unpack(name, data)
		if err != nil {
			t.Fatal(err)
		}
		in, err := m.Read(name, data)
		if err != nil || len(in.Rows) != 2 {
			t.Fatalf("%s: %v, %v", name, in, err)
		}
		for i, v := range pixels {
			if got := in.Rows[i/4][i%4]; got != float32(v)*float32(1.0/255) {
				t.Errorf("%s: value %d is %g", name, i, got)
			}
		}
	}
	for _, broken := range [][]byte{file[:len(file)-1], idxOf([]int{2, 3}, pixels[:6]), file[:9]} {
		if _, err := m.Read("x", broken); !errors.Is(err, disdel.Invalid) {
			t.Errorf("% x: %v", broken, err)
		}
	}
}

// A small packed file of a request does not fill a server's memory.
func TestAPackedRequestIsBounded(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(z, zeros{}, mostUnpackedAsked+1); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	if _, _, err := (&Model{MostRows: 1}).Unpack("x.gz", bomb.Bytes()); disdel.KindOf(err) != disdel.OverLimit {
		t.Error(err)
	}
	name, data, err := (&Model{}).Unpack("x.gz", bomb.Bytes())
	if name != "x" || len(data) != mostUnpackedAsked+1 || err != nil {
		t.Errorf("%s, %d bytes, %v", name, len(data), err)
	}
	if _, _, err := (&Model{}).Unpack("x.gz", bomb.Bytes()[:100]); !errors.Is(err, disdel.Invalid) {
		t.Errorf("cut off: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
