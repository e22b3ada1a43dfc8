package actions

import (
	"context"
	"strconv"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// asked is what a request asks about: rows that came with it, rows beside the models, or rows of a data set.
func (h *Host) asked(ctx context.Context, store *modelstore.Store, req disdel.InferRequest) (in inputs, err error) {
	if req.Dataset == nil {
		h.shard = shardCache{} // of a question before this one, which this one's estimate knows nothing of
		return readInputs(ctx, store, req)
	}
	d := req.Dataset
	if in.shard, err = h.rows(ctx, shardKey{data: d.Data, rows: d.Rows, part: d.Part}); err != nil {
		return in, err
	}
	in.rows = in.shard.Len()
	sparse := in.shard.Targets() != nil
	if sparse != (req.Network.Sparse != nil) || !sparse && in.shard.SampleLen() != model.Shape(req.Network.Input).Len() {
		return in, &disdel.Error{Kind: disdel.Invalid, Op: "infer", Msg: "the rows do not fit the network's input"}
	}
	return in, nil
}

// answer writes what the model says of a data set's rows beside the models: a batch of answers is in memory at a time.
func answer(ctx context.Context, store *modelstore.Store, e engine.Engine, req disdel.InferRequest, g *model.Graph,
	shard *dataset.Shard,
) (*disdel.AnswersRef, error) {
	d := req.Dataset
	of := modelstore.AnswersHeader{
		Classes: g.Output().Len(), Labels: shard.Labels(), Targets: shard.Targets(),
		Notes: map[string]string{
			"weights": req.Checksum, "dataset": d.Data.Name, "datasetChecksum": d.Data.Checksum, "part": string(d.Part),
			"firstRow": strconv.Itoa(d.Rows.Start),
		},
	}
	if req.Network.Sparse != nil {
		of.Classes = 0
	}
	ref, err := store.WriteAnswers(ctx, d.Answers, of, func(put func([]float32) error) error {
		batch := inferRows(&req, shard.Len())
		b, rows := shard.NewBatch(batch), make([]int32, 0, batch)
		for start := 0; start < shard.Len(); start += batch {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			rows = rows[:0]
			for i := start; i < min(start+batch, shard.Len()); i++ {
				rows = append(rows, int32(i))
			}
			shard.Fill(&b, rows)
			p, err := e.Predict(dataset.Batch{Input: b.Input})
			if err != nil {
				return err
			}
			if err := put(p.Values); err != nil {
				return err
			}
		}
		return nil
	})
	return &ref, err
}
