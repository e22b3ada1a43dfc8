package jobfile

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// Every path that a person can write has an explanation or is NotFound, for people and for programs.
func TestEveryPathIsExplained(t *testing.T) {
	paths := []string{"", "job", ".", "..", "[", "[]", "model.layers", "model.layers[0]", "model.layers.", "no.such.field"}
	for _, f := range fields() {
		path := f.path
		paths = append(paths, path, "job."+path, strings.ReplaceAll(path, "[]", "[0]"), path+".", path+".x", path+"[]",
			path+"[3].x", strings.TrimSuffix(path, path[len(path)-1:]))
		for at, c := range path {
			if c == '.' || c == '[' {
				paths = append(paths, path[:at])
			}
		}
		for _, kind := range model.LayerKinds() {
			paths = append(paths, strings.Replace(path, "[].*", "[0]."+kind, 1), strings.Replace(path, "[].*", "."+kind, 1))
		}
	}
	for _, path := range paths {
		if _, err := Explain(path); err != nil && disdel.KindOf(err) != disdel.NotFound {
			t.Errorf("%q: %v", path, err)
		}
		schema, err := ExplainSchema(path)
		if err != nil && disdel.KindOf(err) != disdel.NotFound {
			t.Errorf("%q as a schema: %v", path, err)
		}
		if _, err := json.Marshal(schema); err != nil {
			t.Errorf("%q as a schema: %v", path, err)
		}
	}
	for _, f := range fields() {
		if _, err := Explain(f.path); err != nil && !f.later {
			t.Errorf("%q: %v", f.path, err)
		}
	}
}
