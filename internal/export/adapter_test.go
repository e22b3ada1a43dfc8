package export

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
)

// The base weights plus the factor times B A are the merged weights, under PEFT's names. Layers that were trained whole
// are written whole, all others not at all.
func TestBaseAndAdapterAreTheMergedModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	drawn := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(rng.NormFloat64())
		}
		return out
	}
	lora := disdel.LoRA{Rank: 3, Alpha: 6, Layers: "a.query, b", Whole: "head"}
	shapes := disdel.Weights{
		{Name: "a.query.weight", Shape: []int{8, 12}},
		{Name: "a.query.bias", Shape: []int{8}},
		{Name: "b.weight", Shape: []int{5, 8}},
		{Name: "head.weight", Shape: []int{2, 5}},
		{Name: "head.bias", Shape: []int{2}},
	}
	m := AdapterExport{Adapter: lora, BaseName: "base:v1"}
	for _, s := range shapes {
		n := s.Shape[0] * append(s.Shape, 1)[1]
		base := disdel.Tensor{Name: s.Name, Shape: s.Shape, Data: drawn(n)}
		trained := disdel.Tensor{Name: s.Name, Shape: s.Shape, Data: slices.Clone(base.Data)}
		switch {
		case s.Name == "a.query.weight":
			up, down := drawn(s.Shape[0]*2), drawn(s.Shape[1]*2) // of rank 2: B and A of rank 3 have a spare vector
			for i := range trained.Data {
				for k := range 2 {
					trained.Data[i] += up[i/s.Shape[1]*2+k] * down[k*s.Shape[1]+i%s.Shape[1]]
				}
			}
		case s.Name == "head.weight":
			trained.Data = drawn(n)
		} // b learned nothing
		m.Base, m.Trained = append(m.Base, base), append(m.Trained, trained)
	}
	folder := filepath.Join(t.TempDir(), "adapter")
	if err := ExportAdapter(folder, m); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folder, AdapterWeightsFile))
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := safetensors.ToWeights(f)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]disdel.Tensor{}
	for _, w := range weights {
		got[w.Name] = w
	}
	if len(got) != 6 || !slices.Equal(got["base_model.model.head.weight"].Data, m.Trained[3].Data) {
		t.Errorf("%d tensors: %v", len(got), f.Tensors)
	}
	for i, layer := range map[int]string{0: "a.query", 2: "b"} {
		a, b := got[peftPrefix+layer+".lora_A.weight"], got[peftPrefix+layer+".lora_B.weight"]
		columns := shapes[i].Shape[1]
		if !slices.Equal(a.Shape, []int{3, columns}) || !slices.Equal(b.Shape, []int{shapes[i].Shape[0], 3}) {
			t.Fatalf("%s: A %v, B %v", layer, a.Shape, b.Shape)
		}
		for at, v := range m.Base[i].Data {
			sum := float64(v)
			for k := range 3 {
				sum += lora.Factor() * float64(b.Data[at/columns*3+k]) * float64(a.Data[k*columns+at%columns])
			}
			if off := math.Abs(sum - float64(m.Trained[i].Data[at])); !(off < 2e-6) {
				t.Fatalf("%s: value %d is %g off", layer, at, off)
			}
		}
	}
	var config struct {
		Type    string   `json:"peft_type"`
		R       int      `json:"r"`
		Alpha   float64  `json:"lora_alpha"`
		Targets []string `json:"target_modules"`
	}
	text, err := os.ReadFile(filepath.Join(folder, adapterConfigFile))
	if err != nil || json.Unmarshal(text, &config) != nil || config.Type != "LORA" || config.R != 3 || config.Alpha != 6 ||
		!slices.Equal(config.Targets, []string{"a.query", "b"}) {
		t.Errorf("%s, %v", text, err)
	}
	m.Base[0].Shape = []int{12, 8}
	if err := ExportAdapter(filepath.Join(t.TempDir(), "other"), m); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a base of another shape: %v", err)
	}
}
