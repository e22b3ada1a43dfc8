package platform

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/disdel/disdel"
)

// everyone is the users there are. The list is never changed, only replaced.
func (p *Platform) everyone() []*user {
	p.tenants.RLock()
	defer p.tenants.RUnlock()
	return p.users
}

// configured is how many users the configuration names; those after them are kept with the platform's state.
func (p *Platform) configured() int { return 1 + len(p.cfg.Namespaces) }

// loadTenants reads the namespaces that are kept.
func (p *Platform) loadTenants() error {
	var kept []Namespace
	err := p.store.view(func(t tx) error {
		return each(t, tenants, "", func(n *Namespace) { kept = append(kept, *n) })
	})
	if err != nil {
		return err
	}
	for _, n := range kept {
		if p.namespace(n.Name) != nil || p.userOf(n.Key) != nil {
			p.cfg.Logger.WithField("namespace", n.Name).Warn("a kept namespace is left out: its name or key is configured")
			continue
		}
		p.users = append(p.users, newUser(&p.cfg, n))
	}
	return nil
}

// Namespaces lists the namespaces with their keys and throttles, the platform's own first.
func (p *Platform) Namespaces() []Namespace {
	var out []Namespace
	for _, u := range p.everyone() {
		out = append(out, u.Namespace)
	}
	return out
}

// PutNamespace adds a namespace that is kept with the platform's state, or, where overwrite says so, changes what is
// given of it. One that is added without a key gets a random one. It returns Conflict for a name or a key that is
// taken, Invalid for what is none, and for what the configuration names.
func (p *Platform) PutNamespace(n Namespace, overwrite bool) (Namespace, error) {
	p.tenants.Lock()
	defer p.tenants.Unlock()
	at := slices.IndexFunc(p.users, func(u *user) bool { return u.Name == n.Name })
	switch {
	case at >= 0 && at < p.configured() && overwrite:
		return n, badNamespace(disdel.Invalid, n.Name+" is the platform's by its configuration, and is changed there")
	case at >= 0 && !overwrite:
		return n, badNamespace(disdel.Conflict, "there is a namespace "+n.Name+" already")
	case at >= 0:
		if err := p.keepTenant(&n); err != nil {
			return n, err
		}
	case n.Key == "":
		n.Key = RandomKey()
	}
	if err := n.check(); err != nil {
		return n, err
	}
	if slices.ContainsFunc(p.users, func(u *user) bool { return u.Key == n.Key && u.Name != n.Name }) {
		return n, badNamespace(disdel.Conflict, "the key is another namespace's")
	}
	if err := p.store.update(func(t tx) error { return put(t, tenants, n.Name, n) }); err != nil {
		return n, &disdel.Error{Kind: disdel.Unavailable, Op: "keep a namespace", Err: err}
	}
	users := slices.Clone(p.users)
	if at >= 0 {
		users[at] = newUser(&p.cfg, n)
	} else {
		users = append(users, newUser(&p.cfg, n))
	}
	p.users = users
	return n, nil
}

// keepTenant fills in what a change leaves out.
func (p *Platform) keepTenant(n *Namespace) error {
	return p.store.view(func(t tx) error {
		old, err := get[Namespace](t, tenants, n.Name)
		if err != nil || old == nil {
			return err
		}
		n.Key = cmp.Or(n.Key, old.Key)
		n.InvocationsPerMinute = cmp.Or(n.InvocationsPerMinute, old.InvocationsPerMinute)
		n.ConcurrentInvocations = cmp.Or(n.ConcurrentInvocations, old.ConcurrentInvocations)
		n.FiresPerMinute = cmp.Or(n.FiresPerMinute, old.FiresPerMinute)
		return nil
	})
}

// RemoveNamespace takes a namespace's key away. What it has stays, for one that is added under the same name, as in
// OpenWhisk. It returns NotFound, or Invalid for what the configuration names.
func (p *Platform) RemoveNamespace(name string) error {
	p.tenants.Lock()
	defer p.tenants.Unlock()
	at := slices.IndexFunc(p.users, func(u *user) bool { return u.Name == name })
	switch {
	case at < 0:
		return badNamespace(disdel.NotFound, "there is no namespace "+name)
	case at < p.configured():
		return badNamespace(disdel.Invalid, name+" is the platform's by its configuration, and cannot be removed")
	}
	if err := p.store.update(func(t tx) error { return t.drop(tenants, name) }); err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "remove a namespace", Err: err}
	}
	p.users = slices.Delete(slices.Clone(p.users), at, at+1)
	return nil
}

// shortestSecret is the least characters of a key after its colon: it may be tried by whoever reaches the port.
const shortestSecret = 16

func (n *Namespace) check() error {
	id, secret, ok := strings.Cut(n.Key, ":")
	switch {
	case checkName(n.Name) != nil:
		return badNamespace(disdel.Invalid, "no namespace can be called "+strings.ToValidUTF8(n.Name, "?"))
	case !ok || id == "" || len(secret) < shortestSecret || strings.ContainsFunc(n.Key, outsideKeys):
		return badNamespace(disdel.Invalid, "a key is UUID:SECRET, of 16 characters at least after the colon, in ASCII")
	case n.InvocationsPerMinute < 0 || n.ConcurrentInvocations < 0 || n.FiresPerMinute < 0:
		return badNamespace(disdel.Invalid, "a throttle cannot be negative")
	}
	return nil
}

func outsideKeys(c rune) bool { return c <= ' ' || c > '~' }

func badNamespace(kind disdel.Kind, msg string) error {
	return &disdel.Error{Kind: kind, Op: "change namespaces", Msg: msg}
}

// RandomKey is a key as OpenWhisk's, uuid:secret, that nobody knows yet.
func RandomKey() string {
	b := make([]byte, 48)
	rand.Read(b)
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:32] + ":" + h[32:]
}
