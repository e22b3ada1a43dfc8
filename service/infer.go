package service

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// Trained is a trained model that can be asked.
type Trained struct {
	modelstore.Model
	Graph *model.Graph

	// Better is an older version of the model, asked for by its name alone, that is better by much; nil: there is none.
	Better *modelstore.Model
}

// Inference is what a model said of rows.
type Inference struct {
	Classes       []int               // of each row, the most probable one
	Probabilities [][]float32         // [rows classes]
	Actions       []disdel.Activation // that worked it out

	Predictions     []float32            // of each row, of a model of sparse rows
	Recommendations []disdel.Recommended // of each user who was asked for
}

// muchBetter is how much accuracy is worth a word.
const muchBetter = 0.02

// Trained finds a trained model: NAME for its newest version, NAME:vN for one. It returns NotFound, Corrupt.
func (s *Service) Trained(ctx context.Context, ref string) (*Trained, error) {
	models, err := s.Models(ctx)
	if err != nil {
		return nil, err
	}
	m, err := models.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	g, err := model.Build(m.Network) // before anything is computed with what a file says
	if err != nil {
		return nil, err
	}
	t := &Trained{Model: m, Graph: g}
	if ref != m.Name {
		return t, nil
	}
	list, _ := models.Versions(ctx, m.Name) // what cannot be read is not compared
	if best, ok := modelstore.Best(list); ok && m.Data.HeldOut > 0 && best.Accuracy-m.Accuracy >= muchBetter {
		t.Better = &best
	}
	return t, nil
}

// Read reads rows for the model from JSON or .npy, see ReadInputs.
func (t *Trained) Read(name string, data []byte) (Inputs, error) {
	return ReadInputs(name, data, t.Graph.Input())
}

// Doubt says that rows are far from what the model has seen, "" if they are not or nothing is known.
func (t *Trained) Doubt(rows [][]float32) string { return outOfRange(rows, t.Inputs) }

// maxParameters keeps an invocation's JSON below OpenWhisk's 1 MB, with room for the other fields.
const maxParameters = 900 << 10

// bytesPerValue is the most that a float32 takes in JSON with its comma.
const bytesPerValue = 16

// Infer classifies rows, each of the length of the model's input, with values scaled as in training: it runs infer
// actions, as many rows each as the platform takes. It returns OverLimit for a model that no action of the platform can
// hold, and the failure of an action; what was worked out by then is returned with it.
func (s *Service) Infer(ctx context.Context, t *Trained, rows [][]float32) (Inference, error) {
	step := max(1, maxParameters/bytesPerValue/t.Graph.Input().Len())
	var parts []asking
	for start := 0; start < len(rows); start += step {
		some := rows[start:min(start+step, len(rows))]
		parts = append(parts, func(req *disdel.InferRequest) { req.Inputs = some })
	}
	return s.answers(ctx, t, len(rows), parts)
}

// asking sets what one action is asked.
type asking func(req *disdel.InferRequest)

// answers asks a model part by part, an action each.
func (s *Service) answers(ctx context.Context, t *Trained, rows int, parts []asking) (out Inference, err error) {
	defer s.tally.inferring(s.whose())()
	w, err := s.openWhisk(ctx)
	if err != nil {
		return out, err
	}
	q, err := s.question(ctx, w.executor, t, rows)
	if err != nil {
		return out, err
	}
	pkg := scheduler.Package(newJobID())
	q.plan.Name = disdel.ActionName(pkg + "/infer")
	if err := w.executor.Prepare(ctx, pkg, []disdel.ActionPlan{q.plan}); err != nil {
		return out, err
	}
	defer w.executor.Remove(context.WithoutCancel(ctx), pkg) //nolint:errcheck // the answer is there
	for n, set := range parts {
		set(&q.InferRequest)
		if err := q.ask(ctx, w.executor, n, &out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// question is a request to a model, and the action that answers it.
type question struct {
	disdel.InferRequest
	plan disdel.ActionPlan
}

// question plans an action that answers for so many rows.
func (s *Service) question(ctx context.Context, e *executor.Executor, t *Trained, rows int) (q question, err error) {
	limits, err := e.Limits(ctx)
	if err != nil {
		return q, err
	}
	estimate := estimator.Planned(backends.Standard(nil)).Evaluate(estimator.Input{
		Graph: t.Graph, BatchSize: min(64, rows), Rows: rows, SampleBytes: rowBytes(t),
	})
	memory := max(limits.MinMemory, disdel.Bytes(estimate.Total.MB())*disdel.MB)
	if memory > limits.MaxMemory {
		return q, &disdel.Error{
			Kind: disdel.OverLimit, Op: "infer",
			Msg: fmt.Sprintf("an infer action needs %v, and the platform allows %v", estimate.Total, limits.MaxMemory),
		}
	}
	q.plan = disdel.ActionPlan{
		Task: disdel.TaskInfer, Estimate: estimate, Limits: disdel.Limits{Memory: memory, Timeout: limits.MaxTimeout},
	}
	q.InferRequest = disdel.InferRequest{
		Models: s.storage("models"), WeightsKey: t.Path, Checksum: t.Checksum, Network: t.Network, Memory: memory,
		Estimate: estimate.Total,
	}
	return q, nil
}

// ask runs one action.
func (q *question) ask(ctx context.Context, e *executor.Executor, n int, out *Inference) error {
	params, err := json.Marshal(q.InferRequest)
	if err != nil {
		return &disdel.Error{Kind: disdel.Invalid, Op: "infer", Msg: "an input is no number", Err: err}
	}
	inv := disdel.Invocation{
		ID: fmt.Sprintf("infer/%d", n), Task: disdel.TaskInfer, Action: q.plan.Name, Member: n, Attempt: 1,
		Limits:   q.plan.Limits,
		Estimate: q.plan.Estimate.Total, Params: params,
	}
	id, err := e.Invoke(ctx, inv)
	if err != nil {
		return err
	}
	a, err := e.Wait(ctx, inv, id)
	if err != nil {
		return err
	}
	out.Actions = append(out.Actions, a)
	if a.Outcome != disdel.OutcomeSuccess {
		return a.Failure
	}
	var res disdel.InferResult
	if err := json.Unmarshal(a.Result, &res); err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "infer", Err: err}
	}
	out.Classes = append(out.Classes, res.Classes...)
	out.Probabilities = append(out.Probabilities, res.Probabilities...)
	out.Predictions = append(out.Predictions, res.Predictions...)
	out.Recommendations = append(out.Recommendations, res.Recommendations...)
	return nil
}
