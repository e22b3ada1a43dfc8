package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

// idxOf is an IDX file of drawn values; labels are below classes.
func idxOf(rng *rand.Rand, floats bool, classes int, shape ...int) []byte {
	out := []byte{0, 0, idxBytes, byte(len(shape))}
	n := 1
	for _, v := range shape {
		out = binary.BigEndian.AppendUint32(out, uint32(v))
		n *= v
	}
	if floats {
		out[2] = idxFloats
	}
	for range n {
		if v := rng.IntN(classes); floats {
			out = binary.BigEndian.AppendUint32(out, math.Float32bits(float32(v)))
		} else {
			out = append(out, byte(v))
		}
	}
	return out
}

// TestIDXFilesAreAddedAsInMemory adds drawn IDX files row by row and from memory: both make the same data set, with the
// same doubts and the same account of what was read, and refuse the same damaged files.
func TestIDXFilesAreAddedAsInMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 2))
	dir := t.TempDir()
	file := func(name string, data []byte) *os.File {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	store, err := OpenStore(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 60 {
		shapes := [][]int{{3}, {2, 4}, {3, 4, 2}, {2, 4, 3}}
		shape, classes := shapes[rng.IntN(4)], 2+rng.IntN(5)
		floats, layout := rng.IntN(2) == 0, []Layout{"", CHW, HWC}[rng.IntN(3)]
		var names []string
		if rng.IntN(2) == 0 {
			names = strings.Split("a,b,c,d,e,f,g", ",")[:classes]
		}
		pair := func() ([]byte, []byte) {
			rows := 1 + rng.IntN(30)
			return idxOf(rng, floats, 256, append([]int{rows}, shape...)...), idxOf(rng, rng.IntN(2) == 0, classes, rows)
		}
		images, labels := pair()
		if rng.IntN(4) == 0 { // damaged
			images = append(images[:len(images)-rng.IntN(3)], make([]byte, rng.IntN(2))...)
		}
		files := IDXFiles{Images: file("x", images), Labels: file("y", labels), Layout: layout, ClassNames: names}
		parts := Parts{Layout: layout, ClassNames: names}
		var errs []error
		read := func(data []byte) IDX {
			x, err := ReadIDX(bytes.NewReader(data))
			errs = append(errs, err)
			return x
		}
		parts.Images, parts.Labels = read(images), read(labels)
		if rng.IntN(2) == 0 {
			images, labels := pair()
			files.TestImages, files.TestLabels = file("tx", images), file("ty", labels)
			x, y := read(images), read(labels)
			parts.TestImages, parts.TestLabels = &x, &y
		}
		name := fmt.Sprintf("set%d", n)
		var want, got string
		var wanted, told []string
		werr := errors.Join(errs...)
		if werr == nil {
			in, err := parts.Input(name)
			werr = err
			if err == nil {
				var m Manifest
				if m, werr = store.Add(context.Background(), in, true); werr == nil {
					want, wanted = m.Checksum(), Warnings(&in, &m, layout != "")
					wanted = append(wanted, fmt.Sprint(in.Understood(&m, FormatIDX)))
				}
			}
		}
		x, gerr := files.Rows(name)
		if gerr == nil {
			var m Manifest
			if m, gerr = store.AddDense(context.Background(), x.DenseInput, true); gerr == nil {
				got, told = m.Checksum(), x.Warnings(&m, layout != "")
				told = append(told, fmt.Sprint(x.Interpretation(&m)))
			}
		}
		if disdel.KindOf(werr) != disdel.KindOf(gerr) {
			t.Fatalf("%d: in memory %v, row by row %v", n, werr, gerr)
		}
		if want != got {
			t.Fatalf("%d: %v of %v: another data set", n, layout, shape)
		}
		if diff := cmp.Diff(wanted, told); diff != "" {
			t.Fatalf("%d: doubts (-memory +rows): %s", n, diff)
		}
	}
}

// TestRowsThatAreSentAreBounded sends heads that claim more than any rows have: each is refused before anything is
// allocated for what it claims.
func TestRowsThatAreSentAreBounded(t *testing.T) {
	head := func(text string) []byte {
		out := binary.LittleEndian.AppendUint32([]byte(rowsMagic), uint32(len(text)))
		return append(out, text...)
	}
	dense := func(more string) []byte {
		return head(`{"dense":{"title":"","shape":[1,1,1],"classes":2,` + more + `"understood":{}}}`)
	}
	columns := func(column string, n int) []byte {
		return dense(`"columns":[` + strings.Repeat(column+",", n-1) + column + "],")
	}
	for name, data := range map[string][]byte{
		"a long head":     append([]byte(rowsMagic), 0xff, 0xff, 0xff, 0x7f),
		"empty columns":   columns("{}", 5_000_000),
		"no columns":      columns("null", 2_000_000),
		"many columns":    columns("{}", mostColumns+1),
		"many names":      dense(`"classNames":[` + strings.Repeat(`"",`, 3_000_000) + `""],`),
		"wide rows":       head(`{"dense":{"title":"","shape":[1,1,268435456],"classes":2,"understood":{}}}`),
		"wide bytes":      head(`{"dense":{"title":"","shape":[4,4096,4096],"classes":2,"bytes":true,"understood":{}}}`),
		"many classes":    head(`{"dense":{"title":"","shape":[1,1,1],"classes":16777216,"understood":{}}}`),
		"a row of sparse": append(head(`{"sparse":{"title":"","classes":2}}`), 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0),
	} {
		allocated := testing.AllocsPerRun(1, func() {
			in, sparse, err := ReadRows("a", bytes.NewReader(data))
			if err == nil && sparse != nil {
				err = sparse.Each(func(SparseRow) error { return nil })
			}
			if err == nil {
				t.Errorf("%s is taken: %+v", name, in)
			} else if kind := disdel.KindOf(err); kind != disdel.Corrupt && kind != disdel.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		})
		if allocated > 3*mostColumns {
			t.Errorf("%s: %v allocations", name, allocated)
		}
	}
}
