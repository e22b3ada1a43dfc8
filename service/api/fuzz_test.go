package api

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"testing"
)

// Whatever a client submits is a job that can be written, or it is refused.
func FuzzSubmissions(f *testing.F) {
	job, err := json.Marshal("apiVersion: disdel/v1\nkind: TrainingJob\nmetadata: {name: a}\n" +
		"model: {layers: [{flatten: {}}, {dense: {units: 10}}]}\ndata: {source: dataset://digits}\n")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		`{"file": ` + string(job) + `, "priority": 9223372036854775807, "sets": ["training.epochs=3"]}`,
		`{"file": ` + string(job) + `, "origin": {"command": "submit", "sets": ["a"], "options": [{"name": "home"}]}}`,
		`{"file": "model: {custom: ../x}", "files": {"../x": ""}}`, `{"questions": {"policies": ["x"]}}`, `{"risk": 1e400}`,
		`{} {}`, `[`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &call{Request: httptest.NewRequest("POST", "/api/v1/jobs", bytes.NewReader(data)), computes: true}
		req, _, _, err := c.request()
		if err != nil {
			return
		}
		if _, err := json.Marshal(req.Job); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(req.Origin); err != nil {
			t.Fatal(err)
		}
	})
}
