package api

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/service"
)

// A client sends the file of weights that a job names, from beside the job file, and the job begins with it; nobody
// else has it, and what is larger than the server takes, or no file of weights, is refused with its place.
func TestAJobOverHTTPBeginsWithAFile(t *testing.T) {
	h := newHouse(t, Config{MaxUpload: 1 << 20})
	rec := h.submitted()
	at := func(who string) client.Client {
		c, err := client.Remote(client.Server{URL: h.URL, Token: h.tokens[who]})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ann, ctx, folder := at("ann admin"), context.Background(), t.TempDir()
	if status, data := h.ask("ann read", "GET", "/api/v1/jobs/"+string(rec.ID)+"/wait?timeout=5m", nil); status != 200 {
		t.Fatalf("%d %s", status, data)
	}
	small, err := ann.Models.Get(ctx, "small")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(folder, "small.safetensors"))
	if err == nil {
		err = errors.Join(ann.Models.CopyWeights(ctx, f, &small), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	request := func(weights string) service.Request {
		name := filepath.Join(folder, "job.yaml")
		file, err := jobfile.Parse(name, []byte(job), []string{"metadata.name=next", "model.init.weights=" + weights})
		if err != nil {
			t.Fatal(err)
		}
		return service.Request{Job: file.Job, Source: service.Source{Name: name, Locate: file.Locate}}
	}
	run, err := ann.Jobs.Submit(ctx, request("small.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	next, err := run.Wait(ctx)
	if err != nil || next.Status != disdel.StatusSucceeded || next.Job.Model.Init.Weights != small.Checksum {
		t.Errorf("%v, %v begun with %q, not %q", err, next.Status, next.Job.Model.Init.Weights, small.Checksum)
	}
	if kept, err := ann.Models.KeptWeights(ctx); err != nil || len(kept) == 0 {
		t.Errorf("ann's are %+v, %v", kept, err)
	}
	if kept, err := at("bob read").Models.KeptWeights(ctx); err != nil || len(kept) != 0 {
		t.Errorf("bob's are %+v, %v", kept, err)
	}
	if err := at("bob read").Models.RemoveWeights(ctx, small.Checksum); disdel.KindOf(err) != disdel.Denied {
		t.Errorf("who may not: %v", err)
	}
	if err := at("bob admin").Models.RemoveWeights(ctx, small.Checksum); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("another tenant: %v", err)
	}
	if err := ann.Models.RemoveWeights(ctx, small.Checksum); err != nil {
		t.Error(err)
	}
	large := `{"a":{"dtype":"F32","shape":[524288],"data_offsets":[0,2097152]}} `
	large = string(binary.LittleEndian.AppendUint64(nil, uint64(len(large)))) + large + strings.Repeat("\x00", 2<<20)
	for name, text := range map[string]string{"large.safetensors": large, "wrong.safetensors": "no weights at all"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var faults *disdel.Faults
	for _, name := range []string{"wrong.safetensors", "none.safetensors"} {
		if err := ann.Jobs.Check(ctx, request(name)); !errors.As(err, &faults) || len(faults.Faults) != 1 ||
			faults.Faults[0].Path != "model.init.weights" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ann.Jobs.Check(ctx, request("large.safetensors")); !errors.Is(err, disdel.OverLimit) {
		t.Errorf("a large file: %v", err)
	}
}

// A network of Keras may come with the job that names its file; a file that has not come is not read.
func TestFilesComeWithAJob(t *testing.T) {
	h := newHouse(t, Config{})
	h.submitted()
	const network = `{"class_name": "Sequential", "config": {"name": "m", "layers": [
  {"class_name": "InputLayer", "config": {"name": "in", "batch_shape": [null, 8, 8, 1]}},
  {"class_name": "Flatten", "config": {"name": "flat"}},
  {"class_name": "Dense", "config": {"name": "out", "units": 10, "activation": "softmax"}}]}}`
	asked := apitypes.Submission{
		File: job, Sets: []string{"model={keras: net.json}"}, Files: map[string]string{"net.json": network},
	}
	if status, data := h.ask("ann submit", "POST", "/api/v1/checks", asked); status != 200 {
		t.Errorf("%d %s", status, data)
	}
	asked.Files = map[string]string{"other.json": network}
	if status, data := h.ask("ann submit", "POST", "/api/v1/checks", asked); status != 400 ||
		!strings.Contains(string(data), "model.keras") {
		t.Errorf("%d %s", status, data)
	}
}
