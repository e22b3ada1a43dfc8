package dense

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
)

// npy is a .npy file as numpy.save writes it.
func npy(descr, order, shape string, data []byte) string {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, order, shape)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	return string(append(append(out, head...), data...))
}

func bytesOf(order binary.ByteOrder, values any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, order, values); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Arrays of all types that NumPy writes come to the same rows.
func TestArraysOfAllTypes(t *testing.T) {
	little, big := binary.LittleEndian, binary.BigEndian
	labels := dataset.TextSource("y", npy("<i8", "False", "2,", bytesOf(little, []int64{0, 1})))
	for name, c := range map[string]struct {
		x, y  string
		shape []int
		first kept
		names []string
	}{
		"bytes": {x: npy("|u1", "False", "2, 3", []byte{1, 2, 255, 4, 5, 6}), first: kept{Bytes: []byte{1, 2, 255}}},
		"16-bit numbers": {
			x:     npy("<i2", "False", "2, 3", bytesOf(little, []int16{1, 2, 255, 4, 5, 6})),
			first: kept{Bytes: []byte{1, 2, 255}},
		},
		"32-bit floats": {
			x:     npy("<f4", "False", "2, 3", bytesOf(little, []float32{1, -2, .5, 4, 5, 6})),
			first: kept{Values: []float32{1, -2, .5}},
		},
		"64-bit floats of another machine": {
			x:     npy(">f8", "False", "2, 3", bytesOf(big, []float64{1, -2, .5, 4, 5, 6})),
			first: kept{Values: []float32{1, -2, .5}},
		},
		"16-bit floats": {
			x:     npy("<f2", "False", "2, 3", bytesOf(little, []uint16{0x3c00, 0xc000, 0x3800, 0x0001, 0x7bff, 0})),
			first: kept{Values: []float32{1, -2, .5}},
		},
		"negative numbers": {
			x:     npy("<i8", "False", "2, 3", bytesOf(little, []int64{-1, 2, 3, 4, 5, 6})),
			first: kept{Values: []float32{-1, 2, 3}},
		},
		"truths": {x: npy("|b1", "False", "2, 3", []byte{1, 0, 1, 0, 0, 0}), first: kept{Values: []float32{1, 0, 1}}},
		"Fortran's order": {
			x:     npy("<f4", "True", "2, 3", bytesOf(little, []float32{1, 4, -2, 5, .5, 6})),
			first: kept{Values: []float32{1, -2, .5}},
		},
		"labels that are texts": {
			x:     npy("|u1", "False", "2, 3", []byte{1, 2, 3, 4, 5, 6}),
			y:     npy("<U3", "False", "2,", bytesOf(little, []rune("dogcat"))),
			first: kept{Bytes: []byte{1, 2, 3}, Label: 1}, names: []string{"cat", "dog"},
		},
		"labels in a column": {
			x:     npy("|u1", "False", "2, 3", []byte{1, 2, 3, 4, 5, 6}),
			y:     npy("|u1", "False", "2, 1", []byte{7, 3}),
			first: kept{Bytes: []byte{1, 2, 3}, Label: 1}, names: []string{"3", "7"},
		},
		"images": {
			x: npy("|u1", "False", "2, 1, 3", []byte{1, 2, 3, 4, 5, 6}), shape: []int{1, 1, 3},
			first: kept{Bytes: []byte{1, 2, 3}},
		},
	} {
		from := Arrays{Images: dataset.TextSource("x", c.x), Labels: labels}
		if c.y != "" {
			from.Labels = dataset.TextSource("y", c.y)
		}
		in, err := from.Input("a")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.first, all(t, in)[0]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if !slices.Equal(in.ClassNames, c.names) || c.shape != nil && !slices.Equal(in.Shape, c.shape) {
			t.Errorf("%s: %v %q", name, in.Shape, in.ClassNames)
		}
	}
}

