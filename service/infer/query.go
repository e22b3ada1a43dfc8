package infer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/estimator"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/runtime/engine/backends"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/queue"
)

// query is a request to a model, and the action that answers it. Several invocations answer parts of it at once.
type query struct {
	executor *executor.Executor
	pkg      string
	request  disdel.InferRequest
	platform disdel.PlatformLimits
	atOnce   int
	shelf    *modelstore.Store // keeps the rows if there are too many for a request; nil: the requests have them
	folder   string

	mu   sync.Mutex
	plan disdel.ActionPlan // guarded by mu: of the next invocation, with the highest limits that one needed
}

// estimateInput is the input of the estimate for an action that gets so many rows with its request.
func estimateInput(t *Model, rows int) estimator.Input {
	return estimator.Input{Graph: t.Graph, BatchSize: min(inferBatch, rows), Rows: rows, SampleBytes: rowBytes(t)}
}

// inferBatch is the batch size of an infer action.
const inferBatch = 64

// classifies returns Invalid for a language model.
func (t *Model) classifies() error {
	if !t.Graph.PredictsTokens() {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "infer " + t.Ref(), Msg: "it is a language model, which gives rows no class",
		Hint: "disdel infer continues texts, and disdel model show prints the perplexity",
	}
}

// newQuery makes the action of a query; end removes it.
func (s *Predictor) newQuery(ctx context.Context, t *Model, in estimator.Input) (q *query, end func(), err error) {
	finished := s.cfg.Count()
	defer func() {
		if err != nil {
			finished()
		}
	}()
	e, err := s.cfg.Executor(ctx)
	if err != nil {
		return nil, nil, err
	}
	if q, err = s.planned(ctx, e, t, in); err != nil {
		return nil, nil, err
	}
	q.pkg = scheduler.Package(disdel.JobID("job-" + strings.ToLower(ulid.Make().String())))
	q.plan.Name = disdel.ActionName(q.pkg + "/infer")
	if err := q.executor.Prepare(ctx, q.pkg, []disdel.ActionPlan{q.plan}); err != nil {
		return nil, nil, err
	}
	return q, func() {
		q.executor.Remove(context.WithoutCancel(ctx), q.pkg) //nolint:errcheck // the answer is there
		finished()
	}, nil
}

// planned returns a query with the limits of its action.
func (s *Predictor) planned(
	ctx context.Context, e *executor.Executor, t *Model, in estimator.Input,
) (*query, error) {
	limits, err := e.Limits(ctx)
	if err != nil {
		return nil, err
	}
	estimate := estimator.Planned(backends.Standard(nil)).Evaluate(in)
	memory, layered := max(limits.MinMemory, disdel.Bytes(estimate.Total.MB())*disdel.MB), 0
	if memory > limits.MaxMemory {
		estimate, layered = byLayers(in, estimate, limits.MaxMemory)
		memory = max(limits.MinMemory, disdel.Bytes(estimate.Total.MB())*disdel.MB)
	}
	if memory > limits.MaxMemory {
		return nil, &disdel.Error{
			Kind: disdel.OverLimit, Op: "infer",
			Msg: fmt.Sprintf("an infer action needs %v, and the platform allows %v", estimate.Total, limits.MaxMemory),
		}
	}
	q := &query{executor: e, platform: limits, atOnce: inferAtOnce}
	q.plan = disdel.ActionPlan{
		Task: disdel.TaskInfer, Estimate: estimate, Limits: disdel.Limits{Memory: memory, Timeout: limits.MaxTimeout},
	}
	if limits.Pool > 0 {
		q.atOnce = max(1, min(q.atOnce, int(limits.Pool/memory)))
	}
	q.request = disdel.InferRequest{
		Models: s.cfg.ModelsURL, WeightsURL: t.from.URL, WeightsKey: t.Path, Checksum: t.Checksum, Network: t.Network,
		Estimate: estimate.Total, ByLayers: layered,
	}
	return q, nil
}

