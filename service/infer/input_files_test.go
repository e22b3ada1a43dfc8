package infer

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// Tables are read with and without a head, whatever stands between their numbers, with labels where a column has that
// name; faults are told with their lines.
func TestInputsOfTables(t *testing.T) {
	input := model.Shape{2}
	for _, c := range []struct {
		text   string
		rows   [][]float32
		labels []int32
	}{
		{"1,2\n3,4\n", [][]float32{{1, 2}, {3, 4}}, nil},
		{"\ufeffa;b\r\n0.1;-2e3", [][]float32{{0.1, -2000}}, nil},
		{"a\tLabel\tb\n1\t7\t2\n3\t0\t4\n", [][]float32{{1, 2}, {3, 4}}, []int32{7, 0}},
	} {
		in, err := ReadInputs("x.CSV", []byte(c.text), input)
		if err != nil || !cmp.Equal(in.Rows, c.rows) || !cmp.Equal(in.Labels, c.labels) {
			t.Errorf("%q: %+v, %v", c.text, in, err)
		}
	}
	for text, want := range map[string]string{
		"":               "there are no inputs",
		"a,b\n":          "there are no inputs",
		"1,2\n3\n":       "line 2",
		"1,2\n3,x\n":     `line 2: "x" is no number`,
		"1,2\n\n3,NaN\n": `line 3: "NaN" is no number`,
		"1,2,3\n":        "line 1 has 3 numbers, and the model takes 2",
		"1,2\n3,\"4\n":   "line",
	} {
		if _, err := ReadInputs("x.csv", []byte(text), input); !errors.Is(err, disdel.Invalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A picture is a row as a data set of pictures has it, of the model's size, or of that which its job resized images to.
func TestInputsOfPictures(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 2, 2))
	for i, v := range []uint8{0, 51, 102, 255} {
		img.SetGray(i%2, i/2, color.Gray{Y: v})
	}
	var file bytes.Buffer
	if err := png.Encode(&file, img); err != nil {
		t.Fatal(err)
	}
	in, err := ReadInputs("inputs", file.Bytes(), model.Shape{1, 2, 2})
	v := func(b byte) float32 { return float32(b) * float32(1.0/255) }
	if want := []float32{v(0), v(51), v(102), v(255)}; err != nil || !cmp.Equal(in.Rows, [][]float32{want}) {
		t.Errorf("%+v, %v", in, err)
	}
	in, err = readInputs("x.png", file.Bytes(), model.Shape{1, 4, 4}, 4)
	if err != nil || len(in.Rows) != 1 || len(in.Rows[0]) != 16 || in.Rows[0][0] != 0 || in.Rows[0][15] != 1 {
		t.Errorf("as large as its job had them: %+v, %v", in, err)
	}
	for name, c := range map[string]struct {
		data  []byte
		input model.Shape
	}{
		"a model of rows":     {file.Bytes(), model.Shape{4}},
		"half of it":          {file.Bytes()[:40], model.Shape{1, 2, 2}},
		"of another channels": {file.Bytes(), model.Shape{2, 2, 2}},
	} {
		if _, err := ReadInputs("x.png", c.data, c.input); !errors.Is(err, disdel.Invalid) ||
			!strings.Contains(err.Error(), "x.png") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of a service's models one large picture is read at a time, and what is small waits for none.
func TestLargePicturesAreReadOneAtATime(t *testing.T) {
	picture := func(side int) []byte {
		var file bytes.Buffer
		if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	var turn sync.Mutex
	m := &Model{Graph: &model.Graph{Nodes: []model.Node{{Out: model.Shape{1, 2, 2}}}}, large: &turn}
	turn.Lock()
	if _, err := m.Read("small.png", picture(1000)); err != nil {
		t.Error(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := m.Read("large.png", picture(2000))
		read <- err
	}()
	select {
	case err := <-read:
		t.Errorf("it was read while another one was: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	turn.Unlock()
	if err := <-read; err != nil {
		t.Error(err)
	}
}

// Rows of a table lie in the memory of its values: short ones of their own would take many times as much.
func TestRowsOfATableShareTheirMemory(t *testing.T) {
	const n = 20_000
	text := []byte(strings.Repeat("1\n", n))
	var in Inputs
	allocated := testing.AllocsPerRun(1, func() {
		var err error
		if in, err = ReadInputs("x.csv", text, model.Shape{1}); err != nil {
			t.Fatal(err)
		}
	})
	if len(in.Rows) != n || cap(in.Rows[7]) != 1 || allocated > n/2 {
		t.Errorf("%d rows, the eighth with room for %d, %v allocations", len(in.Rows), cap(in.Rows[7]), allocated)
	}
}

// TestWideTablesTakeNoMemory reads tables with far more columns than the model takes: they are refused by their line,
// and the refusal allocates little beside the text itself.
func TestWideTablesTakeNoMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 7))
	input := model.Shape{1, 1, 3}
	for range 20 {
		separator := []string{",", ";", "\t"}[rng.IntN(3)]
		before := rng.IntN(4)
		text := strings.Repeat(strings.Join([]string{"1", "2", "3"}, separator)+"\n", before) +
			strings.Repeat("1"+separator, 100_000+rng.IntN(400_000))
		data := []byte(text)
		var err error
		took := uint64(math.MaxUint64)
		for range 5 { // other goroutines only add to it
			var was, is runtime.MemStats
			runtime.ReadMemStats(&was)
			_, err = ReadInputs("x.csv", data, input)
			runtime.ReadMemStats(&is)
			took = min(took, is.TotalAlloc-was.TotalAlloc)
		}
		if want := fmt.Sprintf("line %d has more", before+1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d lines before it: %v", before, err)
		}
		if took > 1<<20 {
			t.Errorf("%d bytes took %d", len(data), took)
		}
	}
	quoted := "a,\"b,c\",c,label\n\"1\",2,3,0\n"
	if in, err := ReadInputs("x.csv", []byte(quoted), input); err != nil || len(in.Rows) != 1 || len(in.Labels) != 1 {
		t.Errorf("a comma in quotes is no column: %v, %v", in, err)
	}
}
