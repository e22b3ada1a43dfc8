package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"

	"github.com/disdel/disdel"
)

// Limits reads the platform's bounds from GET /, and the namespace's own quotas if the key may read them. Missing
// bounds get OpenWhisk's defaults; missing quotas stay 0.
func (e *Executor) Limits(ctx context.Context) (disdel.PlatformLimits, error) {
	var info struct {
		Limits struct {
			PerMinute   int   `json:"actions_per_minute"`
			Concurrent  int   `json:"concurrent_actions"`
			MinDuration int64 `json:"min_action_duration"` // ms
			MaxDuration int64 `json:"max_action_duration"`
			MinMemory   int64 `json:"min_action_memory"` // bytes
			MaxMemory   int64 `json:"max_action_memory"`
		} `json:"limits"`
	}
	_, err := repeat(ctx, e, firstPatience, firstPatience, func() (struct{}, error) {
		c := e.client(ctx)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.cfg.APIHost+"/", nil)
		if err != nil {
			return struct{}{}, err
		}
		res, err := c.Do(req, &info, false)
		return struct{}{}, e.wrap(ctx, err, res, "read the platform's limits", "")
	})
	l := info.Limits
	or := func(v, standard int64) int64 {
		if v == 0 {
			return standard
		}
		return v
	}
	out := disdel.PlatformLimits{
		MinMemory:  disdel.Bytes(or(l.MinMemory, int64(128*disdel.MB))),
		MaxMemory:  disdel.Bytes(or(l.MaxMemory, int64(512*disdel.MB))),
		MinTimeout: disdel.Millis(time.Duration(or(l.MinDuration, 100)) * time.Millisecond),
		MaxTimeout: disdel.Millis(time.Duration(or(l.MaxDuration, 300_000)) * time.Millisecond),
		PerMinute:  l.PerMinute, Concurrent: l.Concurrent,
	}
	if err == nil {
		out.PerMinute, out.Concurrent = e.ownQuotas(ctx, out.PerMinute, out.Concurrent)
		e.quotas.setQuotas(out)
	}
	return out, err
}

// ownQuotas are the namespace's own quotas, or the given ones if OpenWhisk does not report them. It asks only once,
// because the first refusal names the quota too.
func (e *Executor) ownQuotas(ctx context.Context, perMinute, concurrent int) (ownMinute, ownConcurrent int) {
	c := e.client(ctx)
	var q Quotas
	if _, err := e.askQuotas(ctx, c, &q); err != nil {
		return perMinute, concurrent
	}
	return cmp.Or(q.PerMinute, perMinute), cmp.Or(q.Concurrent, concurrent)
}

// Prepare creates or replaces the package and its actions. It returns OverLimit for limits that the platform does not
// allow, Denied, Unavailable.
func (e *Executor) Prepare(ctx context.Context, pkg string, actions []disdel.ActionPlan) error {
	_, err := withRetries(ctx, e, patience, func() (struct{}, error) {
		c := e.client(ctx)
		_, res, err := c.Packages.Insert(&whisk.Package{Name: pkg}, true)
		return struct{}{}, e.wrap(ctx, err, res, "create package", pkg)
	})
	for _, a := range actions {
		if err != nil {
			return err
		}
		_, err = withRetries(ctx, e, patience, func() (struct{}, error) {
			c := e.client(ctx)
			_, res, err := c.Actions.Insert(e.action(a), true)
			return struct{}{}, e.wrap(ctx, err, res, "create action", string(a.Name))
		})
	}
	return err
}

// action converts an ActionPlan for OpenWhisk: an action of our kind, or of a container image.
func (e *Executor) action(a disdel.ActionPlan) *whisk.Action {
	memory, timeout, code := a.Limits.Memory.MB(), int(time.Duration(a.Limits.Timeout).Milliseconds()), "disdel"
	if e.cfg.Seal {
		code = e.key.Of(a.Name).Code()
	}
	x := &whisk.Exec{Kind: disdel.RuntimeKind, Code: &code, Main: string(a.Task)}
	if e.cfg.Image != "" {
		x = &whisk.Exec{Kind: "blackbox", Image: e.cfg.Image, Main: string(a.Task), Code: &code}
	}
	out := &whisk.Action{Name: string(a.Name), Exec: x, Limits: &whisk.Limits{Memory: &memory, Timeout: &timeout}}
	out.Annotations = keyValues(disdel.GPUAnnotations(a.Limits))
	return out
}

// Invoke starts an invocation without waiting for its end. It keeps within the namespace's quotas. It waits for quotas
// and outages as long as the executor's patience, and for the job's own earlier activations. The caller must call Wait
// with the id, which frees the invocation's place. It returns NotFound for an unknown action.
func (e *Executor) Invoke(ctx context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	params, err := e.sealed(inv)
	if err == nil {
		err = e.quotas.enter(ctx, waiterOf(&inv))
	}
	if err != nil {
		return "", err
	}
	defer e.quotas.removeWaiting(waiterOf(&inv))
	id, err := withRetries(ctx, e, patience+time.Duration(inv.Queue), func() (disdel.ActivationID, error) {
		return e.invokePaced(ctx, inv, params)
	})
	if err != nil {
		e.quotas.leave()
	}
	return id, err
}

