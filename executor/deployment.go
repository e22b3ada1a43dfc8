package executor

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"

	"github.com/disdel/disdel"
)

// Deployment is a package of actions, as it is on the platform or as it should be.
type Deployment struct {
	Package     string // its name
	Version     string // of the package; "" in a request: the platform counts
	Annotations map[string]any
	Actions     []DeployedAction
}

// DeployedAction is one action of a Deployment. Zero fields in a request leave the platform's values.
type DeployedAction struct {
	Name        string // in its package
	Version     string // counted by the platform; read only
	Updated     time.Time
	Kind        string // a kind of the platform, or blackbox for Image
	Image       string
	Main        string
	Code        string
	Memory      disdel.Bytes
	Timeout     time.Duration
	Logs        disdel.Bytes
	Annotations map[string]any
}

// Deployment reads a package and its actions. It returns NotFound where there is no such package.
func (e *Executor) Deployment(ctx context.Context, pkg string) (Deployment, error) {
	d := Deployment{Package: pkg}
	p, err := withRetries(ctx, e, patience, func() (*whisk.Package, error) {
		c := e.client(ctx)
		p, res, err := c.Packages.Get(pkg)
		return p, e.wrap(ctx, err, res, "read package", pkg)
	})
	if err != nil {
		return d, err
	}
	d.Version, d.Annotations = p.Version, annotationsOf(p.Annotations)
	for _, a := range p.Actions {
		one, err := e.deployed(ctx, pkg, a.Name)
		if err != nil {
			return d, err
		}
		d.Actions = append(d.Actions, one)
	}
	return d, nil
}

func (e *Executor) deployed(ctx context.Context, pkg, name string) (DeployedAction, error) {
	a, err := withRetries(ctx, e, patience, func() (*whisk.Action, error) {
		c := e.client(ctx)
		a, res, err := c.Actions.Get(pkg+"/"+name, true)
		return a, e.wrap(ctx, err, res, "read action", pkg+"/"+name)
	})
	if err != nil {
		return DeployedAction{}, err
	}
	d := DeployedAction{
		Name: name, Version: a.Version, Updated: time.UnixMilli(a.Updated), Annotations: annotationsOf(a.Annotations),
	}
	if x := a.Exec; x != nil {
		d.Kind, d.Image, d.Main = x.Kind, x.Image, x.Main
		if x.Code != nil {
			d.Code = *x.Code
		}
	}
	if l := a.Limits; l != nil {
		d.Memory = disdel.Bytes(intOrZero(l.Memory)) * disdel.MB
		d.Timeout = time.Duration(intOrZero(l.Timeout)) * time.Millisecond
		d.Logs = disdel.Bytes(intOrZero(l.Logsize)) * disdel.MB
	}
	return d, nil
}

func intOrZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

func annotationsOf(list whisk.KeyValueArr) map[string]any {
	out := map[string]any{}
	for _, kv := range list {
		out[kv.Key] = kv.Value
	}
	return out
}

func keyValues(m map[string]any) (list whisk.KeyValueArr) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, whisk.KeyValue{Key: key, Value: m[key]})
	}
	return list
}

// PutPackage creates the package of d, or replaces its version and annotations. It does not touch actions.
func (e *Executor) PutPackage(ctx context.Context, d Deployment) error {
	p := &whisk.Package{Name: d.Package, Version: d.Version, Annotations: keyValues(d.Annotations)}
	return e.repeated(ctx, "create package", d.Package, func(c *whisk.Client) (*http.Response, error) {
		_, res, err := c.Packages.Insert(p, true)
		return res, err
	})
}