// Channels come first, whichever way the file has them.
func TestArraysOfImagesWithChannelsLast(t *testing.T) {
	x := dataset.TextSource("x", npy("|u1", "False", "2, 1, 2, 3", []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}))
	y := dataset.TextSource("y", npy("|u1", "False", "2,", []byte{0, 1}))
	in, err := Arrays{Images: x, Labels: y, Layout: dataset.HWC}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	if got := all(t, in)[0].Bytes; !slices.Equal(in.Shape, []int{3, 1, 2}) ||
		!slices.Equal(got, []byte{1, 4, 2, 5, 3, 6}) {
		t.Errorf("%v %v", in.Shape, got)
	}
	x = dataset.TextSource("x", npy("|u1", "False", "2, 5, 5, 3", make([]byte, 150)))
	in, err = Arrays{Images: x, Labels: y}.Input("a")
	if err != nil || len(in.Understood.Notes) != 1 || !strings.Contains(in.Understood.Notes[0], "--layout hwc") {
		t.Errorf("%v %+v", err, in.Understood)
	}
}

// Classes have the names that are given for the numbers of labels.
func TestArraysWithNamesOfClasses(t *testing.T) {
	x := dataset.TextSource("x", npy("|u1", "False", "2, 1", []byte{1, 2}))
	y := dataset.TextSource("y", npy("|u1", "False", "2,", []byte{2, 1}))
	in, err := Arrays{Images: x, Labels: y, ClassNames: []string{"a", "b", "c"}}.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	rows := all(t, in)
	if in.Classes != 3 || rows[0].Label != 2 || rows[1].Label != 1 ||
		in.Understood.Classes[2] != (dataset.ClassRows{Name: "c", Rows: 1}) {
		t.Errorf("%+v %+v", in.Understood, rows)
	}
	if _, err := (Arrays{
		Images: x, Labels: y,
		ClassNames: []string{"a", "b"},
	}).Input("a"); disdel.KindOf(err) != disdel.Invalid {
		t.Error(err)
	}
}