func waiterOf(inv *disdel.Invocation) waiter { return waiter{inv.Job, inv.ID} }

// sealed are the parameters of an invocation, encrypted if Seal is set.
func (e *Executor) sealed(inv disdel.Invocation) (json.RawMessage, error) {
	if !e.cfg.Seal {
		return inv.Params, nil
	}
	return e.key.Of(inv.Action).Seal(inv.Params)
}

// invoke makes one request.
func (e *Executor) invoke(ctx context.Context, inv disdel.Invocation, params any) (disdel.ActivationID, error) {
	what, action, who := describe(&inv), inv.Action, waiterOf(&inv)
	if err := e.quotas.request(ctx, who); err != nil {
		return "", err
	}
	c := e.client(ctx)
	result, res, err := c.Actions.Invoke(string(action), params, false, false)
	if err = e.wrap(ctx, err, res, "invoke "+what, string(action)); err != nil {
		return "", err
	}
	fields, _ := result.(map[string]any)
	id, ok := fields["activationId"].(string)
	if !ok {
		return "", &disdel.Error{Kind: disdel.Internal, Op: "invoke " + what, Msg: "OpenWhisk gave no activation id"}
	}
	return disdel.ActivationID(id), nil
}

// invokePaced makes one request and notes a refusal. The minute's quota delays every later request until the minute
// ends; the quota of concurrent actions delays this invocation.
func (e *Executor) invokePaced(ctx context.Context, inv disdel.Invocation, params any) (disdel.ActivationID, error) {
	id, err := e.invoke(ctx, inv, params)
	if err == nil {
		return id, nil
	}
	switch disdel.AsError(err).Code {
	case disdel.CodeQuotaMinute:
		e.quotas.refused(time.Now())
	case disdel.CodeQuotaConcurrent:
		e.quotas.addWaiting(waiterOf(&inv), quotaConcurrent)
	}
	return "", err
}

// fetchRecord asks once for the record.
func (e *Executor) fetchRecord(ctx context.Context, inv disdel.Invocation, id disdel.ActivationID) (a disdel.Activation,
	found bool, err error,
) {
	rec, err := withRetries(ctx, e, patience, func() (*whisk.Activation, error) {
		c := e.client(ctx)
		rec, res, err := c.Activations.Get(string(id))
		return rec, e.wrap(ctx, err, res, "wait for "+describe(&inv), string(id))
	})
	if disdel.KindOf(err) == disdel.NotFound {
		return a, false, nil
	}
	if err != nil {
		return a, false, err
	}
	r := toRecord(rec)
	var beats []disdel.Beat
	if r.Status != statusSuccess {
		beats = e.heartbeats(ctx, inv, r.Start.Add(-r.Queued))
	}
	return Classify(inv, r, beats), true, nil
}

// heartbeats returns the heartbeats of an ended invocation. Earlier ones belong to an earlier attempt.
func (e *Executor) heartbeats(ctx context.Context, inv disdel.Invocation, invoked time.Time) (out []disdel.Beat) {
	if e.cfg.Heartbeats == nil {
		return nil
	}
	for _, p := range e.cfg.Heartbeats(ctx, inv) {
		if at := time.UnixMilli(p.UnixMs).Sub(invoked); at >= 0 {
			out = append(out, p.Beat(disdel.Millis(at)))
		}
	}
	return out
}

// Remove deletes a package with its actions. It returns NotFound if there is none.
func (e *Executor) Remove(ctx context.Context, pkg string) error {
	c := e.client(ctx)
	p, res, err := c.Packages.Get(pkg)
	if err != nil {
		return e.wrap(ctx, err, res, "remove package", pkg)
	}
	for _, a := range p.Actions {
		if res, err := c.Actions.Delete(pkg + "/" + a.Name); err != nil {
			return e.wrap(ctx, err, res, "remove action", a.Name)
		}
	}
	res, err = c.Packages.Delete(pkg)
	return e.wrap(ctx, err, res, "remove package", pkg)
}

// toRecord converts the client's type.
func toRecord(a *whisk.Activation) Record {
	result, _ := json.Marshal(a.Response.Result) //nolint:errcheck // it was read from JSON
	r := Record{
		ID: disdel.ActivationID(a.ActivationID), Status: a.Response.Status, Result: result, Logs: a.Logs,
		Start: time.UnixMilli(a.Start).UTC(), End: time.UnixMilli(a.End).UTC(),
		Duration: time.Duration(a.Duration) * time.Millisecond,
	}
	for _, v := range a.Annotations {
		switch v.Key {
		case "timeout":
			r.TimedOut, _ = v.Value.(bool)
		case "initTime":
			r.Cold, r.Init = true, millis(v.Value)
		case "waitTime":
			r.Queued = millis(v.Value)
		case "memoryKill":
			killed, ok := v.Value.(bool)
			r.NotMemory = ok && !killed
		case "peakMemory":
			r.Peak = disdel.Bytes(number(v.Value))
		}
	}
	return r
}

func number(v any) int64 {
	switch n := v.(type) {
	case json.Number:
		i, _ := n.Int64()
		return i
	case float64:
		return int64(n)
	default:
		return 0
	}
}

func millis(v any) time.Duration { return time.Duration(number(v)) * time.Millisecond }
