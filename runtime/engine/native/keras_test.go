package native

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/enginetest"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// Networks of Keras answer as Keras 3.15 does with the same weights: recurrent layers of both directions behind
// padding, convolutions over positions, and images that grow. testdata/keras/make.py wrote them.
func TestNetworksOfKerasAnswerAsKeras(t *testing.T) {
	for _, name := range []string{"tokens", "windows", "raised"} {
		data, err := os.ReadFile(filepath.Join("testdata", "keras", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Network    string
			Weights    disdel.Weights
			X, Answers []float32
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		g, err := model.FromKeras([]byte(want.Network))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		const rows = 5
		e := initialized(t, g, engine.Spec{BatchSize: rows, Threads: 1})
		byName := map[string]disdel.Tensor{}
		for _, w := range want.Weights {
			byName[w.Name] = w
		}
		weights := engine.Weights(e)
		if len(weights) != len(byName) {
			t.Errorf("%s: %d arrays, and Keras has %d", name, len(weights), len(byName))
		}
		for i := range weights {
			copy(weights[i].Data, byName[weights[i].Name].Data)
			if len(weights[i].Data) != len(byName[weights[i].Name].Data) {
				t.Errorf("%s: %s has the shape %v, and Keras' is %v", name, weights[i].Name, weights[i].Shape,
					byName[weights[i].Name].Shape)
			}
		}
		if err := engine.SetWeights(e, weights); err != nil {
			t.Fatal(err)
		}
		got, err := enginetest.Predict(e, want.X, rows)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Abs(float64(got[i]-want.Answers[i])) > 1e-5 {
				t.Errorf("%s: answer %d is %g, and Keras' is %g", name, i, got[i], want.Answers[i])
			}
		}
	}
}