// PutAction creates or replaces an action of a package. It returns OverLimit for limits that the platform does not
// allow, and Invalid for an unknown kind.
func (e *Executor) PutAction(ctx context.Context, pkg string, d DeployedAction) error {
	a := &whisk.Action{
		Name:        pkg + "/" + d.Name,
		Exec:        &whisk.Exec{Kind: d.Kind, Image: d.Image, Main: d.Main, Code: &d.Code},
		Annotations: keyValues(d.Annotations),
		Limits:      &whisk.Limits{},
	}
	if d.Memory > 0 {
		a.Limits.Memory = new(int(d.Memory / disdel.MB))
	}
	if d.Timeout > 0 {
		a.Limits.Timeout = new(int(d.Timeout.Milliseconds()))
	}
	if d.Logs > 0 {
		a.Limits.Logsize = new(int(d.Logs / disdel.MB))
	}
	return e.repeated(ctx, "create action", a.Name, func(c *whisk.Client) (*http.Response, error) {
		_, res, err := c.Actions.Insert(a, true)
		return res, err
	})
}

// RemoveAction deletes one action of a package. It returns NotFound if there is none.
func (e *Executor) RemoveAction(ctx context.Context, pkg, name string) error {
	return e.repeated(ctx, "remove action", pkg+"/"+name, func(c *whisk.Client) (*http.Response, error) {
		return c.Actions.Delete(pkg + "/" + name)
	})
}

// RemovePackage deletes a package without actions. It returns Conflict if it has actions, and NotFound.
func (e *Executor) RemovePackage(ctx context.Context, pkg string) error {
	return e.repeated(ctx, "remove package", pkg, func(c *whisk.Client) (*http.Response, error) {
		return c.Packages.Delete(pkg)
	})
}

// repeated makes a call without a result, and retries while OpenWhisk is unavailable.
func (e *Executor) repeated(ctx context.Context, op, what string,
	call func(c *whisk.Client) (*http.Response, error),
) error {
	_, err := withRetries(ctx, e, patience, func() (struct{}, error) {
		c := e.client(ctx)
		res, err := call(c)
		return struct{}{}, e.wrap(ctx, err, res, op, what)
	})
	return err
}

// Quotas are a namespace's quotas; 0 if the platform does not tell.
type Quotas struct {
	PerMinute  int `json:"invocationsPerMinute"`
	Concurrent int `json:"concurrentInvocations"`
}

// Quotas reads the namespace's own quotas, which an admin may have set. It is the first call that checks the key: it
// returns Denied for a wrong one.
func (e *Executor) Quotas(ctx context.Context) (q Quotas, err error) {
	err = e.repeated(ctx, "read the namespace's quotas", e.cfg.Namespace, func(c *whisk.Client) (*http.Response, error) {
		return e.askQuotas(ctx, c, &q)
	})
	if disdel.KindOf(err) == disdel.NotFound { // an older release
		return Quotas{}, nil
	}
	return q, err
}

func (e *Executor) askQuotas(ctx context.Context, c *whisk.Client, q *Quotas) (*http.Response, error) {
	req, err := c.NewRequest(http.MethodGet, "limits", nil, true)
	if err != nil {
		return nil, err
	}
	return c.Do(req.WithContext(ctx), q, true)
}

// InvokeOnce invokes once, without waiting for quotas, to find out what OpenWhisk refuses. It returns Unavailable with
// the code of the exhausted quota.
func (e *Executor) InvokeOnce(ctx context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	params, err := e.sealed(inv)
	if err != nil {
		return "", err
	}
	return e.invoke(ctx, inv, params)
}

// InvokeBlocking invokes once and waits for the record of a short activation, like `wsk action invoke --blocking`.
func (e *Executor) InvokeBlocking(ctx context.Context, inv disdel.Invocation) (disdel.ActivationID, error) {
	c := e.client(ctx)
	result, res, err := c.Actions.Invoke(string(inv.Action), inv.Params, true, false)
	if err = e.wrap(ctx, err, res, "invoke "+inv.ID, string(inv.Action)); err != nil {
		return "", err
	}
	fields, _ := result.(map[string]any)
	id, _ := fields["activationId"].(string)
	return disdel.ActivationID(id), nil
}
