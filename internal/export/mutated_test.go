package export_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset/text"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/test/faults"
	"github.com/disdel/disdel/model"
)

// damaged is a good file, and how the model of a damaged copy is read.
type damaged struct {
	data []byte
	read func(data []byte) error
}

// damagedModels are small good files of every format that models and tokenizers are read from.
func damagedModels(t *testing.T) map[string]damaged {
	t.Helper()
	g, err := model.Build(disdel.Network{Name: "digits-cnn", Input: []int{1, 4, 4}, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	weights := disdel.Weights{}
	for _, p := range g.Params() {
		weights = append(weights, disdel.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, p.Len())})
	}
	var onnx bytes.Buffer
	if err := export.WriteONNX(&onnx, g, weights, nil); err != nil {
		t.Fatal(err)
	}
	texts := func(yield func(string) bool) { yield("the cat sat on the mat, the hat") }
	tokenizer, err := text.TrainBPE(texts, 300, "<pad>")
	if err != nil {
		t.Fatal(err)
	}
	keras := `{"class_name": "Sequential", "config": {"name": "s", "layers": [` +
		`{"class_name": "InputLayer", "config": {"batch_shape": [null, 8, 8, 1], "name": "in"}},` +
		`{"class_name": "Conv2D", "config": {"name": "c", "filters": 4, "kernel_size": [3, 3], "strides": [1, 1],` +
		` "padding": "same", "activation": "relu", "use_bias": true}},` +
		`{"class_name": "Flatten", "config": {"name": "f"}},` +
		`{"class_name": "Dense", "config": {"name": "d", "units": 10, "activation": "softmax", "use_bias": true}}]}}`
	hub := func(folder, file string) damaged {
		dir := hubFolder(t, folder)
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return damaged{data, func(data []byte) error {
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := readHub(t, dir, export.HubOptions{})
			return builds(m.Network, err)
		}}
	}
	return map[string]damaged{
		"ONNX": {onnx.Bytes(), func(data []byte) error {
			in, err := export.ImportONNX(data, nil, export.ONNXOptions{})
			return builds(in.Network, err)
		}},
		"tokenizer.json": {tokenizer.JSON(), func(data []byte) error {
			read, err := text.Read(bytes.NewReader(data))
			if err == nil {
				e := read.Encoder()
				read.Decode(e.Append(nil, "the cat \x00 Größe 貓", true))
			}
			return err
		}},
		"Keras": {[]byte(keras), func(data []byte) error {
			_, err := model.FromKeras(data)
			return err
		}},
		"HDF5": {append([]byte("\x89HDF\r\n\x1a\n"), make([]byte, 400)...), func(data []byte) error {
			_, err := model.FromKeras(data)
			return err
		}},
		"config.json":                  hub("bert", "config.json"),
		"config.json of Llama":         hub("llama", "config.json"),
		"config.json of ViT":           hub("vit", "config.json"),
		"model.safetensors":            hub("bert", "model.safetensors"),
		"model.safetensors.index.json": hub("distilbert", "model.safetensors.index.json"),
		"a shard":                      hub("distilbert", "model-00001-of-00002.safetensors"),
		"vocab.txt":                    hub("bert", "vocab.txt"),
	}
}

// builds tells whether a network that was read builds.
func builds(n disdel.Network, err error) error {
	if err != nil {
		return err
	}
	if _, err = model.Build(n); err != nil {
		return fmt.Errorf("the network was read, and does not build: %w", err)
	}
	return nil
}

// Damaged files of models are read, or refused with a clear error. What a file only claims takes no memory.
//
// DISDEL_TEST_DRAWN is how many are drawn of each kind, from DISDEL_TEST_SEED.
func TestDrawnDamageOfModels(t *testing.T) {
	drawn, seed := faults.Drawn()
	for kind, k := range damagedModels(t) {
		t.Run(kind, func(t *testing.T) {
			if err := k.read(k.data); err != nil && kind != "HDF5" {
				t.Fatal("the good file: ", err)
			}
			for i := range drawn {
				data, what := faults.Mutate(rand.New(rand.NewPCG(seed, uint64(i))), k.data)
				if wrong := damageOf(k, data); wrong != "" {
					t.Errorf("seed %d, %s %d, %s: %s", seed, kind, i, what, wrong)
				}
			}
		})
	}
}

// damageOf reads a damaged file, and returns what is wrong; "": it was read, or refused as it should be.
func damageOf(k damaged, data []byte) (wrong string) {
	wrong, err := faults.Watched(uint64(64<<20+64*len(data)), func() error { return k.read(data) })
	if wrong != "" || err == nil {
		return wrong
	}
	text := err.Error()
	switch kind := disdel.KindOf(err); {
	case kind != disdel.Invalid && kind != disdel.Corrupt:
		return fmt.Sprintf("the error has the kind %v: %v", kind, err)
	case strings.Contains(text, "does not build"):
		return text
	case strings.Contains(text, "goroutine") || strings.Contains(text, "runtime error"):
		return "the error is of the program: " + text
	case len(text) > 8000:
		return fmt.Sprintf("the error has %d bytes", len(text))
	}
	return ""
}
