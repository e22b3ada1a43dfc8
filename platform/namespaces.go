package platform

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// Namespace is one tenant of the platform. A throttle of 0 means the one of Config.Limits.
type Namespace struct {
	Name                  string `json:"name"`
	Key                   string `json:"key,omitempty"` // uuid:key
	InvocationsPerMinute  int    `json:"invocationsPerMinute,omitempty"`
	ConcurrentInvocations int    `json:"concurrentInvocations,omitempty"`
	FiresPerMinute        int    `json:"firesPerMinute,omitempty"`
}

// user is a namespace with its throttles.
type user struct {
	Namespace
	invocations throttle
	fires       throttle
}

func newUsers(cfg *Config) []*user {
	var out []*user
	for _, n := range append([]Namespace{{Name: cfg.Namespace, Key: cfg.AuthKey}}, cfg.Namespaces...) {
		out = append(out, newUser(cfg, n))
	}
	return out
}

func newUser(cfg *Config, n Namespace) *user {
	n.InvocationsPerMinute = cmp.Or(n.InvocationsPerMinute, cfg.Limits.InvocationsPerMinute)
	n.ConcurrentInvocations = cmp.Or(n.ConcurrentInvocations, cfg.Limits.ConcurrentInvocations)
	n.FiresPerMinute = cmp.Or(n.FiresPerMinute, cfg.Limits.FiresPerMinute)
	return &user{Namespace: n}
}

func validateNamespaces(list []Namespace, first Namespace) error {
	names, keys := map[string]bool{}, map[string]bool{}
	for _, n := range append([]Namespace{first}, list...) {
		if !entityName().MatchString(n.Name) || n.Key == "" || names[n.Name] || keys[n.Key] {
			return &disdel.Error{
				Kind: disdel.Invalid, Op: "configure platform",
				Msg: "every namespace needs a valid name and its own key: " + n.Name + " does not have that",
			}
		}
		names[n.Name], keys[n.Key] = true, true
	}
	return nil
}

// userOf finds the user of a key. It compares every key in constant time, so the duration reveals nothing.
func (p *Platform) userOf(key string) *user {
	var found *user
	for _, u := range p.allUsers() {
		if subtle.ConstantTimeCompare([]byte(key), []byte(u.Key)) == 1 {
			found = u
		}
	}
	return found
}

// namespace finds the user of a name; nil if there is none.
func (p *Platform) namespace(name string) *user {
	for _, u := range p.allUsers() {
		if u.Name == name {
			return u
		}
	}
	return nil
}

// admit counts an invocation, or returns the throttle's refusal. With countRefused, refused invocations count against
// the minute.
func (u *user) admit(now time.Time, countRefused bool) error {
	return u.invocations.admit(now, u.InvocationsPerMinute, u.ConcurrentInvocations, countRefused)
}

// admitFire is admit for the throttle of triggers.
func (u *user) admitFire(now time.Time) error {
	err := u.fires.admit(now, u.FiresPerMinute, math.MaxInt, false)
	if err == nil {
		u.fires.release() // a fire is answered at once and never in flight
	}
	return err
}

// throttle counts the invocations of a namespace per minute of the wall clock, as OpenWhisk does, and those in flight.
type throttle struct {
	mu       sync.Mutex
	minute   int64
	count    int
	inFlight int
}

func (t *throttle) admit(now time.Time, perMinute, atOnce int, countRefused bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := now.Unix() / 60; m != t.minute {
		t.minute, t.count = m, 0
	}
	t.count++
	var err error
	switch {
	case t.count > perMinute:
		err = errPerMinute(t.count, perMinute)
	case t.inFlight >= atOnce:
		err = errConcurrent(t.inFlight, atOnce)
	default:
		t.inFlight++
		return nil
	}
	if !countRefused {
		t.count--
	}
	return err
}

func (t *throttle) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
}

func (p *Platform) listNamespaces(q *request) (int, any, error) {
	return httpDone, []string{q.user.Name}, nil
}

func (p *Platform) userLimits(q *request) (int, any, error) {
	l, u := &p.cfg.Limits, q.user
	return httpDone, map[string]any{
		"invocationsPerMinute": u.InvocationsPerMinute, "concurrentInvocations": u.ConcurrentInvocations,
		"firesPerMinute":   u.FiresPerMinute,
		"maxParameterSize": textSize(l.Parameters), "maxActionInstances": u.ConcurrentInvocations,
		"minActionMemory": l.Memory.Min.MB(), "maxActionMemory": l.Memory.Max.MB(),
		"minActionTimeout": l.Timeout.Min.Milliseconds(), "maxActionTimeout": l.Timeout.Max.Milliseconds(),
		"minActionLogs": l.LogsMB.Min, "maxActionLogs": l.LogsMB.Max,
		"minActionConcurrency": l.Concurrency.Min, "maxActionConcurrency": l.Concurrency.Max,
	}, nil
}

