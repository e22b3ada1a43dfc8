package actions

import (
	"cmp"
	"context"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine"
)

// infer returns the class and the probabilities of every input under a stored model. Of a network of numbers the
// probabilities are its outputs, which are standardised.
func (h *Host) infer(ctx context.Context, c *call, req disdel.InferRequest) (res disdel.InferResult, err error) {
	h.limitHeap(req.Memory, req.Estimate, 0)
	g, err := model.Build(req.Network)
	if err != nil {
		return res, err
	}
	store, err := modelstore.Open(ctx, req.Models)
	if err != nil {
		return res, err
	}
	defer store.Close()
	var e engine.Engine
	var in inputs
	answers := func(_ context.Context, b dataset.Batch) (dataset.Matrix, error) { return e.Predict(b) }
	err = c.phase("load", func() (err error) {
		if in, err = h.asked(ctx, store, req); err != nil {
			return err
		}
		code, err := h.code.folder(ctx, cmp.Or(req.WeightsURL, req.Models), req.Network)
		if err != nil {
			return err
		}
		spec := engine.Spec{
			Graph: g, Code: code, Context: ctx, BatchSize: inferRows(&req, in.rows), Memory: req.Memory,
			Continues: req.Texts != nil,
		}
		if req.ByLayers > 0 {
			l, err := h.answersByLayers(c, req, spec)
			answers = l.predict
			return err
		}
		if e, err = h.built.get(req.Backend, req.Network, spec); err != nil {
			return err
		}
		c.computes(e)
		h.limitHeap(req.Memory, req.Estimate, slab(e))
		return loadModel(ctx, e, store, req)
	})
	if err != nil {
		return res, err
	}
	err = c.phase("compute", func() (err error) {
		switch {
		case in.shard != nil:
			res.Answers, err = answer(ctx, store, answers, req, g, in.shard)
		case req.Texts != nil:
			res, err = continueTexts(ctx, e, g, req)
		case req.Sparse != nil:
			res, err = answerSparse(e, req)
		default:
			res, err = predict(ctx, answers, in, inferRows(&req, in.rows))
		}
		return err
	})
	res.Usage = c.usage()
	return res, err
}

// predictor returns a network's outputs for the rows of a batch.
type predictor func(context.Context, dataset.Batch) (dataset.Matrix, error)

// answersByLayers makes what predicts with a model that is read slice by slice.
func (h *Host) answersByLayers(c *call, req disdel.InferRequest, spec engine.Spec) (*layered, error) {
	var like disdel.Weights
	for _, p := range spec.Graph.Params() {
		like = append(like, disdel.Tensor{Name: p.Name, Shape: p.Shape})
	}
	return h.byLayers(c, req.Backend, spec, req.Estimate, func(ctx context.Context, e engine.Engine) error {
		store, err := modelstore.Open(ctx, cmp.Or(req.WeightsURL, req.Models))
		if err != nil {
			return err
		}
		defer store.Close()
		return store.ReadWeightValues(ctx, req.WeightsKey, req.Checksum, like, newBlockSetter(e, like).take)
	})
}

// predict returns the outputs for the rows of a batch. The caller owns them.
func (l *layered) predict(ctx context.Context, b dataset.Batch) (m dataset.Matrix, err error) {
	err = l.each(ctx, b, func(s engine.Passes, p engine.Pass) error {
		out, err := s.Predict(p)
		m.Values = append(m.Values, out...)
		return err
	})
	m.Rows = b.Input.Rows
	m.Columns = len(m.Values) / max(1, m.Rows)
	return m, err
}

// inferBatch bounds the memory of an infer action, for any number of inputs.
const inferBatch = 64

func loadModel(ctx context.Context, e engine.Engine, store *modelstore.Store, req disdel.InferRequest) error {
	if req.WeightsURL != "" && req.WeightsURL != req.Models {
		shared, err := modelstore.Open(ctx, req.WeightsURL)
		if err != nil {
			return err
		}
		defer shared.Close()
		store = shared
	}
	w, err := store.ReadWeights(ctx, req.WeightsKey, req.Checksum)
	if err != nil {
		return err
	}
	defer debug.FreeOSMemory() // what they came in
	return engine.SetWeights(e, w)
}

// inputs are the rows of an inference.
type inputs struct {
	rows, sample int
	values       func(to []float32, start, end int) []float32 // appends those of some rows
	shard        *dataset.Shard                               // instead of values, of a data set
}

// readInputs returns the rows of a request, or reads those that it refers to.
func readInputs(ctx context.Context, store *modelstore.Store, req disdel.InferRequest) (in inputs, err error) {
	sample := model.Shape(req.Network.Input).Len()
	if req.Rows != nil {
		rows, err := store.ReadRows(ctx, req.Rows.Key, req.Rows.Checksum, sample)
		return inputs{rows: rows.Len(), sample: sample, values: rows.Append}, err
	}
	for _, r := range req.Inputs {
		if len(r) != sample {
			return in, &disdel.Error{Kind: disdel.Invalid, Op: "infer", Msg: "an input does not fit the network's input"}
		}
	}
	return inputs{rows: len(req.Inputs), sample: sample, values: func(to []float32, start, end int) []float32 {
		return append(to, slices.Concat(req.Inputs[start:end]...)...)
	}}, nil
}

func predict(ctx context.Context, answers predictor, in inputs, batch int) (res disdel.InferResult, err error) {
	x := make([]float32, 0, min(in.rows, batch)*in.sample)
	for start := 0; start < in.rows; start += batch {
		end := min(start+batch, in.rows)
		p, err := answers(ctx, dataset.Dense(end-start, in.values(x[:0], start, end), nil))
		if err != nil {
			return res, err
		}
		addPredictions(&res, p)
	}
	return res, nil
}

// addPredictions appends the rows of p, probabilities by class, with the class of the largest.
func addPredictions(res *disdel.InferResult, p dataset.Matrix) {
	for i := range p.Rows {
		row := p.Row(i)
		res.Classes = append(res.Classes, disdel.Largest(row))
		res.Probabilities = append(res.Probabilities, row)
	}
}

// asked reads the rows of a request: rows in the request, rows stored beside the models, or rows of a data set.
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
	sparse := in.shard.Sparse()
	if sparse != (req.Network.Sparse != nil) || !sparse && in.shard.SampleLen() != model.Shape(req.Network.Input).Len() {
		return in, &disdel.Error{Kind: disdel.Invalid, Op: "infer", Msg: "the rows do not fit the network's input"}
	}
	return in, nil
}

// answer writes the model's answers for the rows of a data set beside the models, one batch at a time.
func answer(ctx context.Context, store *modelstore.Store, answers predictor, req disdel.InferRequest, g *model.Graph,
	shard *dataset.Shard,
) (*disdel.AnswersRef, error) {
	d := req.Dataset
	header := modelstore.AnswersHeader{
		Classes: g.Output().Len(), Labels: shard.Labels(), Targets: shard.Targets(),
		Notes: map[string]string{
			"weights": req.Checksum, "dataset": d.Data.Name, "datasetChecksum": d.Data.Checksum, "part": string(d.Part),
			"firstRow": strconv.Itoa(d.Rows.Start),
		},
	}
	if req.Network.Sparse != nil || len(req.Network.Targets) > 0 {
		header.Classes, header.Numbers = 0, max(1, len(req.Network.Targets))
	}
	ref, err := store.WriteAnswers(ctx, d.Answers, header, func(put func([]float32) error) error {
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
			p, err := answers(ctx, dataset.Batch{Input: b.Input})
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
