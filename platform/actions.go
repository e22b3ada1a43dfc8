package platform

import "reflect"

type action struct {
	header
	Exec       execSpec   `json:"exec"`
	Parameters []keyValue `json:"parameters"`
	Limits     limits     `json:"limits"`
	invoker    string     // the namespace whose containers run it, where that is not its own
}

// sameAction is the pool's question whether a warm container fits: structural equality, version and all.
func sameAction(a, b *action) bool { return a == b || reflect.DeepEqual(a, b) }

// actionsUnder lists the actions of a package, or of a namespace with all its packages.
func actionsUnder(t tx, path string) ([]*action, error) {
	var out []*action
	err := each(t, actions, path+"/", func(v *storedAction) { out = append(out, v.Action) })
	return out, err
}

// resolved is an action as a request reaches it: through a package or a binding, whose parameters it inherits.
type resolved struct {
	*action
	inherited []keyValue
	binding   string // the binding's path, if it was one
}

// resolve finds an action that the caller may read and invoke.
func (p *Platform) resolve(t tx, u *user, path pathName) (*resolved, error) {
	ns, pkgName, name := path.split()
	out := &resolved{}
	key := path.key()
	if pkgName == "" && ns != u.Name {
		return nil, problem{403, textForbidden(key)}
	}
	if pkgName != "" {
		named, owner, params, err := provider(t, u, path.Path)
		if err != nil {
			return nil, err
		}
		out.inherited, key = params, owner.path()+"/"+name
		if named.bound() {
			out.binding = named.path()
		}
	}
	var err error
	if out.action, err = p.store.whole(t, key); err != nil {
		return nil, err
	}
	if out.action == nil {
		return nil, missing(t, actions, key)
	}
	return out, nil
}

// actionPath is the action that a request's path names.
func (q *request) actionPath() pathName {
	if pkgName := q.PathValue("pkg"); pkgName != "" {
		return pathName{q.ns + "/" + pkgName, q.PathValue("name")}
	}
	return pathName{q.ns, q.PathValue("name")}
}

func (p *Platform) listActions(q *request) (int, any, error) {
	var list []*action
	err := p.store.view(func(t tx) (err error) {
		under := q.ns
		if name := q.PathValue("pkg"); name != "" {
			_, owner, _, err := provider(t, q.user, q.ns+"/"+name)
			if err != nil {
				return err
			}
			under = owner.path()
		}
		list, err = actionsUnder(t, under)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	return listOf(q.Request, "actions", list, func(a *action) any {
		return struct {
			header
			Limits limits          `json:"limits"`
			Exec   map[string]bool `json:"exec"`
		}{a.header, a.Limits, map[string]bool{"binary": a.Exec.Binary}}
	})
}

func (p *Platform) getAction(q *request) (int, any, error) {
	var out struct {
		action
		Binding string `json:"binding,omitempty"` // that it is seen through
	}
	err := p.store.view(func(t tx) error {
		found, err := p.resolve(t, q.user, q.actionPath())
		if err != nil {
			return err
		}
		out.action, out.Binding = *found.action, found.binding
		out.Parameters = mergeParameters(found.inherited, out.Parameters)
		return nil
	})
	if q.URL.Query().Has("code") && !flag(q.Request, "code") {
		out.Exec.Code, out.Exec.bare = "", true
	}
	return 200, &out, err
}

func (p *Platform) deleteAction(q *request) (int, any, error) {
	var a *action
	err := p.store.update(func(t tx) (err error) {
		if err := writable(t, q); err != nil {
			return err
		}
		key := q.actionPath().key()
		if a, err = p.store.whole(t, key); err != nil {
			return err
		}
		if a == nil {
			return missing(t, actions, key)
		}
		return t.dropAction(key)
	})
	if err == nil {
		p.pool.forget(a)
	}
	return 200, a, err
}