// allUsers returns all users. The list is replaced and never changed.
func (p *Platform) allUsers() []*user {
	p.tenants.RLock()
	defer p.tenants.RUnlock()
	return p.users
}

// configuredUsers is the number of users from the configuration. Those after them are in the store.
func (p *Platform) configuredUsers() int { return 1 + len(p.cfg.Namespaces) }

// loadTenants reads the namespaces in the store.
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
			p.cfg.Logger.WithField("namespace", n.Name).Warn("a stored namespace is ignored: its name or key is configured")
			continue
		}
		p.users = append(p.users, newUser(&p.cfg, n))
	}
	return nil
}

// Namespaces lists all namespaces with keys and throttles, the platform's own first.
func (p *Platform) Namespaces() []Namespace {
	var out []Namespace
	for _, u := range p.allUsers() {
		out = append(out, u.Namespace)
	}
	return out
}

// PutNamespace adds a namespace to the store. With overwrite it changes the given fields of an existing one. A new
// namespace without a key gets a random one. It returns Conflict if the name or key is taken, and Invalid for bad
// values and for namespaces of the configuration.
func (p *Platform) PutNamespace(n Namespace, overwrite bool) (Namespace, error) {
	p.tenants.Lock()
	defer p.tenants.Unlock()
	at := slices.IndexFunc(p.users, func(u *user) bool { return u.Name == n.Name })
	switch {
	case at >= 0 && at < p.configuredUsers() && overwrite:
		return n, namespaceError(disdel.Invalid, n.Name+" is a namespace of the configuration: change it there")
	case at >= 0 && !overwrite:
		return n, namespaceError(disdel.Conflict, "the namespace "+n.Name+" exists already")
	case at >= 0:
		if err := p.fillFromStored(&n); err != nil {
			return n, err
		}
	case n.Key == "":
		n.Key = RandomKey()
	}
	if err := n.check(); err != nil {
		return n, err
	}
	if slices.ContainsFunc(p.users, func(u *user) bool { return u.Key == n.Key && u.Name != n.Name }) {
		return n, namespaceError(disdel.Conflict, "another namespace has this key")
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

// fillFromStored fills in the fields that a change leaves out.
func (p *Platform) fillFromStored(n *Namespace) error {
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

// RemoveNamespace deletes a namespace's key. As in OpenWhisk its entities stay, for a later namespace of the same name.
// It returns NotFound, or Invalid for namespaces of the configuration.
func (p *Platform) RemoveNamespace(name string) error {
	p.tenants.Lock()
	defer p.tenants.Unlock()
	at := slices.IndexFunc(p.users, func(u *user) bool { return u.Name == name })
	switch {
	case at < 0:
		return namespaceError(disdel.NotFound, "there is no namespace "+name)
	case at < p.configuredUsers():
		return namespaceError(disdel.Invalid, name+" is a namespace of the configuration, and cannot be removed")
	}
	if err := p.store.update(func(t tx) error { return t.drop(tenants, name) }); err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "remove a namespace", Err: err}
	}
	p.users = slices.Delete(slices.Clone(p.users), at, at+1)
	return nil
}

// minSecret is the fewest characters of a key after its colon, because anybody who reaches the port can try keys.
const minSecret = 16

func (n *Namespace) check() error {
	id, secret, ok := strings.Cut(n.Key, ":")
	switch {
	case checkName(n.Name) != nil:
		return namespaceError(disdel.Invalid, "a namespace cannot have the name "+strings.ToValidUTF8(n.Name, "?"))
	case !ok || id == "" || len(secret) < minSecret || strings.ContainsFunc(n.Key, isNoKeyCharacter):
		return namespaceError(disdel.Invalid, "a key is UUID:SECRET in ASCII, with at least 16 characters after the colon")
	case n.InvocationsPerMinute < 0 || n.ConcurrentInvocations < 0 || n.FiresPerMinute < 0:
		return namespaceError(disdel.Invalid, "a throttle cannot be negative")
	}
	return nil
}

func isNoKeyCharacter(c rune) bool { return c <= ' ' || c > '~' }

func namespaceError(kind disdel.Kind, msg string) error {
	return &disdel.Error{Kind: kind, Op: "change namespaces", Msg: msg}
}

// RandomKey returns a new random key, UUID:SECRET.
func RandomKey() string {
	b := make([]byte, 48)
	rand.Read(b)
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-8" + h[17:20] + "-" + h[20:32] + ":" + h[32:]
}
