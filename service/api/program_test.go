package api

import (
	"context"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/service"
)

// pythonJob is a job with a Python program.
const pythonJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: own}
model: {python: {file: net.py, entry: Net}}
data: {source: dataset://digits}
training: {epochs: 1}
`

// A server takes a program by its description and its code, which come before the job. It uses no interpreter that a
// client names, and refuses a job whose code or description is missing or of another program.
func TestAProgramOverHTTPNeedsItsDescriptionAndItsCode(t *testing.T) {
	h := newHouse(t, Config{MaxUpload: 1 << 20})
	h.submitted()
	ann, err := client.Remote(client.Server{URL: h.URL, Token: h.tokens["ann admin"]})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	code, err := ann.Models.WriteProgram(ctx, []byte("an archive"))
	if err != nil {
		t.Fatal(err)
	}
	request := func(change func(p *disdel.Python)) service.Request {
		file, err := jobfile.Parse("job.yaml", []byte(pythonJob), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := file.Job.Model.Python
		p.Code, p.Network = code, &disdel.CustomNetwork{
			Name: "net.py:Net", Input: []int{1, 8, 8}, Classes: 10,
			Params: []disdel.CustomParam{{Name: "w", Shape: []int{10, 64}, Trainable: true}},
			Python: &disdel.PythonNetwork{
				Code: code, File: "net.py", Entry: "Net", Form: disdel.PythonModule, Interpreter: "/bin/sh", Factor: 1.2,
				Memory: []disdel.PythonMemory{{Batch: 1, Train: disdel.MB, Infer: disdel.MB}}, Floor: 50 * disdel.MB,
				Basis: disdel.MemoryTraced,
			},
		}
		change(p)
		return service.Request{Job: file.Job, Source: service.Source{Name: "job.yaml", Locate: file.Locate}}
	}
	found, err := ann.Jobs.Estimate(ctx, request(func(*disdel.Python) {}), service.Questions{})
	if err != nil {
		t.Fatal(err)
	}
	if p := found.Job.Model.Python; p.Code != code || p.Network.Python.Interpreter != "" {
		t.Errorf("code %q, interpreter %q", p.Code, p.Network.Python.Interpreter)
	}
	for says, change := range map[string]func(p *disdel.Python){
		"nobody has described the program": func(p *disdel.Python) { p.Network = nil },
		"the storage has no code of net.py:Net": func(p *disdel.Python) {
			p.Code = "sha256:" + strings.Repeat("0", 64)
			p.Network.Python.Code = p.Code
		},
		"program is not the one that the job file names": func(p *disdel.Python) { p.Network.Python.Code = "sha256:other" },
		"read requirements": func(p *disdel.Python) { p.Requirements = "requirements.txt" },
	} {
		if err := ann.Jobs.Check(ctx, request(change)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
	}
}

// A program's packages come before its job. A server without an index refuses them, and a job without them; nobody
// names an environment of another tenant or a path as one.
func TestPackagesOfAProgramComeFirst(t *testing.T) {
	h := newHouse(t, Config{MaxUpload: 1 << 20})
	h.submitted()
	if status, text := h.ask("ann submit", "POST", "/api/v1/environments", "numpy"); status != 403 ||
		!strings.Contains(string(text), "--package-index") {
		t.Errorf("status %d: %s, want 403 with the way on", status, text)
	}
	if status, _ := h.ask("ann read", "POST", "/api/v1/environments", "numpy"); status != 403 {
		t.Errorf("status %d for a reader, want 403", status)
	}
	file := strings.Replace(pythonJob, "entry: Net", "entry: Net, requirements: r.txt", 1)
	python := &disdel.Python{
		File: "net.py", Entry: "Net", Requirements: "r.txt", Code: "sha256:0",
		Network: &disdel.CustomNetwork{Python: &disdel.PythonNetwork{Code: "sha256:0"}},
	}
	for environment, says := range map[string]string{
		"":                       "the packages of the program's requirements come first",
		"00aa":                   "no longer has the program's packages",
		"..":                     "no longer has the program's packages",
		"../tenants/bob/00aa":    "no longer has the program's packages",
		"/usr":                   "no longer has the program's packages",
		"../../../../../../usr/": "no longer has the program's packages",
	} {
		s := apitypes.Submission{File: file, Program: python, Environment: environment}
		status, text := h.ask("ann submit", "POST", "/api/v1/jobs", s)
		if status < 400 || status >= 500 || !strings.Contains(string(text), says) {
			t.Errorf("environment %q: status %d: %s, want %q", environment, status, text, says)
		}
	}
}
