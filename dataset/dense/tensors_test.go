package dense

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
)

func writeTensors(t *testing.T, list ...safetensors.Tensor) string {
	t.Helper()
	var out bytes.Buffer
	if err := safetensors.Write(&out, safetensors.File{Tensors: list}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "data.safetensors")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Tensors are read as arrays are: data and labels by their names, held-out rows apart.
func TestTensors(t *testing.T) {
	name := writeTensors(t,
		safetensors.Tensor{Name: "y_test", DType: safetensors.I64, Shape: []int{1}, Data: []byte{1, 0, 0, 0, 0, 0, 0, 0}},
		safetensors.FromFloat32s("x_train", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6}),
		safetensors.Tensor{Name: "y_train", DType: safetensors.U8, Shape: []int{2}, Data: []byte{1, 0}},
		safetensors.FromFloat32s("x_test", []int{1, 3}, []float32{7, 8, 9}))
	a, err := Tensors(name)
	if err != nil {
		t.Fatal(err)
	}
	in, err := a.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	want := []kept{
		{Values: []float32{1, 2, 3}, Label: 1},
		{Values: []float32{4, 5, 6}},
		{Values: []float32{7, 8, 9}, Label: 1, HeldOut: true},
	}
	if diff := cmp.Diff(want, all(t, in)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoFileOfTensors(t *testing.T) {
	other := writeTensors(t, safetensors.FromFloat32s("weights", []int{1}, []float32{1}))
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(t.TempDir(), "half")
	head := `{"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head+"\x00\x00"...)
	if err := os.WriteFile(half, file, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		half:  `tensor "x" has values of type "BF16"`,
		other: "it has the arrays weights", text: "does not fit", text + "x": "no such file",
	} {
		if _, err := Tensors(name); disdel.KindOf(err) != disdel.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