// Arrays that are damaged, or no arrays of numbers, are refused, and say why.
func TestFaultsOfArrays(t *testing.T) {
	good := npy("|u1", "False", "2, 3", []byte{1, 2, 3, 4, 5, 6})
	nan := npy("<f4", "False", "2, 1", bytesOf(binary.LittleEndian, []float32{1, float32(math.NaN())}))
	labels := npy("|u1", "False", "2,", []byte{0, 1})
	for name, c := range map[string]struct{ x, y, want string }{
		"short":              {good[:len(good)-1], labels, "it ends in row 1 of 2"},
		"long":               {good + "x", labels, "more follows"},
		"objects":            {npy("|O", "False", "2, 3", nil), labels, "values of type \"|O\" are not read"},
		"records":            {strings.Replace(good, "'|u1'", "[('a', '<f4')]", 1), labels, "plain numbers"},
		"no array":           {"PK\x03\x04", labels, "it is no NumPy array"},
		"a header of 4 GB":   {"\x93NUMPY\x02\x00\xff\xff\xff\xff", labels, "is none"},
		"a side of 0":        {npy("|u1", "False", "0, 3", nil), labels, "a side of 0"},
		"huge":               {npy("<f8", "False", "4611686018427387904, 9", nil), labels, "too large"},
		"huge, turned":       {npy("<f8", "True", "1000000, 9000", nil), labels, "ascontiguousarray"},
		"more labels":        {good, npy("|u1", "False", "3,", []byte{0, 1, 1}), "it has 3 labels, and x has 2 rows"},
		"swapped":            {labels, good, "swapped"},
		"outputs":            {good, npy("|u1", "False", "2, 2", []byte{0, 1, 1, 0}), "argmax"},
		"no number":          {nan, labels, "row 1: its value 0 is NaN"},
		"data of texts":      {npy("<U1", "False", "2, 1", make([]byte, 8)), labels, "these are texts"},
		"one class":          {good, npy("|u1", "False", "2,", []byte{1, 1}), "in all rows"},
		"rank 5":             {npy("|u1", "False", "1, 1, 1, 1, 1", []byte{1}), labels, "it has rank 5"},
		"an odd type":        {npy("<f3", "False", "2, 1", nil), labels, "not read"},
		"an order of nobody": {npy("", "False", "2, 1", nil), labels, "not read"},
	} {
		_, err := Arrays{Images: dataset.TextSource("x", c.x), Labels: dataset.TextSource("y", c.y)}.Input("a")
		if got := told(err); disdel.KindOf(err) != disdel.Invalid || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// An archive's arrays are known by their usual names, held-out ones among them.
func TestArchives(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.npz")
	write := func(arrays map[string]string) {
		t.Helper()
		out, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		z := zip.NewWriter(out)
		for name, text := range arrays {
			w, err := z.Create(name + ".npy")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	x, y := npy("|u1", "False", "2, 1", []byte{1, 2}), npy("|u1", "False", "2,", []byte{0, 1})
	write(map[string]string{"x_train": x, "y_train": y, "x_test": x, "y_test": y, "other": x})
	from, err := Archive(file)
	if err != nil {
		t.Fatal(err)
	}
	in, err := from.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	if rows := all(t, in); len(rows) != 4 || !rows[2].HeldOut || rows[1].HeldOut || in.Understood.HeldOut != 2 {
		t.Errorf("%+v", rows)
	}
	write(map[string]string{"p": x, "q": y})
	if _, err := Archive(file); !strings.Contains(told(err), "p, q") {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("PK nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Archive(file); disdel.KindOf(err) != disdel.Invalid {
		t.Error(err)
	}
}

// Whatever bytes come for data, reading them ends with rows or with an error of the user's.
func FuzzArrays(f *testing.F) {
	y := dataset.TextSource("y", npy("|u1", "False", "2,", []byte{0, 1}))
	f.Add(npy("<f4", "False", "2, 3", make([]byte, 24)))
	f.Add(npy("<f2", "True", "2, 1, 1", make([]byte, 4)))
	f.Fuzz(func(t *testing.T, text string) {
		in, err := Arrays{Images: dataset.TextSource("x", text), Labels: y}.Input("a")
		if err == nil {
			err = in.Each(func(dataset.DenseRow) error { return nil })
		}
		if err != nil && disdel.KindOf(err) != disdel.Invalid {
			t.Fatal(err)
		}
	})
}

func ExampleArrays() {
	x := dataset.TextSource("x.npy", npy("|u1", "False", "2, 2, 2", []byte{0, 255, 0, 255, 9, 8, 7, 6}))
	y := dataset.TextSource("y.npy", npy("|u1", "False", "2,", []byte{1, 0}))
	in, err := Arrays{Images: x, Labels: y}.Input("stripes")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Shape, in.Understood.Values)
	// Output: [1 2 2] bytes, as 0..1 from 0..255
}

// Tokens are kept as they are: bytes and whole numbers do not become 0 to 1.
func TestArraysOfTokensAreNotScaled(t *testing.T) {
	labels := dataset.TextSource("y", npy("<i8", "False", "2,", bytesOf(binary.LittleEndian, []int64{0, 1})))
	for name, x := range map[string]string{
		"bytes":          npy("|u1", "False", "2, 3", []byte{1, 2, 255, 4, 5, 6}),
		"16-bit numbers": npy("<i2", "False", "2, 3", bytesOf(binary.LittleEndian, []int16{1, 2, 255, 4, 5, 6})),
	} {
		in, err := Arrays{Images: dataset.TextSource("x", x), Labels: labels, AsIs: true}.Input("d")
		if err != nil || in.Bytes {
			t.Fatal(name, in.Bytes, err)
		}
		var first []float32
		err = in.Each(func(row dataset.DenseRow) error {
			if first == nil {
				first = slices.Clone(row.Values)
			}
			return nil
		})
		if err != nil || !slices.Equal(first, []float32{1, 2, 255}) {
			t.Errorf("%s: %v, %v", name, first, err)
		}
	}
}
