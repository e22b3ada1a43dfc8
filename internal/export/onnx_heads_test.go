package export_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Networks of PyTorch's newer exporter answer as in PyTorch: attention with any number of rows or one, with one
// projection or three, causal or not, behind a class token; and a recurrence of any number of rows.
// testdata/torch_new.py writes them.
func TestNewerExportersAreRead(t *testing.T) {
	text, err := os.ReadFile("testdata/new/new.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct{ Row, Answers []float32 }
	if err := json.Unmarshal(text, &all); err != nil || len(all) < 6 {
		t.Fatalf("%d networks: %v", len(all), err)
	}
	for name, c := range all {
		file, err := os.ReadFile(filepath.Join("testdata/new", name+".onnx"))
		if err != nil {
			t.Fatal(err)
		}
		g, in := imported(t, file, true)
		wantClose(t, name, answers(t, g, in.Weights, 1, c.Row), c.Answers)
	}
}
