package platform

import "slices"

// actionPut is the body of a PUT.
type actionPut struct {
	headerPut
	Exec           *execPut   `json:"exec"`
	Parameters     *keyValues `json:"parameters"`
	Limits         *limitsPut `json:"limits"`
	DelAnnotations []string   `json:"delAnnotations"`
}

func (p *Platform) putAction(q *request) (int, any, error) {
	if err := checkName(q.PathValue("name")); err != nil {
		return 0, nil, err
	}
	var body actionPut
	l := &p.cfg.Limits
	leave, err := p.enterLarge(q)
	if err != nil {
		return 0, nil, err
	}
	err = readEntity(q.Request, 2*l.Code+l.bodyLimit(), "exec", &body)
	if leave(); err != nil {
		return 0, nil, err
	}
	var out *action
	err = p.store.update(func(t tx) error {
		path := q.actionPath()
		if err := writable(t, q); err != nil {
			return err
		}
		old, err := p.store.whole(t, path.key())
		if err != nil {
			return err
		}
		if err := mayPut(t, actions, q, old != nil); err != nil {
			return err
		}
		if out, err = p.newAction(path, old, &body); err != nil {
			return err
		}
		if body.Exec != nil && out.Exec.Kind == sequenceKind {
			if err := p.checkSequence(t, q.user, out); err != nil {
				return err
			}
		}
		return t.putAction(out)
	})
	if err == nil && body.Exec != nil {
		p.advise(out)
	}
	return 200, out, err
}

// Large bodies take several times their size while they are read, so that few are read at once.
const (
	largeBody   = 4 << 20
	largeAtOnce = 2
)

// enterLarge waits for a place to read a large body in. leave gives it back.
func (p *Platform) enterLarge(q *request) (leave func(), err error) {
	if q.ContentLength >= 0 && q.ContentLength < largeBody {
		return func() {}, nil
	}
	select {
	case p.large <- struct{}{}:
		return func() { <-p.large }, nil
	case <-q.Context().Done():
		return nil, problem{503, textInternal}
	}
}

// writable tells whether an action's package, if it has one, takes changes: it must exist, and be no binding.
func writable(t tx, q *request) error {
	name := q.PathValue("pkg")
	if name == "" {
		return nil
	}
	owner, err := get[pkg](t, packages, q.ns+"/"+name)
	switch {
	case err != nil:
		return err
	case owner == nil:
		return problem{404, textNoEntity}
	case owner.bound():
		return problem{400, textNotOnBinding}
	}
	return nil
}

func (p *Platform) newAction(path pathName, old *action, body *actionPut) (*action, error) {
	a := p.blank(old)
	kept := a.Annotations
	var before *header
	if old != nil {
		before = &old.header
	}
	a.header = body.next(path.Path, path.Name, before)
	switch {
	case body.Exec != nil:
		var err error
		if a.Exec, err = p.newExec(body.Exec.execSpec); err != nil {
			return nil, err
		}
	case old == nil:
		return nil, problem{400, textExecMissing}
	}
	if body.Parameters != nil {
		a.Parameters = mergeParameters(*body.Parameters)
	}
	kept = slices.DeleteFunc(slices.Clone(kept),
		func(v keyValue) bool { return slices.Contains(body.DelAnnotations, v.Key) })
	if body.Annotations != nil {
		kept = mergeParameters(kept, *body.Annotations)
	}
	if old == nil {
		kept = mergeParameters([]keyValue{kv("provide-api-key", false)}, kept)
	}
	a.Annotations = mergeParameters(kept, []keyValue{kv("exec", a.Exec.Kind)})
	body.setLimits(&a.Limits)
	return a, p.cfg.Limits.checkAction(a)
}

// blank is what a PUT's body is laid over: a copy of the old action, or the defaults.
func (p *Platform) blank(old *action) *action {
	if old != nil {
		a := *old
		return &a
	}
	l := &p.cfg.Limits
	return &action{
		Parameters: []keyValue{},
		Limits: limits{
			Timeout: int(l.Timeout.Std.Milliseconds()), Memory: l.Memory.Std.MB(), Logs: l.LogsMB.Std,
			Concurrency: l.Concurrency.Std,
		},
	}
}
