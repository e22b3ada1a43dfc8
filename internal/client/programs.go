package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/program"
)

// Programs describes the Python programs of jobs on this machine, each program once for each input, batch and
// optimiser. It is safe for concurrent use.
type Programs struct {
	Interpreter string // path of Python; "": the one that package program finds
	Cache       string // folder for what is kept between commands; "": nothing is kept

	mu    sync.Mutex
	known map[string]knownProgram // guarded by mu: by the JSON of the options
}

// knownProgram is a program that was looked at.
type knownProgram struct {
	python  disdel.Python
	archive []byte
}

// WithPrograms returns a Client whose jobs may have a Python program of this machine. Submit, Estimate and Check look at
// the program, and send its code to the storage first. A job that has a description already keeps it.
func (c Client) WithPrograms(p *Programs) Client {
	c.Jobs = programJobs{c.Jobs, c.Data, c.Models, p}
	return c
}

type programJobs struct {
	Jobs
	data     Data
	models   Models
	programs *Programs
}

func (j programJobs) Submit(ctx context.Context, req service.Request) (Run, error) {
	if err := j.describe(ctx, &req); err != nil {
		return nil, err
	}
	return j.Jobs.Submit(ctx, req)
}

func (j programJobs) Estimate(ctx context.Context, req service.Request, q service.Questions) (*service.Estimation,
	error,
) {
	if err := j.describe(ctx, &req); err != nil {
		return nil, err
	}
	return j.Jobs.Estimate(ctx, req, q)
}

func (j programJobs) Check(ctx context.Context, req service.Request) error {
	if err := j.describe(ctx, &req); err != nil {
		return err
	}
	return j.Jobs.Check(ctx, req)
}

// describe fills in the description of the job's program. It leaves out a job whose data set is not there: the check of
// the job reports that.
func (j programJobs) describe(ctx context.Context, req *service.Request) error {
	m := req.Job.Model.Python
	if m == nil || m.Network != nil || len(req.Source.Faults) > 0 {
		return nil
	}
	data, err := j.data.Get(ctx, strings.TrimPrefix(req.Job.Data.Source, "dataset://"))
	switch disdel.KindOf(err) {
	case disdel.UnknownKind:
	case disdel.NotFound, disdel.Invalid:
		return nil
	default:
		return err
	}
	if data.Sparse != nil {
		return nil
	}
	// A server that refuses the packages says so before the program is described, which takes minutes.
	if _, err := installPackages(ctx, j.models, req); err != nil {
		return err
	}
	info := data.Info(req.Job.Data.Split).Resized(req.Job.Data.Resize)
	found, err := j.programs.look(ctx, program.Options{
		Python: *m, Dir: folderOf(req.Source.Name), Input: info.Sample, Classes: info.Classes,
		Batches: batchesOf(&req.Job), Loss: req.Job.Training.Loss, Optimizer: req.Job.Training.Optimizer,
		Batch: req.Job.Training.WorkerBatch(max(1, req.Job.Distribution.Workers)), Seed: req.Job.Model.Init.Seed,
		Translated: req.Job.Training.Backend != disdel.BackendPython,
	}, j.models)
	if err != nil {
		return programFault(err, req.Source)
	}
	code, err := j.models.WriteProgram(ctx, found.archive)
	if err == nil && code != found.python.Code {
		err = &disdel.Error{Kind: disdel.Internal, Op: "store program", Msg: "the archive has another digest than its own"}
	}
	req.Job.Model.Python = &found.python
	return err
}

// WriteONNX has a program of this machine write its network, with trained weights, as package program does.
func (p *Programs) WriteONNX(ctx context.Context, w io.Writer, n disdel.CustomNetwork, archive, weights []byte) error {
	return program.ExportONNX(ctx, w, program.Options{Interpreter: p.Interpreter, Cache: p.Cache}, n, archive, weights)
}

// installPackages has a server install the packages that the job's program requires. It returns the name of their
// environment, "" if the program requires none or no server runs the job.
func installPackages(ctx context.Context, models Models, req *service.Request) (environment string, err error) {
	p := req.Job.Model.Python
	if p == nil || p.Requirements == "" {
		return "", nil
	}
	file := p.Requirements
	if !filepath.IsAbs(file) {
		file = filepath.Join(folderOf(req.Source.Name), file)
	}
	return models.InstallPackages(ctx, file)
}

// ProgramPath is the field of the job file with the program.
const ProgramPath = "model.python"

// folderOf is the folder of a job file; of standard input, the current one.
func folderOf(file string) string {
	if file == "-" {
		return "."
	}
	return filepath.Dir(file)
}

// batchesOf are the batch sizes whose memory is to be known: the job's own, and others around it, between which the
// memory of all sizes that an estimate may compare is interpolated.
func batchesOf(job *disdel.Job) []int {
	own := job.Training.WorkerBatch(max(1, job.Distribution.Workers))
	out := []int{1, max(1, own/4), own, 4 * own, job.Training.JobBatch()}
	slices.Sort(out)
	return slices.Compact(out)
}

// programFault is an error about a program as a fault of the job file.
func programFault(err error, from service.Source) error {
	var faults *disdel.Faults
	if errors.As(err, &faults) || disdel.KindOf(err) != disdel.Invalid {
		return err
	}
	e := disdel.AsError(err)
	fault := disdel.Fault{Path: ProgramPath, Msg: cmp.Or(e.Msg, e.Error()), Hint: e.Hint}
	if e.Msg != "" && e.Err != nil {
		fault.Msg += ": " + e.Err.Error()
	}
	if from.Locate != nil {
		fault.Line, fault.Column = from.Locate(fault.Path)
	}
	return &disdel.Faults{File: from.Name, Faults: []disdel.Fault{fault}}
}

// Rows has a program of this machine read its own data set into files in a folder. It returns the errors of
// program.ReadRows.
func (p *Programs) Rows(ctx context.Context, from disdel.Python, folder string) (program.Rows, error) {
	return program.ReadRows(ctx, program.Options{Python: from, Interpreter: p.Interpreter, Cache: p.Cache}, folder)
}

// look describes a program, or returns what an earlier call found.
func (p *Programs) look(ctx context.Context, o program.Options, models Models) (knownProgram, error) {
	key, err := json.Marshal(o)
	if err != nil {
		return knownProgram{}, &disdel.Error{Kind: disdel.Invalid, Op: "describe program", Err: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, ok := p.known[string(key)]; ok {
		return found, nil
	}
	o.Interpreter, o.Cache = p.Interpreter, p.Cache
	found, err := describeFor(ctx, o, models)
	if err != nil {
		return found, err
	}
	if p.known == nil {
		p.known = map[string]knownProgram{}
	}
	p.known[string(key)] = found
	return found, nil
}

// describeFor describes a program. The initial weights of one that disdel's engine may train go beside the models.
func describeFor(ctx context.Context, o program.Options, models Models) (found knownProgram, err error) {
	folder, err := os.MkdirTemp("", "disdel-weights-")
	if err != nil {
		return found, &disdel.Error{Kind: disdel.Unavailable, Op: "make a folder for weights", Err: err}
	}
	defer os.RemoveAll(folder) //nolint:errcheck // what stays is in the temp folder
	o.Weights = filepath.Join(folder, "initial.safetensors")
	if found.python, found.archive, err = program.Describe(ctx, o); err != nil {
		return found, err
	}
	n := found.python.Network
	n.Name = found.python.Name()
	if t := n.Python.Translation; o.Translated && len(t.Layers) > 0 {
		t.Weights, err = models.PutWeights(ctx, o.Weights)
	}
	return found, err
}
