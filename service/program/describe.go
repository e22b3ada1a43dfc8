// Package program takes a user's own Python program into a job: it finds the Python that runs it, packs its files, and
// describes its network by trial steps before anything is planned.
package program

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/disdel/disdel"
	sources "github.com/disdel/disdel/clients/python"
)

// Options says which program is described, and what for.
type Options struct {
	Python      disdel.Python    // its File, Entry, Arguments and Requirements count
	Dir         string           // of the job file: names of files are relative to it; "" is the current folder
	Input       []int            // shape of one sample: channels, height, width for images
	Classes     int              // of the data; 0: as many as the network has outputs
	Batches     []int            // the sizes of batches whose memory is asked for
	Loss        string           // a disdel.Loss name
	Optimizer   disdel.Optimizer // of the job
	Interpreter string           // path or name of a Python; "": the project's .venv, else python3
	Cache       string           // folder for virtual environments and the package disdel; "": below the temp folder
	Timeout     time.Duration    // of importing and the trial steps; 0: five minutes
	Threads     int              // of one action; 0: one

	Batch      int    // of one worker, which steps of both engines are compared at
	Seed       int64  // of the initial weights
	Translated bool   // disdel's engine may train the network: more steps are compared than for an estimate
	Weights    string // file for the initial weights of a network that was translated
}

const defaultTimeout = 5 * time.Minute

// Describe tries a program and returns it with Code, Interpreter and Network filled, and the zip archive of its files
// that Code is the digest of. It makes a virtual environment where the program's requirements ask for one. It returns
// Invalid for a program, an interpreter or requirements that cannot be used, with the program's own line where there is
// one. It returns Timeout for a program that does not end, and OOM if the trial steps do not fit this machine.
func Describe(ctx context.Context, o Options) (disdel.Python, []byte, error) {
	d := description{Options: o}
	if err := d.prepare(); err != nil {
		return disdel.Python{}, nil, err
	}
	defer os.RemoveAll(d.temp) //nolint:errcheck // what stays is in the temp folder
	python, archive, err := d.describe(ctx)
	return python, archive, err
}

type description struct {
	Options
	source  string // the program's file or folder, absolute
	temp    string // folder of this description alone
	modules string // folder for PYTHONPATH

	index string       // of a server: the only source of packages
	most  disdel.Bytes // of a server: the size of an environment
	room  func(ctx context.Context) (most disdel.Bytes, release func(), err error)
}

// prepare makes names absolute and the folders that every child process needs.
func (d *description) prepare() error {
	var err error
	if d.Dir, err = filepath.Abs(d.Dir); err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "find the program", Err: err}
	}
	if d.Timeout == 0 {
		d.Timeout = defaultTimeout
	}
	if d.Cache == "" {
		d.Cache = filepath.Join(os.TempDir(), "disdel-python")
	}
	d.source = d.path(d.Python.File)
	if _, err := os.Stat(d.source); err != nil || d.Python.File == "" {
		return d.invalid("there is no such file or folder", "check model.python.file: it is relative to the job file")
	}
	if err := os.MkdirAll(d.Cache, 0o700); err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "make the folder " + d.Cache, Err: err}
	}
	if d.modules, err = sources.Install(d.Cache); err != nil {
		return err
	}
	d.temp, err = os.MkdirTemp("", "disdel-describe-")
	return err
}

func (d *description) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(d.Dir, name)
}

func (d *description) op() string {
	if d.index != "" {
		return "install packages"
	}
	return "program " + d.Python.File
}

func (d *description) invalid(msg, hint string) error {
	return &disdel.Error{Kind: disdel.Invalid, Op: d.op(), Msg: msg, Hint: hint}
}

func (d *description) describe(ctx context.Context) (disdel.Python, []byte, error) {
	python := d.Python
	interpreter, needs, err := d.environment(ctx)
	if err != nil {
		return python, nil, err
	}
	archive, err := d.pack(needs)
	if err != nil {
		return python, nil, err
	}
	code := filepath.Join(d.temp, "code")
	if err := unpack(archive, code); err != nil { // what is described is what actions get
		return python, nil, err
	}
	network, err := d.network(ctx, interpreter, code, needs.File)
	if err != nil {
		return python, nil, err
	}
	python.Code, python.Interpreter, python.Entry = digest(archive), interpreter.path, network.Python.Entry
	network.Python.Code, network.Python.Interpreter = python.Code, interpreter.path
	network.Python.Loss = d.Loss
	python.Network = network
	return python, archive, nil
}

// network is what the program's trial steps tell.
func (d *description) network(ctx context.Context, i interpreter, code, file string) (*disdel.CustomNetwork, error) {
	request := map[string]any{
		"folder": code, "file": file, "entry": d.Python.Entry, "arguments": d.Python.Arguments,
		"input": d.Input, "classes": d.Classes, "batches": d.Batches, "loss": d.Loss, "optimizer": d.Optimizer,
		"threads": max(d.Threads, 1), "timeoutS": d.Timeout.Seconds(), "translate": d.translate(),
	}
	answer, err := d.ask(ctx, i, request)
	if err != nil {
		return nil, err
	}
	var network disdel.CustomNetwork
	if err := json.Unmarshal(answer, &network); err != nil || network.Python == nil {
		return nil, &disdel.Error{Kind: disdel.Internal, Op: d.op(), Msg: "its description cannot be read", Err: err}
	}
	var steps struct {
		Python struct{ Translation programSteps }
	}
	if err := json.Unmarshal(answer, &steps); err != nil {
		return nil, &disdel.Error{Kind: disdel.Internal, Op: d.op(), Msg: "its steps cannot be read", Err: err}
	}
	d.compare(&network, steps.Python.Translation)
	return &network, nil
}
