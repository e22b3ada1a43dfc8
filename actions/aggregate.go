package actions

import (
	"context"
	"runtime/debug"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
)

// aggregate reduces a cluster's updates to their weighted mean. The top one publishes it as the next round's reference
// and, in the last round, writes the final weights; every other pushes it as an update of its own level.
func (h *Host) aggregate(ctx context.Context, c *call, req disdel.AggregateRequest) (res disdel.AggregateResult, err error) {
	bound(req.Memory, req.Estimate, 0)
	use(1)
	store, err := aggregator.Open(ctx, req.Store)
	if err != nil {
		return res, err
	}
	defer store.Close()
	g, err := model.Build(req.Network)
	if err != nil {
		return res, err
	}
	var mean disdel.Update
	err = c.phase("compute", func() (err error) {
		mean, err = store.Reduce(ctx, req.Members, shapes(g))
		return err
	})
	if err != nil {
		return res, err
	}
	if err := c.phase("push", func() error { return deliver(ctx, store, req, mean) }); err != nil {
		return res, err
	}
	res.Weight = mean.Samples
	if req.Models != "" {
		err = c.phase("save", func() (err error) {
			res.Checksum, res.Size, err = save(ctx, req, mean.Weights)
			return err
		})
	}
	res.Usage = c.usage()
	return res, err
}

// shapes is what an update of this network must look like.
func shapes(g *model.Graph) disdel.Weights {
	params := g.Params()
	out := make(disdel.Weights, len(params))
	for i, p := range params {
		out[i] = disdel.Tensor{Name: p.Name, Shape: p.Shape}
	}
	return out
}

func deliver(ctx context.Context, store *aggregator.Store, req disdel.AggregateRequest, mean disdel.Update) error {
	if req.Top {
		if err := store.PutReference(ctx, req.Job, req.Round+1, mean.Weights); err != nil || req.Round == 0 {
			return err
		}
		return store.DropRound(ctx, req.Job, req.Round-1) // nothing reads the round before this one any more
	}
	mean.ID = disdel.UpdateID{Job: req.Job, Round: req.Round, Level: req.Level, Member: req.Cluster}
	mean.Attempt = req.Attempt
	return store.PushUpdate(ctx, mean)
}

func save(ctx context.Context, req disdel.AggregateRequest, w disdel.Weights) (string, disdel.Bytes, error) {
	store, err := modelstore.Open(ctx, req.Models)
	if err != nil {
		return "", 0, err
	}
	defer store.Close()
	debug.FreeOSMemory() // the kernel counts the file that is written, too
	return store.WriteWeights(ctx, req.Path, w, map[string]string{"format": "pt", "job": string(req.Job), "network": req.Network.Name})
}
