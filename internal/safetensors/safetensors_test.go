package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/disdel/disdel"
)

func small(t testing.TB) (File, []byte) {
	t.Helper()
	f := File{Metadata: map[string]string{"format": "pt"}, Tensors: []Tensor{
		FromFloat32s("b", []int{2, 3}, []float32{1, -2, 3, 4, 5, 6}),
		{Name: "a", DType: U8, Shape: []int{3}, Data: []byte{7, 8, 9}},
	}}
	var out bytes.Buffer
	if err := Write(&out, f); err != nil {
		t.Fatal(err)
	}
	return f, out.Bytes()
}

func TestBytesAreTheFormats(t *testing.T) {
	_, got := small(t)
	header := `{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"a":{"dtype":"U8","shape":[3],"data_offsets":[24,27]}}`
	for len(header)%8 != 0 {
		header += " "
	}
	want := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	want = append(want, header...)
	for _, v := range []uint32{0x3f800000, 0xc0000000, 0x40400000, 0x40800000, 0x40a00000, 0x40c00000} {
		want = binary.LittleEndian.AppendUint32(want, v)
	}
	want = append(want, 7, 8, 9)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseReadsWhatWriteWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f File
		for i := range rapid.IntRange(0, 5).Draw(t, "tensors") {
			v := rapid.SliceOfN(rapid.Float32(), 0, 9).Draw(t, "values")
			f.Tensors = append(f.Tensors, FromFloat32s(string(rune('a'+i))+rapid.String().Draw(t, "name"), []int{len(v)}, v))
		}
		var out bytes.Buffer
		if err := Write(&out, f); err != nil {
			t.Fatal(err)
		}
		got, err := Parse(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Tensors {
			if len(f.Tensors[i].Data) == 0 {
				return // empty tensors share their place: their order is the names'
			}
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestEveryTruncationIsRefused(t *testing.T) {
	_, data := small(t)
	for n := range data {
		if _, err := Parse(data[:n]); !errors.Is(err, disdel.Corrupt) {
			t.Fatalf("%d of %d bytes: got %v, want Corrupt", n, len(data), err)
		}
	}
	if _, err := Parse(append(data, 0)); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("a byte too many: got %v, want Corrupt", err)
	}
}

func TestHeadersThatLie(t *testing.T) {
	for name, header := range map[string]string{
		"overlap":        `{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`,
		"hole":           `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[3],"data_offsets":[3,6]}}`,
		"overflow":       `{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,6]}}`,
		"negative":       `{"a":{"dtype":"U8","shape":[-6],"data_offsets":[0,6]}}`,
		"negative start": `{"a":{"dtype":"U8","shape":[7],"data_offsets":[-1,6]}}`,
		"rank":           `{"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,6],"data_offsets":[0,6]}}`,
		"type":           `{"a":{"dtype":"F8","shape":[6],"data_offsets":[0,6]}}`,
		"twice":          `{"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]}}`,
		"unknown field":  `{"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6],"x":1}}`,
		"no object":      `[]`,
		"trailing":       `{"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]}} x`,
	} {
		data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
		data = append(append(data, header...), 1, 2, 3, 4, 5, 6)
		if _, err := Parse(data); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("%s: got %v, want Corrupt", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	_, data := small(f)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil && !errors.Is(err, disdel.Corrupt) {
			t.Fatalf("got %v, want Corrupt", err)
		}
		total := 0
		for _, x := range file.Tensors {
			total += len(x.Data)
		}
		if err == nil && total > len(data) {
			t.Fatalf("%d bytes of tensors out of %d", total, len(data))
		}
	})
}
