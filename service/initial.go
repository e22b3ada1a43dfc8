package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/internal/modelstore"
)

// submitted is a job of a request, resolved, with everything that is wrong with it, the weights that it begins with
// included. Their name becomes that of a version, which means the same whenever the job is looked at.
func (p *preparation) submitted(ctx context.Context, req Request) (controller.Resolved, error) {
	r, err := p.resolve(ctx, req.Job, req.Source)
	var all *disdel.Faults
	if req.Job.Model.Init.Weights == "" || err != nil && !errors.As(err, &all) {
		return r, err
	}
	faults, failed := p.initial(ctx, &r)
	if failed != nil {
		return r, failed
	}
	if len(faults) == 0 {
		return r, err
	}
	for i := range faults {
		if locate := req.Source.Locate; locate != nil {
			faults[i].Line, faults[i].Column = locate(faults[i].Path)
		}
	}
	if all != nil {
		faults = append(slices.Clone(all.Faults), faults...)
	}
	slices.SortStableFunc(faults, func(a, b disdel.Fault) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	return r, &disdel.Faults{File: req.Source.Name, Faults: faults}
}

// initial finds the weights that a job begins with and holds them against its network, where that could be built.
func (p *preparation) initial(ctx context.Context, r *controller.Resolved) ([]disdel.Fault, error) {
	init := &r.Job.Model.Init
	given, err := p.given(ctx, init.Weights)
	switch disdel.KindOf(err) {
	case disdel.UnknownKind:
	case disdel.NotFound, disdel.Invalid, disdel.Corrupt:
		e := disdel.AsError(err)
		return []disdel.Fault{{Path: controller.InitialPath, Msg: cmp.Or(e.Msg, e.Error()), Hint: e.Hint}}, nil
	default:
		return nil, err
	}
	if r.Graph == nil {
		return nil, nil
	}
	init.Weights = given.Ref
	r.Network.Init = *init
	return controller.CheckInitial(r.Graph, *init, given.Arrays), nil
}

// given is the weights of a name. Files are not read here: whoever has them puts them beside the models first.
func (s *Service) given(ctx context.Context, name string) (g modelstore.InitialWeights, err error) {
	if strings.HasSuffix(name, ".safetensors") {
		return g, &disdel.Error{
			Kind: disdel.Invalid, Op: "find weights", Msg: "files of weights are not read here",
			Hint: "PUT /api/v1/weights/sha256:... sends one, and the job then names its checksum",
		}
	}
	models, err := s.Models(ctx)
	if err != nil {
		return g, err
	}
	if g, err = models.FindWeights(ctx, name); disdel.KindOf(err) == disdel.NotFound && strings.HasPrefix(name, "sha256:") {
		err = &disdel.Error{
			Kind: disdel.NotFound, Op: "find weights", Msg: "there are no weights " + name, Err: err,
			Hint: "send the file once more: PUT /api/v1/weights/sha256:...",
		}
	}
	return g, err
}

// beginsWith gives a job that names weights a copy of its own of what it takes of them, as the checkpoint that its
// first round starts from: what becomes of a model or a file afterwards is nothing to it. nil: it names none.
func (p *preparation) beginsWith(ctx context.Context, r controller.Resolved) (*disdel.Checkpoint, error) {
	init := r.Job.Model.Init
	if init.Weights == "" {
		return nil, nil
	}
	given, err := p.given(ctx, init.Weights)
	if err != nil {
		return nil, err
	}
	if faults := controller.CheckInitial(r.Graph, init, given.Arrays); len(faults) > 0 {
		return nil, &disdel.Faults{Faults: faults}
	}
	c, err := p.parts.Models.CopyToCheckpoint(ctx, given, controller.CheckpointFolder(p.id), func(array string) bool {
		return !init.Excepts(array)
	})
	return &c, err
}

// beginning is beginsWith of a job that may have been accepted before, by a process that is no more.
func (p *preparation) beginning(ctx context.Context, r controller.Resolved) (*disdel.Checkpoint, error) {
	if r.Job.Model.Init.Weights == "" {
		return nil, nil
	}
	c, _, err := p.parts.Models.NewestCheckpoint(ctx, controller.CheckpointFolder(p.id))
	if disdel.KindOf(err) == disdel.NotFound {
		return p.beginsWith(ctx, r)
	}
	return &c, err
}

// noBeginning takes away what beginsWith made, of a job that was not accepted.
func (p *preparation) noBeginning(ctx context.Context) {
	if err := p.parts.Models.Discard(context.WithoutCancel(ctx), controller.CheckpointFolder(p.id)); err != nil {
		p.log.WithError(err).Warn("the weights of a job that was refused stay")
	}
}
