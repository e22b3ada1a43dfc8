package infer

import (
	"errors"
	"fmt"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
)

// Inputs are rows however they are nested, as long as the nesting is that of rows.
func TestInputsAreReadHoweverTheyAreNested(t *testing.T) {
	image := model.Shape{1, 2, 2}
	for _, c := range []struct {
		text   string
		rows   int
		labels []int32
	}{
		{`{"inputs": [[1,2,3,4]]}`, 1, nil},
		{`{"inputs": [[1,2,3,4],[5,6,7,8]], "labels": [3, 1], "shape": [1,2,2]}`, 2, []int32{3, 1}},
		{`[1,2,3,4]`, 1, nil},
		{`[[1,2,3,4],[5,6,7,8],[1,1,1,1]]`, 3, nil},
		{`{"inputs": [[1,2],[3,4]]}`, 1, nil},
		{`{"inputs": [[[1,2],[3,4]],[[5,6],[7,8]]]}`, 2, nil},
		{`[[[[1,2],[3,4]]]]`, 1, nil},
		{` [[[[1],[2]],[[3],[4]]]] `, 1, nil},
	} {
		in, err := ReadInputs("x.json", []byte(c.text), image)
		if err != nil || len(in.Rows) != c.rows || !cmp.Equal(in.Labels, c.labels) ||
			!cmp.Equal(in.Rows[0], []float32{1, 2, 3, 4}) {
			t.Errorf("%s: %+v, %v", c.text, in, err)
		}
	}
	for text, want := range map[string]string{
		"PK\x03\x04": "it is a zip archive, as .npz is: give one of its arrays",
		``:           "it is no JSON of inputs", `{}`: "it has no field inputs",
		`{"inputs": []}`: "there are no inputs",
		`[]`:             "there are no inputs", `[[],[]]`: "there are no inputs",
		`[[1,2,3]]`:           "an array of shape 1x3 is no rows of 4 values",
		`[[1,2,3,4],[5,6,7]]`: "input 1 has 3 values where others have 4", `[[1,2],[3,[4]]]`: "nested in another way",
		`[1,2,3,"4"]`: "arrays of numbers", `[1e39,2,3,4]`: "1e+39 in input 0 is too large", `[1,2,3,4] x`: "more follows",
		`[1,2,3,4`: "ends within an array", `7`: "a single number",
		`{"inputs": [[1,2,3,4]], "labels": [1,2]}`: "there are 2 labels for 1 inputs",
		`{"inputs": [[1,2,3,4]], "labels": "a"}`:   "labels are no list", `{"inputs": {"a": 1}}`: "arrays of numbers",
		strings.Repeat("[", 1e5):            "arrays of numbers",
		`[[1],[2],[3],[4],[5],[6],[7],[8]]`: "an array of shape 8x1 is no rows of 4 values",
		`[null,2,3,4]`:                      "arrays of numbers",
	} {
		_, err := ReadInputs("x.json", []byte(text), image)
		if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "unmarshal") {
			t.Errorf("%.40q: %v, want Invalid with %q", text, err, want)
		}
	}
	if in, err := ReadInputs("-", []byte("1,2,3,4\n5,6,7,8\n"), image); err != nil || len(in.Rows) != 2 {
		t.Errorf("a table on standard input: %+v, %v", in, err)
	}
	_, err := ReadInputs("x.json", []byte(`[[[1,2,3],[1,2,3]],[[1,2,3],[1,2,3]]]`), model.Shape{3, 2, 2})
	if !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), "channels last") {
		t.Errorf("channels last: %v", err)
	}
}

// Values of another scale than those of training are warned of.
func TestInputsOfAnotherScaleAreWarnedOf(t *testing.T) {
	unit := &modelstore.Range{Low: 0, High: 1}
	for want, c := range map[string]struct {
		seen *modelstore.Range
		row  []float32
	}{
		"":                                    {unit, []float32{0, 0.5, 1.5}},
		"0 to 255, and the model was trained": {unit, []float32{0, 17, 255}},
		"dividing them by 255":                {unit, []float32{0, 200}},
		"scale them as in training":           {&modelstore.Range{Low: -1, High: 1}, []float32{-100, 100}},
		"perhaps they were scaled twice":      {unit, []float32{0, 0.002, 0.0039}},
	} {
		got := outOfRange([][]float32{c.row}, c.seen)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", c.row, got, want)
		}
	}
	if got := outOfRange([][]float32{{0, 255}}, nil) + outOfRange([][]float32{{0, 0}}, unit); got != "" {
		t.Errorf("without anything to say: %q", got)
	}
}

// A model whose job resized its images takes them as its data set has them, and as large as it needs them.
func TestInputsOfAResizedModelAreResized(t *testing.T) {
	input := model.Shape{1, 3, 3}
	large := []float32{0, 2, 4, 4, 6, 8, 8, 10, 12}
	for _, text := range []string{
		`{"inputs": [[0,4,8,12]], "shape": [1,2,2], "labels": [7]}`, // as dataset sample prints it
		`{"inputs": [[0,4,8,12]]}`, `[0,4,8,12]`, `[[0,4],[8,12]]`, `[[[0,4],[8,12]]]`, `[[[[0,4],[8,12]]]]`,
		`[[0,2,4,4,6,8,8,10,12]]`, `[[0,2,4],[4,6,8],[8,10,12]]`,
		`{"inputs": [0,2,4,4,6,8,8,10,12], "shape": [1,3,3]}`, `{"inputs": [[0,4,8,12]], "shape": "2x2"}`,
	} {
		in, err := readInputs("x.json", []byte(text), input, 3)
		if err != nil || len(in.Rows) != 1 || !cmp.Equal(in.Rows[0], large) {
			t.Errorf("%s: %+v, %v", text, in, err)
		}
	}
	in, err := readInputs("x.json", []byte(`[[0,4,8,12],[1,1,1,1]]`), input, 3)
	if err != nil || len(in.Rows) != 2 || in.Rows[1][8] != 1 {
		t.Errorf("two images: %+v, %v", in, err)
	}
	for _, text := range []string{
		`[1,2,3]`, `{"inputs": [[0,4,8,12]], "shape": [1,2,3]}`, `{"inputs": [[0,4,8,12]], "shape": [0,2,2]}`,
		`{"inputs": [[0,4,8,12]], "shape": [4,1,1]}`,
	} {
		if _, err := readInputs("x.json", []byte(text), input, 3); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%s: %v, want Invalid", text, err)
		}
	}
}

// Whatever an input says, it is refused or becomes rows of the model's length.
func FuzzInputs(f *testing.F) {
	for _, text := range []string{
		`{"inputs": [[1,2,3,4]], "labels": [1]}`, `[[[1,2],[3,4]]]`, `[1,2,3,4]`, `[[`,
		"\x93NUMPY\x01\x00", `{"inputs": [[1e39]]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := heapAllocs()
		in, err := ReadInputs("-", data, model.Shape{1, 2, 2})
		if took, most := heapAllocs()-before, uint64(1<<20+500*len(data)); took > most {
			t.Fatalf("%d bytes were allocated for %d", took, len(data))
		}
		if err != nil {
			return
		}
		for _, r := range in.Rows {
			if len(r) != 4 {
				t.Fatal(fmt.Sprint(r))
			}
		}
		if len(in.Rows) == 0 || in.Labels != nil && len(in.Labels) != len(in.Rows) {
			t.Fatalf("%+v", in)
		}
	})
}

func heapAllocs() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