// byLayers estimates an action that computes one slice of the network after the other, with as many rows as fit a
// limit. rows is 0, and the estimate is whole, for a network that is one piece or continues texts.
func byLayers(in estimator.Input, whole disdel.Estimate, limit disdel.Bytes) (e disdel.Estimate, rows int) {
	if in.Continues || in.Graph.Sparse() != nil {
		return whole, 0
	}
	for rows = max(1, min(in.BatchSize, in.Rows)); ; rows /= 2 {
		in.BatchSize = rows
		e, err := estimator.Planned(backends.Standard(nil)).EvaluateByLayers(in)
		if err != nil {
			return whole, 0
		}
		if e.Total <= limit || rows == 1 {
			return e, rows
		}
	}
}

// run invokes the action for part n of a query, as often as scheduler.FindRemedy retries it, and adds the activations
// to those of out. request makes the request of an attempt.
func (q *query) run(ctx context.Context, n int, request func(attempt int) disdel.InferRequest, out *Result) (
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

// count counts a failure that is retried, as the controller does for a worker of a job.
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

// notAgain is the failure of an activation with the reason why it is not retried.
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

// next is the plan of the next invocation.
func (q *query) next() disdel.ActionPlan {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.plan
}

// raise gives further invocations the limits that one needed. It makes another action for them: the present one is in
// use.
func (q *query) raise(ctx context.Context, from disdel.ActionPlan, to disdel.Limits) error {
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

// invoke invokes an action once and waits for its end.
func (q *query) invoke(ctx context.Context, n, attempt int, plan disdel.ActionPlan, request disdel.InferRequest) (
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

// demand is what a query of so many parts asks the pool for: as many parallel actions as the pool can ever hold and its
// tenant may have. It returns OverLimit if there can never be room for one.
func (s *Predictor) demand(ctx context.Context, q *query, parts int) (d scheduler.Demand, err error) {
	if !s.cfg.Queue.Waits() {
		return d, nil
	}
	d = scheduler.Demand{
		Job: queue.NewInferenceID(), Tenant: s.cfg.Tenant, Arrived: queue.SinceEpoch(time.Now()), Shares: true,
	}
	if d.Quota, err = s.cfg.Quota(ctx); err != nil {
		return d, err
	}
	d.Quota.Cost = 0 // its cost is unknown
	pool, err := s.cfg.Queue.Capacity(ctx)
	if err != nil {
		return d, err
	}
	q.atOnce = min(q.atOnce, parts)
	for ; ; q.atOnce-- {
		d.Gang = q.gang()
		err := scheduler.CheckFits(pool, d)
		if err == nil {
			break
		}
		if q.atOnce <= 1 {
			return d, neverFits(err)
		}
	}
	waves := disdel.Millis((parts + q.atOnce - 1) / q.atOnce)
	d.Takes.Likely = waves * q.plan.Limits.Timeout
	d.Takes.High = d.Takes.Likely
	return d, nil
}

// neverFits says why there is never room for an action of a query. Its hint is not about a job file.
func neverFits(err error) error {
	e := *disdel.AsError(err)
	e.Op, e.Job, e.Hint = "infer", "", "a larger pool (--pool-memory), or a larger quota"
	return &e
}

// reserve waits until the pool has room for a demand. The query keeps the room until leave is called.
func (s *Predictor) reserve(ctx context.Context, d scheduler.Demand) (leave func(), err error) {
	if !s.cfg.Queue.Waits() {
		return func() {}, nil
	}
	if err := s.cfg.Queue.Enter(ctx, d, queue.Waiter{}); err != nil {
		if ctx.Err() != nil {
			err = &disdel.Error{
				Kind: disdel.Canceled, Op: "infer", Msg: "it was stopped while it waited for room", Err: context.Cause(ctx),
			}
		}
		return nil, err
	}
	return func() { s.cfg.Queue.Leave(d.Job, 0) }, nil
}

// gang is the parallel actions of a query. If there are fewer processors than actions, the actions share them.
func (q *query) gang() scheduler.Gang {
	each := scheduler.Capacity{Memory: q.plan.Limits.Memory, Millicores: 1000, Concurrent: 1}
	if n := q.platform.Processors; n > 0 {
		each.Millicores = min(each.Millicores, 1000*n/q.atOnce)
	}
	return scheduler.Gang{{Task: disdel.TaskInfer, Count: q.atOnce, Each: each}}
}
