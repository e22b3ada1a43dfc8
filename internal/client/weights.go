package client

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/service"
)

// initialPath is the field of the job file with the initial weights.
const initialPath = "model.init.weights"

// sendInitialWeights puts the file of weights that a job names beside the models, where its actions find it. The job
// then names the checksum of the file. A relative name is relative to the folder of the job file.
func sendInitialWeights(ctx context.Context, models Models, req *service.Request) error {
	name := req.Job.Model.Init.Weights
	if !strings.HasSuffix(name, ".safetensors") {
		return nil
	}
	if from := req.Source.Name; !filepath.IsAbs(name) && from != "-" {
		name = filepath.Join(filepath.Dir(from), name)
	}
	ref, err := models.PutWeights(ctx, name)
	if disdel.KindOf(err) == disdel.Invalid {
		e := disdel.AsError(err)
		fault := disdel.Fault{Path: initialPath, Msg: e.Msg, Hint: e.Hint}
		if e.Err != nil {
			fault.Msg += fmt.Sprintf(": %v", e.Err)
		}
		if req.Source.Locate != nil {
			fault.Line, fault.Column = req.Source.Locate(fault.Path)
		}
		return &disdel.Faults{File: req.Source.Name, Faults: append(req.Source.Faults, fault)}
	}
	req.Job.Model.Init.Weights = ref
	return err
}

// readTwice reads a file twice: for its checksum, which names it from then on, and for put.
func readTwice(name string, put func(sum string, size int64, r io.Reader) error) (string, error) {
	wrong := func(err error) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read weights", Msg: "read " + name, Err: files.Plain(err), Hint: "check the file's name",
		}
	}
	f, err := os.Open(name)
	if err != nil {
		return "", wrong(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", wrong(err)
	}
	sum, err := modelstore.Checksum(f)
	if err != nil {
		return "", wrong(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", wrong(err)
	}
	return sum, put(sum, info.Size(), io.NopCloser(f))
}
