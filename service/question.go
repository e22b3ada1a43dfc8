package service

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
)

// question is a request to a model, and the action that answers it. Several parts of it may be asked at once.
type question struct {
	executor *executor.Executor
	pkg      string
	request  disdel.InferRequest
	platform disdel.PlatformLimits
	atOnce   int
	shelf    *modelstore.Store // where rows are put that are too many for a request; nil: they go with it
	folder   string

	mu   sync.Mutex
	plan disdel.ActionPlan // guarded by mu: what the next invocation runs, with the highest limits that one needed
}

// asking is what the estimate of an action goes by that answers for so many rows which come to it.
func asking(t *Trained, rows int) estimator.Input {
	return estimator.Input{Graph: t.Graph, BatchSize: min(inferBatch, rows), Rows: rows, SampleBytes: rowBytes(t)}
}

// inferBatch is how many rows an infer action computes at once.
const inferBatch = 64

// question makes an action that answers for what the estimate goes by; end takes it away.
func (s *Service) question(ctx context.Context, t *Trained, in estimator.Input) (q *question, end func(), err error) {
	finished := s.tally.inferring(s.whose())
	defer func() {
		if err != nil {
			finished()
		}
	}()
	w, err := s.openWhisk(ctx)
	if err != nil {
		return nil, nil, err
	}
	if q, err = s.planned(ctx, w.executor, t, in); err != nil {
		return nil, nil, err
	}
	q.pkg = scheduler.Package(newJobID())
	q.plan.Name = disdel.ActionName(q.pkg + "/infer")
	if err := q.executor.Prepare(ctx, q.pkg, []disdel.ActionPlan{q.plan}); err != nil {
		return nil, nil, err
	}
	return q, func() {
		q.executor.Remove(context.WithoutCancel(ctx), q.pkg) //nolint:errcheck // the answer is there
		finished()
	}, nil
}

// planned is a question with its action's limits.
func (s *Service) planned(
	ctx context.Context, e *executor.Executor, t *Trained, in estimator.Input,
) (*question, error) {
	limits, err := e.Limits(ctx)
	if err != nil {
		return nil, err
	}
	estimate := estimator.Planned(backends.Standard(nil)).Evaluate(in)
	memory := max(limits.MinMemory, disdel.Bytes(estimate.Total.MB())*disdel.MB)
	if memory > limits.MaxMemory {
		return nil, &disdel.Error{
			Kind: disdel.OverLimit, Op: "infer",
			Msg: fmt.Sprintf("an infer action needs %v, and the platform allows %v", estimate.Total, limits.MaxMemory),
		}
	}
	q := &question{executor: e, platform: limits, atOnce: inferAtOnce}
	q.plan = disdel.ActionPlan{
		Task: disdel.TaskInfer, Estimate: estimate, Limits: disdel.Limits{Memory: memory, Timeout: limits.MaxTimeout},
	}
	if limits.Pool > 0 {
		q.atOnce = max(1, min(q.atOnce, int(limits.Pool/memory)))
	}
	q.request = disdel.InferRequest{
		Models: s.storage("models"), WeightsKey: t.Path, Checksum: t.Checksum, Network: t.Network, Estimate: estimate.Total,
	}
	return q, nil
}

// run runs one action for part n of a question, as often as scheduler.Decide tries it again, and adds its activations
// to those of an inference. request is told which attempt it is for.
func (q *question) run(ctx context.Context, n int, request func(attempt int) disdel.InferRequest, out *Inference) (
	res disdel.InferResult, err error,
) {
	var failed scheduler.Attempts
	for attempt := 1; ; attempt++ {
		plan := q.next()
		asked := request(attempt)
		asked.Memory = plan.Limits.Memory
		a, err := q.invoke(ctx, n, attempt, plan, asked)
		if err != nil {
			return res, err
		}
		out.Actions = append(out.Actions, a)
		if a.Outcome == disdel.OutcomeSuccess {
			if err := json.Unmarshal(a.Result, &res); err != nil {
				return res, &disdel.Error{Kind: disdel.Internal, Op: "infer", Err: err}
			}
			return res, nil
		}
		r := scheduler.FindRemedy(scheduler.RemedyInput{
			Activation: a, Plan: disdel.Plan{Platform: q.platform}, Attempts: failed,
		})
		if !r.Retry || r.BatchSize > 0 || r.Workers > 0 {
			return res, notAgain(a, r)
		}
		if err := q.raise(ctx, plan, r.Limits); err != nil {
			return res, err
		}
		count(&failed, a)
		select {
		case <-time.After(r.After):
		case <-ctx.Done():
			return res, &disdel.Error{Kind: disdel.Canceled, Op: "infer", Err: context.Cause(ctx)}
		}
	}
}

// count enters a failure that is tried again, as the controller does for a worker of a job.
func count(n *scheduler.Attempts, a disdel.Activation) {
	if scheduler.PlatformFault(a) {
		n.Platform++
	} else {
		n.Job, n.Worker = n.Job+1, n.Worker+1
	}
	if scheduler.CrashedItself(a) {
		n.Crashes++
	}
}

// notAgain is the failure of an activation, and why it was the last.
func notAgain(a disdel.Activation, r scheduler.Remedy) error {
	failure := disdel.Error{Kind: disdel.Internal, Op: "infer", Msg: a.Outcome.String()}
	if a.Failure != nil {
		failure = *a.Failure
	}
	if r.Why != "" && failure.Kind != disdel.Canceled {
		failure.NotRetried = r.Why
		failure.Msg += "; " + disdel.NotTriedAgain + r.Why
	}
	return &failure
}

// next is the action that is to be invoked next.
func (q *question) next() disdel.ActionPlan {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.plan
}

// raise has further invocations have limits that one needed, by an action of its own: that of the others is at work.
func (q *question) raise(ctx context.Context, from disdel.ActionPlan, to disdel.Limits) error {
	if to == from.Limits {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	plan := q.plan
	plan.Limits.Memory = max(plan.Limits.Memory, to.Memory)
	plan.Limits.Timeout = max(plan.Limits.Timeout, to.Timeout)
	if plan.Limits == q.plan.Limits { // another one needed the same
		return nil
	}
	plan.Name = disdel.ActionName(fmt.Sprintf("%s/infer-%d-%d", q.pkg, plan.Limits.Memory.MB(),
		time.Duration(plan.Limits.Timeout).Milliseconds()))
	if err := q.executor.Prepare(ctx, q.pkg, []disdel.ActionPlan{plan}); err != nil {
		return err
	}
	q.plan = plan
	return nil
}

// invoke runs an action once.
func (q *question) invoke(ctx context.Context, n, attempt int, plan disdel.ActionPlan, request disdel.InferRequest) (
	a disdel.Activation, err error,
) {
	params, err := json.Marshal(request)
	if err != nil {
		return a, &disdel.Error{Kind: disdel.Invalid, Op: "infer", Msg: "an input is no number", Err: err}
	}
	inv := disdel.Invocation{
		ID: fmt.Sprintf("infer/%d/attempt %d", n, attempt), Task: disdel.TaskInfer, Action: plan.Name, Member: n,
		Attempt: attempt, Limits: plan.Limits, Estimate: plan.Estimate.Total, Likely: plan.Estimate.Likely,
		Params: params,
	}
	id, err := q.executor.Invoke(ctx, inv)
	if err != nil {
		return a, err
	}
	return q.executor.Wait(ctx, inv, id)
}
