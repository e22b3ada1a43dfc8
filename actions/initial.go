package actions

import (
	"context"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/runtime/engine"
)

// first sets the weights of the first round: random ones, and the given ones in their place.
func (t *trainer) first(ctx context.Context) error {
	init := t.req.Network.Init
	if err := t.engine.Init(init); err != nil || init.Weights == "" || t.req.Probe {
		return err
	}
	if t.req.ReferenceCheckpoint == "" {
		return &disdel.Error{
			Kind: disdel.Internal, Op: "begin", Job: t.req.Job, Msg: "the request does not say where " + init.Weights + " is",
		}
	}
	models, err := modelstore.Open(ctx, t.req.Models)
	if err != nil {
		return err
	}
	defer models.Close()
	arrays := map[string]engine.Array{}
	for _, a := range engine.Of(t.engine.State(), engine.Weight, engine.Statistic) {
		arrays[a.Name] = a
	}
	set := func(v disdel.Tensor) error { return arrays[v.Name].Set(v) }
	return models.ReadCheckpointTo(ctx, t.req.ReferenceCheckpoint,
		func(string) (func(disdel.Tensor) error, error) { return set, nil })
}
