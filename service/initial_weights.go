package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/tenant"
)

// resolveRequest resolves the job of a request, and returns all its faults, also those of its initial weights and what
// its engine lacks. The name of the weights becomes the name of a version, which does not change its meaning later.
func (p *planner) resolveRequest(ctx context.Context, req Request) (controller.Resolved, error) {
	r, err := p.resolve(ctx, req.Job, req.Source)
	var all *disdel.Faults
	if err != nil && !errors.As(err, &all) {
		return r, err
	}
	faults, failed := p.checkInitial(ctx, &r)
	if failed != nil {
		return r, failed
	}
	lacking, failed := lacks(r, all)
	if failed != nil {
		return r, failed
	}
	if faults = append(faults, lacking...); len(faults) == 0 {
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

// backendPath is the field that chooses an engine.
const backendPath = "training.backend"

// lacks is what the engine of a job cannot do for its network, if that field has no other fault. Whether this program
// and its platform have the backend is found out by the plan.
func lacks(r controller.Resolved, others *disdel.Faults) ([]disdel.Fault, error) {
	engines := backends.Standard(nil)
	if r.Graph == nil {
		return nil, nil
	}
	if _, err := engines.Find(r.Job.Training.Backend, r.Graph); err != nil {
		return nil, nil
	}
	by, err := estimator.New(engines, estimator.MethodPlanned, 0, nil)
	if err != nil {
		return nil, err
	}
	refused := scheduler.CheckNetwork(scheduler.PlanInput{Job: r.Job, Graph: r.Graph, Data: r.Data, Estimator: by})
	if disdel.KindOf(refused) != disdel.Invalid {
		return nil, refused
	}
	e := disdel.AsError(refused)
	fault := disdel.Fault{
		Path: cmp.Or(e.Path, backendPath), Msg: strings.TrimPrefix(e.Msg, e.Path+": "), Hint: e.Hint,
	}
	if others != nil && slices.ContainsFunc(others.Faults, func(f disdel.Fault) bool { return f.Path == fault.Path }) {
		return nil, nil
	}
	return []disdel.Fault{fault}, nil
}

// checkInitial finds the initial weights of a job, and compares them with its network if that could be built.
func (p *planner) checkInitial(ctx context.Context, r *controller.Resolved) ([]disdel.Fault, error) {
	init := &r.Job.Model.Init
	if init.Weights == "" {
		return nil, nil
	}
	w, err := p.initialWeights(ctx, init.Weights)
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
	init.Weights = w.Ref
	r.Network.Init = *init
	return controller.CheckInitial(r.Graph, *init, w.Arrays), nil
}

// initialWeights finds weights by their name. It reads no files: the client puts them beside the models first.
func (s *Service) initialWeights(ctx context.Context, name string) (g modelstore.InitialWeights, err error) {
	if strings.HasSuffix(name, ".safetensors") {
		return g, &disdel.Error{
			Kind: disdel.Invalid, Op: "find weights", Msg: "files of weights are not read here",
			Hint: "PUT /api/v1/weights/sha256:... sends one, and the job then names its checksum",
		}
	}
	at, plain, err := s.reader(ctx, tenant.ItemModel, name)
	if err != nil {
		return g, err
	}
	if at != s && strings.HasPrefix(plain, "sha256:") { // files of weights are not shared
		return g, s.notShared(tenant.ItemModel, name)
	}
	models, err := at.Models(ctx)
	if err != nil {
		return g, err
	}
	if g, err = models.FindWeights(ctx, plain); at != s {
		g.Ref = at.owner() + "/" + g.Ref
	}
	if disdel.KindOf(err) == disdel.NotFound && strings.HasPrefix(name, "sha256:") {
		return g, &disdel.Error{
			Kind: disdel.NotFound, Op: "find weights", Msg: "there are no weights " + name, Err: err,
			Hint: "send the file once more: PUT /api/v1/weights/sha256:...",
		}
	}
	return g, s.unknownModel(ctx, at, name, err)
}

// copyInitial copies the initial weights of a job to the checkpoint from which its first round starts, so that the job
// does not depend on the model or file any more. It returns nil for a job without initial weights.
func (p *planner) copyInitial(ctx context.Context, r controller.Resolved) (*disdel.Checkpoint, error) {
	init := r.Job.Model.Init
	if init.Weights == "" {
		return nil, nil
	}
	w, err := p.initialWeights(ctx, init.Weights)
	if err != nil {
		return nil, err
	}
	if faults := controller.CheckInitial(r.Graph, init, w.Arrays); len(faults) > 0 {
		return nil, &disdel.Faults{Faults: faults}
	}
	taken := map[string]bool{} // CheckInitial lets weights have a last layer of their own that the network replaces
	for _, param := range r.Graph.Params() {
		taken[param.Name] = !init.Excepts(param.Name)
	}
	c, err := p.parts.Models.CopyToCheckpoint(ctx, w, controller.CheckpointFolder(p.id), func(array string) bool {
		return taken[array]
	})
	return &c, err
}

// initialCheckpoint is copyInitial for a job that another process may have acknowledged and begun before.
func (p *planner) initialCheckpoint(ctx context.Context, r controller.Resolved) (*disdel.Checkpoint, error) {
	if r.Job.Model.Init.Weights == "" {
		return nil, nil
	}
	c, _, err := p.parts.Models.NewestCheckpoint(ctx, controller.CheckpointFolder(p.id))
	if disdel.KindOf(err) == disdel.NotFound {
		return p.copyInitial(ctx, r)
	}
	return &c, err
}

// discardInitial removes the checkpoint of copyInitial, for a job that was refused.
func (p *planner) discardInitial(ctx context.Context) {
	if err := p.parts.Models.Discard(context.WithoutCancel(ctx), controller.CheckpointFolder(p.id)); err != nil {
		p.log.WithError(err).Warn("the weights of a job that was refused stay")
	}
}
